/* Orders of the transform A(c) = E_Q[e^{cL}] and their distances from the interval [0, 1].
 *
 * A contour is the vertical line Re c = order; its distance b > 0 from [0, 1] makes the order 1 + b in
 * the remove direction and -b in the add direction.  The integrand has the poles of 1/(s(s-1)) at the
 * ends of the interval, so everything that depends on the line's position is written in b.
 */
#ifndef ACCT_ORDER_H
#define ACCT_ORDER_H

#include <math.h>

#include "domain.h"
#include "rounding.h"
#include "vmath.h"

/* beyond this distance squares of b would overflow: no line is built */
#define ACCT_MOST_DISTANCE 1e140

/* the order at distance b; in the remove direction exact if b came from acct_exact_distance */
static inline double acct_order_at(int direction, double b) {
    return direction == ACCT_REMOVE ? 1.0 + b : -b;
}

/* b as it really is once the order 1 + b has been rounded: e^{-b epsilon} must match K(1 + b) exactly.
 * The subtraction is exact; where 1 + b rounds to 1, b is the distance to the next double. */
static inline double acct_exact_distance(double b) {
    const double exact = (1.0 + b) - 1.0;
    return exact > 0.0 ? exact : 2.0 * ACCT_U;
}

/* log of sup over l of (1 - e^{-l}) e^{-b l} = b^b / (1+b)^{1+b}, and 0 for b = 0.  Hence Chernoff's
 * bound at distance b on the profile of a law with log A = K (Theorem 5):
 *     H(epsilon) <= exp(acct_log_chernoff(b) + K - b epsilon).
 * error: both terms are non-positive, so the sum is within 2 ACCT_LIBM of itself; callers add 1e-9 or
 *        1e-12 of the size of their whole exponent, which is more. */
static inline double acct_log_chernoff(double b) { return b > 0.0 ? -log1p(b) - b * log1p(1.0 / b) : 0.0; }

/* |s (s - 1)| at s = 1 + b + iy, without overflow; a few u relative */
static inline double acct_poles(double b, double y) {
    return sqrt(b * b + y * y) * sqrt((b + 1.0) * (b + 1.0) + y * y);
}

/* the factor of the term at y = k dy in the trapezoid sum: dy / (pi |s (s - 1)|), half of it at k = 0 */
static inline double acct_trapezoid_factor(double b, double y, double dy, long k) {
    return dy / (ACCT_PI * acct_poles(b, y)) * (k ? 1.0 : 0.5);
}

/* arg s + arg (s - 1) = arg (b (b + 1) - y^2 + iy (2b + 1)), the phase that the poles give the term at y >= 0:
 * b (b + 1) + y^2 <= |s (s - 1)|, so that the subtraction moves it by at most 4 u; acct_vatan2 errs by 5 u of itself */
static inline double acct_poles_phase(double b, double y) {
    return acct_vatan2(y * (2.0 * b + 1.0), b * (b + 1.0) - y * y);
}

/* Tail of the trapezoid sum (Theorem 9).  |s (s - 1)| is at least y^2 and b (b + 1), and a sum over
 * lattice points in (y, y1] is at most the integral over [y - dy, y1] of a decreasing integrand. */

/* ensures sum of the factors over lattice points in (y, y1] <= returned, up to ACCT_SLACK */
static inline double acct_tail_weight(double b, double y, double y1, double dy) {
    return acct_min(1.0 / y - 1.0 / y1 + dy / (y * y), (y1 - y + dy) / (b * (b + 1.0))) / ACCT_PI;
}

/* 1 - sup over z' >= z of |sin(z') / z'|: sin z / z falls on [0, pi] and is at most .2173 and 1/z beyond; for
 * small z, 1 - sin z / z >= z^2/6 - z^4/120 */
static inline double acct_sinc_missing(double z) {
    if (z >= 4.6) return 1.0 - 1.0 / z;
    if (z > 2.6) return 0.7826;
    return z < 1e-2 ? z * z * (1.0 / 6.0 - z * z * (1.0 / 120.0)) * (1.0 - 1e-9)
                    : acct_min(1.0 - sin(z) / z - 1e-12, 0.7826);
}

#endif
