/* Floating-point error budget of the native core.
 *
 * The core computes in round-to-nearest binary64 and carries explicit error bounds.
 * ACCT_U is the unit round-off: one + - * / sqrt has relative error at most ACCT_U.
 * A libm call (exp, expm1, log, log1p, sin, cos, atan2, pow) is trusted to a relative error of
 * ACCT_LIBM = 8u (4 ulp), and erfc to twice that: glibc's reaches 7.2u.  tests/core/test_libm.py and
 * `accountant doctor` measure them.
 * Bounds are assembled from positive terms in floating point; ACCT_SLACK covers the
 * round-off committed while assembling them.
 */
#ifndef ACCT_ROUNDING_H
#define ACCT_ROUNDING_H

#include <math.h>

#include "floating_point.h"

#define ACCT_U 1.1102230246251565e-16
#define ACCT_LIBM (8.0 * ACCT_U)
#define ACCT_SLACK (1.0 + 1e-6)
#define ACCT_PI 3.14159265358979323846
#define ACCT_SQRT_2PI 2.5066282746310002  /* sqrt(2 pi) */
#define ACCT_LOG_2 0.6931471805599453     /* log 2, rounded down */
#define ACCT_LOG_2_UP 0.6931471805599454

/* Below it products lose their relative accuracy: a floor of upper ends that need not be finer. */
#define ACCT_TINY 1e-306
/* What underflow moves one value by at most: a few of the least doubles, 5e-324, also in exp and erfc. */
#define ACCT_UNDERFLOW 1e-322

/* The larger (smaller) one; of a number and a NaN the number, as fmax and fmin, which would be calls of libm. */
static inline double acct_max(double x, double y) { return x > y ? x : y == y ? y : x; }
static inline double acct_min(double x, double y) { return x < y ? x : y == y ? y : x; }

/* the next double above (below) x: safe after one rounding of a value known to half an ulp */
static inline double acct_up(double x) { return nextafter(x, INFINITY); }
static inline double acct_down(double x) { return nextafter(x, -INFINITY); }

/* exp(x) rounded outward: x itself must already be a bound in the wanted direction */
static inline double acct_exp_upper(double x) { return exp(x) * (1.0 + 2.0 * ACCT_LIBM); }

/* e^x value for value >= 0, rounded outward: exp errs by 8 u, each of two products by one, and 4e-15 is
 * 36 u; x and value must already be bounds in the wanted direction.  Where e^x nearly underflows, x + 512 is
 * exact (Sterbenz; below -1200 the bounds are those at -1200, and 0), and only the last product can underflow. */
#define ACCT_EXP_M512 4.377491037053051e-223 /* e^-512 */
static inline double acct_times_exp_upper(double x, double value) {
    if (!(x <= -600.0)) return exp(x) * value * (1.0 + 4e-15); /* a NaN stays one: acct_max would drop it */
    return acct_up(exp(acct_max(x, -1200.0) + 512.0) * value * (1.0 + 5e-15) * ACCT_EXP_M512);
}
static inline double acct_times_exp_lower(double x, double value) {
    if (x > -600.0) return exp(x) * value * (1.0 - 4e-15);
    return !(x >= -1200.0) ? 0.0 : acct_max(acct_down(exp(x + 512.0) * value * (1.0 - 5e-15) * ACCT_EXP_M512), 0.0);
}

/* a probability rounded outward once more and kept in [0, 1]; underflow may have moved it by ACCT_UNDERFLOW */
static inline double acct_probability_upper(double p) { return p < 1.0 ? acct_up(p + ACCT_UNDERFLOW) : 1.0; }
static inline double acct_probability_lower(double p) {
    return p > ACCT_UNDERFLOW ? acct_min(acct_down(p - ACCT_UNDERFLOW), 1.0) : 0.0;
}

/* A sum that keeps what rounding loses (Neumaier): its error is at most 2u of the sum of the moduli. */
typedef struct {
    double sum, lost;
} acct_sum;

static inline void acct_sum_add(acct_sum *s, double x) {
    const double t = s->sum + x;
    s->lost += fabs(s->sum) >= fabs(x) ? (s->sum - t) + x : (x - t) + s->sum;
    s->sum = t;
}

static inline double acct_sum_total(const acct_sum *s) { return s->sum + s->lost; }

#endif
