/* The privacy loss of one Poisson-subsampled Gaussian step, real and complex. */
#ifndef ACCT_LOSS_H
#define ACCT_LOSS_H

#include <math.h>
#include <stddef.h>

#include "domain.h"
#include "mixture_loss.h"
#include "rounding.h"
#include "vmath.h"

typedef struct {
    double q;        /* sampling probability, in (0, 1] */
    double sigma;    /* noise multiplier, in (0, inf) */
    double log_q;    /* log q */
    double log_1mq;  /* log(1 - q); -inf at q = 1 */
    double odds;     /* (1 - q) / q */
    /* NULL for one shift, of 1.  Else the shifts; q is then the probability of any, log_1mq is log w_0, and
     * p below is sigma^2 L', the posterior mean of the shift (mixture_loss.h) */
    const acct_mixture *mixture;
} acct_step;

/* the same step with a random shift */
acct_step acct_step_make_mixture(const acct_mixture *mixture, double sigma);

/* the most that any outcome of the steps loses when adding: log1p errs by 5 u, the two products by u each */
static inline double acct_most_added_loss(const acct_step *step, double steps) {
    return -steps * step->log_1mq * (1.0 + 8.0 * ACCT_U);
}

/* the least and the largest shift */
static inline double acct_step_smallest(const acct_step *step) {
    return step->mixture ? step->mixture->smallest : 1.0;
}
static inline double acct_step_largest(const acct_step *step) {
    return step->mixture ? step->mixture->largest : 1.0;
}

acct_step acct_step_make(double q, double sigma);

/* sets     *mixture and *part, which points to it
 * returns  as acct_mixture_set */
int acct_part_set_mixture(acct_part *part, acct_mixture *mixture, const acct_mixture_part *law, double steps);

/* one of the part's steps */
acct_step acct_part_step(const acct_part *part);

/* L(x) = log(1 - q + q e^u), u = (2x - 1) / (2 sigma^2), with full relative accuracy.
 * sets *density_ratio (may be NULL) to p = q e^u / (1 - q + q e^u) = sigma^2 L'(x), in [0, 1]
 * ensures |computed - L| <= (24 |L| + 12 p |u|) ACCT_U: dL/du = p carries the round-off of u, every
 *         other operation is relative to L */
double acct_loss(const acct_step *step, double x, double *density_ratio);

/* the same at four points at once, for little more than the price of one */
void acct_loss_four(const acct_step *step, const double x[4], double loss[4], double density_ratio[4]);

/* L(x + i eta) for 0 <= eta < pi sigma^2: principal branch, imaginary part in [0, pi) */
void acct_loss_complex(const acct_step *step, double x, double eta, double *re, double *im);

/* the same at many x of one eta */
void acct_losses_complex(const acct_step *step, int count, const double *x, double eta, double *re, double *im);

/* Bounds on e^L where |Im x| <= theta sigma^2.  With r the odds of having been sampled at Re x and
 * p = r/(1+r) the density ratio there, e^L is (1-q)(1 + r e^{it}), |t| <= theta. */

/* arg e^L, for p at most the given one: at most p t where p <= 1/2 (it is concave in t up to pi, and smaller
 * beyond); else at most t up to pi, and t + pi/2 beyond (take r e^{it} out) */
double acct_loss_arg_chord(double theta, double p);

/* the same, by the argument itself where theta < pi/2: rounded up */
double acct_loss_arg_upper(double theta, double p);

/* log(|e^L| real / |e^L| complex): |1 + r e^{it}|^2 = (1+r)^2 (1 - spread), where the spread is at most the
 * given bound on 4 p (1-p) sin^2(t/2); rounded up */
double acct_loss_modulus_upper(double spread);

/* the x at which L(x) = loss (loss > log(1 - q)); plain rounding, for searches only */
double acct_loss_inverse(const acct_step *step, double loss);

/* E2(z) = e^z - 1 - z >= 0, relative error at most 32 u_roundoff */
double acct_e2(double z);

/* The privacy loss without branches, for loops and for the scalar entry point alike.
 *
 * Three forms, each where its summands do not cancel:
 *   log1p(q expm1(u))                near u = 0 and wherever q <= 1/2, q e^u < e
 *   log1p(-q) + log1p(e^u / odds)    q > 1/2, u < -log 2, e^u < odds (the first form would lose a
 *                                    factor 1/(1-q) here)
 *   log q + u + log1p(odds e^-u)     q e^u >= e, or q > 1/2, u < -log 2, e^u >= odds
 */
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
