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
} acct_line_values;

#define ACCT_LINE_ARRAYS 7
void acct_line_values_place(acct_line_values *values, double *memory, size_t points);

/* sets the values at y_k = k dy, 0 <= k < count, on the line at distance b; requires
 * acct_characteristic_sum_step for this dy */
void acct_line_values_set(const acct_line_values *values, acct_characteristic_sum *cf,
                          const acct_tilted_law *law, const acct_moments *m, double b, double dy, int count);

/* sets     amplitude and phase of every term of so many steps; sign: 1 to remove, -1 to add
 * ensures  sum over the terms of |term - computed term| <= returned */
double acct_line_values_power(const acct_line_values *values, int count, double steps, double sign,
                              double *amplitude, double *phase);

#endif
