/* How far a polynomial in 1/sigma is from the transform of a step (Theorem 19).
 *
 * In the variable u, e^L = 1 - q + q e^u, only the noise depends on sigma: with beta = 1/sigma it has the density
 *     G(beta, u) = exp(-(u/beta + beta/2)^2 / 2) / (beta sqrt(2 pi)),
 * analytic in beta, so the transform int G e^{sL} du over a fixed window of u is, too: no logarithm is continued,
 * and the bound does not depend on Im s.
 */
#ifndef ACCT_NOISE_REMAINDER_H
#define ACCT_NOISE_REMAINDER_H

/* 1/sigma in [least, most], 0 < least < most; u in [lo, hi] */
typedef struct {
    double q, least, most, lo, hi;
} acct_noise_range;

/* bounds for one real part of s on a few ellipses about [least, most] */
#define ACCT_NOISE_ELLIPSES 6
typedef struct {
    double log_size[ACCT_NOISE_ELLIPSES]; /* log of the transform's modulus on the ellipse; inf: no claim */
    double log_rho[ACCT_NOISE_ELLIPSES];
    double
        log_edge; /* log of the most that moving both ends of the window by 16 u of u changes a transform by */
} acct_noise_bound;

void acct_noise_bound_set(acct_noise_bound *bound, const acct_noise_range *range, double order);

/* ensures  log of the distance of the transform, as a function of 1/sigma, from the nearest polynomial of degree
 *          kinds - 1 is at most the returned value, for every s of that real part */
double acct_noise_remainder(const acct_noise_bound *bound, int kinds);

#endif
