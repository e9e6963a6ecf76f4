/* The Rényi curve of Gaussian noise with a random shift, at every real order. */
#ifndef ACCT_MIXTURE_RENYI_H
#define ACCT_MIXTURE_RENYI_H

#include "bounds.h"
#include "domain.h"

/* P = sum of w_j N(d_j, sigma^2) and Q = N(0, sigma^2), j < count */
typedef struct {
    double sigma;
    int count;
    const double *shift, *weight; /* increasing, the first >= 0; positive */
    double first_err, weight_err; /* relative errors of the first weight and of the others */
} acct_mixture_curve;

/* sets     *out to a bracket of D_order(P || Q) for ACCT_REMOVE, of D_order(Q || P) for ACCT_ADD, in nats;
 *          it is a wide one where the quadrature would take more than 8e6 exponentials, as where shifts
 *          are 1e5 standard deviations apart and the order is near 1
 * requires order > 1 and finite, a domain of parts as acct_shift_law_set; exact weights add up to one
 * returns  ACCT_EDOMAIN, ACCT_ENOMEM
 * error    docs/theorems_mixtures.md, Theorem D20 */
int acct_mixture_renyi(const acct_mixture_curve *curve, double order, int direction, acct_bounds *out);

#endif
