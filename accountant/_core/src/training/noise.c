#include "noise.h"

#include <math.h>
#include <string.h>

#include "clones.h"

/* Several blocks are computed side by side, one lane each. Clones serve machines with wide vectors;
 * integer arithmetic makes every one of them give the same bytes. */
#if defined(__GNUC__)
enum { WIDTH = 8 };
typedef uint32_t lanes __attribute__((vector_size(4 * 8)));
#else
enum { WIDTH = 1 };
typedef uint32_t lanes;
#endif

#define ADD_XOR_ROTATE(a, b, d, n)                                                                 \
    x[a] += x[b];                                                                                  \
    x[d] ^= x[a];                                                                                  \
    x[d] = (x[d] << (n)) | (x[d] >> (32 - (n)));
#define QUARTER(a, b, c, d)                                                                        \
    ADD_XOR_ROTATE(a, b, d, 16)                                                                    \
    ADD_XOR_ROTATE(c, d, b, 12)                                                                    \
    ADD_XOR_ROTATE(a, b, d, 8)                                                                     \
    ADD_XOR_ROTATE(c, d, b, 7)

ACCT_CLONES_MEMORY static void some_blocks(const uint32_t key[8], uint64_t counter, uint8_t *out,
                                    size_t blocks)
{
    static const uint32_t constants[4] = {0x61707865u, 0x3320646eu, 0x79622d32u, 0x6b206574u};
    uint32_t words[16][WIDTH];
    lanes start[16], x[16];
    for (int l = 0; l < WIDTH; l++) {
        const uint64_t block = counter + (uint64_t)l;
        for (int w = 0; w < 4; w++)
            words[w][l] = constants[w];
        for (int w = 0; w < 8; w++)
            words[4 + w][l] = key[w];
        words[12][l] = (uint32_t)block;
        words[13][l] = (uint32_t)(block >> 32);
        words[14][l] = words[15][l] = 0;
    }
    memcpy(start, words, sizeof start);
    memcpy(x, words, sizeof x);
    for (int round = 0; round < 10; round++) {
        QUARTER(0, 4, 8, 12)
        QUARTER(1, 5, 9, 13)
        QUARTER(2, 6, 10, 14)
        QUARTER(3, 7, 11, 15)
        QUARTER(0, 5, 10, 15)
        QUARTER(1, 6, 11, 12)
        QUARTER(2, 7, 8, 13)
        QUARTER(3, 4, 9, 14)
    }
    for (int w = 0; w < 16; w++)
        x[w] += start[w];
    memcpy(words, x, sizeof words);
    for (size_t l = 0; l < blocks; l++)
        for (int w = 0; w < 16; w++) {
            const uint32_t word = words[w][l];
            uint8_t *at = out + 64 * l + 4 * w;
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
            memcpy(at, &word, sizeof word);
#else
            at[0] = (uint8_t)word;
            at[1] = (uint8_t)(word >> 8);
            at[2] = (uint8_t)(word >> 16);
            at[3] = (uint8_t)(word >> 24);
#endif
        }
}

void acct_chacha20(const uint32_t key[8], uint64_t counter, uint8_t *out, size_t blocks)
{
    for (size_t done = 0; done < blocks; done += WIDTH) {
        const size_t now = blocks - done < WIDTH ? blocks - done : WIDTH;
        some_blocks(key, counter + done, out + 64 * done, now);
    }
}

/* The coefficients of Wichura's quotients, the highest power first: of the middle, of the near and of the far tail. */
static const double CENTRAL_ABOVE[8] = {
    2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4, 4.5921953931549871457e4,
    1.3731693765509461125e4, 1.9715909503065514427e3, 1.3314166789178437745e2, 3.3871328727963666080e0,
};
static const double CENTRAL_BELOW[8] = {
    5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4, 2.1213794301586595867e4,
    5.3941960214247511077e3, 6.8718700749205790830e2, 4.2313330701600911252e1, 1.0,
};
static const double NEAR_ABOVE[8] = {
    7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258e0,
    3.64784832476320460504e0, 5.76949722146069140550e0, 4.63033784615654529590e0, 1.42343711074968357734e0,
};
static const double NEAR_BELOW[8] = {
    1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1,
    6.89767334985100004550e-1, 1.67638483018380384940e0, 2.05319162663775882187e0, 1.0,
};
static const double FAR_ABOVE[8] = {
    2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3, 2.65321895265761230930e-2,
    2.96560571828504891230e-1, 1.78482653991729133580e0, 5.46378491116411436990e0, 6.65790464350110377720e0,
};
static const double FAR_BELOW[8] = {
    2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5, 7.86869131145613259100e-4,
    1.48753612908506148525e-2, 1.36929880922735805310e-1, 5.99832206555887937690e-1, 1.0,
};

ACCT_INLINE double polynomial(const double coefficient[8], double r)
{
    double sum = coefficient[0];
    for (int i = 1; i < 8; i++)
        sum = sum * r + coefficient[i];
    return sum;
}

ACCT_INLINE double central(double q)
{
    const double r = 0.180625 - q * q;
    return q * polynomial(CENTRAL_ABOVE, r) / polynomial(CENTRAL_BELOW, r);
}

static double tail(double p)
{
    const double r = sqrt(-log(p));
    return r <= 5.0 ? polynomial(NEAR_ABOVE, r - 1.6) / polynomial(NEAR_BELOW, r - 1.6)
                    : polynomial(FAR_ABOVE, r - 5.0) / polynomial(FAR_BELOW, r - 5.0);
}

double acct_normal_tail_quantile(double p)
{
    const double q = 0.5 - p; /* exact for p >= 1/4, to 2^-54 below */
    return q <= 0.425 ? central(q) : tail(p);
}

/* Vectors of several draws at once; the same operations in the same order in every clone. */
enum { CHUNK = 256 };

/* The tail probability to 52 bits, by putting them into the mantissa of 2^52. Where `central`
 * applies, p > 0.074, and 2^-53 in p is 2^-50 in z. */
ACCT_CLONES_MEMORY static void centrals(const uint64_t *bits, double *p, double *z, int n)
{
    for (int i = 0; i < n; i++) {
        const uint64_t pattern = (bits[i] >> 12) | UINT64_C(0x4330000000000000);
        double shifted;
        memcpy(&shifted, &pattern, sizeof shifted);
        p[i] = ((shifted - 0x1p52) + 0.5) * 0x1p-53;
        z[i] = central(0.5 - p[i]);
    }
}

ACCT_CLONES_MEMORY static int roundings(const double *p, const double *z, double scale, double *out,
                                 double *slack, int n)
{
    int wide = 1;
    for (int i = 0; i < n; i++) {
        const double y = z[i] * scale;
        const double error =
            scale * (0x1p-46 * (1.0 + z[i]) + 1.3 * 0x1p-65 / p[i]) + y * 0x1p-50;
        /* To the nearest integer by adding and subtracting 1.5 * 2^52: y is below 2^45. */
        const double j = (y + 0x1.8p52) - 0x1.8p52;
        /* How far the boundaries j - 1/2 and j + 1/2 are. At j = 0 the lower one does not count,
         * for both signs round to 0. */
        const double below = j > 0.0 ? y - (j - 0.5) : 1.0;
        const double above = (j + 0.5) - y;
        out[i] = j;
        slack[i] = (below < above ? below : above) - error;
        wide &= slack[i] > 0.0;
    }
    return wide;
}

size_t acct_rounded_normal(const uint64_t *bits, size_t n, double scale, double *out,
                           size_t *undecided)
{
    size_t count = 0;
    double p[CHUNK], z[CHUNK], slack[CHUNK];
    for (size_t start = 0; start < n; start += CHUNK) {
        const uint64_t *word = bits + start;
        double *result = out + start;
        const int m = n - start < CHUNK ? (int)(n - start) : CHUNK;
        centrals(word, p, z, m);
        int rare = 0;
        for (int i = 0; i < m; i++)
            if (p[i] < 0.075) {
                const uint64_t k = word[i] >> 1;
                p[i] = ((double)k + 0.5) * 0x1p-64;
                z[i] = tail(p[i]);
                rare |= k < (UINT64_C(1) << 20);
            }
        if (!roundings(p, z, scale, result, slack, m) || rare)
            for (int i = 0; i < m; i++)
                if (!(slack[i] > 0.0) || (word[i] >> 1) < (UINT64_C(1) << 20))
                    undecided[count++] = start + (size_t)i;
        for (int i = 0; i < m; i++)
            result[i] = word[i] & 1 ? -result[i] : result[i];
    }
    return count;
}

enum outcome { NO = 0, YES = 1, EMPTY = 2 };

static int next_word(struct acct_words *source, uint64_t *word)
{
    if (source->used >= source->count)
        return 0;
    *word = source->words[source->used++];
    return 1;
}

/* A uniform integer in [0, n), 1 <= n < 2^63, by rejection below the largest multiple of n. */
static int below(struct acct_words *source, uint64_t n, uint64_t *value)
{
    const uint64_t excess = (UINT64_MAX % n + 1) % n; /* 2^64 mod n */
    uint64_t word;
    if (n == 1) {
        *value = 0;
        return 1;
    }
    do {
        if (!next_word(source, &word))
            return 0;
    } while (word > UINT64_MAX - excess);
    *value = word % n;
    return 1;
}

/* Bernoulli(exp(-x)) for x = numerator/denominator in [0, 1]: the parity of the first failure among
 * Bernoulli(x/k), k = 1, 2, ... Each trial draws from [0, denominator k) in two parts, so that no
 * product leaves 64 bits. */
static enum outcome exp_of_fraction(struct acct_words *source, uint64_t numerator,
                                    uint64_t denominator)
{
    for (uint64_t k = 1;; k++) {
        uint64_t part = 0, value;
        /* Bernoulli(x/k) = Bernoulli(1/k) and Bernoulli(x), independent. */
        if (k > 1 && !below(source, k, &part))
            return EMPTY;
        if (part != 0)
            return k & 1 ? YES : NO;
        if (!below(source, denominator, &value))
            return EMPTY;
        if (value >= numerator)
            return k & 1 ? YES : NO;
    }
}

static enum outcome exp_of(struct acct_words *source, uint64_t numerator, uint64_t denominator)
{
    for (; numerator > denominator; numerator -= denominator) {
        const enum outcome one = exp_of_fraction(source, 1, 1);
        if (one != YES)
            return one;
    }
    return exp_of_fraction(source, numerator, denominator);
}

/* One proposal of a two-sided geometric with ratio exp(-1/s), then the Gaussian's acceptance. */
static enum outcome propose(struct acct_words *source, uint64_t s, int64_t *out)
{
    uint64_t remainder, quotient = 0, sign;
    if (!below(source, s, &remainder))
        return EMPTY;
    const enum outcome kept = exp_of_fraction(source, remainder, s);
    if (kept != YES)
        return kept;
    for (;;) {
        const enum outcome one = exp_of_fraction(source, 1, 1);
        if (one == EMPTY)
            return EMPTY;
        if (one == NO)
            break;
        quotient++;
    }
    if (!next_word(source, &sign))
        return EMPTY;
    sign &= 1;
    if (sign && quotient == 0 && remainder == 0)
        return NO; /* zero is counted once */
    /* Beyond 2047 s the acceptance is below exp(-2e6): such a proposal is taken as refused. */
    if (quotient > 2047)
        return NO;
    const uint64_t size = remainder + s * quotient;
    const uint64_t distance = size > s ? size - s : s - size;
    const enum outcome accepted = exp_of(source, distance * distance, 2 * s * s);
    if (accepted == YES)
        *out = sign ? -(int64_t)size : (int64_t)size;
    return accepted;
}

size_t acct_discrete_gaussian(struct acct_words *source, uint64_t scale, size_t n, int64_t *out)
{
    for (size_t i = 0; i < n; i++) {
        const size_t first = source->used;
        enum outcome accepted;
        do
            accepted = propose(source, scale, &out[i]);
        while (accepted == NO);
        if (accepted == EMPTY) {
            source->used = first;
            return i;
        }
    }
    return n;
}
