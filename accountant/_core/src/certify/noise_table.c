#include "noise_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "loss.h"
#include "rounding.h"
#include "bounds.h"
#include "vmath.h"

/* pieces of the window, and arcs of half an ellipse */
#define PIECES 256
#define ARCS 16
#define TABLE_MOST_EXPONENT 1e5

/* ensures  Re 1/beta^2 >= returned on the ellipse: it is harmonic there, so least on the boundary; for
 *          b >= eta it falls with eta, and in b it rises, then falls: least at an arc's corners.
 *          At most 0: no claim */
static double least_precision(double mid, double a, double axis) {
    double least = INFINITY, right = mid + a;
    for (int i = 0; i < ARCS; i++) { /* the top of the ellipse is an end of two arcs */
        const double t0 = ACCT_PI * i / ARCS, t1 = ACCT_PI * (i + 1) / ARCS;
        const double left = i + 1 < ARCS ? mid + a * cos(t1) : mid - a;
        const double high = axis * acct_max(sin(t0), sin(t1)) * (1.0 + 1e-12);
        const double at[2] = {left * (1.0 - 1e-12), right};
        for (int j = 0; j < 2; j++) {
            const double b2 = at[j] * at[j], e2 = high * high, size = b2 + e2;
            least = acct_min(least, (b2 - e2) / (size * size) - 1e-12 / size);
        }
        right = left;
    }
    return least * (1.0 - 1e-12);
}

/* log of an upper bound on int e^{-precision u^2/2 - u/2 + order L} du over the window: every factor at the end
 * of a piece where it is larger */
ACCT_CLONES
static double log_integral(const acct_noise_range *r, double precision, double order) {
    const double width = (r->hi - r->lo) / PIECES, log_q = log(r->q), log_1mq = log1p(-r->q);
    const double odds = (1.0 - r->q) / r->q, q = r->q, lo = r->lo;
    double rise[PIECES + 1], top = -INFINITY, sum = 0.0;
    /* so that no exponent errs by more than 1e-9 */
    const double most = acct_max(fabs(lo), fabs(r->hi));
    if (!(precision * most * most + (1.0 + fabs(order)) * (most - log_q - log_1mq) < TABLE_MOST_EXPONENT))
        return INFINITY;
    for (int i = 0; i <= PIECES; i++) {
        double p;
        rise[i] = order * acct_loss_at(lo + i * width, q, log_q, log_1mq, odds, &p);
    }
    for (int i = 0; i < PIECES; i++) {
        const double u0 = lo + i * width, u1 = u0 + width;
        const double near = u0 > 0.0 ? u0 : u1 < 0.0 ? u1 : 0.0;
        const double larger = rise[i] > rise[i + 1] ? rise[i] : rise[i + 1];
        rise[i] = larger - 0.5 * precision * near * near - 0.5 * u0;
        top = rise[i] > top ? rise[i] : top;
    }
    for (int i = 0; i < PIECES; i++) sum += acct_vexp(rise[i] - top);
    return top + log(sum * width * (1.0 + 1e-6));
}

void acct_noise_bound_set(acct_noise_bound *bound, const acct_noise_range *r, double order) {
    const double mid = 0.5 * (r->least + r->most);
    const double half = 0.5 * (r->most - r->least) * (1.0 + 1e-12) + 1e-14 * mid;
    const double ratio = mid / half, largest = log(ratio + sqrt(ratio * ratio - 1.0));
    for (int i = 0; i < ACCT_NOISE_ELLIPSES; i++) {
        const double log_rho = acct_min(largest, 5.0) * (0.3 + 0.1 * i), rho = exp(log_rho);
        const double a = 0.5 * half * (rho + 1.0 / rho) * (1.0 + 1e-12);
        const double axis = 0.5 * half * (rho - 1.0 / rho) * (1.0 + 1e-12), nearest = mid - a;
        bound->log_rho[i] = log_rho;
        bound->log_size[i] = INFINITY;
        if (!(nearest > axis)) continue;
        const double precision = least_precision(mid, a, axis);
        if (!(precision > 0.0)) continue;
        bound->log_size[i] = log_integral(r, precision, order) - log(nearest * ACCT_SQRT_2PI) -
                             0.125 * (nearest * nearest - axis * axis) + 1e-9;
    }
    /* G at the ends, for real 1/sigma */
    double edge = 0.0;
    const double end[2] = {r->lo, r->hi},
                 log_front = -log(r->least * ACCT_SQRT_2PI) - 0.125 * r->least * r->least;
    for (int i = 0; i < 2; i++) {
        double p;
        const double u = end[i];
        const double loss = acct_loss_at(u, r->q, log(r->q), log1p(-r->q), (1.0 - r->q) / r->q, &p);
        edge += 16.0 * ACCT_U * (fabs(u) + 1.0 + r->most * r->most) *
                exp(log_front - 0.5 * u * u / (r->most * r->most) - 0.5 * u + order * loss + 1e-9);
    }
    bound->log_edge = log(edge + ACCT_TINY);
}

double acct_noise_remainder(const acct_noise_bound *bound, int kinds) {
    double best = INFINITY;
    for (int i = 0; i < ACCT_NOISE_ELLIPSES; i++) {
        const double log_rho = bound->log_rho[i];
        const double log_error = bound->log_size[i] + ACCT_LOG_2_UP - (kinds - 1.0) * log_rho -
                                 log(expm1(log_rho));
        best = acct_min(best, log_error + 1e-9 * (1.0 + fabs(log_error)));
    }
    return best;
}

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

/* fewer parts of one q take no table */
#define LEAST_PARTS 32
/* ends of a table's range of sigma: wider ones take more kinds for each part of the range */
#define LARGEST_RATIO 1.45
/* the work on a part of its own, in parts that are read off a table */
#define ALONE 12

typedef struct {
    double q, precision;
} key;

static int by_key(const void *a, const void *b) {
    const key *x = a, *y = b;
    return x->q != y->q ? (x->q > y->q) - (x->q < y->q)
                        : (x->precision > y->precision) - (x->precision < y->precision);
}

void acct_noise_tables_free(acct_noise_tables *t) {
    for (int i = 0; i < t->count; i++) {
        free(t->table[i]);
        free(t->memory[i]);
    }
    t->count = 0;
}

/* a table for the sorted keys, if it pays */
static int add_table(acct_noise_tables *t, acct_heterogeneous_sum *sums, acct_tilted_law *law,
                     acct_characteristic_sum *cf, const key *first, const key *last) {
    /* of one sigma alone no differences would be left */
    const double ends = first->precision < last[-1].precision * (1.0 - 1e-3) ? 1e-14 : 1e-3;
    acct_noise_table *table = malloc(sizeof *table);
    if (!table) return ACCT_ENOMEM;
    const int kinds = acct_noise_table_plan(table, sums, first->q, first->precision * (1.0 - ends),
                                            last[-1].precision * (1.0 + ends));
    const long parts = last - first;
    double *memory = NULL;
    if (kinds && ALONE * kinds + parts < ALONE * parts) {
        memory = malloc(acct_noise_table_doubles(kinds, table->points, table->levels) * sizeof *memory);
        if (!memory) {
            free(table);
            return ACCT_ENOMEM;
        }
    }
    if (!memory || acct_noise_table_set(table, memory, sums, law, cf)) {
        free(memory);
        free(table);
        return ACCT_OK;
    }
    t->table[t->count] = table;
    t->memory[t->count++] = memory;
    return ACCT_OK;
}

/* tables for the sorted keys of one q */
static int add_run(acct_noise_tables *t, acct_heterogeneous_sum *sums, acct_tilted_law *law,
                   acct_characteristic_sum *cf, const key *first, const key *last) {
    const double range = log(last[-1].precision / first->precision);
    const double pieces = acct_max(ceil(range / log(LARGEST_RATIO)), 1.0);
    int status = ACCT_OK;
    while (first < last && t->count < ACCT_MOST_NOISE_TABLES && !status) {
        const double end = first->precision * exp(range / pieces) * (1.0 + 1e-9);
        const key *next = first;
        while (next < last && next->precision <= end) next++;
        if (next - first >= LEAST_PARTS) status = add_table(t, sums, law, cf, first, next);
        first = next;
    }
    return status;
}

int acct_noise_tables_set(acct_noise_tables *t, acct_heterogeneous_sum *sums, acct_tilted_law *law,
                          acct_characteristic_sum *cf, const acct_part *part, int count) {
    acct_noise_tables_free(t);
    if (count < LEAST_PARTS || sums->plan.count > ACCT_MOST_TABLE_POINTS) return ACCT_OK;
    key *keys = malloc((size_t)count * sizeof *keys);
    if (!keys) return ACCT_ENOMEM;
    int used = 0, status = ACCT_OK;
    for (int i = 0; i < count; i++)
        if (!part[i].mixture && part[i].q < 1.0) keys[used++] = (key){part[i].q, 1.0 / part[i].sigma};
    qsort(keys, (size_t)used, sizeof *keys, by_key);
    for (int i = 0, j; i < used && !status; i = j) {
        for (j = i + 1; j < used && keys[j].q == keys[i].q; j++) continue;
        if (j - i >= LEAST_PARTS) status = add_run(t, sums, law, cf, keys + i, keys + j);
    }
    free(keys);
    return status;
}

const acct_noise_table *acct_noise_tables_find(const acct_noise_tables *t, const acct_part *part) {
    for (int i = 0; i < t->count; i++)
        if (acct_noise_table_holds(t->table[i], part)) return t->table[i];
    return NULL;
}
