#include <math.h>

#include "noise_table.h"
#include "rounding.h"
#include "bounds.h"
#include "vmath.h"

typedef struct {
    double of[ACCT_NOISE_KINDS];
    double moduli;      /* the sum of their moduli */
    double error, size; /* the same sum, each times the kind's share of errors and of sizes */
} weights;

/* Lagrange's weights of the kinds at one sigma: with beta = 1/sigma the quotients of differences
 * (beta - beta_i)/(beta_j - beta_i) are (sigma_i - sigma)/(sigma_i - sigma_j) sigma_j/sigma, and the differences of
 * sigmas are exact.  Each weight is within (kinds + 16) u of itself. */
static void set_weights(const acct_noise_table *t, double sigma, weights *w) {
    const int n = t->kinds;
    double before = pow(sigma * t->scale, 1.0 - n), after = 1.0;
    for (int j = 0; j < n; j++) {
        w->of[j] = t->factor[j] * before;
        before *= (t->sigma[j] - sigma) * t->scale;
    }
    w->moduli = w->error = w->size = 0.0;
    for (int j = n - 1; j >= 0; j--) {
        w->of[j] *= after;
        const double modulus = fabs(w->of[j]);
        w->moduli += modulus;
        w->error += modulus * t->error_share[j];
        w->size += modulus * t->size_share[j];
        after *= (t->sigma[j] - sigma) * t->scale;
    }
}

/* what the round-off of the weights and of adding so many products is relative to the sum of the moduli */
static double round_off(const acct_noise_table *t) { return (2.0 * t->kinds + 20.0) * ACCT_U; }

/* a bound on the error of A at a point: round-off, the kinds' errors and the remainder */
static double error_at(const acct_noise_table *t, const weights *w, int k) {
    return w->error * t->error[k] + w->size * round_off(t) * t->size[k] + (1.0 + w->moduli) * t->remainder;
}

/* a real order: log A, and the bound on its error; inf where A is not known */
static double log_at(const acct_noise_table *t, int order, const weights *w, double *error) {
    const acct_noise_order *o = &t->order[order];
    double value = 0.0, off = (1.0 + w->moduli) * o->remainder;
    for (int j = 0; j < t->kinds; j++) {
        value += w->of[j] * o->value[j];
        off += fabs(w->of[j]) * (o->error[j] + round_off(t) * fabs(o->value[j]));
    }
    const double rest = 1.0 + value - off, log_mgf = log1p(value);
    *error = rest > 0.0 ? off / rest * ACCT_SLACK + 8.0 * ACCT_U * fabs(log_mgf) : INFINITY;
    return log_mgf;
}

/* A - 1 at a block of points */
ACCT_CLONES
static void sum_kinds(int kinds, size_t stride, const double *restrict weight, const double *restrict re,
                      const double *restrict im, double *restrict u, double *restrict v) {
    double sum_re[ACCT_SUM_BLOCK] = {0}, sum_im[ACCT_SUM_BLOCK] = {0};
    for (int j = 0; j < kinds; j++, re += stride, im += stride)
        ACCT_EACH_LANE for (int k = 0; k < ACCT_SUM_BLOCK; k++) {
            sum_re[k] += weight[j] * re[k];
            sum_im[k] += weight[j] * im[k];
        }
    for (int k = 0; k < ACCT_SUM_BLOCK; k++) {
        u[k] = sum_re[k];
        v[k] = sum_im[k];
    }
}

typedef struct {
    double u[ACCT_SUM_BLOCK], v[ACCT_SUM_BLOCK]; /* A - 1 */
    double modulus[ACCT_SUM_BLOCK], log_modulus[ACCT_SUM_BLOCK], arg[ACCT_SUM_BLOCK];
} block;

/* A in polar form; each of the logarithm and the argument within 16 u of itself and of |u| + |v| */
ACCT_CLONES
static void set_polar(block *b) {
    int near = 1;
    for (int k = 0; k < ACCT_SUM_BLOCK; k++) {
        const double u = b->u[k], v = b->v[k], slope = v / (1.0 + u);
        b->modulus[k] = sqrt((1.0 + u) * (1.0 + u) + v * v);
        b->log_modulus[k] = 0.5 * acct_vlog1p(2.0 * u + u * u + v * v);
        b->arg[k] = acct_vatan(slope);
        near &= (u > -0.4) & (u < 1e3) & (slope < 0.5) & (slope > -0.5);
    }
    for (int k = 0; k < ACCT_SUM_BLOCK && !near; k++) {
        const double u = b->u[k], v = b->v[k];
        b->log_modulus[k] = u > -0.5 ? 0.5 * log1p(2.0 * u + u * u + v * v)
                                     : log(acct_max(b->modulus[k], 1e-300));
        b->arg[k] = atan2(v, 1.0 + u);
    }
}

/* what a block of points adds beside the logarithms and arguments themselves */
typedef struct {
    double fall[ACCT_SUM_BLOCK], error[ACCT_SUM_BLOCK];
    double relative[ACCT_SUM_BLOCK], high[ACCT_SUM_BLOCK], size[ACCT_SUM_BLOCK];
} shares;

/* error, size: of the kinds at the points, filled up to a whole block with zeros; the table's own errors */
ACCT_CLONES
static void bound_block(const block *b, const double *restrict error, const double *restrict size, double of_error,
                        double of_size, double remainder, double log_mgf, shares *out) {
    double far = 0.0;
    for (int k = 0; k < ACCT_SUM_BLOCK; k++) {
        const double modulus = b->modulus[k], fall = b->log_modulus[k] - log_mgf;
        const double of_table = of_error * error[k] + of_size * size[k] + remainder;
        const double e = (of_table + 16.0 * ACCT_U * (fabs(b->u[k]) + fabs(b->v[k]))) * ACCT_SLACK;
        const double rest = modulus - e, share = e / modulus, over = e / rest;
        out->fall[k] = fall;
        out->error[k] = e;
        out->relative[k] = rest > 0.0 ? over : INFINITY;
        out->high[k] = fall + share;
        out->size[k] = fabs(b->log_modulus[k]) + fabs(log_mgf) + fabs(b->arg[k]);
        far += modulus > 1e-290 && share < 0.1 ? 0.0 : 1.0;
    }
    for (int k = 0; k < ACCT_SUM_BLOCK && far > 0.0; k++) {
        const double modulus = b->modulus[k], share = out->error[k] / modulus;
        out->high[k] = !(modulus > 1e-290) ? log(1e-290 + out->error[k]) - log_mgf
                       : share < 0.1       ? out->fall[k] + share
                                           : out->fall[k] + log1p(share);
    }
}

ACCT_CLONES
static void add_block(int count, double n, const block *b, const shares *s, acct_sum *restrict log_mod,
                      acct_sum *restrict arg, double *restrict relative, double *restrict high,
                      double *restrict size) {
    for (int i = 0; i < count; i++) {
        acct_sum_add(&log_mod[i], n * s->fall[i]);
        acct_sum_add(&arg[i], n * b->arg[i]);
    }
    for (int i = 0; i < count; i++) {
        relative[i] += n * s->relative[i];
        high[i] += n * s->high[i];
        size[i] += n * s->size[i];
    }
}

/* adds n log A and n arg A less those of the scale; what is added to `relative`, `high` and `size` is as in
 * add_points of heterogeneous_sum.c */
static void add_points(const acct_noise_table *t, acct_heterogeneous_sum *sums, const weights *w, double n,
                       double log_mgf) {
    const double of_size = w->size * round_off(t), remainder = (1.0 + w->moduli) * t->remainder;
    block b;
    shares s;
    for (int first = 0; first < t->points; first += ACCT_SUM_BLOCK) {
        const int size = t->points - first < ACCT_SUM_BLOCK ? t->points - first : ACCT_SUM_BLOCK;
        sum_kinds(t->kinds, (size_t)t->stride, w->of, t->re + first, t->im + first, b.u, b.v);
        set_polar(&b);
        bound_block(&b, t->error + first, t->size + first, w->error, of_size, remainder, log_mgf, &s);
        add_block(size, n, &b, &s, sums->log_mod + first, sums->arg + first, sums->relative + first,
                  sums->high + first, sums->size + first);
    }
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
    const double *fall = t->fall + (size_t)j * ((size_t)t->levels + 1);
    lower(t->levels + 1, n, share, fall, sums->decay);
}

int acct_noise_table_add(const acct_noise_table *t, acct_heterogeneous_sum *sums, acct_tilted_law *law,
                         const acct_part *part) {
    const double n = part->steps, sigma = part->sigma, var = sigma * sigma;
    const acct_window window = {.lo = t->range.lo * var + 0.5, .hi = t->range.hi * var + 0.5};
    const acct_step step = acct_part_step(part);
    weights w;
    double at_zero = 0.0, err;
    set_weights(t, sigma, &w);
    if (!acct_tilted_law_start(law, &step, &window)) return ACCT_EPRECISION;
    for (int j = 0; j < t->kinds; j++) at_zero += w.of[j] * t->re[(size_t)j * (size_t)t->stride];
    const double log_mgf = log1p(at_zero);
    const double off = error_at(t, &w, 0) * ACCT_SLACK;
    const double log_mgf_err = 1.01 * off / (1.0 + at_zero) + 16.0 * ACCT_U * fabs(log_mgf);
    if (!(off < 1e-3 * (1.0 + at_zero))) return ACCT_EPRECISION;
    sums->parts++;
    sums->right_log += n * log_at(t, ACCT_NOISE_RIGHT, &w, &err);
    sums->right_err += n * err;
    sums->left_log += n * log_at(t, ACCT_NOISE_LEFT, &w, &err);
    sums->left_err += n * err;
    int lowered = 0;
    if (sums->plan.reverse_order > 0.0) {
        const double low = log_at(t, ACCT_NOISE_REVERSE, &w, &err);
        lowered = acct_heterogeneous_add_tail(sums, law, part, low, err);
    }
    add_points(t, sums, &w, n, log_mgf);
    add_decay(t, sums, sigma, n, log_mgf + log_mgf_err + 1e-12);
    acct_sum_add(&sums->log_mgf, n * log_mgf);
    sums->log_mgf_err += n * log_mgf_err;
    acct_heterogeneous_add_outside(sums, law, part, lowered);
    return ACCT_OK;
}
