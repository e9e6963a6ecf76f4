/* Repeated Poisson-sampled Gaussian steps under replace-one: brackets on a contour (Theorem D22). */
#ifndef ACCT_EXCHANGE_H
#define ACCT_EXCHANGE_H

#include "bounds.h"

/* sets     *out to a bracket of delta(epsilon), or of epsilon(delta), of `steps` steps of the pair of
 *          exchange_law.h; a wide one where no contour resolves it, as of few steps and rare events
 * requires 0 < q < 1, 0 < mu <= 40, steps >= 2, epsilon >= 0, 0 < delta < 1
 * returns  ACCT_EDOMAIN, ACCT_ENOMEM */
int acct_exchange_delta(double mu, double q, double steps, double epsilon, acct_bounds *out);
int acct_exchange_epsilon(double mu, double q, double steps, double delta, acct_bounds *out);

/* the same for the Rényi divergence of one step at order > 1: relatively where c L does not overflow, else of
 * 1e-15 / (order - 1) absolutely (Theorem D21) */
int acct_exchange_renyi(double mu, double q, double order, acct_bounds *out);

#endif
