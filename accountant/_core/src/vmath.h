/* Elementary functions without branches or tables, so that loops over them become vector code.
 *
 * Relative error at most ACCT_LIBM (8 u) each on the stated ranges; tests/core/test_vmath.py
 * measures it against correctly rounded values (about 5 u at worst).  Reductions are Cody-Waite,
 * polynomials are Taylor sections whose remainder is below u/4 on the reduced range.  The longer ones are summed in
 * pairs, pairs of pairs and so on (Estrin): a loop waits for the last of a chain of operations, and that is a shorter
 * one than Horner's.
 */
#ifndef ACCT_VMATH_H
#define ACCT_VMATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "clones.h"

ACCT_INLINE uint64_t acct_bits(double x) {
    uint64_t i;
    memcpy(&i, &x, sizeof i);
    return i;
}

ACCT_INLINE double acct_double(uint64_t i) {
    double x;
    memcpy(&x, &i, sizeof x);
    return x;
}

#define ACCT_ROUND 6755399441055744.0 /* 1.5 * 2^52: adding it rounds to an integer */
#define ACCT_VPI 3.141592653589793
#define ACCT_LN2_HI 6.93147180369123816490e-01 /* 32 bits, k * LN2_HI exact */
#define ACCT_LN2_LO 1.90821492927058770002e-10

/* e^r - 1 for |r| <= 0.35 */
ACCT_INLINE double acct_expm1_small(double r) {
    const double r2 = r * r, r4 = r2 * r2, r8 = r4 * r4;
    const double a = 0.5 + r * 1.6666666666666666e-01, b = 4.1666666666666664e-02 + r * 8.333333333333333e-03;
    const double c = 1.388888888888889e-03 + r * 1.984126984126984e-04;
    const double d = 2.48015873015873e-05 + r * 2.7557319223985893e-06;
    const double e = 2.755731922398589e-07 + r * 2.505210838544172e-08;
    const double f = 2.08767569878681e-09 + r * 1.6059043836821613e-10; /* 1/12!, 1/13! */
    return r + r2 * (((a + r2 * b) + r4 * (c + r2 * d)) + r8 * (e + r2 * f));
}

/* e^x = s (1 + p): s a power of two, p = e^r - 1; x is clipped to [-700, 709] */
ACCT_INLINE double acct_vexp_parts(double x, double *p) {
    x = x > 709.0 ? 709.0 : x;
    x = x < -700.0 ? -700.0 : x;
    const double t = x * 1.4426950408889634 + ACCT_ROUND, k = t - ACCT_ROUND;
    const double r = (x - k * ACCT_LN2_HI) - k * ACCT_LN2_LO;
    *p = acct_expm1_small(r);
    return acct_double((acct_bits(t) + 1023) << 52);
}

ACCT_INLINE double acct_vexp(double x) {
    double p;
    const double s = acct_vexp_parts(x, &p);
    return s + s * p;
}

/* both at once: e^x, and *em1 = e^x - 1 */
ACCT_INLINE double acct_vexp_both(double x, double *em1) {
    double p;
    const double s = acct_vexp_parts(x, &p);
    *em1 = s * p + (s - 1.0);
    return s + s * p;
}

ACCT_INLINE double acct_vexpm1(double x) {
    double p;
    const double s = acct_vexp_parts(x, &p);
    return s * p + (s - 1.0);
}

/* E2(z) = e^z - 1 - z, given em1 = e^z - 1; relative error at most 32 u */
ACCT_INLINE double acct_ve2(double z, double em1) {
    const double z2 = z * z, z4 = z2 * z2, z8 = z4 * z4;
    const double a = 0.5 + z * 1.6666666666666666e-01, b = 4.1666666666666664e-02 + z * 8.333333333333333e-03;
    const double c = 1.388888888888889e-03 + z * 1.984126984126984e-04;
    const double d = 2.48015873015873e-05 + z * 2.7557319223985893e-06;
    const double e = 2.755731922398589e-07 + z * 2.505210838544172e-08;
    const double f = 2.08767569878681e-09 + z * 1.6059043836821613e-10;
    const double g = 1.1470745597729725e-11 + z * 7.647163731819816e-13, h = 4.779477332387385e-14; /* h: 1/16! */
    const double p = ((a + z2 * b) + z4 * (c + z2 * d)) + z8 * ((e + z2 * f) + z4 * (g + z2 * h));
    const double series = z2 * p, direct = em1 - z;
    return z2 > 0.36 ? direct : series;
}

/* log y + lost, for y > 0, normal and finite, and |lost| at most a few u: y = 2^k m, m in [sqrt(1/2), sqrt(2)) */
ACCT_INLINE double acct_vlog_corrected(double y, double lost) {
    const uint64_t i = acct_bits(y) + (UINT64_C(0x3ff0000000000000) - UINT64_C(0x3fe6a09e667f3bcd));
    const double k = acct_double((i >> 52) | UINT64_C(0x4330000000000000)) - (4503599627370496.0 + 1023.0);
    const double m = acct_double((i & UINT64_C(0x000fffffffffffff)) + UINT64_C(0x3fe6a09e667f3bcd));
    const double f = m - 1.0, s = f / (2.0 + f), w = s * s;
    const double w2 = w * w, w4 = w2 * w2;
    const double a = 0.6666666666666666 + w * 0.4, b = 0.2857142857142857 + w * 0.2222222222222222;
    const double c = 0.18181818181818182 + w * 0.15384615384615385, d = 0.13333333333333333 + w * 0.11764705882352941;
    const double e = 0.10526315789473684 + w * 0.09523809523809523; /* 2/19, 2/21 */
    const double p = (a + w2 * b) + w4 * ((c + w2 * d) + w4 * e);
    return k * ACCT_LN2_HI + ((2.0 * s + s * (w * p)) + (lost + k * ACCT_LN2_LO));
}

/* log(1 + z) for z > -1, finite: the round-off of 1 + z is put back to first order */
ACCT_INLINE double acct_vlog1p(double z) {
    const double y = 1.0 + z;
    return acct_vlog_corrected(y, (z - (y - 1.0)) / y);
}

/* An exponential below the first is taken for 0, and its e^{ACCT_LEAST_LOG} for its error; beyond the second there is
 * no bound: acct_vexp ends there. */
#define ACCT_LEAST_LOG (-690.0)
#define ACCT_MOST_LOG 700.0
/* n times the relative error of a power's base up to which the power is bounded relative to itself */
#define ACCT_MOST_RELATIVE 100.0

ACCT_INLINE double acct_vlog(double y) { return acct_vlog_corrected(y, 0.0); }

/* the series of (arctan t - t)/t^3 in w = t^2, from the term w^11 on by p, which is about 1/25 */
ACCT_INLINE double acct_vatan_terms(double p, double w) {
    const double w2 = w * w, w4 = w2 * w2, w8 = w4 * w4;
    const double a = -0.3333333333333333 + w * 0.2, b = -0.14285714285714285 + w * 0.1111111111111111;
    const double c = -0.09090909090909091 + w * 0.07692307692307693;
    const double d = -0.06666666666666667 + w * 0.058823529411764705;
    const double e = -0.05263157894736842 + w * 0.047619047619047616, f = -0.043478260869565216 + w * p;
    return ((a + w2 * b) + w4 * (c + w2 * d)) + w8 * (e + w2 * f);
}

/* the argument of x + iy, with atan2's quadrants; x and y at most 1e300 in size.  arctan of the smaller over the
 * larger, t <= 1, is twice that of t/(1 + sqrt(1 + t^2)), at most .4143 */
ACCT_INLINE double acct_vatan2(double y, double x) {
    const double ax = fabs(x), ay = fabs(y);
    const int steep = ay > ax;
    const double num = steep ? ax : ay, most = steep ? ay : ax, den = most < 1e-300 ? 1e-300 : most;
    const double r = num / den, t = r / (1.0 + sqrt(1.0 + r * r)), w = t * t;
    const double w2 = w * w, w4 = w2 * w2;
    const double a = 0.04 - w * 0.037037037037037035, b = 0.034482758620689655 - w * 0.03225806451612903;
    const double c = 0.030303030303030304 - w * 0.02857142857142857;
    const double d = 0.02702702702702703 - w * 0.02564102564102564; /* 1/37, 1/39 */
    const double p = (a + w2 * b) + w4 * (c + w2 * d);
    const double near = 2.0 * (t + t * (w * acct_vatan_terms(p, w)));
    const double half = steep ? 1.5707963267948966 - near : near, whole = x < 0.0 ? ACCT_VPI - half : half;
    return y < 0.0 ? -whole : whole;
}

/* the range of acct_vsincos */
#define ACCT_MOST_ANGLE 1048576.0

/* sin and cos, absolute error at most 4 u for |t| < 2^20 = ACCT_MOST_ANGLE and relative for |t| <= pi/4 */
ACCT_INLINE void acct_vsincos(double t, double *sin_t, double *cos_t) {
    const double n = t * 0.6366197723675814 + ACCT_ROUND, k = n - ACCT_ROUND;
    const double r = ((t - k * 1.57079632673412561417e+00) - k * 6.07710050630396597660e-11) -
                     k * 2.02226624879595063154e-21;
    const double w = r * r;
    const double w2 = w * w, w4 = w2 * w2;
    const double a = -1.6666666666666666e-01 + w * 8.333333333333333e-03;
    const double b = -1.984126984126984e-04 + w * 2.7557319223985893e-06;
    const double d = -2.505210838544172e-08 + w * 1.6059043836821613e-10;
    const double e = -7.647163731819816e-13 + w * 2.8114572543455206e-15; /* 1/15!, 1/17! */
    const double s = r + r * (w * ((a + w2 * b) + w4 * (d + w2 * e)));
    const double f = -0.5 + w * 4.1666666666666664e-02, g = -1.388888888888889e-03 + w * 2.48015873015873e-05;
    const double h = -2.755731922398589e-07 + w * 2.08767569878681e-09;
    const double i = -1.1470745597729725e-11 + w * 4.779477332387385e-14; /* 1/14!, 1/16! */
    const double c = 1.0 + w * ((f + w2 * g) + w4 * (h + w2 * i));
    const uint64_t q = acct_bits(n);
    const double first = q & 1 ? c : s, second = q & 1 ? s : c;
    *sin_t = q & 2 ? -first : first;
    *cos_t = (q + 1) & 2 ? -second : second;
}

#endif
