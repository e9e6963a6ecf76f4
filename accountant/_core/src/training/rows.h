/* Functions of rows: what is computed for one row is the same operations in the same order, whatever
 * the other rows hold, however many they are, and wherever the row stands or lies in memory
 * (docs/theorems_training.md, Theorem T11).
 *
 * All matrices are C-contiguous, unless said otherwise. Nothing here reads errno or keeps memory. */
#ifndef ACCT_ROWS_H
#define ACCT_ROWS_H

#include <stddef.h>

/* Sets   out[i, j] to the sum over k of x[i, k] w[k, j], where w[k, j] is w[k * down + j * across].
 *        An addend enters by one fused operation, or by a product and a sum: which of the two is up
 *        to the machine and the number of columns, never to the rows.
 * Alias  out overlaps neither input. */
void acct_row_products_f64(const double *x, ptrdiff_t rows, ptrdiff_t inner, const double *w,
                           ptrdiff_t outer, ptrdiff_t down, ptrdiff_t across, double *out);
void acct_row_products_f32(const float *x, ptrdiff_t rows, ptrdiff_t inner, const float *w,
                           ptrdiff_t outer, ptrdiff_t down, ptrdiff_t across, float *out);

/* Sets   the rows of out to `scale` times the cosines of a row of angles, then their sines, cut off
 *        at `outer` columns, which are at most 2 inner. */
void acct_row_waves(const double *angles, ptrdiff_t rows, ptrdiff_t inner, double scale, double *out,
                    ptrdiff_t outer);

/* Sets   size and angle to the polar coordinates of n points. */
void acct_row_polar(const double *across, const double *down, ptrdiff_t n, double *size,
                    double *angle);

/* Sets   out[k] to |x[k]|^power with the sign of x[k].
 * Alias  out may be x. */
void acct_row_powers(const double *x, ptrdiff_t n, double power, double *out);

/* Sets   every row of x to itself over its Euclidean norm; a row of zeros stays. No square overflows
 *        or vanishes. */
void acct_row_units(double *x, ptrdiff_t rows, ptrdiff_t columns);

#endif
