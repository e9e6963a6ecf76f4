/* One step's transform at the points of a line, and its powers: the terms for any number of steps. */
#ifndef ACCT_LINE_VALUES_H
#define ACCT_LINE_VALUES_H

#include "characteristic_sum.h"

/* arrays of one length in the caller's memory; the transform is 1 + V (characteristic_sum.h) */
typedef struct {
    double *log_modulus, *arg;
    double *ratio;    /* error of V over the least modulus that it leaves; inf where that is none */
    double *log_most; /* log of the largest modulus that it leaves */
    double *factor;   /* acct_trapezoid_factor */
    double *poles;    /* argument of s (s - 1) */
    double *error;    /* of the terms last computed */
    double least_log, most_ratio; /* of all points */
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
    double *re, *im;     /* in the caller's memory, with ACCT_LINE_SPARE beyond the points */
    double dy;
    double size, weighed; /* sums of the moduli, and of those times y */
    int count;           /* 0: none are set */
} acct_line_terms;

#define ACCT_LINE_SPARE 16

/* sets no terms where a phase is beyond the range of acct_vsincos, or NaN; requires k dy to be exact */
void acct_line_terms_set(acct_line_terms *terms, int count, double dy, const double *amplitude,
                         const double *phase);

/* sets     *out to the sum of the real parts of the terms times e^{i rate y}, where the terms decay like e^{-b epsilon}
 * ensures  rounding bounds what round-off of the terms' sines, of rate (a difference of numbers whose moduli add up to
 *          speed, one of them rounded) and of the sum moves (Theorem 8(e))
 * returns  0 beyond the range of acct_vsincos: *out is not set */
int acct_line_terms_sum(const acct_line_terms *terms, double rate, double speed, double b, acct_line_sums *out);

#endif
