/* Certified brackets for a composition of different subsampled Gaussians, also with random shifts.
 *
 * The transform of the total loss is the product of the parts' transforms, so everything is a sum
 * over parts: log A, the argument, the error bounds, the bounds on the decay.  One pass over the
 * parts adds each to a line that was placed in advance by a plain search; the sum then closes into
 * an ordinary contour (contour.h), which is inverted like that of repeated steps (Theorem 16).
 */
#ifndef ACCT_HETEROGENEOUS_H
#define ACCT_HETEROGENEOUS_H

#include "bounds.h"
#include "domain.h"

/* requires count >= 1; q in [ACCT_LEAST_Q, 1], sigma in (0, inf), with a mixture in (1e-100, 1e100);
 *          steps >= 1 integer-valued, total <= 2^53
 * sets     *out to a bracket of the composition's profile at epsilon >= 0 */
int acct_heterogeneous_delta(const acct_part *parts, int count, double epsilon, int direction,
                             acct_bounds *out);

/* sets  *out to a bracket of epsilon(delta) = min{ epsilon >= 0 : profile <= delta }, 0 < delta < 1 */
int acct_heterogeneous_epsilon(const acct_part *parts, int count, double delta, int direction,
                               acct_bounds *out);

/* sets  out[i] to the bracket of epsilon(delta) after the parts 0 .. i; one direction, no random shifts.  Lines are
 *       made only so exact that delta is known to about `wide` of itself; 0: as narrow as can be.  None is made
 *       for parts other than from .. to - 1, whose brackets then are wide, but hold */
int acct_heterogeneous_odometer(const acct_part *parts, int count, double delta, int direction, double wide,
                                int from, int to, acct_bounds *out);

#endif
