/* Certified profile and (epsilon, delta) of composed steps in which a record shifts the noise at random:
 * P = w_0 N(0, sigma^2) + sum of w_j N(d_j, sigma^2) against Q = N(0, sigma^2) (mixture_loss.h), or reversed.
 *
 * Domains (checked; ACCT_EDOMAIN otherwise): those of acct_mixture_set, sigma in (1e-100, 1e100), steps an integer
 * in [1, 2^53], direction ACCT_REMOVE or ACCT_ADD, epsilon >= 0 finite, delta in (0, 1).
 */
#ifndef ACCT_GAUSSIAN_MIXTURE_H
#define ACCT_GAUSSIAN_MIXTURE_H

#include "bounds.h"
#include "domain.h"
#include "mixture_loss.h"
#include "loss.h"

/* ensures out->lower <= delta(epsilon) <= out->upper, both in [0, 1] */
int acct_gaussian_mixture_delta(const acct_mixture_part *part, double steps, double epsilon, int direction,
                                acct_bounds *out);

/* ensures out->lower <= epsilon(delta) <= out->upper; upper may be +inf */
int acct_gaussian_mixture_epsilon(const acct_mixture_part *part, double steps, double delta, int direction,
                                  acct_bounds *out);

/* One release in which a record shifts the noise at random (mixture_loss.h): the profile and its inverse in
 * closed form, by those of one shift each (Theorem D13).
 *
 * Domains: direction ACCT_REMOVE or ACCT_ADD, epsilon >= 0 finite, delta in (0, 1); a mixture that
 * acct_mixture_set made, and its sigma.
 */
/* ensures out->lower <= delta(epsilon) <= out->upper */
void acct_single_mixture_delta(const acct_step *step, double epsilon, int direction, acct_bounds *out);

/* ensures out->lower <= epsilon(delta) <= out->upper; upper may be +inf */
void acct_single_mixture_epsilon(const acct_step *step, double delta, int direction, acct_bounds *out);

#endif
