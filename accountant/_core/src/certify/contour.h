/* Certified inversion of the transform on a vertical line: a bracket on the privacy profile. */
#ifndef ACCT_CONTOUR_H
#define ACCT_CONTOUR_H

#include <math.h>

#include "bounds.h"
#include "order.h"
#include "tail_event.h"
#include "characteristic_sum.h"

/* From delta(epsilon) with a bracket to epsilon(delta) with a bracket: invert.c. */
typedef struct {
    double value;       /* plain estimate of delta(epsilon) */
    double slope;       /* its derivative in epsilon */
    acct_bounds bounds; /* lower <= delta(epsilon) <= upper, in [0, 1] */
} acct_profile_point;

typedef void (*acct_profile_fn)(const void *par, double epsilon, acct_profile_point *point);

/* Newton on log delta from `start`; it uses estimates only, and its result is not certified */
double acct_invert_estimate(acct_profile_fn profile, const void *par, double start, double delta);

/* sets  *out such that delta(out->lower) > delta or out->lower = 0, and delta(out->upper) <= delta
 *       or out->upper = inf: each end was evaluated and passed */
void acct_invert(acct_profile_fn profile, const void *par, double start, double delta, acct_bounds *out);

/* the second half: certifies both ends around an estimate of epsilon(delta) */
void acct_invert_certify(acct_profile_fn profile, const void *par, double estimate, double delta,
                         acct_bounds *out);

#define ACCT_MAX_POINTS 8232 /* no multiple of a page, as ACCT_MAX_NODES */
#define ACCT_MIXTURE_POINTS 40008 /* the same for random shifts, whose losses have long tails */

/* One side of the aliases of the trapezoid sum: for every epsilon they add up to at most
 * exp(log_size - slope * epsilon) relative to the contour's scale (Theorem 5). */
typedef struct {
    double log_size, slope;
    double log_front, log_mgf; /* log_size is log_front + steps * log_mgf less the scale */
} acct_alias;

typedef struct {
    int direction;  /* ACCT_REMOVE or ACCT_ADD */
    int answers_add;    /* a contour of the remove direction that answers for the add direction */
    double steps;
    double b;       /* distance of the line from the interval [0, 1], > 0 */
    double dy;
    int count;      /* points y_k = k dy, 0 <= k < count */
    acct_line_terms terms; /* at epsilon = 0, the linear phase left out */
    acct_line_values values;   /* of one step, for other numbers of steps; not of every contour */
    double log_mgf, log_mgf_err, mean; /* of one step, likewise */
    double drift;              /* steps * mean loss: the linear phase is (drift - epsilon) y */
    double log_scale, log_scale_err; /* the sum is in units of e^{log_scale - b epsilon} */
    double numerical; /* bound on quadrature and round-off of all terms, same units */
    double truncated; /* bound on the terms beyond the last point, same units */
    double built_steps, built_truncated; /* the fewest steps a line was built for, and that bound then */
    acct_tail_event tail;   /* the share of the outcomes outside the window */
    acct_alias right, left;
    /* a rare-event contour (rare_event.h) leaves out the outcomes without any large loss: they add at
     * most exp(small_losses_log - small_losses_slope * epsilon) to the upper bound; -inf otherwise */
    double small_losses_log, small_losses_slope;
    double least; /* a profile that is not claimed above 0 from below, nor below this from above */
} acct_contour;

/* The problem a contour is built for.  Step, steps and direction define the answer; the other fields come
 * from a search and decide only how narrow the bracket is. */
typedef struct {
    acct_step step;
    double steps;
    double least_steps; /* the fewest that the line is to be read for; 0: only for so many */
    int direction;
    double b;         /* where to put the line */
    double epsilon;   /* where the bracket is wanted */
    double spread;    /* deviation of the tilted total loss, roughly */
    acct_window window;
    double reverse_order; /* order for the tail event; 0: to be searched for */
    double most_points; /* at most ACCT_MAX_POINTS, or ACCT_MIXTURE_POINTS */
    double log_mgf;   /* of one step on the line, roughly */
    double log_error; /* log of the error wanted, in units of the sum's scale (contour->log_scale) */
} acct_problem;

/* returns ACCT_EPRECISION if it would need too many points (the cost is checked first) */
int acct_contour_build(acct_contour *contour, acct_tilted_law *law, acct_tilted_law *scratch,
                       acct_characteristic_sum *cf, const acct_problem *problem);

/* Reads a contour of acct_contour_build for another number of steps; law: the one it was built on, for the
 * outcomes outside its window.  The line is the better placed the nearer the numbers are. */
void acct_contour_for_steps(acct_contour *contour, const acct_tilted_law *law, double steps);

/* the alias bounds of a contour whose b, steps, direction and scale are set; returns the period both
 * sides need to be below e^{-digits}; overwrites law->weight */
double acct_contour_aliases(acct_contour *contour, acct_tilted_law *law, double epsilon, double digits,
                            double spread);

/* largest double with 24 significant bits not above x, so that small multiples are exact */
double acct_short_step(double x);

/* the same as an acct_profile_fn; `contour` is an acct_contour */
void acct_contour_at(const void *contour, double epsilon, acct_profile_point *point);

/* sets *out to the bracket at epsilon, rounded outward (Theorem 5); epsilon < 0 for a rare-event contour
 * only */
void acct_contour_profile(const acct_contour *contour, double epsilon, acct_profile_point *out);

#endif
