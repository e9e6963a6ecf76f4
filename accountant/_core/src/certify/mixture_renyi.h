/* The Rényi curve of Gaussian noise with a random shift, at every real order. */
#ifndef ACCT_MIXTURE_RENYI_H
#define ACCT_MIXTURE_RENYI_H

#include "bounds.h"
#include "domain.h"

/* Gaussian noise whose mean is random, at many points: its loss against the noise alone.
 *
 * P = sum of w_j N(d_j, sigma^2), Q = N(0, sigma^2), 0 <= d_0 < ... < d_k, w_j > 0, sum of w_j = 1:
 *     L(x) = log sum of w_j e^{u_j},        u_j = d_j (2x - d_j) / (2 sigma^2).
 * sigma^2 L' = E_p[d], the posterior mean of the shift; L is convex.  Unlike mixture_loss.h this takes
 * any number of shifts, and the least of them need not be 0; it is for sums over equally spaced points.
 */
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

/* The trapezoid sum of N e^{cL}, or of its part of second order, over the whole line (Theorem D20). */
typedef struct {
    const acct_shift_law *law;
    double c; /* order of the transform, outside [0, 1] */
    double t; /* its distance from [0, 1]; relative error u */
    int plain; /* the sum is of N e^{cL}, else of N (e^{cL} - 1 - c (e^L - 1)) */
    double shift; /* sums are in units of e^{shift}; 0 unless plain */
    double floor; /* log of the absolute error to aim at, in those units */
    double h;     /* spacing of the nodes k h, which are exact */
    double sum;
    double round;     /* bound on the round-off of the sum */
    double most;      /* the largest relative error of a term */
    double left_out;  /* bound on the terms that are not in the sum */
    double nodes;     /* how many terms are in it */
    double work, most_work; /* exponentials so far, and how many there may be */
} acct_renyi_sum;

/* sets     sum, round, most, left_out, nodes, work
 * requires the other members; mode: where N e^{cL} is largest, roughly
 * returns  0 where the work, or the nodes' size, is beyond bounds */
int acct_renyi_sum_run(acct_renyi_sum *s, double mode);

#endif
