/* The Gaussian mechanism, and one Poisson-subsampled step, which reduces to it. */
#ifndef ACCT_GAUSSIAN_H
#define ACCT_GAUSSIAN_H

#include "bounds.h"

/* sets  *out to a bracket of delta(epsilon) = Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu),
 * the profile of the Gaussian mechanism with sensitivity / deviation = mu > 0, epsilon any real;
 * rounded outward; relative width about 1e-14; `mu_err` is a bound on mu's relative error */
void acct_gaussian_delta(double mu, double mu_err, double epsilon, acct_bounds *out);

/* sets  *out to a bracket of min{epsilon >= 0 : delta(epsilon) <= delta}, delta in (0, 1) */
void acct_gaussian_epsilon(double mu, double mu_err, double delta, acct_bounds *out);

/* the same two for one step with sampling probability q in (0, 1), in either direction */
void acct_single_delta(double q, double sigma, double epsilon, int direction, acct_bounds *out);
void acct_single_epsilon(double q, double sigma, double delta, int direction, acct_bounds *out);

#endif
