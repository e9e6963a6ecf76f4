#include "sampled_transform.h"

#include <math.h>
#include <stdlib.h>

#include "bounds.h"
#include "clones.h"
#include "order.h"
#include "rounding.h"
#include "vmath.h"

/* log of the error of the sum, as a share of F(c), for leaving out tails and for its step */
static const double DIGITS = 42.0;
/* terms below this share of the largest are left out, in full */
static const double LEAST_TERM = 1e-19;
/* what the shifted path may cost: its moduli add up to e to this times F(c) at most */
static const double MOST_COST = 2.0;
/* terms looked at */
#define MOST_TERMS 65536
/* below it q e^u could overflow */
static const double LEAST_Q = 1e-100;
/* nodes from one exact start of the recurrence to the next */
#define NODES_A_START 16

/* Im x = height, half the height of the strip that bounds the error; terms at multiples of h */
typedef struct {
    double height, h, lo, hi;
    double error; /* of the sum, as a share of F(c) */
} path;

/* log of a bound on int |N e^{(c'+iy)L}| along Im x = height over F(c): |1-q+qe^u| >= cos(arg/2) (1-q+q|e^u|) */
static double cost(const acct_part *part, double order, double height) {
    const double t = height / part->sigma, bend = 0.5 * t / part->sigma;
    return 0.5 * t * t + (order < 0.0 ? order * log(cos(bend)) : 0.0);
}

static path choose(const acct_part *part, double order) {
    const double s = part->sigma, c = order;
    path best = {0.0, 0.0, 0.0, 0.0, 1.0};
    for (double t = acct_min(4.0, 1.4 * s); t > 1e-3 * s; t *= 0.8) {
        const double price = cost(part, order, 2.0 * t * s);
        const double h = 2.0 * ACCT_PI * t * s / (DIGITS + acct_max(price, 0.0));
        if (price > 4.0 * MOST_COST || cost(part, order, t * s) > MOST_COST || h <= best.h) continue;
        best.height = t * s;
        best.h = h;
        best.error = 2.5 * exp(-DIGITS);
    }
    int exponent;
    const double digits = frexp(best.h, &exponent);
    best.h = ldexp(floor(ldexp(digits, 24)), exponent - 24); /* its multiples are exact */
    /* beyond: (1-q+qe^u)^c <= 1 + e^{cu}, of which F(c) is at least q^c; added, it is at most (1-q)^{-b} */
    const double rise = c > 0.0 ? acct_min(0.5 * c * (c - 1.0) / (s * s), -c * log(part->q)) : c * log1p(-part->q);
    const double reach = s * sqrt(2.0 * (DIGITS + rise)) * (1.0 + 1e-12);
    best.lo = -reach;
    best.hi = reach + acct_max(c, 0.0);
    best.error += 8.0 * exp(cost(part, order, best.height) - DIGITS) * (1.0 + best.h / s);
    return best;
}

typedef acct_sampled_terms terms;

/* the term at x + i height: log-modulus, phase, L = log(1 + q (e^u - 1)), and errors */
static void set_term(terms *t, int j, const acct_part *part, double order, const path *p, double x) {
    const double s2 = part->sigma * part->sigma, q = part->q, u = (x - 0.5) / s2, v = p->height / s2;
    const double half = sin(0.5 * v), cosine = cos(v);
    double lr, li, share;
    if (u + log(q) < 300.0) {
        const double rise = expm1(u), re = q * (rise * cosine - 2.0 * half * half), im = q * (1.0 + rise) * sin(v);
        const double square = 2.0 * re + re * re + im * im, size = sqrt((1.0 + re) * (1.0 + re) + im * im);
        /* where 1 + re and im are small the logarithm of their squares is the better one */
        lr = square > -0.5 ? 0.5 * log1p(square) : 0.5 * log((1.0 + re) * (1.0 + re) + im * im);
        li = atan2(im, 1.0 + re);
        share = q * (fabs(rise) + 2.0) / size;
    } else { /* what 1 - q adds is below e^-300 */
        lr = u + log(q);
        li = v;
        share = 2.0;
    }
    /* x is exact: u and v are off by 3 u, and e^{u+iv} by 24 u more */
    const double loss_err =
        ACCT_U * (share * (64.0 + 8.0 * ((fabs(x) + 0.5) / s2 + v)) + 16.0 * (fabs(lr) + fabs(li)));
    const double fall = 0.5 * (x * x - p->height * p->height) / s2, turn = p->height * x / s2;
    t->log_size[j] = log(p->h / (part->sigma * ACCT_SQRT_2PI)) - fall + order * lr;
    t->phase[j] = order * li - turn;
    t->loss_re[j] = lr;
    t->loss_im[j] = li;
    t->rate[j] = loss_err + 8.0 * ACCT_U * (fabs(lr) + fabs(li));
    t->fixed[j] = ACCT_U * (128.0 + 8.0 * (0.5 * (x * x + p->height * p->height) / s2 + fabs(turn))) +
                  fabs(order) * t->rate[j];
}

/* keeps the terms that are above `least` at y; returns the sum of the moduli of the others, which fall with y */
static double keep(terms *t, double y, double least) {
    double left_out = 0.0;
    int kept = 0;
    for (int j = 0; j < t->count; j++) {
        const double log_size = t->log_size[j] - y * t->loss_im[j];
        if (!(log_size > log(least))) {
            left_out += exp(log_size) * 2.0 + ACCT_UNDERFLOW;
            continue;
        }
        for (int i = 0; i < ACCT_SAMPLED_ARRAYS; i++) t->array[i][kept] = t->array[i][j];
        kept++;
    }
    for (t->count = acct_to_wide(kept); kept < t->count; kept++) {
        for (int i = 0; i < ACCT_SAMPLED_ARRAYS; i++) t->array[i][kept] = 0.0;
        t->log_size[kept] = -INFINITY;
    }
    return left_out;
}

/* the moduli of the terms at y, all together */
ACCT_CLONES
static double modulus(const terms *t, double y) {
    const double *restrict log_size = t->log_size, *restrict loss_im = t->loss_im;
    double sum[ACCT_WIDE] = {0};
    for (int j = 0; j < t->count; j += ACCT_WIDE)
        for (int i = 0; i < ACCT_WIDE; i++) sum[i] += acct_vexp(log_size[j + i] - y * loss_im[j + i]);
    return acct_wide_total(sum);
}

/* sets the terms at y by their exponents; returns a bound on their errors up to y_end, all together */
ACCT_CLONES
static double restart(const terms *t, double y, double y_end) {
    const double *restrict log_size = t->log_size, *restrict phase = t->phase, *restrict fixed = t->fixed;
    const double *restrict rate = t->rate, *restrict lr = t->loss_re, *restrict li = t->loss_im;
    double *restrict re = t->re, *restrict im = t->im;
    const double round = (32.0 * NODES_A_START + 16.0 + t->count) * ACCT_U;
    double error[ACCT_WIDE] = {0};
    for (int j = 0; j < t->count; j += ACCT_WIDE)
        for (int i = 0; i < ACCT_WIDE; i++) {
            const int k = j + i;
            const double size = acct_vexp(log_size[k] - y * li[k]), turn = phase[k] + y * lr[k];
            double s, c;
            acct_vsincos(turn, &s, &c);
            re[k] = size * c;
            im[k] = size * s;
            /* beyond its range any sine will do: it is counted in full */
            error[i] += size * (fixed[k] + y_end * rate[k] + round) + (fabs(turn) < ACCT_MOST_ANGLE ? 0.0 : 4.0 * size);
        }
    return (acct_wide_total(error) + 1e-290) * ACCT_SLACK; /* acct_vexp ends at e^-700 */
}

/* the sum, and the terms at the next node */
ACCT_CLONES
static void advance(int count, const double *restrict turn_re, const double *restrict turn_im,
                    double *restrict re, double *restrict im, double *sum_re, double *sum_im) {
    double a[ACCT_WIDE] = {0}, b[ACCT_WIDE] = {0};
    for (int j = 0; j < count; j += ACCT_WIDE)
        for (int i = 0; i < ACCT_WIDE; i++) {
            const double x = re[j + i], y = im[j + i], p = turn_re[j + i], q = turn_im[j + i];
            a[i] += x;
            b[i] += y;
            re[j + i] = x * p - y * q;
            im[j + i] = x * q + y * p;
        }
    *sum_re = acct_wide_total(a);
    *sum_im = acct_wide_total(b);
}

int acct_sampled_sum_set(acct_sampled_sum *sum, const acct_part *part, int direction, double b) {
    const double order = acct_order_at(direction, b);
    const path p = choose(part, order);
    const double least = ceil(p.lo / p.h), most = floor(p.hi / p.h);
    double scale = -INFINITY, re, im;
    terms *t = &sum->terms;
    sum->memory = NULL;
    if (!(p.h > 0.0 && most - least < MOST_TERMS && part->q >= LEAST_Q)) return ACCT_EPRECISION;
    const int all = (int)(most - least) + 1;
    const size_t size = (size_t)acct_to_wide(all);
    sum->memory = malloc(ACCT_SAMPLED_ARRAYS * size * sizeof(double));
    if (!sum->memory) return ACCT_ENOMEM;
    for (int i = 0; i < ACCT_SAMPLED_ARRAYS; i++) t->array[i] = sum->memory + (size_t)i * size;
    t->count = all;
    for (int j = 0; j < all; j++) set_term(t, j, part, order, &p, (least + j) * p.h);
    for (int j = 0; j < all; j++) scale = acct_max(scale, t->log_size[j]);
    for (int j = 0; j < all; j++) t->log_size[j] -= scale;
    const double left_out = keep(t, 0.0, LEAST_TERM), error = restart(t, 0.0, 0.0);
    advance(t->count, t->fixed, t->fixed, t->re, t->im, &re, &im);
    sum->runs = part->steps;
    sum->sign = direction == ACCT_REMOVE ? 1.0 : -1.0;
    sum->at_c = re;
    sum->known_error = (left_out / re + p.error) * ACCT_SLACK;
    const double relative = error / re + sum->known_error;
    sum->relative = relative;
    if (!(re > 0.1 && relative < 1e-3)) return ACCT_EPRECISION;
    sum->log_mgf = part->steps * (scale + log(re));
    sum->log_mgf_err = part->steps * (relative * ACCT_SLACK + 16.0 * ACCT_U * (1.0 + fabs(scale)));
    return ACCT_OK;
}

double acct_sampled_sum_log_modulus(const acct_sampled_sum *sum, double y) {
    return sum->runs * log((modulus(&sum->terms, y) / sum->at_c + sum->known_error) * (1.0 + 4.0 * sum->relative));
}

void acct_sampled_sum_multiply(acct_sampled_sum *sum, double step, acct_line_nodes *nodes) {
    terms *t = &sum->terms;
    double error = 0.0, re, im;
    int64_t look = 0; /* where terms that have died are left out */
    for (int64_t k = 0; k < nodes->kept; k++) {
        if (k == look) {
            sum->known_error += keep(t, (double)k * step, LEAST_TERM) / sum->at_c * ACCT_SLACK;
            look = k ? 2 * k : 4 * NODES_A_START;
            for (int j = 0; j < t->count; j++) {
                const double size = exp(-step * t->loss_im[j]);
                t->turn_re[j] = size * cos(step * t->loss_re[j]);
                t->turn_im[j] = size * sin(step * t->loss_re[j]);
            }
        }
        if (k % NODES_A_START == 0) error = restart(t, (double)k * step, (double)(k + NODES_A_START) * step);
        advance(t->count, t->turn_re, t->turn_im, t->re, t->im, &re, &im);
        const acct_line_value factor = {re / sum->at_c, sum->sign * im / sum->at_c,
                                        (error / sum->at_c + sum->known_error) * ACCT_SLACK + 4.0 * ACCT_U, 0.0};
        const acct_line_value now = {nodes->re[k], nodes->im[k], nodes->err[k], nodes->most[k]};
        const acct_line_value next = acct_line_times(now, acct_line_power(factor, sum->runs));
        nodes->re[k] = next.re;
        nodes->im[k] = next.im;
        nodes->err[k] = next.err;
        nodes->most[k] = next.most;
    }
}

void acct_sampled_sum_free(acct_sampled_sum *sum) { free(sum->memory); }
