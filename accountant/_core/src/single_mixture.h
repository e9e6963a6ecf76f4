/* One release in which a record shifts the noise at random (mixture_loss.h): the profile and its inverse in
 * closed form, by those of one shift each (Theorem D13).
 *
 * Domains: direction ACCT_REMOVE or ACCT_ADD, epsilon >= 0 finite, delta in (0, 1); a mixture that
 * acct_mixture_set made, and its sigma.
 */
#ifndef ACCT_SINGLE_MIXTURE_H
#define ACCT_SINGLE_MIXTURE_H

#include "bounds.h"
#include "loss.h"

/* ensures out->lower <= delta(epsilon) <= out->upper */
void acct_single_mixture_delta(const acct_step *step, double epsilon, int direction, acct_bounds *out);

/* ensures out->lower <= epsilon(delta) <= out->upper; upper may be +inf */
void acct_single_mixture_epsilon(const acct_step *step, double delta, int direction, acct_bounds *out);

#endif
