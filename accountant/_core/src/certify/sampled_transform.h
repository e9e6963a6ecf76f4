/* The transform of one subsampled Gaussian anywhere on a vertical line, however far up (Theorem 21, *Sampled steps*).
 *
 * With c' = c (remove) or 1 - c (add), F(c +- iy) = int N(x; 0, s^2) e^{(c'+iy) L(x)} dx is analytic in x as far as
 * Im x < pi s^2, and on Im x = a > 0 the factor e^{iyL} has the modulus e^{-y arg e^L} <= 1: whatever oscillates is
 * damped, so that the terms of one trapezoid sum do for every y.
 */
#ifndef ACCT_SAMPLED_TRANSFORM_H
#define ACCT_SAMPLED_TRANSFORM_H

#include "domain.h"
#include "smoothed_line.h"

/* The terms: log-modulus and phase at y = 0, the value at the current y, L, what the errors of a term grow with, and
 * the factor from node to node */
#define ACCT_SAMPLED_ARRAYS 10
typedef struct {
    int count;
    union {
        struct {
            double *log_size, *phase, *re, *im, *loss_re, *loss_im, *fixed, *rate, *turn_re, *turn_im;
        };
        double *array[ACCT_SAMPLED_ARRAYS];
    };
} acct_sampled_terms;

/* `runs` independent steps */
typedef struct {
    acct_sampled_terms terms;
    double *memory;
    double runs, sign;
    double at_c, relative, known_error; /* of one step: the sum at y = 0, its error, and what no term has of it */
    double log_mgf, log_mgf_err;          /* log F(c) of all, and a bound on its error */
} acct_sampled_sum;

/* sets      the sum for c = 1 + b, exact in the remove direction, b > 0; to be freed also where it fails
 * returns   a status: ACCT_EPRECISION where it takes too many terms, or q is below 1e-100; ACCT_ENOMEM */
int acct_sampled_sum_set(acct_sampled_sum *sum, const acct_part *part, int direction, double b);
void acct_sampled_sum_free(acct_sampled_sum *sum);

/* ensures  log |F(c+iy') / F(c)| <= returned, of all runs, for every y' >= y; before acct_sampled_sum_multiply */
double acct_sampled_sum_log_modulus(const acct_sampled_sum *sum, double y);

/* multiplies nodes 0 .. nodes->kept - 1, at k * step, by F(c + iy) / F(c) of all runs; once; a step of few digits */
void acct_sampled_sum_multiply(acct_sampled_sum *sum, double step, acct_line_nodes *nodes);

#endif
