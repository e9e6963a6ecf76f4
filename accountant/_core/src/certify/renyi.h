/* The Rényi curve of one Poisson-subsampled Gaussian step at every real order, and the conversion
 * of its n-fold composition to (epsilon, delta).  Domains as in subsampled_gaussian.h. */
#ifndef ACCT_RENYI_H
#define ACCT_RENYI_H

#include "bounds.h"
#include "domain.h"
#include "tilted_law.h"
#include "loss.h"

/* sets  *out to a bracket of the Rényi divergence of ONE step at `order`, in nats;
 * upper may be +inf where the divergence exceeds the largest double */
int acct_psg_renyi(double q, double sigma, double order, int direction, acct_bounds *out);

/* sets  *epsilon to an upper bound of epsilon(delta) by way of Rényi DP (larger direction,
 * minimum over continuous orders) and *order to the order that certifies it */
int acct_psg_epsilon_renyi(double q, double sigma, double steps, double delta, double *epsilon,
                           double *order);

/* One step's Rényi divergence in the caller's memory: shared by renyi.c and renyi_conversion.c. */
/* sets     *out to a bracket of the divergence of one step at order > 1, in either direction or the larger
 * returns  ACCT_EPRECISION where the sum cannot be certified (too many pieces); overwrites the law */
int acct_renyi_with(acct_tilted_law *law, const acct_step *step, double order, int direction,
                    acct_bounds *out);

/* The part of A(c) - 1 below a point where so rare a shift is still far from likely (Theorem 12, rare shifts). */
/* Sampling probabilities below it have a bulk of their own: there the panels of a law, whose errors are relative
 * to N, would have to be relative to q^2 N. */
#define ACCT_RARE_RATE 1e-20

/* the point up to which q e^u <= 1e-14 / (|c| + 2) */
double acct_renyi_bulk_end(const acct_step *step, double c);

/* sets *out to a bracket of int N G over x <= end, end that of acct_renyi_bulk_end · requires q (|c| + 2) < 1e-17 */
void acct_renyi_bulk(const acct_step *step, double c, double end, acct_bounds *out);

#endif
