/* The profile of repeated steps to a few digits, in a fraction of a contour's time: for searches.
 *
 * On the line at distance b the trapezoid sum is that of f(epsilon) = e^{b epsilon} delta(epsilon).  Where events
 * are rare its terms hardly decay, for delta bends sharply near 0, of which nothing is seen at epsilon.  Times
 * e^{-t} (1 + t + t^2/2 + t^3/6), t = (h y)^2 / 2, the sum is that of f averaged over about h, by a kernel
 * without moments of the orders 1 to 7: it differs from f by an eighth power of h, and its terms end soon.
 */
#ifndef ACCT_SMOOTHED_PROFILE_H
#define ACCT_SMOOTHED_PROFILE_H

#include "plan.h"

typedef struct {
    double log_delta; /* about log delta(epsilon) */
    double rate;      /* about -d log(delta) / d epsilon there: where known before, else not above 0 */
} acct_smoothed;

/* sets     *out for the remove direction of a plain step at epsilon > 0, where delta should be about
 *          e^{log_delta}; `digits`: minus the log of the relative error wanted.  Nothing is certified;
 *          overwrites the workspace
 * returns  ACCT_EPRECISION where it would take too long, or finds no positive value */
int acct_smoothed_profile(acct_workspace *w, const acct_step *step, double steps, double epsilon,
                          double log_delta, double digits, acct_smoothed *out);

#endif
