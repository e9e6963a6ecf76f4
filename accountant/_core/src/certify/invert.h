/* From delta(epsilon) with a bracket to epsilon(delta) with a bracket. */
#ifndef ACCT_INVERT_H
#define ACCT_INVERT_H

#include "bounds.h"

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

#endif
