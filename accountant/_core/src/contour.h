/* Certified inversion of the transform on a vertical line: a bracket on the privacy profile. */
#ifndef ACCT_CONTOUR_H
#define ACCT_CONTOUR_H

#include <math.h>

#include "invert.h"
#include "jump.h"
#include "line.h"
#include "subsampled_gaussian.h"

#define ACCT_MAX_POINTS 8232 /* no multiple of a page, as ACCT_MAX_NODES */

/* One side of the aliases of the trapezoid sum: for every epsilon they add up to at most
 * exp(log_size - slope * epsilon) relative to the contour's scale (Theorem 5). */
typedef struct {
    double log_size, slope;
} acct_alias;

typedef struct {
    int direction;  /* ACCT_REMOVE or ACCT_ADD */
    int flipped;    /* a contour of the remove direction that answers for the add direction */
    double steps;
    double b;       /* distance of the line from the interval [0, 1], > 0 */
    double dy;
    int count;      /* points y_k = k dy, 0 <= k < count */
    double *amplitude, *phase; /* of the terms at epsilon = 0, the linear phase left out */
    double drift;              /* steps * mean loss: the linear phase is (drift - epsilon) y */
    double log_scale, log_scale_err; /* the sum is in units of e^{log_scale - b epsilon} */
    double numerical; /* bound on quadrature and round-off of all terms, same units */
    double truncated; /* bound on the terms beyond the last point, same units */
    acct_jump jump;   /* the share of the outcomes outside the window */
    acct_alias right, left;
    /* a split contour (split.h) leaves out outcomes without any large loss: they add at most
     * exp(small_log - small_slope * epsilon) to the upper bound; small_log = -inf otherwise */
    double small_log, small_slope;
} acct_contour;

/* b as it really is once the order 1 + b has been rounded: e^{-b eps} must match K(1 + b) exactly */
static inline double acct_exact_distance(double b) {
    const double exact = (1.0 + b) - 1.0;
    return exact > 0.0 ? exact : 2.220446049250313e-16;
}

/* |s (s - 1)| on the line, without overflow */
static inline double acct_poles(double b, double y) {
    return sqrt(b * b + y * y) * sqrt((b + 1.0) * (b + 1.0) + y * y);
}

/* beyond this distance squares of b would overflow: no line is built */
#define ACCT_MOST_DISTANCE 1e140

/* the problem a contour is built for; everything but step, steps and direction is a wish */
typedef struct {
    acct_step step;
    double steps;
    int direction;
    double b;         /* where to put the line */
    double epsilon;   /* where the bracket is wanted */
    double spread;    /* deviation of the tilted total loss, roughly */
    acct_window window;
    double put_order; /* for the jumps above the window; 0: to be searched for */
    double most_points; /* at most ACCT_MAX_POINTS */
    double log_error; /* log of the error wanted, in units of the sum's scale (contour->log_scale) */
} acct_problem;

/* returns ACCT_EPRECISION if it would need too many points (the cost is checked first) */
int acct_contour_build(acct_contour *contour, acct_grid *grid, acct_grid *scratch,
                       acct_line *line, const acct_problem *problem);

/* the alias bounds of a contour whose b, steps, direction and scale are set; returns the period both
 * sides need to be below e^{-digits}; overwrites grid->weight */
double acct_contour_aliases(acct_contour *contour, acct_grid *grid, double epsilon, double digits,
                            double spread);

/* largest double with 24 significant bits not above x, so that small multiples are exact */
double acct_short_step(double x);

/* the bracket at epsilon; below 0 for a split contour only */
void acct_contour_profile(const acct_contour *contour, double epsilon, acct_profile_point *out);

#endif
