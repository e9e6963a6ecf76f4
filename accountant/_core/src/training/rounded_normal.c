#include "rounded_normal.h"

#include <math.h>
#include <string.h>

#include "clones.h"

static inline double central(double q)
{
    const double r = 0.180625 - q * q;
    const double numerator =
        ((((((2.5090809287301226727e3 * r + 3.3430575583588128105e4) * r + 6.7265770927008700853e4) *
                r + 4.5921953931549871457e4) * r + 1.3731693765509461125e4) * r +
              1.9715909503065514427e3) * r + 1.3314166789178437745e2) * r + 3.3871328727963666080e0;
    const double denominator =
        ((((((5.2264952788528545610e3 * r + 2.8729085735721942674e4) * r + 3.9307895800092710610e4) *
                r + 2.1213794301586595867e4) * r + 5.3941960214247511077e3) * r +
              6.8718700749205790830e2) * r + 4.2313330701600911252e1) * r + 1.0;
    return q * numerator / denominator;
}

static double tail(double p)
{
    double r = sqrt(-log(p));
    if (r <= 5.0) {
        r -= 1.6;
        const double numerator =
            ((((((7.74545014278341407640e-4 * r + 2.27238449892691845833e-2) * r +
                 2.41780725177450611770e-1) * r + 1.27045825245236838258e0) * r +
               3.64784832476320460504e0) * r + 5.76949722146069140550e0) * r +
             4.63033784615654529590e0) * r + 1.42343711074968357734e0;
        const double denominator =
            ((((((1.05075007164441684324e-9 * r + 5.47593808499534494600e-4) * r +
                 1.51986665636164571966e-2) * r + 1.48103976427480074590e-1) * r +
               6.89767334985100004550e-1) * r + 1.67638483018380384940e0) * r +
             2.05319162663775882187e0) * r + 1.0;
        return numerator / denominator;
    }
    r -= 5.0;
    const double numerator =
        ((((((2.01033439929228813265e-7 * r + 2.71155556874348757815e-5) * r +
             1.24266094738807843860e-3) * r + 2.65321895265761230930e-2) * r +
           2.96560571828504891230e-1) * r + 1.78482653991729133580e0) * r +
         5.46378491116411436990e0) * r + 6.65790464350110377720e0;
    const double denominator =
        ((((((2.04426310338993978564e-15 * r + 1.42151175831644588870e-7) * r +
             1.84631831751005468180e-5) * r + 7.86869131145613259100e-4) * r +
           1.48753612908506148525e-2) * r + 1.36929880922735805310e-1) * r +
         5.99832206555887937690e-1) * r + 1.0;
    return numerator / denominator;
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
