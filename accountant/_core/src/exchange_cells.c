#include "exchange_cells.h"

#include <math.h>
#include <stddef.h>

#include "exchange_strip.h"
#include "order.h"
#include "rounding.h"

/* the cells of one width, and how the others grow */
#define EVEN_CELLS 5600
#define GROWTH 1.03
#define NEAR_CELLS 7.0

/* N of a cell, rounded up; the larger tail first, so that nothing cancels */
static double mass_of(double x0, double x1) {
    const double near = x0 > 0.0 ? x0 : -x1, far = x0 > 0.0 ? x1 : -x0, root = 0.7071067811865476;
    const double by_tails = 0.5 * (erfc(near * root) - erfc(far * root)) + 1e-14 * erfc(near * root);
    if (x0 * x1 <= 0.0) return 0.5 * (erf(x1 * root) + erf(-x0 * root)) * (1.0 + 1e-14);
    const double by_height = (x1 - x0) / ACCT_SQRT_2PI * exp(-0.5 * near * near) * (1.0 + 1e-12);
    return acct_min(by_tails, by_height) + 1e-320;
}

/* mean place of N in a cell, 0 to 1; -1 where it is not computed; and how far L and W bend */
static void set_cell(acct_exchange_cells *k, int i) {
    const acct_exchange_law *law = k->law;
    const double x0 = k->x[i], x1 = k->x[i + 1], width = x1 - x0;
    const double mass = k->mass[i] = mass_of(x0, x1), n0 = exp(-0.5 * x0 * x0), n1 = exp(-0.5 * x1 * x1);
    const double place = ((n0 - n1) / ACCT_SQRT_2PI - x0 * mass) / (width * mass);
    k->theta[i] = fabs(x0) < NEAR_CELLS && place > 0.0 && place < 1.0 ? place : -1.0;
    const double grows = acct_exchange_posterior(law, x1) - acct_exchange_posterior(law, x0);
    const double falls = acct_exchange_posterior(law, -x0) - acct_exchange_posterior(law, -x1);
    k->loss_bend[i] = 0.25 * width * law->mu * (grows + falls) * (1.0 + 1e-6);
    k->down_bend[i] = 0.25 * width * law->mu * falls * (1.0 + 1e-6);
}

void acct_exchange_cells_set(acct_exchange_cells *k, double *memory, const acct_exchange_law *law) {
    double **slots[ACCT_EXCHANGE_CELL_ARRAYS] = {&k->x,         &k->loss,      &k->up,       &k->down,
                                                 &k->mass,      &k->log_large, &k->log_stay, &k->theta,
                                                 &k->loss_bend, &k->down_bend, &k->log_small};
    for (int i = 0; i < ACCT_EXCHANGE_CELL_ARRAYS; i++)
        *slots[i] = memory + (size_t)i * (ACCT_EXCHANGE_CELLS + 1);
    k->law = law;
    k->count = ACCT_EXCHANGE_CELLS;
    const double lo = -law->mu - 14.0, width = (-2.0 * lo + 2.0) / EVEN_CELLS;
    double x = lo, step = width;
    for (int i = 0; i <= k->count; i++) {
        const acct_exchange_point p = acct_exchange_at(law->mu, law->q, law->log_1mq, x);
        k->x[i] = x;
        k->loss[i] = p.loss;
        k->up[i] = p.up;
        k->down[i] = p.down;
        if (i > 0) set_cell(k, i - 1);
        if (i >= EVEN_CELLS) step = acct_min(GROWTH * step, 0.05 * x);
        x += step;
    }
}

void acct_exchange_cells_threshold(acct_exchange_cells *k, acct_threshold outer, double steps, double least) {
    const double mu = k->law->mu, q = k->law->q;
    k->outer = outer.scale;
    for (int i = 0; i <= k->count; i++) {
        const double r = (k->up[i] - outer.origin) / outer.scale, z = r * r;
        double t = -expm1(-z), log_stay = -z;
        k->log_large[i] = z > 0.0 ? ldexp(log(t), outer.doublings) : -1e300;
        for (int j = 0; j < outer.doublings; j++, t *= t) log_stay += log1p(t);
        k->log_stay[i] = acct_min(log_stay, 0.0);
    }
    k->lowest = 0;
    for (int i = 0; i < k->count; i++) {
        const double root = 0.7071067811865476, x = k->x[i];
        const double below = (1.0 - q) * 0.5 * erfc(-x * root) + q * 0.5 * erfc(-(x + mu) * root);
        if (steps * below > least) break;
        k->lowest = i;
    }
}

/* log of a bound on the integral of e^{cL + W} without large steps beyond the last edge, where the exponent falls */
static double log_beyond(const acct_exchange_cells *k, double c) {
    const double e = k->up[k->count] - k->law->log_1mq, x = k->x[k->count], scale = k->outer;
    double falling = INFINITY;
    if (e > 8.0 * scale && e > 0.5 * c * scale * scale)
        falling = log(129.0) + c * e - e * e / (scale * scale) - 0.5 * x * x + 1e-9 * (1.0 + c * e);
    return acct_min(falling, acct_exchange_log_outside(k->law->mu, k->law->q, k->law->log_1mq, c, -x, x));
}

/* A bound on the mean of e^{v} - 1 in a cell, v = cL + W: v is at most its chord and a quarter of the width times what
 * its slope may change by, and the exponential of a chord at most its own.
 * sets *size to what errors are relative to; inf where it overflows */
static double mean_excess(const acct_exchange_cells *k, int i, double c, double *size) {
    const double bend = fabs(c) * k->loss_bend[i] + k->down_bend[i];
    const double v0 = c * k->loss[i] + k->down[i] + bend, v1 = c * k->loss[i + 1] + k->down[i + 1] + bend;
    if (!(acct_max(v0, v1) < 690.0)) return INFINITY;
    const double e0 = expm1(v0), e1 = expm1(v1), theta = k->theta[i];
    *size = fabs(e0) + fabs(e1) + 1e-4 * acct_min(fabs(c * k->loss[i + 1]) + fabs(k->down[i]), 1.0);
    return theta >= 0.0 ? (1.0 - theta) * e0 + theta * e1 : acct_max(e0, e1);
}

double acct_exchange_cells_excess(const acct_exchange_cells *k, double c) {
    double sum = 0.0, sizes = 0.0;
    for (int i = 0; i < k->count; i++) {
        const double v = c * k->loss[i + 1] + k->down[i], kept = v + k->log_stay[i];
        double size, term;
        if (v < 1.0 && k->log_large[i] < -0.7) {
            term = mean_excess(k, i, c, &size); /* less what is large at the left end */
            term -= exp(k->log_large[i]) * (1.0 + term);
        } else {
            if (!(kept < 690.0)) return INFINITY;
            size = term = exp(kept);
            term -= 1.0;
        }
        sum += k->mass[i] * term;
        sizes += k->mass[i] * (size + fabs(term));
    }
    return sum + 1e-9 * sizes + exp(log_beyond(k, c));
}

void acct_exchange_cells_inner(acct_exchange_cells *k, acct_threshold inner) {
    k->inner = inner.scale;
    for (int i = 0; i <= k->count; i++) {
        const double z = k->loss[i] / inner.scale * (k->loss[i] / inner.scale);
        double t = -expm1(-z), log_small = -z;
        for (int j = 0; j < inner.doublings; j++, t *= t) log_small += log1p(t);
        k->log_small[i] = acct_min(log_small, 0.0);
    }
}

double acct_exchange_cells_small(const acct_exchange_cells *k, double c) {
    const int last = k->count;
    const double end = k->loss[last], fall = end / k->inner;
    double sum = 0.0, sizes = 0.0, beyond = INFINITY;
    for (int i = 0; i < last; i++) {
        /* the chance of being small is largest next to 0 */
        const double small = k->x[i] < 0.0 ? k->log_small[i + 1] : k->log_small[i];
        double size, term;
        if (small > -1e-12) {
            term = mean_excess(k, i, c, &size);
            if (!(term < INFINITY)) return INFINITY;
        } else {
            const double v = c * k->loss[i + 1] + k->down[i] + small;
            if (!(v < 690.0)) return INFINITY;
            size = exp(v);
            term = size - 1.0;
        }
        sum += k->mass[i] * term;
        sizes += k->mass[i] * (size + fabs(term));
    }
    if (end > 0.5 * c * k->inner * k->inner)
        beyond = log(17.0) + c * end - fall * fall - 0.5 * k->x[last] * k->x[last] + 1e-9 * (1.0 + c * end);
    return sum + 1e-9 * sizes + exp(beyond);
}

double acct_exchange_cells_middling(const acct_exchange_cells *k, acct_threshold inner, double c) {
    double sum = 0.0;
    for (int i = 0; i < k->count; i++) {
        const double far = acct_max(fabs(k->loss[i]), fabs(k->loss[i + 1])) / inner.scale;
        double t = -expm1(-far * far);
        for (int j = 0; j < inner.doublings; j++) t *= t;
        if (!(t > 0.0)) continue;
        const double v = c * k->loss[i + 1] + k->down[i] + k->log_stay[i];
        if (v > 690.0) return INFINITY;
        sum += k->mass[i] * t * exp(v);
    }
    /* below the first edge U < 0 < W */
    return log(sum + exp(log_beyond(k, c)) + 0.5 * erfc(-k->x[0] * 0.7071)) + 1e-9 * (1.0 + c);
}

double acct_exchange_cells_reverse(const acct_exchange_cells *k, double steps, double m) {
    const int last = k->count;
    /* what is beyond the last edge */
    double top = -m * k->loss[last] - 0.5 * k->x[last] * k->x[last], sum = 1.0, all = 0.0, size = 0.0;
    for (int i = k->lowest; i < last; i++) {
        const double v = k->down[i] - m * k->loss[i], near = acct_min(fabs(k->x[i]), fabs(k->x[i + 1]));
        double doubt;
        const double term = mean_excess(k, i, -m, &doubt);
        if (!(term < INFINITY && v < 690.0)) return INFINITY;
        all += k->mass[i] * term;
        size += k->mass[i] * doubt;
        const double log_mass = k->mass[i] > 1e-300 ? log(k->mass[i])
                                                    : log(k->x[i + 1] - k->x[i]) - 0.5 * near * near;
        const double log_term = log_mass + v + k->log_large[i + 1];
        sum = log_term > top ? sum * exp(top - log_term) + 1.0 : sum + exp(log_term - top);
        top = acct_max(top, log_term);
    }
    return acct_log_chernoff(m) + log(steps) + top + log(sum) + (steps - 1.0) * log1p(all + 1e-9 * size) +
           1e-9 * (1.0 + m + fabs(top));
}

void acct_exchange_cells_mean(const acct_exchange_cells *k, double c, double *mean, double *mode) {
    double total = 0.0, sum = 0.0, most = -INFINITY;
    for (int i = 0; i < k->count; i++) {
        const double w = k->mass[i] * exp(acct_min(c * k->loss[i] + k->down[i] + k->log_stay[i], 600.0));
        total += w;
        sum += w * k->loss[i];
        if (w / (k->x[i + 1] - k->x[i]) > most) {
            most = w / (k->x[i + 1] - k->x[i]);
            *mode = k->x[i];
        }
    }
    *mean = sum / total;
}

double acct_exchange_cells_single(const acct_exchange_cells *k, double epsilon) {
    double sum = 0.0;
    for (int i = 0; i < k->count; i++)
        if (k->loss[i] > epsilon)
            sum += k->mass[i] * exp(acct_min(k->up[i], 600.0)) * -expm1(epsilon - k->loss[i]);
    return sum;
}
