/* Rare events: a contour for the outcomes with a middling loss but no large one (Theorem 15).
 *
 * Where the record is probably never sampled, the transform has a part that hardly decays: the
 * outcomes whose steps all have a tiny loss.  They contribute next to nothing to the profile.  Outcomes
 * with one loss far beyond epsilon make the line's integrand huge, and their share is known exactly.
 * Two soft thresholds of the loss (quadrature_panel.h) make every step small, middling or large; with
 *     A = B + C,   B: small,   C: middling,
 * A^n - B^n is the transform of the positive measure of outcomes without a large step and with a
 * middling one, and decays like C.  The contribution of B^n is bounded by Chernoff,
 * that of the outcomes with a large step is the tail event of tail_event.h.
 */
#ifndef ACCT_RARE_EVENT_H
#define ACCT_RARE_EVENT_H

#include "contour.h"
#include "tilted_law.h"

/* The transforms A and C of a rare-event contour on its line of complex orders, summed over the
 * nodes of a path. */
#define ACCT_RARE_EVENT_ARRAYS 15 /* times ACCT_MAX_NODES doubles */

#define ACCT_RARE_EVENT_MOMENTS 12
#define ACCT_RARE_EVENT_BLOCK 16

typedef struct {
    int count;
    double origin;           /* log(1 - q) - mean: the least L - mean */
    double *l_re, *l_im;     /* L - mean */
    double *w_re, *w_im;     /* tilted weights times the chance of being below the outer threshold */
    double *c_re, *c_im;     /* of being between the thresholds */
    double *size, *large;    /* bounds on the moduli of both that do not cancel */
    double *w_err, *c_err;   /* absolute errors of the weights */
    double *moved;           /* absolute error of L */
    double *z1_re, *z1_im;   /* e^{i dy l} */
    double *z_re, *z_im;     /* at the current y */
    double dy;
    /* nodes below `low` by their moments about the origin, from `dead` on where e^{iyL} is gone */
    int low, dead, fresh;
    double m_re[ACCT_RARE_EVENT_MOMENTS], m_im[ACCT_RARE_EVENT_MOMENTS];
    double m_size[3];
    double dead_size, dead_large;
    double left_out; /* of C by the nodes that may be replaced by their moments */
    double rest_re, rest_im, rest_l_re, rest_l_im; /* sums of w and of wl, all but the low ones */
} acct_rare_event_sum;

/* z1 and all that goes from one point to the next, dy further */
void acct_rare_event_sum_step(acct_rare_event_sum *rare, double dy);

/* at the points of a block: A e^{-iy mean}/A(c) - 1, and C likewise */
typedef struct {
    double ar[ACCT_RARE_EVENT_BLOCK], ai[ACCT_RARE_EVENT_BLOCK];
    double cr[ACCT_RARE_EVENT_BLOCK], ci[ACCT_RARE_EVENT_BLOCK];
} acct_rare_event_sums;

/* sets the sums at y = (first + i) dy, i < n; first increases from call to call; of_a, of_c: upper bounds on what is
 * left out */
void acct_rare_event_sum_block(acct_rare_event_sum *rare, long first, int n, acct_rare_event_sums *out,
                               double *of_a, double *of_c);

/* sum of the bounds on |C|'s terms times e^{-y Im L}: falls with y */
double acct_rare_event_sum_large(const acct_rare_event_sum *rare, double y);

/* round-off of both sums up to y (Theorems 8 and 15) */
void acct_rare_event_sum_roundoff(const acct_rare_event_sum *rare, double y, double *of_a, double *of_c);

/* The path of the noise that a rare-event contour's sums run along, and its nodes.
 *
 * It is real where losses are small, and rises in steps to larger Im x where they are not (Theorem 15): |e^{iyL}| <= 1
 * everywhere on it for y >= 0, and where the loss is large enough to turn with y it falls, so that the number of nodes
 * does not grow with y.  The higher the path, the wider are its panels, and the sooner all is gone.
 */
typedef struct {
    double a, c;  /* quadrature and the path's end, relative to A(c): of the sums for A and for C */
    double tail_c; /* of the bound acct_rare_event_sum_large on |C|, for all y >= 0 */
    double reach; /* of |L - mean| on the panels' ellipses */
} acct_rare_event_errors;

#define ACCT_RARE_EVENT_RISES 6

/* where the path rises, and to which Im x: both increase; twice the last is less than pi sigma^2 */
typedef struct {
    int rises;
    double at[ACCT_RARE_EVENT_RISES], height[ACCT_RARE_EVENT_RISES];
} acct_rare_event_path;

/* fills the sum: window from lo to hi along the path, or without a rise whose error is too large, panels fine enough
 * that both sums are within about e^{log_error} of their integrals for 0 <= y <= y_most; m has order, mean and scale;
 * overwrites law
 * returns ACCT_EPRECISION where that takes too many nodes */
int acct_rare_event_path_set(acct_rare_event_sum *rare, double *memory, acct_tilted_law *law,
                             const acct_step *step, const acct_window *window, const acct_rare_event_path *path,
                             const acct_moments *m, const acct_thresholds *thresholds, double y_most,
                             double log_error, acct_rare_event_errors *errors);

/* Searches for the thresholds and the line of a rare-event contour.  They are not rigorous. */
typedef struct {
    const acct_step *step;
    acct_tilted_law *law;
    double *spare;     /* eight arrays of ACCT_MAX_NODES for the search */
    double steps, epsilon, log_delta, tolerance;
    double log_wanted; /* log of the error of delta that each source may have */
    acct_thresholds thresholds;
    double unit;       /* distance to be covered by large losses: epsilon less the mean of the small */
    double least;      /* epsilon, or unit where epsilon is not above 0 */
    double reverse_order;  /* order of the reverse term's Chernoff bound */
    double reverse_log;    /* log of what multiplies int (1 - chi) N e^{-reverse_order L} in its bound */
    double b_small;    /* for the outcomes below the inner one */
    double b, b_right, b_left; /* the line and its aliases' orders; b_left = 0: by the mass */
    double log_right, log_left; /* about log C at both */
} acct_rare_event_plan;

/* log of the smaller of A^n and n C A^{n-1}, rounded up: both bound A^n - B^n, B = A - C */
static inline double acct_rare_event_of_either(double n, double log_a, double log_c) {
    return acct_min(n * log_a, log(n) + log_c + (n - 1.0) * log_a) + 1e-12 * n * fabs(log_a) + 1e-12;
}

/* sets thresholds, orders and the window, whose lower end is lo; overwrites the plan's law
 * returns ACCT_EPRECISION where no pair of thresholds looks good enough */
int acct_rare_event_search(acct_rare_event_plan *s, double lo, acct_window *window);

/* the path's heights: not rigorous, either */
void acct_rare_event_find_path(const acct_rare_event_plan *s, const acct_window *window, acct_rare_event_path *path);

/* sets  the bound on what the outcomes with all steps below the inner threshold add to the profile */
int acct_rare_event_certify_small(acct_contour *contour, acct_rare_event_plan *s, const acct_window *window);

/* sets  all that comes from integrals along the real noise: the tail event above the outer threshold, scale, mean and
 *       aliases; overwrites scratch */
int acct_rare_event_certify(acct_contour *contour, acct_rare_event_plan *s, acct_tilted_law *scratch,
                            const acct_window *window, acct_moments *m);

/* sets  the line on its path, how many points it takes, and what is beyond; overwrites scratch and memory */
int acct_rare_event_set_line(acct_contour *contour, const acct_rare_event_plan *s, acct_tilted_law *scratch,
                             double *memory, const acct_window *window, const acct_moments *m,
                             acct_rare_event_sum *rare, acct_rare_event_errors *errors);

/* builds the rare-event contour of the remove direction near problem->epsilon, which may be negative; of
 * the window only the lower end is used
 * returns ACCT_EPRECISION if no pair of thresholds leaves a usable one */
int acct_rare_event_contour_build(acct_contour *contour, acct_tilted_law *law, acct_tilted_law *scratch,
                                  double *memory, const acct_problem *problem, double log_delta,
                                  double tolerance);

#endif
