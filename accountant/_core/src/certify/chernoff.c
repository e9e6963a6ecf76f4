#include "chernoff.h"

#include <math.h>

#include "gaussian.h"
#include "order.h"
#include "rounding.h"
#include "saddle_point.h"
#include "bounds.h"

/* log of an upper bound on P[Bin(n, q) > k], k + 1 > nq: Chernoff's -n kl(m/n || q), m = k + 1.
 * The two logarithms cancel where m/n is near q.  Each ratio carries at most 4 roundings and each
 * product 2; the rounding of m/n moves 1 - p by u, which multiplies log((1-p)/(1-q)), below 75 in
 * size.  96 u and 16 u of the terms' size are given away. */
static double log_binomial_tail(double n, double q, double k) {
    const double m = k + 1.0, p = m / n;
    if (!(p > q)) return 0.0;
    if (p >= 1.0) return p > 1.0 ? -INFINITY : n * log(q) * (1.0 - 1e-12);
    const double more = p * log(acct_min(p / q, 1e300)), less = (1.0 - p) * log((1.0 - p) / (1.0 - q));
    const double kl = more + less - ACCT_U * (96.0 + 16.0 * (more - less));
    return kl > 0.0 ? -n * kl * (1.0 - 1e-12) : 0.0;
}

/* the least k whose tail is at most e^{log_tail}, roughly */
static double binomial_quantile(double n, double q, double log_tail) {
    double lo = floor(n * q), hi = n;
    while (hi - lo > 1.0) {
        const double mid = floor(0.5 * (lo + hi));
        if (log_binomial_tail(n, q, mid) <= log_tail)
            hi = mid;
        else
            lo = mid;
    }
    return hi;
}

double acct_mixture_delta_upper(double q, double sigma, double steps, double epsilon) {
    double best = 1.0;
    for (double log_tail = -2.0; log_tail > -90.0; log_tail *= 1.6) {
        const double k = q < 1.0 ? binomial_quantile(steps, q, log_tail) : steps;
        const double mu = sqrt(k) / sigma;
        const double tail = k < steps ? acct_exp_upper(log_binomial_tail(steps, q, k)) : 0.0;
        acct_bounds g = {0.0, 1.0};
        if (mu > 0.0 && mu < 1e150) acct_gaussian_delta(mu, 4.0 * ACCT_U, epsilon, &g);
        if (mu == 0.0) g.upper = 0.0;
        best = acct_min(best, acct_max(g.upper + tail, ACCT_TINY));
    }
    return acct_min(best * (1.0 + 4.0 * ACCT_U), 1.0);
}

double acct_mixture_epsilon_upper(double q, double sigma, double steps, double delta) {
    double best = INFINITY;
    for (int i = 0; i < 4; i++) {
        const double share = i == 0 ? 0.01 : i == 1 ? 0.1 : i == 2 ? 0.5 : 0.9;
        const double k = q < 1.0 ? binomial_quantile(steps, q, log(share * delta)) : steps;
        const double tail = k < steps ? acct_exp_upper(log_binomial_tail(steps, q, k)) : 0.0;
        const double rest = acct_down(delta - tail), mu = sqrt(k) / sigma;
        acct_bounds g = {0.0, INFINITY};
        if (!(rest > 0.0)) continue;
        if (mu == 0.0) return 0.0;
        if (mu < 1e150) acct_gaussian_epsilon(mu, 4.0 * ACCT_U, rest, &g);
        best = acct_min(best, g.upper);
    }
    return best;
}

int acct_chernoff_set(acct_chernoff *bound, acct_tilted_law *law, const acct_step *step,
                      const acct_window *window, double steps, int direction, double b) {
    acct_moments m;
    if (direction == ACCT_REMOVE) b = acct_exact_distance(b);
    const double order = acct_order_at(direction, b);
    const int status = acct_tilted_law_set(law, step, window, order, 0.0, -log(steps) - 12.0);
    if (status) return status;
    acct_tilted_law_moments(law, order, 1, &m);
    *bound = (acct_chernoff){.b = b,
                             .log_front = acct_log_chernoff(b),
                             .log_mgf = m.log_mgf + m.log_mgf_err,
                             .outside = acct_tilted_law_mass_outside(law)};
    return ACCT_OK;
}

double acct_chernoff_at(const acct_chernoff *c, double steps, double epsilon) {
    const double log_bound = c->log_front + steps * c->log_mgf - c->b * epsilon;
    const double round = 1e-12 * (steps * fabs(c->log_mgf) + c->b * epsilon + 1.0);
    /* outcomes outside the window count in full */
    const double bound = exp(log_bound + round) + steps * c->outside * (1.0 + 1e-9);
    return bound < 1.0 ? acct_up(acct_max(bound, ACCT_TINY)) : 1.0;
}

double acct_chernoff_delta_upper(acct_workspace *w, const acct_step *step, double steps, int direction,
                                 double epsilon, double log_delta) {
    const double z = sqrt(2.0 * (log(steps) - acct_min(log_delta, 0.0) + 12.0));
    const acct_window window = {.lo = -z * step->sigma, .hi = acct_step_largest(step) + z * step->sigma};
    acct_saddle saddle;
    if (acct_saddle_at_epsilon(&w->law, step, steps, direction, &window, epsilon, &saddle))
        return 1.0;
    acct_chernoff bound;
    if (acct_chernoff_set(&bound, &w->law, step, &window, steps, direction, saddle.b)) return 1.0;
    return acct_chernoff_at(&bound, steps, epsilon);
}
