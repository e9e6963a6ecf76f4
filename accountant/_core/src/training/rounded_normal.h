/* Rounded Gaussian integers by inversion of the normal tail, certified or flagged. */
#ifndef ACCT_ROUNDED_NORMAL_H
#define ACCT_ROUNDED_NORMAL_H

#include <stddef.h>
#include <stdint.h>

/* Sets   out[i] to the integer nearest to scale * Z, where Z is the standard normal number that the
 *        word bits[i] begins: its lowest bit is the sign, the other 63 bits k say that the tail
 *        probability of |Z| lies in [k, k + 1] 2^-64. When the word does not decide the integer, or
 *        the bound below is too wide to tell, i is appended to `undecided`.
 * Needs  0 < scale < 2^40; space for n entries at `undecided`.
 * Returns the number of undecided entries.
 * Error  |z computed - z| <= 2^-46 (1 + z) + 1.3 2^-65 / p, with p the tail probability and k >= 2^20
 *        (docs/theorems_training.md, Theorem T6).
 * Reference: Wichura, Algorithm AS 241 (PPND16), Applied Statistics 37 (1988). */
size_t acct_rounded_normal(const uint64_t *bits, size_t n, double scale, double *out,
                           size_t *undecided);

/* The quantile itself, for tests: |Z| for the tail probability p in (0, 1/2). */
double acct_normal_tail_quantile(double p);

#endif
