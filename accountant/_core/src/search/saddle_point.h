/* Where to put the vertical line: saddle points in plain floating point.
 * The searches are not rigorous and need not be, because every line gives a valid bound. */
#ifndef ACCT_SADDLE_POINT_H
#define ACCT_SADDLE_POINT_H

#include <math.h>

#include "tilted_law.h"

typedef struct {
    double b;         /* distance of the saddle point from [0, 1] */
    double epsilon;
    double log_delta; /* saddle-point approximation */
    double log_scale; /* steps * K */
    double spread;    /* deviation of the tilted total loss */
} acct_saddle;

/* cumulants of the total loss under the law tilted to distance b; the mean is that of -L in the add
 * direction, so that it grows with b in either */
typedef struct {
    double log_mgf, mean, variance;
} acct_cumulants;

typedef void (*acct_cumulants_fn)(void *par, double b, acct_cumulants *out);

/* which of the two the solver is to reach */
enum acct_target { ACCT_AT_EPSILON, ACCT_AT_LOG_DELTA };

/* safeguarded Newton in log b, from the distance b */
void acct_saddle_solve(acct_cumulants_fn cumulants, void *par, enum acct_target kind, double target, double b,
                       acct_saddle *out);

/* The next two leave in `law` coarse nodes on [lo, hi]: K to about e^{-7}/steps. */

/* the saddle point of e^{n K - b eps} / (b (b+1)) at the given epsilon */
int acct_saddle_at_epsilon(acct_tilted_law *law, const acct_step *step, double steps, int direction,
                           const acct_window *window, double epsilon, acct_saddle *out);

/* the same on the nodes that the law already has */
void acct_saddle_on_nodes(acct_tilted_law *law, double steps, int direction, double epsilon,
                          acct_saddle *out);

/* the saddle point whose approximate profile equals e^{log_delta}; epsilon < 0 means that
 * delta(0) is smaller */
int acct_saddle_at_delta(acct_tilted_law *law, const acct_step *step, double steps, int direction,
                         const acct_window *window, double log_delta, acct_saddle *out);

/* deviation and mean of the bulk of a law given by weights, without its rare large values: the fixed
 * point of clipping at three and a half deviations; 0 where there is none */
double acct_bulk(int count, const double *loss, const double *weight, double *mean);

/* beyond so many deviations of the noise steps * P(outside) is below 1e-14 of e^{log_delta} */
static inline double acct_window_deviations(double steps, double log_delta) {
    return sqrt(2.0 * (log(steps) - log_delta + 33.0));
}

/* the relative error of delta that leaves epsilon 1e-10 relative, where d log(delta)/d epsilon = -b; not
 * below `least` */
static inline double acct_tolerance_for(double epsilon, double b, double least) {
    return acct_max(acct_min(1.5e-10 * epsilon * b, 3e-8), least);
}

/* panel ends that isolate the bulk, for the decay bound */
void acct_place_breaks(const acct_step *step, int count, const double *loss, const double *weight,
                       acct_window *window);

#endif
