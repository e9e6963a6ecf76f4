#include "soft_threshold.h"

#include <math.h>

#include "rounding.h"
#include "vmath.h"

int acct_threshold_bounds(double low, double high, double modulus, double arg, acct_threshold threshold,
                          double *log_above, double *log_below) {
    const double rate = 1.0 / threshold.scale, up = arg * rate;
    const double left = (low - threshold.origin - modulus) * rate;
    const double right = (high - threshold.origin) * rate, power = ldexp(1.0, threshold.doublings);
    const double most = acct_max(fabs(left), right) * (1.0 + 1e-12) + up, small = most * most;
    double log_t, least;
    if (small < 0.5) { /* |1 - e^{-z}| <= |z| e^{|z|} */
        log_t = small > 1e-18 ? log(small) + small : -41.0;
        least = -small;
    } else { /* and <= (1 - e^{-Re z})/cos arg z, |arg z| <= 2 atan(slope) */
        const double slope = up / left;
        if (!(left > 0.0 && slope < 0.68)) return 0;
        const double square = slope * slope, turn = acct_min(2.0 * right * up, ACCT_PI);
        const double half = sin(0.5 * turn), near = -expm1(-right * right);
        least = left * left * (1.0 - square);
        const double t =
            acct_min(near * (1.0 + square) / (1.0 - square), sqrt(near * near + 4.0 * exp(-least) * half * half));
        log_t = log(t);
    }
    *log_above = power * log_t * (log_t > 0.0 ? 1.0 + 1e-12 : 1.0 - 1e-12);
    /* 1 - t^{2^k} = (1 - t)(1 + t)(1 + t^2)... */
    double sum = -least, t = exp(log_t) * (1.0 + 1e-12);
    for (int i = 0; i < threshold.doublings; i++, t *= t) sum += log1p(t);
    *log_below = acct_min(sum, *log_above > 40.0 ? *log_above + 1e-12 : log1p(exp(*log_above))) + 1e-12;
    return 1;
}

ACCT_CLONES
void acct_threshold_values(int count, const double *restrict loss, acct_threshold threshold,
                           double *restrict above, double *restrict share) {
    const double rate = 1.0 / threshold.scale;
    for (int j = 0; j < count; j++) {
        const double r = (loss[j] - threshold.origin) * rate, z = r * r;
        above[j] = -acct_vexpm1(-z);
        share[j] = 1.0;
    }
    /* 1 - t^m = (1 - t)(1 + t)(1 + t^2)(1 + t^4)... */
    for (int i = 0; i < threshold.doublings; i++)
        for (int j = 0; j < count; j++) {
            share[j] *= 1.0 + above[j];
            above[j] *= above[j];
        }
}

/* The chance of being between is a difference of two chances; it is taken in the form that cancels less: of
 * being above where less than half is above the outer threshold, else of being below. */
ACCT_CLONES
void acct_thresholds_between(int count, const double *restrict loss, const acct_thresholds *thresholds,
                             double *restrict middle) {
    const double rate_out = 1.0 / thresholds->outer.scale, rate_in = 1.0 / thresholds->inner.scale;
    const double *restrict above_out = thresholds->above_out, *restrict above_in = thresholds->above_in;
    const double *restrict share_out = thresholds->share_out, *restrict share_in = thresholds->share_in;
    for (int j = 0; j < count; j++) {
        const double e = loss[j] - thresholds->outer.origin, ro = e * rate_out, ri = e * rate_in;
        const double near = above_in[j] - above_out[j];
        const double far = acct_vexp(-ro * ro) * share_out[j] - acct_vexp(-ri * ri) * share_in[j];
        middle[j] = above_out[j] < 0.5 ? near : far;
    }
}
