/* Replace-one steps whose record is rarely seen: outcomes with some middling loss, apart from those without
 * (docs/theorems_mixtures.md, Theorem D24).
 *
 * A step is labelled small with probability 1 - t^m, t = 1 - e^{-(L/scale)^2}, m = 16, and middling with t^m.  With
 * C = int t^m N e^{cU + (1-c)W} the outcomes with a middling step have the transform A^n - (A - C)^n; all steps small
 * add next to nothing at the epsilon asked for.
 */
#ifndef ACCT_EXCHANGE_SPLIT_H
#define ACCT_EXCHANGE_SPLIT_H

#include "exchange_law.h"
#include "soft_threshold.h"

#define ACCT_EXCHANGE_DOUBLINGS 4

typedef struct {
    acct_threshold threshold; /* scale 0: no split */
    double log_most;  /* bound on the logs of |t^m| and |1 - t^m| where |Im x| <= turn/mu */
    /* outcomes whose steps are all small add at most exp(small_log - small_slope epsilon) */
    double small_log, small_slope;
    acct_threshold outer; /* of U; scale 0: no step counts as large (exchange_large.h) */
} acct_exchange_split;

/* sets  the largest scale found at which the small steps' share at epsilon is below e^{log_wanted}; overwrites the
 *       law; |Im x| up to turn/mu, turn at most 2.4
 * returns 0 where none was found */
int acct_exchange_split_find(acct_exchange_split *split, acct_exchange_law *law, double *memory, double mu,
                             double q, double steps, double epsilon, double log_wanted, double turn);

#endif
