/* The ChaCha20 stream (Bernstein 2008, with a 64-bit counter and nonce 0), with fast key erasure. */
#ifndef ACCT_NOISE_H
#define ACCT_NOISE_H

#include <stddef.h>
#include <stdint.h>

/* Sets   out to the keystream blocks counter, counter + 1, ..., counter + blocks - 1 of `key`, each
 *        sixteen 32-bit words in the order of the cipher, stored little-endian.
 * Needs  64 * blocks bytes at out; counter + blocks < 2^64. */
void acct_chacha20(const uint32_t key[8], uint64_t counter, uint8_t *out, size_t blocks);

/* Rounded Gaussian integers by inversion of the normal tail, certified or flagged. */
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

/* Exact discrete Gaussian integers from uniform words: integer arithmetic only. */
/* Words to draw from; `used` advances. */
struct acct_words {
    const uint64_t *words;
    size_t count;
    size_t used;
};

/* Sets   out[0 .. returned - 1] to independent integers with P{j} proportional to
 *        exp(-j^2 / (2 s^2)), s = scale; stops, returning fewer than n, when the words run out in
 *        the middle of a draw (that draw is abandoned; draw it again from fresh words only: see
 *        below).
 * Needs  1 <= scale <= 2^20.
 * Note   an abandoned draw must not bias the law: the caller keeps the words of the unfinished draw
 *        (source->used is put back to its first word) and appends fresh ones.
 * Reference: Canonne, Kamath, Steinke, The discrete Gaussian for differential privacy (2020),
 *        Algorithms 1 to 3, with t = s. */
size_t acct_discrete_gaussian(struct acct_words *source, uint64_t scale, size_t n, int64_t *out);

#endif
