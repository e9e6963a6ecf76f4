#include "exchange_split.h"

#include <math.h>

#include "exchange_strip.h"
#include "order.h"
#include "rounding.h"

#define MOST_CELLS 4000

static acct_threshold threshold_of(double scale) {
    return (acct_threshold){.origin = 0.0, .scale = scale, .doublings = ACCT_EXCHANGE_DOUBLINGS};
}

/* the same, whatever p */
static double rise_at(double turn) { return -log(cos(0.5 * turn)) * (1.0 + 1e-9); }

/* Beyond this loss Re L is at least L less the rise, |Im L| is at most 1.5 turn, and both are small beside it. */
static double far_loss(acct_threshold threshold, double turn) {
    return acct_max(8.0 * threshold.scale, 6.0 * turn + 4.0 * rise_at(turn));
}

/* The largest of all bounds; beyond far_loss the chance of being small is at most 16 |e^{-z}| and falls.
 * returns 0 where there is none */
static int bound_chances(const acct_exchange_law *law, acct_threshold threshold, double turn,
                         double *log_most) {
    acct_exchange_cell c = {.x1 = 0.0};
    *log_most = 1e-6;
    for (int i = 0; i < MOST_CELLS; i++) {
        double above, below;
        acct_exchange_cell_next(law, threshold.scale, INFINITY, &c);
        if (!acct_exchange_cell_bounds(law, threshold, &c, turn, &above, &below)) return 0;
        *log_most = acct_max(*log_most, acct_max(above, below));
        if (c.p0.loss > far_loss(threshold, turn)) return 1;
    }
    return 0;
}

/* Log of a bound on int |1 - t^m| |N e^{cU + (1-c)W}| at every height up to turn/mu, c = 1 + b: the suprema over the
 * cells.  Beyond the last one the exponent falls (far_loss), or the whole integrand is negligible. */
static double log_small_modulus(const acct_exchange_law *law, acct_threshold threshold, double b,
                                double turn) {
    const double mu = law->mu, order = 1.0 + b, scale = threshold.scale;
    const double rise = 0.5 * turn * turn / (mu * mu) - b * log(cos(0.5 * turn * (1.0 + 1e-12)));
    double top = -INFINITY, sum = 0.0;
    acct_exchange_cell c = {.x1 = 0.0};
    for (int i = 0; i < MOST_CELLS; i++) {
        double above, below;
        acct_exchange_cell_next(law, threshold.scale, INFINITY, &c);
        if (!acct_exchange_cell_bounds(law, threshold, &c, turn, &above, &below)) return INFINITY;
        /* on the right L and W are at most those at x1 and x0; on the left -L(x0) and U(x1) */
        const double right = order * c.p1.loss + c.p0.down, left = c.p1.up - order * c.p0.loss;
        const double most = acct_max(right, left) + below - 0.5 * c.x0 * c.x0 + log(2.0 * (c.x1 - c.x0));
        sum = most > top ? sum * exp(top - most) + 1.0 : sum + exp(most - top);
        top = acct_max(top, most);
        if (!(c.p0.loss > far_loss(threshold, turn))) continue;
        const double end = c.p1.loss - rise_at(turn), arg = 1.5 * turn / scale;
        const double rest = log(16.0) + order * c.p1.loss - end / scale * (end / scale) + arg * arg;
        const double falling = end > 0.5 * order * scale * scale ? acct_max(rest, 4.0) - 0.5 * c.x1 * c.x1
                                                                 : INFINITY;
        const double whole = acct_exchange_log_outside(mu, law->q, law->log_1mq, order, -c.x1, c.x1) + 4.0;
        const double beyond = acct_min(falling, whole);
        if (beyond < top + 40.0 || i == MOST_CELLS - 1) return rise + acct_max(top + log(sum), beyond) + 2.0;
    }
    return INFINITY;
}

/* log of the error of the trapezoid sum of the small steps at the order 1 + b, over heights up to turn/mu */
static double log_lattice(const acct_exchange_law *law, acct_threshold threshold, double b, double turn) {
    double best = INFINITY;
    for (double t = turn; t > 0.02 * turn; t *= 0.36) {
        const double exponent = 2.0 * ACCT_PI * t / (law->mu * law->h);
        if (exponent > 1.0)
            best = acct_min(best, ACCT_LOG_2 + log_small_modulus(law, threshold, b, t) -
                                  exponent * (1.0 - 1e-12) - log1p(-exp(-exponent)) + 1e-9);
    }
    return best;
}

/* Log of a bound on the transform of the small steps at the order 1 + b, beyond its nodes too: above the last one
 * e^{cL - (L/scale)^2} falls and W < 0, or the whole integrand is small; below the first one U < 0 < W. */
static double small_log_mgf(const acct_exchange_law *law, acct_threshold threshold, double b, double turn) {
    const double c = 1.0 + b, rate = 1.0 / threshold.scale;
    const int last = law->count - 1;
    const double lo = law->first * law->h, hi = (law->first + last) * law->h;
    const double end = law->loss[last] * (1.0 - 1e-9), fall = end * rate;
    if (!(lo < -law->mu && hi > 0.0)) return INFINITY;
    double sum = 0.0, doubt = 0.0;
    for (int j = 0; j <= last; j++) {
        const double loss = law->loss[j], z = loss * rate * (loss * rate);
        double t = -expm1(-z), share = 1.0;
        for (int i = 0; i < threshold.doublings; i++) {
            share *= 1.0 + t;
            t *= t;
        }
        const double w = exp(c * loss + law->rest[j] - z) * share;
        sum += w;
        doubt += w * ((c + 1.0 + 2.2 * rate * sqrt(z)) * law->doubt[j] +
                      ACCT_U * (64.0 + 8.0 * (c * fabs(loss) + fabs(law->rest[j]) + z)));
    }
    const double unit = law->h / ACCT_SQRT_2PI;
    const double falling = end > 0.5 * c * threshold.scale * threshold.scale
                               ? log(16.0) + c * end - fall * fall + 1e-6 +
                                     log(0.5 * erfc(hi * 0.7071) + 1e-300)
                               : INFINITY;
    const double whole = acct_exchange_log_outside(law->mu, law->q, law->log_1mq, c, lo, hi);
    const double beyond = exp(acct_min(falling, whole)) + 0.5 * erfc(-lo * 0.7071);
    const double total = unit * (sum * (1.0 + (law->count + 8.0) * ACCT_U) + doubt) + beyond * (1.0 + 1e-6);
    return log(total + exp(log_lattice(law, threshold, b, turn))) + 1e-12;
}

/* the best Chernoff bound on the small steps' share over a few orders */
static double small_share(const acct_exchange_law *law, acct_threshold threshold, double steps,
                          double epsilon, double wanted, double turn, double *slope) {
    double best = INFINITY;
    for (double b = 0.25 / threshold.scale; b < 60.0 / threshold.scale; b *= 1.5) {
        const double k = small_log_mgf(law, threshold, b, turn);
        const double size = acct_log_chernoff(b) + steps * k + 1e-9 + 1e-12 * steps * fabs(k);
        if (size - b * epsilon < best) {
            best = size - b * epsilon;
            *slope = b;
        } else if (best < INFINITY) {
            break;
        }
        if (best < wanted) break;
    }
    return best;
}

int acct_exchange_split_find(acct_exchange_split *split, acct_exchange_law *law, double *memory, double mu,
                             double q, double steps, double epsilon, double log_wanted, double turn) {
    double low = 1e-4 * epsilon, high = 0.5 * epsilon;
    const acct_exchange_law bare = {.mu = mu, .q = q, .log_1mq = log1p(-q)};
    int found = 0;
    split->threshold = threshold_of(0.0);
    while (high > 1.15 * low) {
        const double scale = sqrt(low * high);
        const acct_threshold threshold = threshold_of(scale);
        double slope = 0.0, log_most = 0.0;
        if (!bound_chances(&bare, threshold, turn, &log_most)) {
            low = scale;
            continue;
        }
        /* the nodes reach losses of eight times the scale */
        double order = 2.0;
        const double digits = 48.0 + log(steps);
        if (!acct_exchange_law_set(law, memory, mu, q, order, 0.0, digits)) return 0;
        while (law->loss[law->count - 1] < 8.0 * scale && order < 2.0 + 60.0 / scale) {
            order *= 1.5;
            if (!acct_exchange_law_set(law, memory, mu, q, order, 0.0, digits)) return 0;
        }
        const double best = small_share(law, threshold, steps, epsilon, log_wanted, turn, &slope);
        if (best < log_wanted) {
            *split = (acct_exchange_split){.threshold = threshold,
                                           .log_most = log_most,
                                           .small_log = best + slope * epsilon + 1e-9,
                                           .small_slope = slope};
            low = scale;
            found = 1;
        } else {
            high = scale;
        }
    }
    return found;
}
