#include "exchange_decay.h"

#include <math.h>

#include "rounding.h"

#define REACH 6.0

/* The posterior probability q e^u / (1 - q + q e^u) of a shift, relative error below 1e-12: nothing overflows to
 * NaN, and where the exponential does overflow the probability underflows. */
static double posterior(const acct_exchange_law *law, double u) {
    return 1.0 / (1.0 + exp(law->log_1mq - log(law->q) - u));
}

/* Log of a lower bound on N e^{cU + (1-c)W} on [a, b]: cU is above its tangent at the middle and (1-c)W above
 * its chord, and a concave function is least at an end. */
static double least_log_term(const acct_exchange_law *law, double c, double a, double b,
                             const acct_exchange_point *pa, const acct_exchange_point *pb) {
    const double middle = 0.5 * (a + b), half = 0.5 * (b - a);
    const acct_exchange_point p = acct_exchange_at(law->mu, law->q, law->log_1mq, middle);
    const double turn = law->mu * posterior(law, law->mu * (middle - 0.5 * law->mu)) * half;
    const double at_a = c * (p.up - turn) + (1.0 - c) * pa->down - 0.5 * a * a;
    const double at_b = c * (p.up + turn) + (1.0 - c) * pb->down - 0.5 * b * b;
    const double slack = 1e-9 +
                         1e-12 * (c * (fabs(p.up) + turn + fabs(pa->down) + fabs(pb->down)) + a * a + b * b);
    return acct_min(at_a, at_b) - slack;
}

/* the posterior probability of a shift is largest at the right end for U, at the left end for W */
static double steepest(const acct_exchange_law *law, double a, double b) {
    const double mu = law->mu;
    return mu * (posterior(law, mu * (b - 0.5 * mu)) + posterior(law, mu * (-a - 0.5 * mu))) * (1.0 + 1e-9);
}

void acct_exchange_decay_set(acct_exchange_decay *decay, const acct_exchange_law *law, double c, double mode,
                             double log_mgf) {
    int used = 0;
    for (int i = 0; i < ACCT_EXCHANGE_SCALES; i++) {
        const double width = ldexp(2.0, -i);
        decay->count[i] = 0;
        double a = mode - REACH;
        acct_exchange_point pa = acct_exchange_at(law->mu, law->q, law->log_1mq, a);
        for (int k = 0; k < (int)(2.0 * REACH / width) && used < ACCT_EXCHANGE_PIECES; k++) {
            const double b = a + width;
            const acct_exchange_point pb = acct_exchange_at(law->mu, law->q, law->log_1mq, b);
            const double length = (pb.loss - pa.loss) - pa.error - pb.error;
            const double density = exp(least_log_term(law, c, a, b, &pa, &pb) - log_mgf) /
                                   (ACCT_SQRT_2PI * steepest(law, a, b));
            if (length > 0.0 && density * length > 1e-30) {
                decay->length[used] = length * (1.0 - 1e-9);
                decay->mass[used++] = density * length * (1.0 - 1e-6);
                decay->count[i]++;
            }
            a = b;
            pa = pb;
        }
    }
}

/* 1 - sup over z' >= z of |sin(z') / z'|: sin z / z falls on [0, pi] and is at most .2173 and 1/z beyond; for
 * small z, 1 - sin z / z >= z^2/6 - z^4/120 */
static double missing(double z) {
    if (z >= 4.6) return 1.0 - 1.0 / z;
    if (z > 2.6) return 0.7826;
    return z < 1e-2 ? z * z * (1.0 / 6.0 - z * z * (1.0 / 120.0)) * (1.0 - 1e-9)
                    : acct_min(1.0 - sin(z) / z - 1e-12, 0.7826);
}

double acct_exchange_decay_at(const acct_exchange_decay *decay, double y) {
    double best = 0.0;
    int first = 0;
    for (int i = 0; i < ACCT_EXCHANGE_SCALES; i++) {
        double lost = 0.0;
        for (int k = first; k < first + decay->count[i]; k++)
            lost += decay->mass[k] * missing(0.5 * y * decay->length[k]);
        first += decay->count[i];
        best = acct_max(best, lost);
    }
    return acct_min(1.0 - best * (1.0 - 1e-9) + 1e-15, 1.0);
}
