/* The path of the noise that a rare-event contour's sums run along, and its nodes.
 *
 * It is real where losses are small, and rises in steps to larger Im x where they are not (Theorem 15): |e^{iyL}| <= 1
 * everywhere on it for y >= 0, and where the loss is large enough to turn with y it falls, so that the number of nodes
 * does not grow with y.  The higher the path, the wider are its panels, and the sooner all is gone.
 */
#ifndef ACCT_RARE_EVENT_PATH_H
#define ACCT_RARE_EVENT_PATH_H

#include "rare_event_sum.h"

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

#endif
