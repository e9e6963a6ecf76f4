/* The privacy loss without branches, for loops and for the scalar entry point alike.
 *
 * Three forms, each where its summands do not cancel:
 *   log1p(q expm1(u))                near u = 0 and wherever q <= 1/2, q e^u < e
 *   log1p(-q) + log1p(e^u / odds)    q > 1/2, u < -log 2, e^u < odds (the first form would lose a
 *                                    factor 1/(1-q) here)
 *   log q + u + log1p(odds e^-u)     q e^u >= e, or q > 1/2, u < -log 2, e^u >= odds
 */
#ifndef ACCT_LOSS_INLINE_H
#define ACCT_LOSS_INLINE_H

#include <math.h>

#include "rounding.h"
#include "vmath.h"

/* the bound on the round-off of a computed L that loss.h states; p is its density ratio */
ACCT_INLINE double acct_loss_error(double loss, double p, double u) {
    return ACCT_U * (24.0 * fabs(loss) + 12.0 * p * fabs(u));
}

/* L at u = (2x - 1)/(2 sigma^2), and the density ratio p; q < 1 */
ACCT_INLINE double acct_loss_at(double u, double q, double log_q, double log_1mq, double odds, double *p) {
    /* e^{-|u|} and e^u - 1; u far above 700 only ever uses e^{-u} */
    const double em1 = acct_vexpm1(u), down = acct_vexp(u > 0.0 ? -u : u);
    /* every candidate is computed and one is chosen, bitwise: no branch */
    const int deep = (q > 0.5) & (u <= -ACCT_LOG_2);
    const int low = deep & (down < odds);
    const int high = (deep & (down >= odds)) | ((u > 0.0) & (u + log_q >= 1.0));
    const double up = log_q + u, ratio = odds * down, near = q * em1;
    /* one division each for the ratio of the chosen form, and for p */
    const double over = low ? down : odds, under = low ? odds : down, inverse = over / under;
    const double base = high ? up : low ? log_1mq : 0.0;
    const double far = u > 0.0 ? ratio : inverse;
    const double arg = high ? far : low ? inverse : near;
    *p = (u > 0.0 ? 1.0 : down) / (u > 0.0 ? 1.0 + ratio : odds + down);
    return base + acct_vlog1p(arg);
}

/* the turn of e^u at Im x = theta sigma^2: its angle, and the sine and the cosine less 1 of that */
typedef struct {
    double theta, sine, cosine1;
} acct_turn;

/* L where u has the imaginary part theta in [0, pi), principal branch; q < 1.  A NaN where |e^L| underflows.
 * Forms as above; the second one is log(1-q) + log(1 + t e^{i theta}), t = e^u / odds, for all u < -log 2, q > 1/2. */
ACCT_INLINE void acct_loss_complex_at(double u, double q, double log_q, double log_1mq, double odds, acct_turn by,
                                      double *re, double *im) {
    double em1;
    const double up = acct_vexp_both(u, &em1), down = acct_vexp(-u);
    const int high = (u > 0.0) & (u + log_q >= 1.0), deep = (q > 0.5) & (u <= -ACCT_LOG_2);
    const double t = high ? odds * down : up / odds, across = t * by.sine;
    const double far_a = t * (1.0 + by.cosine1), far_b = high ? -across : across;
    const double near_a = q * (em1 + up * by.cosine1), near_b = q * up * by.sine;
    const double far_z = 2.0 * far_a + t * t, near_z = 2.0 * near_a + near_a * near_a + near_b * near_b;
    const int far = high | deep;
    const double a = far ? far_a : near_a, b = far ? far_b : near_b, z = far ? far_z : near_z;
    const double base = high ? log_q + u : deep ? log_1mq : 0.0, turned = high ? by.theta : 0.0;
    const double log_square = acct_vlog1p(z);
    *re = base + 0.5 * (z > -1.0 ? log_square : NAN);
    *im = turned + acct_vatan2(b, 1.0 + a);
}

#endif
