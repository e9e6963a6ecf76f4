/* The Gaussian mechanism where delta is next to nothing, or the noise is (Theorem 10, far tails). */
#ifndef ACCT_GAUSSIAN_TAIL_H
#define ACCT_GAUSSIAN_TAIL_H

#include "bounds.h"

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
