/* The Rényi curve of one Poisson-subsampled Gaussian step at every real order, and the conversion
 * of its n-fold composition to (epsilon, delta).  Domains as in subsampled_gaussian.h. */
#ifndef ACCT_RENYI_H
#define ACCT_RENYI_H

#include "bounds.h"
#include "domain.h"

/* sets  *out to a bracket of the Rényi divergence of ONE step at `order`, in nats;
 * upper may be +inf where the divergence exceeds the largest double */
int acct_psg_renyi(double q, double sigma, double order, int direction, acct_bounds *out);

/* sets  *epsilon to an upper bound of epsilon(delta) by way of Rényi DP (larger direction,
 * minimum over continuous orders) and *order to the order that certifies it */
int acct_psg_epsilon_renyi(double q, double sigma, double steps, double delta, double *epsilon,
                           double *order);

#endif
