/* The transform of the tilted loss at equally spaced points of a vertical line.
 *
 * With the tilted law T of order c, its computed mean m and l = L - m:
 *     A(c+iy)/A(c) = e^{iym} (1 + V(y)),   V(y) = iy E_T[l] + E_T[v(y l)],   v(t) = e^{it} - 1 - it.
 * v is second order, so V keeps its relative accuracy when the loss of one step is tiny and the
 * steps are many.  On y_k = k dy it obeys a recurrence (d_k = e^{ikt} - 1):
 *     d_{k+1} = d_k + d_1 + d_k d_1,        v_{k+1} = v_k + v_1 + d_k d_1,
 * restarted from sin and cos every ACCT_SUM_BLOCK steps.
 */
#ifndef ACCT_CHARACTERISTIC_SUM_H
#define ACCT_CHARACTERISTIC_SUM_H

#include <math.h>

#include "rounding.h"
#include "tilted_law.h"
#include "vmath.h"

#define ACCT_SUM_BLOCK 16

typedef struct {
    int count;      /* nodes */
    double dy;      /* at most 24 significant bits, so that k dy is exact */
    double *loss;   /* l_j */
    double *weight; /* tilted weights */
    double *weight_err, *loss_err; /* relative error of the weight; absolute error of l */
    double *d1_re, *d1_im;                   /* e^{i dy l} - 1 */
    double *wd1_re, *wd1_im, *wv1_im; /* weight times d_1, and the imaginary part of v_1 */
    double *wd_re, *wd_im, *wv_im;    /* weight times the current d_k, v_k */
} acct_characteristic_sum;

/* arrays in the caller's memory, ACCT_SUM_ARRAYS * capacity doubles */
#define ACCT_SUM_ARRAYS 12
void acct_characteristic_sum_place(acct_characteristic_sum *cf, double *memory, int capacity);

/* copies weights and losses of the law's last moments */
void acct_characteristic_sum_set(acct_characteristic_sum *cf, const acct_tilted_law *law,
                                 const acct_moments *m);

/* fixes the step; requires acct_characteristic_sum_set */
void acct_characteristic_sum_step(acct_characteristic_sum *cf, double dy);

/* sets re[i] + i im[i] = sum of weight * v(y_k l), k = first + i, for i < n <= ACCT_SUM_BLOCK;
 * ensures the round-off of each (weights, losses and recurrence) is at most the returned value */
double acct_characteristic_sum_block(acct_characteristic_sum *cf, long first, int n, double *re, double *im);

/* the parts of the error of V that are the same for every point of a line */
typedef struct {
    double at_zero;  /* relative quadrature error of the law's integrals at y = 0 */
    double at_last;  /* the same of N e^{(c+iy)L}, for every y up to the last point's */
    double reach;    /* of |L - mean| on the panels' ellipses: each factor of l costs as much */
    double mean_err; /* of the computed mean */
} acct_characteristic_errors;

acct_characteristic_errors acct_characteristic_errors_set(const acct_tilted_law *law, const acct_moments *m,
                                                          double y_last);

/* 1 + V(y) in polar form, and its error */
typedef struct {
    double modulus, log_modulus, arg;
    double error; /* bound on |computed V - V| */
} acct_characteristic_value;

/* sets     the value from V = u + iv, summed with the round-off `round` (acct_characteristic_sum_block)
 * ensures  |u + iv - V(y)| <= error.  V is a difference of three integrals, A(c+iy) e^{-iym}, A(c) and
 *          iy int l: the errors of the three quadratures, at_last + at_zero + y reach at_zero; that of the
 *          mean, which turns V by y mean_err; the round-off of the sum; and 16 u of V's size for the
 *          operations on u and v here.  (Theorems 4 and 8.)
 * error    the logarithm and the argument add 16 u of their own size, which callers count */
ACCT_INLINE acct_characteristic_value acct_characteristic_value_at(const acct_characteristic_errors *e, double y,
                                                                   double u, double v, double round) {
    acct_characteristic_value value;
    const double square = (1.0 + u) * (1.0 + u) + v * v, z = 2.0 * u + u * u + v * v, near = 1.0 + z;
    const double least = square > 1e-300 ? square : 1e-300;
    const int is_near = u > -0.5;
    value.modulus = sqrt(square);
    /* log1p keeps the digits of a tiny V; a modulus below 1e-150 is less than its error */
    value.log_modulus = 0.5 * acct_vlog_corrected(is_near ? near : least, is_near ? (z - (near - 1.0)) / near : 0.0);
    value.arg = acct_vatan2(v, 1.0 + u);
    value.error = (e->at_last + e->at_zero * (1.0 + y * e->reach) + y * e->mean_err + round +
                   16.0 * ACCT_U * (fabs(u) + fabs(v))) *
                  ACCT_SLACK;
    return value;
}

/* values at the points of a block */
typedef struct {
    double log_modulus[ACCT_SUM_BLOCK], arg[ACCT_SUM_BLOCK];
    double ratio[ACCT_SUM_BLOCK];    /* error of V over the least modulus that it leaves; inf where that is none */
    double log_most[ACCT_SUM_BLOCK]; /* log of the largest modulus that it leaves */
} acct_characteristic_polar;

/* sets  the values at (first + i) dy from V = re + i im, summed with the round-off `round`, all of a block */
void acct_characteristic_polar_set(acct_characteristic_polar *block, const acct_characteristic_errors *errors,
                                   int first, double dy, const double *round, const double *re, const double *im);

/* sets  `size` of a block's values by its sums, at most ACCT_SUM_BLOCK */
void acct_characteristic_polar_sum(acct_characteristic_sum *cf, const acct_characteristic_errors *errors, int first,
                                   int size, acct_characteristic_polar *block);

/* One step's transform at the points of a line, and its powers: the terms for any number of steps. */
/* arrays of one length in the caller's memory; the transform is 1 + V (characteristic_sum.h) */
typedef struct {
    double *log_modulus, *arg;
    double *ratio, *log_most; /* as in a block */
    double *factor;   /* acct_trapezoid_factor */
    double *poles;    /* argument of s (s - 1) */
    double *error;    /* of the terms last computed */
} acct_line_values;

#define ACCT_LINE_ARRAYS 7
void acct_line_values_place(acct_line_values *values, double *memory, size_t points);

/* sets the values at y_k = k dy, 0 <= k < count, on the line at distance b; requires
 * acct_characteristic_sum_step for this dy */
void acct_line_values_set(acct_line_values *values, acct_characteristic_sum *cf,
                          const acct_tilted_law *law, const acct_moments *m, double b, double dy, int count);

/* sets     amplitude and phase of every term of so many steps; sign: 1 to remove, -1 to add
 * ensures  sum over the terms of |term - computed term| <= returned */
double acct_line_values_power(const acct_line_values *values, int count, double steps, double sign,
                              double *amplitude, double *phase);

/* the sum of terms over the points of a line, its derivative, and a bound on its round-off */
typedef struct {
    double re, slope, rounding;
} acct_line_sums;

/* the terms of a line as complex numbers, which are summed without a sine for every point */
typedef struct {
    double *re, *im;     /* in the caller's memory, with ACCT_LINE_SPARE beyond the points; before, moduli and phases */
    double dy;
    double size, weighed; /* sums of the moduli, and of those times y */
    int count;
} acct_line_terms;

#define ACCT_LINE_SPARE 16

/* replaces `count` moduli and phases in re and im; requires k dy to be exact */
void acct_line_terms_set(acct_line_terms *terms, int count, double dy);

/* sets     *out to the sum of the real parts of the terms times e^{i rate y}, where the terms decay like e^{-b epsilon}
 * ensures  rounding bounds what round-off of the terms' sines, of rate (a difference of numbers whose moduli add up to
 *          speed, one of them rounded) and of the sum moves (Theorem 8(e)) */
void acct_line_terms_sum(const acct_line_terms *terms, double rate, double speed, double b, acct_line_sums *out);

#endif
