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

/* The Gaussian mechanism where delta is next to nothing, or the noise is (Theorem 10, far tails). */
/* delta below which the line's errors, absolute ones of underflow, show in the answer */
#define ACCT_FAINT 1e-289
/* distances from which on epsilon is mu^2/2 to all digits, whatever delta */
#define ACCT_FAR_APART 1e20

/* M(x) = (1 - Phi(x)) / phi(x), x >= 12, rounded up or down; the two are within 20 u of each other */
double acct_mills(double x, int above);

/* narrow *out, a bracket of delta(epsilon) or of epsilon(delta), epsilon >= 0, to what the normal tails tell:
 * of all distances of the means within the relative error `mu_err` of mu > 0, which may be infinite;
 * far from the tails they tell nothing */
void acct_gaussian_tail_delta(double mu, double mu_err, double epsilon, acct_bounds *out);
void acct_gaussian_tail_epsilon(double mu, double mu_err, double delta, acct_bounds *out);

#endif
