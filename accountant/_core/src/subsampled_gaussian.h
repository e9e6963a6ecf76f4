/* Certified privacy profile, Rényi curve and (epsilon, delta) of the composed
 * Poisson-subsampled Gaussian mechanism.  Entry points of the native core.
 *
 * One step, neighbouring relation add-or-remove, noise multiplier sigma,
 * sampling probability q:
 *     P = (1-q) N(0, sigma^2) + q N(1, sigma^2),      Q = N(0, sigma^2).
 * Direction ACCT_REMOVE is the pair (P, Q), ACCT_ADD is (Q, P), ACCT_EITHER the
 * larger profile of the two.
 *
 * Domains (checked; ACCT_EDOMAIN otherwise): q in [0, 1], sigma in (0, inf],
 * steps an integer-valued double in [0, 2^53], epsilon >= 0 finite, delta in (0, 1),
 * order > 1 finite.  All functions are reentrant, hold no state and release their
 * workspace before returning.
 */
#ifndef ACCT_SUBSAMPLED_GAUSSIAN_H
#define ACCT_SUBSAMPLED_GAUSSIAN_H

#include "bounds.h"
#include "domain.h"
#include "renyi.h"

/* sets  *out to a bracket of the privacy profile delta(epsilon) of `steps` steps
 * ensures out->lower <= delta(epsilon) <= out->upper, both in [0, 1] */
int acct_psg_delta(double q, double sigma, double steps, double epsilon, int direction, acct_bounds *out);

/* sets  *out to a bracket of epsilon(delta) = min{ epsilon >= 0 : delta(epsilon) <= delta }
 * ensures out->lower <= epsilon(delta) <= out->upper; upper may be +inf */
int acct_psg_epsilon(double q, double sigma, double steps, double delta, int direction, acct_bounds *out);

/* Whether acct_psg_epsilon in either direction sets no other bracket than *remove, which it set for the remove
 * direction of the same question; 0 says nothing.  Or a status below 0 */
int acct_psg_remove_decides(double q, double sigma, double steps, double delta, const acct_bounds *remove);

#endif
