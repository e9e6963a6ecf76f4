#include "noise_table.h"

#include <math.h>
#include <string.h>

#include "rounding.h"
#include "status.h"
#include "vmath.h"

/* at least as many kinds: fewer do only where all steps are nearly the same */
#define LEAST_KINDS 4
/* the log of what the errors of all kinds together may be of those of a part that is added alone */
#define FINER 2.5

static size_t whole_blocks(int points) {
    return ((size_t)points + ACCT_SUM_BLOCK - 1) / ACCT_SUM_BLOCK * ACCT_SUM_BLOCK;
}

size_t acct_noise_table_doubles(int kinds, int points, int levels) {
    return (4 * (size_t)kinds + 2) * whole_blocks(points) + (size_t)kinds * ((size_t)levels + 1);
}

/* the window of u for all steps of the range: that of the least sigma, which is the widest */
static void set_window(acct_noise_range *range, const acct_heterogeneous_plan *p) {
    const double sigma = 1.0 / range->most, var = sigma * sigma;
    const acct_part widest = {range->q, sigma, 1.0, NULL};
    const acct_window window = acct_part_window(&widest, p->direction, p->deviations, p->most_loss);
    range->lo = (window.lo - 0.5) / var;
    range->hi = (window.hi - 0.5) / var;
}

static double order_of(const acct_heterogeneous_sum *sums, int i) {
    const acct_heterogeneous_plan *p = &sums->plan;
    if (i == ACCT_NOISE_REVERSE) return -p->reverse_order;
    return acct_order_at(p->direction, i == ACCT_NOISE_RIGHT ? p->right_b : p->left_b);
}

static int is_asked(const acct_heterogeneous_sum *sums, int i) {
    return i != ACCT_NOISE_REVERSE || sums->plan.reverse_order > 0.0;
}

/* a product in twice the precision (Dekker): its factors are of moderate size */
typedef struct {
    double high, low;
} product;

static void multiply(product *p, double x) {
    const double split = 134217729.0, big = split * p->high, bigger = split * x; /* 2^27 + 1 */
    const double h1 = big - (big - p->high), h2 = bigger - (bigger - x), l1 = p->high - h1, l2 = x - h2;
    const double high = p->high * x, lost = ((h1 * h2 - high) + h1 * l2 + l1 * h2) + l1 * l2;
    const double low = lost + p->low * x;
    p->high = high + low;
    p->low = low - (p->high - high);
}

/* The Chebyshev points of the range of 1/sigma, and their factors; 0 where a product leaves the doubles.  Differences
 * of sigmas less than a factor 2 apart are exact. */
static int set_kinds(acct_noise_table *t) {
    const double mid = 0.5 * (t->range.least + t->range.most), half = 0.5 * (t->range.most - t->range.least);
    int exponent;
    (void)frexp(mid, &exponent);
    t->scale = ldexp(1.0, exponent - 1);
    for (int j = 0; j < t->kinds; j++) t->sigma[j] = 1.0 / (mid - half * cos(ACCT_PI * (j + 0.5) / t->kinds));
    for (int j = 0; j < t->kinds; j++) {
        product above = {1.0, 0.0}, below = {1.0, 0.0};
        for (int i = 0; i < t->kinds; i++) {
            if (i == j) continue;
            multiply(&above, t->sigma[j] * t->scale);
            multiply(&below, (t->sigma[i] - t->sigma[j]) * t->scale);
        }
        t->factor[j] = above.high / below.high;
        if (!(fabs(below.high) > 1e-200 && fabs(t->factor[j]) < 1e200)) return 0;
    }
    return 1;
}

int acct_noise_table_plan(acct_noise_table *t, const acct_heterogeneous_sum *sums, double q, double least,
                          double most) {
    const acct_heterogeneous_plan *p = &sums->plan;
    const double log_steps = log(p->steps);
    t->range = (acct_noise_range){.q = q, .least = least, .most = most};
    t->points = p->count;
    t->stride = (int)whole_blocks(p->count);
    t->levels = sums->levels;
    set_window(&t->range, p);
    if (!(t->range.lo < 0.0 && t->range.hi > 0.0 && t->range.hi < INFINITY)) return 0;
    acct_noise_bound line, other[ACCT_NOISE_ORDERS];
    acct_noise_bound_set(&line, &t->range, sums->order);
    /* as fine as the nodes of a part are made for its own quadrature; what aliases and the reverse term are
     * multiplied by may be off by little */
    const double wanted = p->log_error - 9.0 + acct_min(log(p->b * (p->b + 1.0)), 0.0) - log_steps;
    int kinds = LEAST_KINDS;
    while (kinds < ACCT_NOISE_KINDS && acct_noise_remainder(&line, kinds) > wanted) kinds++;
    for (int i = 0; i < ACCT_NOISE_ORDERS; i++) {
        if (!is_asked(sums, i)) continue;
        acct_noise_bound_set(&other[i], &t->range, order_of(sums, i));
        while (kinds < ACCT_NOISE_KINDS && acct_noise_remainder(&other[i], kinds) > -14.0 - log_steps)
            kinds++;
    }
    t->kinds = kinds;
    if (kinds == ACCT_NOISE_KINDS || !set_kinds(t)) return 0;
    t->remainder = exp(acct_noise_remainder(&line, kinds)) + exp(line.log_edge);
    for (int i = 0; i < ACCT_NOISE_ORDERS; i++)
        t->order[i].remainder =
            is_asked(sums, i) ? exp(acct_noise_remainder(&other[i], kinds)) + exp(other[i].log_edge) : 0.0;
    return kinds;
}

/* A - 1 at a kind's real orders */
static void set_orders(acct_noise_table *t, int j, const acct_heterogeneous_sum *sums, acct_tilted_law *law) {
    for (int i = 0; i < ACCT_NOISE_ORDERS; i++) {
        acct_noise_order *o = &t->order[i];
        if (!is_asked(sums, i)) continue;
        double err;
        const double log_mgf = acct_tilted_law_log_mgf(law, order_of(sums, i), &err);
        o->value[j] = expm1(log_mgf);
        o->error[j] = exp(log_mgf + err) * (err + 8.0 * ACCT_U * fabs(log_mgf)) * ACCT_SLACK +
                      16.0 * ACCT_U * fabs(o->value[j]);
    }
}

/* A - 1 at the points of the line: e^{K + i y mean} (1 + V) - 1, e^{r + ip} - 1 = e^r cos p - 1 + i e^r sin p
 * without cancellation; 64 u of r and p covers the round-off of these and of all functions here */
static void set_points(acct_noise_table *t, int j, const acct_heterogeneous_sum *sums,
                       const acct_tilted_law *law, const acct_moments *m, acct_characteristic_sum *cf) {
    const double dy = sums->plan.dy;
    const acct_characteristic_errors errors = acct_characteristic_errors_set(law, m, (t->points - 1) * dy);
    const size_t row = (size_t)j * (size_t)t->stride;
    double re[ACCT_SUM_BLOCK], im[ACCT_SUM_BLOCK];
    for (int first = 0; first < t->points; first += ACCT_SUM_BLOCK) {
        const int size = t->points - first < ACCT_SUM_BLOCK ? t->points - first : ACCT_SUM_BLOCK;
        const double round = acct_characteristic_sum_block(cf, first, size, re, im);
        for (int i = 0; i < size; i++) {
            const int k = first + i;
            const double y = k * dy;
            const acct_characteristic_value v = acct_characteristic_value_at(&errors, y, re[i], im[i], round);
            const double r = m->log_mgf + v.log_modulus, p = y * m->mean + v.arg;
            const double modulus = exp(r), half = sin(0.5 * p);
            const double a = expm1(r) * cos(p) - 2.0 * half * half, b = modulus * sin(p);
            const double sizes = fabs(m->log_mgf) + fabs(v.log_modulus) + fabs(y * m->mean) + fabs(v.arg);
            /* V is 0 at y = 0 */
            const double err = (k ? exp(m->log_mgf) * v.error : 0.0) + modulus * m->log_mgf_err +
                               64.0 * ACCT_U * sizes * acct_max(modulus, 1.0);
            t->re[row + (size_t)k] = a;
            t->im[row + (size_t)k] = b;
            t->error_of[row + (size_t)k] = err * (1.0 + m->log_mgf_err) * ACCT_SLACK;
            t->size_of[row + (size_t)k] = sqrt(a * a + b * b);
        }
    }
}

static int set_kind(acct_noise_table *t, int j, acct_heterogeneous_sum *sums, acct_tilted_law *law,
                    acct_characteristic_sum *cf) {
    const acct_part part = {t->range.q, t->sigma[j], 1.0, NULL};
    const double var = part.sigma * part.sigma;
    const acct_window window = {.lo = t->range.lo * var + 0.5, .hi = t->range.hi * var + 0.5};
    const acct_step step = acct_part_step(&part);
    acct_moments m;
    const int status = acct_heterogeneous_grid(sums, law, &step, &part, &window, FINER);
    if (status) return status;
    set_orders(t, j, sums, law);
    acct_tilted_law_moments(law, sums->order, 1, &m);
    if (!(m.log_mgf_err < 1e-3 && fabs(m.log_mgf) < 500.0)) return ACCT_EPRECISION;
    t->log_mgf[j] = m.log_mgf - m.log_mgf_err;
    acct_characteristic_sum_set(cf, law, &m);
    acct_characteristic_sum_step(cf, sums->plan.dy);
    set_points(t, j, sums, law, &m, cf);
    double bound[ACCT_DECAY_LEVELS + 1];
    acct_heterogeneous_decay(sums, law, &m, NULL, bound);
    for (int i = 0; i <= t->levels; i++) t->fall[j * (t->levels + 1) + i] = -expm1(bound[i]) * (1.0 - 1e-9);
    return ACCT_OK;
}

/* sets     most[k] = max over the kinds of row[k], and the least shares with row[k] <= share * most[k] for all k */
static void set_shares(const double *rows, int kinds, size_t points, double *most, double *share) {
    for (int j = 0; j < kinds; j++)
        for (size_t k = 0; k < points; k++) most[k] = acct_max(most[k], rows[(size_t)j * points + k]);
    for (int j = 0; j < kinds; j++) {
        share[j] = 0.0;
        for (size_t k = 0; k < points; k++)
            if (most[k] > 0.0)
                share[j] = acct_max(share[j], rows[(size_t)j * points + k] / most[k] * (1.0 + 1e-9));
    }
}

int acct_noise_table_set(acct_noise_table *t, double *memory, acct_heterogeneous_sum *sums,
                         acct_tilted_law *law, acct_characteristic_sum *cf) {
    const size_t points = (size_t)t->stride, all = (size_t)t->kinds * points;
    t->re = memory;
    t->im = t->re + all;
    t->error_of = t->im + all;
    t->size_of = t->error_of + all;
    t->error = t->size_of + all;
    t->size = t->error + points;
    t->fall = t->size + points;
    memset(memory, 0, (size_t)(t->fall - memory) * sizeof(double));
    int status = ACCT_OK;
    for (int j = 0; j < t->kinds && !status; j++) status = set_kind(t, j, sums, law, cf);
    set_shares(t->error_of, t->kinds, points, t->error, t->error_share);
    set_shares(t->size_of, t->kinds, points, t->size, t->size_share);
    return status;
}

int acct_noise_table_holds(const acct_noise_table *t, const acct_part *part) {
    const double at = 1.0 / part->sigma;
    return !part->mixture && part->q == t->range.q && at >= t->range.least && at <= t->range.most;
}
