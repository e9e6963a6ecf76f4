#include "exchange_law.h"

#include <math.h>

#include "clones.h"
#include "order.h"
#include "rounding.h"
#include "vmath.h"

/* log(1 - q + q e^u), its error, and q e^u / (1 - q + q e^u) */
static double log_ratio(double q, double log_1mq, double u, double u_err, double *error, double *share) {
    const double far = log(q) + u;
    const double value = u > 30.0             ? far + log1p((1.0 - q) / q * exp(-u))
                         : q > 0.5 && u < 0.0 ? log_1mq + log1p(q / (1.0 - q) * exp(u))
                                              : log1p(q * expm1(u));
    *share = u > 0.0 ? q / (q + (1.0 - q) * exp(-u)) : q * exp(u) / (1.0 - q + q * exp(u));
    const double parts = u > 30.0 ? fabs(u) + fabs(log(q)) : q > 0.5 && u < 0.0 ? -log_1mq : 0.0;
    *error = 1.01 *
             (u_err * *share + ACCT_U * (24.0 * (fabs(value) + *share * acct_min(fabs(u), 1.0)) + 12.0 * parts));
    return value;
}

acct_exchange_point acct_exchange_at(double mu, double q, double log_1mq, double x) {
    double up_err, down_err, share;
    const double a = mu * (x - 0.5 * mu), b = mu * (-x - 0.5 * mu);
    const double up = log_ratio(q, log_1mq, a, 3.0 * ACCT_U * mu * (fabs(x) + mu), &up_err, &share);
    const double down = log_ratio(q, log_1mq, b, 3.0 * ACCT_U * mu * (fabs(x) + mu), &down_err, &share);
    const double loss = up - down;
    return (acct_exchange_point){up, down, loss, up_err + down_err + ACCT_U * fabs(loss)};
}

/* log of 2 e^{a^2/2 + 2 y a mu} cos^{-(c-1)}(a mu / 2) / (e^{2 pi a / h} - 1), the least over heights a */
static double log_lattice(const acct_exchange_law *law, double c, double y) {
    static const double TURNS[] = {3.0, 2.6, 2.2, 1.8, 1.4, 1.0, 0.7, 0.4, 0.2, 0.1, 0.05, 0.02, 0.01};
    double best = INFINITY;
    for (unsigned i = 0; i < sizeof TURNS / sizeof *TURNS; i++) {
        const double a = acct_min(TURNS[i] / law->mu, 2.0 * ACCT_PI / law->h), turn = a * law->mu * (1.0 + 1e-12);
        const double exponent = 2.0 * ACCT_PI * a / law->h;
        if (!(exponent > 1.0)) continue;
        const double value = ACCT_LOG_2 + 0.5 * a * a + 2.0 * y * turn - (c - 1.0) * log(cos(0.5 * turn)) -
                             exponent * (1.0 - 1e-12) - log1p(-exp(-exponent)) + 1e-9;
        best = acct_min(best, value);
    }
    return best;
}

/* above hi U rises at most by mu a unit, and W is at least log(1-q); below lo both exponents fall */
double acct_exchange_log_outside(double mu, double q, double log_1mq, double c, double lo, double hi) {
    const acct_exchange_point a = acct_exchange_at(mu, q, log_1mq, lo),
                              b = acct_exchange_at(mu, q, log_1mq, hi);
    if (!(lo < -mu && hi > c * mu + 1.0)) return INFINITY;
    const double left = c * a.up + (1.0 - c) * a.down - 0.5 * lo * lo - log(-lo);
    const double right = c * b.up - (c - 1.0) * log_1mq - 0.5 * hi * hi - log(hi - c * mu);
    return acct_max(left, right) + ACCT_LOG_2_UP - log(ACCT_SQRT_2PI) + 1e-6 +
           1e-11 * (lo * lo + c * hi * mu + hi * hi);
}

void acct_exchange_ends(double mu, double q, double log_1mq, double c, double digits, double *lo,
                        double *hi) {
    const double reach = sqrt(2.0 * digits) + 1.0;
    *lo = -mu - reach;
    *hi = c * mu + reach;
    for (int i = 0; i < 40 && acct_exchange_log_outside(mu, q, log_1mq, c, *lo, *hi) > -digits; i++) {
        *lo -= 0.1 * reach;
        *hi += 0.1 * reach;
    }
}

double acct_exchange_few_digits(double x) {
    int exponent;
    const double m = frexp(x, &exponent);
    return ldexp(floor(m * 16.0) / 16.0, exponent);
}

int acct_exchange_law_set(acct_exchange_law *law, double *memory, double mu, double q, double c, double y,
                          double digits) {
    *law = (acct_exchange_law){.mu = mu,
                               .q = q,
                               .log_1mq = log1p(-q),
                               .loss = memory,
                               .tilt = memory + ACCT_EXCHANGE_NODES,
                               .rest = memory + 2 * ACCT_EXCHANGE_NODES,
                               .doubt = memory + 3 * ACCT_EXCHANGE_NODES,
                               .weight = memory + 4 * ACCT_EXCHANGE_NODES};
    law->h = 1.0;
    for (int i = 0; i < 60 && log_lattice(law, c, y) > -digits; i++) law->h *= 0.85;
    law->h = acct_exchange_few_digits(law->h);
    double lo, hi;
    acct_exchange_ends(mu, q, law->log_1mq, c, digits, &lo, &hi);
    const double count = ceil((hi - lo) / law->h) + 1.0;
    if (!(count <= ACCT_EXCHANGE_NODES)) return 0;
    law->first = floor(lo / law->h);
    law->count = ((int)count + ACCT_LANES - 1) / ACCT_LANES * ACCT_LANES;
    if (law->count > ACCT_EXCHANGE_NODES) return 0;
    for (int j = 0; j < law->count; j++) {
        const double x = (law->first + j) * law->h;
        const acct_exchange_point p = acct_exchange_at(mu, q, law->log_1mq, x);
        law->loss[j] = p.loss;
        law->tilt[j] = p.up;
        law->rest[j] = p.down - 0.5 * x * x;
        law->doubt[j] = p.error;
    }
    return 1;
}

void acct_exchange_moments_set(acct_exchange_law *law, double c, double y, acct_exchange_moments *m,
                               double *lattice) {
    double top = -INFINITY, total = 0.0, mean = 0.0, blur = 0.0, round = 0.0;
    double mode = 0.0;
    for (int j = 0; j < law->count; j++)
        if (c * law->loss[j] + law->rest[j] > top) {
            top = c * law->loss[j] + law->rest[j];
            mode = (law->first + j) * law->h;
        }
    for (int j = 0; j < law->count; j++) {
        const double w = exp(c * law->loss[j] + law->rest[j] - top);
        law->weight[j] = w;
        total += w;
        mean += w * law->loss[j];
        blur += w * law->doubt[j];
        /* c L + W: the errors of L and W, and roundings of the exponent */
        round += w * ((c + 1.0) * law->doubt[j] +
                      ACCT_U * (16.0 + 4.0 * (c * fabs(law->loss[j]) + fabs(law->rest[j]) + fabs(top))));
    }
    mean /= total;
    double m2 = 0.0, spread = 0.0, both = 0.0;
    for (int j = 0; j < law->count; j++) {
        const double off = fabs(law->loss[j] - mean), w = law->weight[j];
        m2 += w * off * off;
        spread += w * off;
        both += w * off *
                ((c + 1.0) * law->doubt[j] +
                 ACCT_U * (16.0 + 4.0 * (c * fabs(law->loss[j]) + fabs(law->rest[j]) + fabs(top))));
    }
    const double log_mgf = top + log(total * law->h / ACCT_SQRT_2PI);
    const double lo = law->first * law->h, hi = (law->first + law->count - 1.0) * law->h;
    const double outside = acct_exchange_log_outside(law->mu, law->q, law->log_1mq, c, lo, hi) - log_mgf;
    *lattice = exp(log_lattice(law, c, y)) + exp(outside + 1e-3);
    *lattice = *lattice < 0.01 ? *lattice * 1.02 : INFINITY;
    const double relative = 1.02 * (round / total + (law->count + 8.0) * ACCT_U + *lattice);
    *m = (acct_exchange_moments){
        .c = c,
        .log_mgf = log_mgf,
        .log_mgf_err = relative + ACCT_U * (4.0 * fabs(top) + 32.0),
        .mean = mean,
        .m2 = m2 / total,
        .spread = spread / total,
        .blur = blur / total,
        .weight_err = round / total,
        .weight_spread = both / total,
        .total = total,
        .mode = mode,
    };
    if (!(relative < 0.05)) m->log_mgf_err = INFINITY;
}

ACCT_CLONES
void acct_exchange_sum(const acct_exchange_law *law, const acct_exchange_moments *m, double y, double *re,
                       double *im) {
    const double *restrict loss = law->loss, *restrict weight = law->weight;
    const double mean = m->mean, half = 0.5 * y;
    double r[ACCT_LANES] = {0}, t[ACCT_LANES] = {0};
    for (int j = 0; j < law->count; j += ACCT_LANES)
        ACCT_EACH_LANE for (int i = 0; i < ACCT_LANES; i++) {
            double s, c;
            acct_vsincos(half * (loss[j + i] - mean), &s, &c);
            const double w = weight[j + i] * s;
            r[i] -= w * s;
            t[i] += w * c;
        }
    *re = 2.0 * acct_lanes_total(r) / m->total;
    *im = 2.0 * acct_lanes_total(t) / m->total;
}

#define DECAY_REACH 6.0

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
        double a = mode - DECAY_REACH;
        acct_exchange_point pa = acct_exchange_at(law->mu, law->q, law->log_1mq, a);
        for (int k = 0; k < (int)(2.0 * DECAY_REACH / width) && used < ACCT_EXCHANGE_PIECES; k++) {
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

double acct_exchange_decay_at(const acct_exchange_decay *decay, double y) {
    double best = 0.0;
    int first = 0;
    for (int i = 0; i < ACCT_EXCHANGE_SCALES; i++) {
        double lost = 0.0;
        for (int k = first; k < first + decay->count[i]; k++)
            lost += decay->mass[k] * acct_sinc_missing(0.5 * y * decay->length[k]);
        first += decay->count[i];
        best = acct_max(best, lost);
    }
    return acct_min(1.0 - best * (1.0 - 1e-9) + 1e-15, 1.0);
}
