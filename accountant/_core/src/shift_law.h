/* Gaussian noise whose mean is random, at many points: its loss against the noise alone.
 *
 * P = sum of w_j N(d_j, sigma^2), Q = N(0, sigma^2), 0 <= d_0 < ... < d_k, w_j > 0, sum of w_j = 1:
 *     L(x) = log sum of w_j e^{u_j},        u_j = d_j (2x - d_j) / (2 sigma^2).
 * sigma^2 L' = E_p[d], the posterior mean of the shift; L is convex.  Unlike mixture_loss.h this takes
 * any number of shifts, and the least of them need not be 0; it is for sums over equally spaced points.
 */
#ifndef ACCT_SHIFT_LAW_H
#define ACCT_SHIFT_LAW_H

/* points looked at together */
#define ACCT_SHIFT_BLOCK 8

typedef struct {
    double sigma;
    double rate; /* 1 / (2 sigma^2) */
    int count;
    double *shift, *weight;
    double first_err, weight_err; /* relative errors of w_0, and of the other weights */
} acct_shift_law;

/* sets     *law, in units of a power of two, so that 1/2 <= sigma < 1; its arrays lie in memory
 * requires count >= 1 and memory for 2 count doubles; 1e-100 < sigma < 1e100; shifts increasing,
 *          between 1e-60 and 1e60 times sigma (the first may be 0); weights above 1e-280;
 *          errors of weights at most 1e-6; exact weights that add up to one within those errors
 * returns  ACCT_EDOMAIN where they do not */
int acct_shift_law_set(acct_shift_law *law, double *memory, double sigma, int count, const double *shift,
                       const double *weight, double first_err, double weight_err);

/* sets     loss[i] = L(x[i]) and error[i] >= its error, x exact; for points within 64 sigma^2 / d_k of
 *          each other */
void acct_shift_law_losses(const acct_shift_law *law, const double *x, double *loss, double *error);

/* L at one point with all weights but the first multiplied by `share` */
typedef struct {
    double loss;
    double slope; /* sigma^2 L' */
    double error; /* of the loss; the slope's relative error is at most 4 times it */
} acct_shift_point;

acct_shift_point acct_shift_law_at(const acct_shift_law *law, double x, double share);

#endif
