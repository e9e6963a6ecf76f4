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

/* Sets   every row of x to itself over its Euclidean norm; a row of zeros stays. No square overflows
 *        or vanishes. */
void acct_row_units(double *x, ptrdiff_t rows, ptrdiff_t columns);

/* Row norms and row scaling for per-example clipping by ghost norms.
 *
 * All matrices are C-contiguous, `rows` by `columns`. Squares are accumulated in binary64 with
 * eight lanes, so a computed sum of n squares has relative error at most (n/8 + 16) u, u = 2^-53
 * (docs/theorems_training.md, Theorem T3). Nothing here reads errno or allocates. */
/* Sets   norms2[i] += (|a_i|^2 + bias) |g_i|^2, the squared gradient norm of row i in a dense layer
 *        with inputs a, output gradients g and, when bias = 1, a bias; +infinity when |a_i|^2 or
 *        |g_i|^2 exceeds `limit` or is NaN (such a row is dropped: its clip factor is 0).
 * Needs  limit < 1e300: with the limit no square that underflowed can matter.
 * Alias  norms2 overlaps neither input. */
void acct_ghost_norms_f64(const double *a, const double *g, ptrdiff_t rows, ptrdiff_t a_columns,
                          ptrdiff_t g_columns, double bias, double limit, double *norms2);
void acct_ghost_norms_f32(const float *a, const float *g, ptrdiff_t rows, ptrdiff_t a_columns,
                          ptrdiff_t g_columns, double bias, double limit, double *norms2);

/* Sets   norms2[i] += |v_i|^2, +infinity when that exceeds `limit` or is NaN. */
void acct_row_norms_f64(const double *v, ptrdiff_t rows, ptrdiff_t columns, double limit,
                        double *norms2);
void acct_row_norms_f32(const float *v, ptrdiff_t rows, ptrdiff_t columns, double limit,
                        double *norms2);

/* Sets   row i of x to factors[i] times itself: untouched when the factor is 1, all zeros when it is
 *        0, whatever the row held (0 * NaN would be NaN). */
void acct_scale_rows_f64(double *x, const double *factors, ptrdiff_t rows, ptrdiff_t columns);
void acct_scale_rows_f32(float *x, const double *factors, ptrdiff_t rows, ptrdiff_t columns);

#endif
