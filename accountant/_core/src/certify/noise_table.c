#include "noise_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "loss.h"
#include "rounding.h"
#include "bounds.h"
#include "vmath.h"

/* at least as many kinds: fewer do only where all steps are nearly the same */
#define LEAST_KINDS 4
/* the log of what the errors of all kinds together may be of those of a part that is added alone */
#define FINER 2.5

static int whole_blocks(int points) {
    return (points + ACCT_SUM_BLOCK - 1) / ACCT_SUM_BLOCK * ACCT_SUM_BLOCK;
}

/* what the round-off of the weights and of adding so many products is relative to the sum of the moduli */
static double round_off(const acct_noise_table *t) { return (5.0 * t->kinds + 20.0) * ACCT_U; }

/* real orders beside the line's: those of the aliases and of the reverse term; sets them and returns how many */
enum { RIGHT, LEFT, REVERSE, ORDERS };

static int set_orders(const acct_heterogeneous_plan *p, double order[ORDERS]) {
    order[RIGHT] = acct_order_at(p->direction, p->right_b);
    order[LEFT] = acct_order_at(p->direction, p->left_b);
    order[REVERSE] = -p->reverse_order;
    return p->reverse_order > 0.0 ? ORDERS : REVERSE;
}

/* The Chebyshev points of the range of 1/sigma, and their factors; 0 where a product leaves the doubles.  Differences
 * of sigmas less than a factor 2 apart are exact. */
static int set_kinds(acct_noise_table *t) {
    const double mid = 0.5 * (t->range.least + t->range.most), half = 0.5 * (t->range.most - t->range.least);
    for (int j = 0; j < t->kinds; j++) t->sigma[j] = 1.0 / (mid - half * cos(ACCT_PI * (j + 0.5) / t->kinds));
    for (int j = 0; j < t->kinds; j++) {
        t->factor[j] = 1.0;
        for (int i = 0; i < t->kinds; i++)
            if (i != j) t->factor[j] *= t->sigma[j] / (t->sigma[i] - t->sigma[j]);
        if (!(fabs(t->factor[j]) < 1e200)) return 0;
    }
    return 1;
}

/* Sets the kinds, their number and the remainders of the line and of the real orders; returns the number of kinds, 0
 * where too many would be needed. */
static int plan_table(acct_noise_table *t, const acct_heterogeneous_sum *sums, double q, double least, double most,
                      double remainder[1 + ORDERS]) {
    const acct_heterogeneous_plan *p = &sums->plan;
    /* the window of u of the least sigma, which is the widest */
    const acct_part widest = {q, 1.0 / most, 1.0, NULL};
    const acct_window window = acct_part_window(&widest, p->direction, p->deviations, p->most_loss);
    const double log_steps = log(p->steps), var = widest.sigma * widest.sigma;
    double order[1 + ORDERS] = {sums->order};
    acct_noise_bound bound[1 + ORDERS];
    const int orders = 1 + set_orders(p, order + 1);
    t->range = (acct_noise_range){q, least, most, (window.lo - 0.5) / var, (window.hi - 0.5) / var};
    t->points = p->count;
    t->stride = whole_blocks(p->count) + ACCT_SUM_BLOCK;
    t->levels = sums->levels;
    if (!(t->range.lo < 0.0 && t->range.hi > 0.0 && t->range.hi < INFINITY)) return 0;
    t->kinds = LEAST_KINDS;
    for (int i = 0; i < orders; i++) {
        /* as fine as the nodes of a part are made for its own quadrature; what aliases and the reverse term are
         * multiplied by may be off by little */
        const double wanted = i ? -14.0 : p->log_error - 9.0 + acct_min(log(p->b * (p->b + 1.0)), 0.0);
        acct_noise_bound_set(&bound[i], &t->range, order[i]);
        while (t->kinds < ACCT_NOISE_KINDS && acct_noise_remainder(&bound[i], t->kinds) > wanted - log_steps)
            t->kinds++;
    }
    if (t->kinds == ACCT_NOISE_KINDS || !set_kinds(t)) return 0;
    for (int i = 0; i < orders; i++)
        remainder[i] = exp(acct_noise_remainder(&bound[i], t->kinds)) + exp(bound[i].log_edge);
    return t->kinds;
}

/* a kind's A - 1 at a point, which may be off by so much: kept in `remainder` until the kind's size is known */
static void set_point(acct_noise_table *t, int j, int k, double re, double im, double error) {
    const size_t at = (size_t)j * (size_t)t->stride + (size_t)k;
    const double modulus = sqrt(re * re + im * im);
    t->re[at] = re;
    t->im[at] = im;
    t->remainder[k] = error + round_off(t) * modulus;
    if (k <= 1) t->size[j] = acct_max(t->size[j], modulus);
}

/* A - 1 at the points of the line: e^{K + i y mean} (1 + V) - 1, e^{r + ip} - 1 = e^r cos p - 1 + i e^r sin p
 * without cancellation; 64 u of r and p covers the round-off of these and of all functions here */
static void set_points(acct_noise_table *t, int j, const acct_heterogeneous_sum *sums,
                       const acct_tilted_law *law, const acct_moments *m, acct_characteristic_sum *cf) {
    const double dy = sums->plan.dy;
    const acct_characteristic_errors errors = acct_characteristic_errors_set(law, m, (t->points - 1) * dy);
    double re[ACCT_SUM_BLOCK], im[ACCT_SUM_BLOCK], round = 0.0;
    for (int k = 0; k < t->points; k++) {
        const int i = k % ACCT_SUM_BLOCK, rest = t->points - k;
        if (i == 0)
            round = acct_characteristic_sum_block(cf, k, rest < ACCT_SUM_BLOCK ? rest : ACCT_SUM_BLOCK, re, im);
        const double y = k * dy;
        const acct_characteristic_value v = acct_characteristic_value_at(&errors, y, re[i], im[i], round);
        const double r = m->log_mgf + v.log_modulus, p = y * m->mean + v.arg;
        const double modulus = exp(r), half = sin(0.5 * p);
        const double sizes = fabs(m->log_mgf) + fabs(v.log_modulus) + fabs(y * m->mean) + fabs(v.arg);
        /* V is 0 at y = 0 */
        const double err = (k ? exp(m->log_mgf) * v.error : 0.0) + modulus * m->log_mgf_err +
                           64.0 * ACCT_U * sizes * acct_max(modulus, 1.0);
        set_point(t, j, k, expm1(r) * cos(p) - 2.0 * half * half, modulus * sin(p),
                  err * (1.0 + m->log_mgf_err) * ACCT_SLACK);
    }
}

static int set_kind(acct_noise_table *t, int j, acct_heterogeneous_sum *sums, acct_tilted_law *law,
                    acct_characteristic_sum *cf) {
    const acct_part part = {t->range.q, t->sigma[j], 1.0, NULL};
    const double var = part.sigma * part.sigma;
    const acct_window window = {.lo = t->range.lo * var + 0.5, .hi = t->range.hi * var + 0.5};
    const acct_step step = acct_part_step(&part);
    acct_moments m;
    double order[ORDERS];
    const int status = acct_heterogeneous_grid(sums, law, &step, &part, &window, FINER);
    if (status) return status;
    t->size[j] = ACCT_TINY;
    for (int i = set_orders(&sums->plan, order) - 1; i >= 0; i--) {
        double err;
        const double log_mgf = acct_tilted_law_log_mgf(law, order[i], &err), value = expm1(log_mgf);
        set_point(t, j, t->stride - ACCT_SUM_BLOCK + i, value, 0.0,
                  exp(log_mgf + err) * (err + 8.0 * ACCT_U * fabs(log_mgf)) * ACCT_SLACK +
                      16.0 * ACCT_U * fabs(value));
    }
    acct_tilted_law_moments(law, sums->order, 1, &m);
    if (!(m.log_mgf_err < 1e-3 && fabs(m.log_mgf) < 500.0)) return ACCT_EPRECISION;
    t->log_mgf[j] = m.log_mgf - m.log_mgf_err;
    acct_characteristic_sum_set(cf, law, &m);
    acct_characteristic_sum_step(cf, sums->plan.dy);
    set_points(t, j, sums, law, &m, cf);
    for (int k = 0; k < t->stride; k++)
        t->error[k] = acct_max(t->error[k], t->remainder[k] / t->size[j] * ACCT_SLACK);
    double bound[ACCT_DECAY_LEVELS + 1];
    acct_heterogeneous_decay(sums, law, &m, NULL, bound);
    for (int i = 0; i <= t->levels; i++) t->fall[j * (t->levels + 1) + i] = -expm1(bound[i]) * (1.0 - 1e-9);
    return ACCT_OK;
}

static size_t table_doubles(const acct_noise_table *t) {
    return 2 * ((size_t)t->kinds + 1) * (size_t)t->stride + (size_t)t->kinds * ((size_t)t->levels + 1);
}

/* evaluates the kinds of a planned table into memory */
static int set_table(acct_noise_table *t, double *memory, const double remainder[1 + ORDERS],
                     acct_heterogeneous_sum *sums, acct_tilted_law *law, acct_characteristic_sum *cf) {
    const int orders = t->stride - ACCT_SUM_BLOCK;
    int status = ACCT_OK;
    t->re = memory;
    t->im = t->re + (size_t)t->kinds * (size_t)t->stride;
    t->error = t->im + (size_t)t->kinds * (size_t)t->stride;
    t->remainder = t->error + t->stride;
    t->fall = t->remainder + t->stride;
    memset(memory, 0, table_doubles(t) * sizeof(double));
    for (int j = 0; j < t->kinds && !status; j++) status = set_kind(t, j, sums, law, cf);
    for (int k = 0; k < orders; k++) t->remainder[k] = remainder[0];
    memcpy(t->remainder + orders, remainder + 1, ORDERS * sizeof(double));
    return status;
}

/* Lagrange's weights of the kinds at one sigma: with beta = 1/sigma the quotients of differences
 * (beta - beta_i)/(beta_j - beta_i) are (sigma_i - sigma)/(sigma_i - sigma_j) sigma_j/sigma, and the differences of
 * sigmas are exact.  Each weight is within 4 kinds u of itself. */
typedef struct {
    double of[ACCT_NOISE_KINDS];
    double moduli, error; /* 1 and the sum of their moduli; that of moduli and sizes */
} weights;

static void set_weights(const acct_noise_table *t, double sigma, weights *w) {
    double away[ACCT_NOISE_KINDS], before = 1.0, after = 1.0;
    for (int j = 0; j < t->kinds; j++) away[j] = (t->sigma[j] - sigma) / sigma;
    for (int j = 0; j < t->kinds; before *= away[j++]) w->of[j] = t->factor[j] * before;
    w->moduli = 1.0;
    w->error = 0.0;
    for (int j = t->kinds - 1; j >= 0; after *= away[j--]) {
        const double modulus = fabs(w->of[j] *= after);
        w->moduli += modulus;
        w->error += modulus * t->size[j];
    }
}

ACCT_CLONES
static void sum_kinds(int kinds, size_t stride, const double *restrict weight, const double *restrict re,
                      const double *restrict im, double *restrict u, double *restrict v) {
    double sum_re[ACCT_SUM_BLOCK] = {0}, sum_im[ACCT_SUM_BLOCK] = {0};
    for (int j = 0; j < kinds; j++, re += stride, im += stride)
        ACCT_EACH_LANE for (int k = 0; k < ACCT_SUM_BLOCK; k++) {
            sum_re[k] += weight[j] * re[k];
            sum_im[k] += weight[j] * im[k];
        }
    memcpy(u, sum_re, sizeof sum_re);
    memcpy(v, sum_im, sizeof sum_im);
}

/* A at the block of points from `first` on */
static void read_block(const acct_noise_table *t, const weights *w, int first, acct_characteristic_polar *b) {
    const acct_characteristic_errors none = {0.0, 0.0, 0.0, 0.0};
    double u[ACCT_SUM_BLOCK], v[ACCT_SUM_BLOCK], error[ACCT_SUM_BLOCK];
    sum_kinds(t->kinds, (size_t)t->stride, w->of, t->re + first, t->im + first, u, v);
    for (int k = 0; k < ACCT_SUM_BLOCK; k++)
        error[k] = w->error * t->error[first + k] + w->moduli * t->remainder[first + k];
    acct_characteristic_polar_set(b, &none, 0, 0.0, error, u, v);
}

ACCT_CLONES
static void lower(int levels, double n, double share, const double *restrict fall, double *restrict decay) {
    for (int i = 0; i < levels; i++) decay[i] += n * (acct_vlog1p(-share * fall[i]) * (1.0 - 1e-12));
}

/* The bounds on |phi| of the kind whose 1/sigma is next below, or the first.  The tilted density in u is at least
 * e^{least} times that kind's, so 1 - |phi| is at least e^{least} times the kind's (Theorem 19, (c)). */
static void add_decay(const acct_noise_table *t, acct_heterogeneous_sum *sums, double sigma, double n,
                      double log_mgf_upper) {
    int j = 0;
    while (j + 1 < t->kinds && t->sigma[j + 1] >= sigma) j++;
    const double s = t->sigma[j], most = acct_max(fabs(t->range.lo), fabs(t->range.hi));
    const double least = log(sigma / s) - 0.5 * acct_max(sigma * sigma - s * s, 0.0) * most * most -
                         0.125 * (1.0 / (sigma * sigma) - 1.0 / (s * s)) + t->log_mgf[j] - log_mgf_upper;
    const double share = exp(acct_min(least - 1e-9, 0.0));
    lower(t->levels + 1, n, share, t->fall + (size_t)j * ((size_t)t->levels + 1), sums->decay);
}

/* the bound on the error of a logarithm of a block's */
static double log_error(const acct_characteristic_polar *b, int k) {
    return b->ratio[k] * ACCT_SLACK + 32.0 * ACCT_U * fabs(b->log_modulus[k]);
}

int acct_noise_table_add(const acct_noise_table *t, acct_heterogeneous_sum *sums, acct_tilted_law *law,
                         const acct_part *part) {
    const double n = part->steps, sigma = part->sigma, var = sigma * sigma;
    const acct_window window = {.lo = t->range.lo * var + 0.5, .hi = t->range.hi * var + 0.5};
    const acct_step step = acct_part_step(part);
    weights w;
    acct_characteristic_polar b;
    set_weights(t, sigma, &w);
    if (!acct_tilted_law_start(law, &step, &window)) return ACCT_EPRECISION;
    read_block(t, &w, 0, &b);
    const double log_mgf = b.log_modulus[0], log_mgf_err = log_error(&b, 0);
    if (!(log_mgf_err < 1e-3)) return ACCT_EPRECISION;
    for (int first = 0; first < t->points; first += ACCT_SUM_BLOCK) {
        if (first) read_block(t, &w, first, &b);
        acct_heterogeneous_add_block(sums, first, n, log_mgf, 0.0, &b);
    }
    read_block(t, &w, t->stride - ACCT_SUM_BLOCK, &b);
    sums->parts++;
    sums->right_log += n * b.log_modulus[RIGHT];
    sums->right_err += n * log_error(&b, RIGHT);
    sums->left_log += n * b.log_modulus[LEFT];
    sums->left_err += n * log_error(&b, LEFT);
    const int lowered = sums->plan.reverse_order > 0.0 &&
                        acct_heterogeneous_add_tail(sums, law, part, b.log_modulus[REVERSE], log_error(&b, REVERSE));
    add_decay(t, sums, sigma, n, log_mgf + log_mgf_err + 1e-12);
    acct_sum_add(&sums->log_mgf, n * log_mgf);
    sums->log_mgf_err += n * log_mgf_err;
    acct_heterogeneous_add_outside(sums, law, part, lowered);
    return ACCT_OK;
}

/* fewer parts of one q take no table */
#define LEAST_PARTS 32
/* longer lines are for few steps, and take no table */
#define MOST_TABLE_POINTS 2048
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
    while (t->count > 0) free(t->table[--t->count]);
}

/* a table for the sorted keys, if it pays */
static int add_table(acct_noise_tables *t, acct_heterogeneous_sum *sums, acct_tilted_law *law,
                     acct_characteristic_sum *cf, const key *first, const key *last) {
    /* of one sigma alone no differences would be left */
    const double ends = first->precision < last[-1].precision * (1.0 - 1e-3) ? 1e-14 : 1e-3;
    const long parts = last - first;
    double remainder[1 + ORDERS] = {0.0};
    acct_noise_table planned;
    const int kinds = plan_table(&planned, sums, first->q, first->precision * (1.0 - ends),
                                 last[-1].precision * (1.0 + ends), remainder);
    if (!(kinds && ALONE * kinds + parts < ALONE * parts)) return ACCT_OK;
    acct_noise_table *table = malloc(sizeof *table + table_doubles(&planned) * sizeof(double));
    if (!table) return ACCT_ENOMEM;
    *table = planned;
    if (set_table(table, (double *)(table + 1), remainder, sums, law, cf))
        free(table);
    else
        t->table[t->count++] = table;
    return ACCT_OK;
}

int acct_noise_tables_set(acct_noise_tables *t, acct_heterogeneous_sum *sums, acct_tilted_law *law,
                          acct_characteristic_sum *cf, const acct_part *part, int count) {
    acct_noise_tables_free(t);
    if (count < LEAST_PARTS || sums->plan.count > MOST_TABLE_POINTS) return ACCT_OK;
    key *keys = malloc((size_t)count * sizeof *keys);
    if (!keys) return ACCT_ENOMEM;
    int used = 0, status = ACCT_OK;
    for (int i = 0; i < count; i++)
        if (!part[i].mixture && part[i].q < 1.0) keys[used++] = (key){part[i].q, 1.0 / part[i].sigma};
    qsort(keys, (size_t)used, sizeof *keys, by_key);
    for (int i = 0, end = 0; i < used && !status;) {
        while (end < used && keys[end].q == keys[i].q && keys[end].precision <= LARGEST_RATIO * keys[i].precision)
            end++;
        if (end - i >= LEAST_PARTS && t->count < ACCT_MOST_NOISE_TABLES)
            status = add_table(t, sums, law, cf, keys + i, keys + end);
        i = end;
    }
    free(keys);
    return status;
}

const acct_noise_table *acct_noise_tables_find(const acct_noise_tables *t, const acct_part *part) {
    for (int i = 0; i < t->count; i++) {
        const acct_noise_range *r = &t->table[i]->range;
        const double at = 1.0 / part->sigma;
        if (!part->mixture && part->q == r->q && at >= r->least && at <= r->most) return t->table[i];
    }
    return NULL;
}
