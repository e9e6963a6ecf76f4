#include "exchange.h"

#include <math.h>
#include <stdlib.h>

#include "contour.h"
#include "exchange_decay.h"
#include "exchange_law.h"
#include "rounding.h"
#include "status.h"
#include "vmath.h"

/* log of the error of delta aimed at, relative to it */
#define FINE (-25.0)
#define MOST_WORK 2e7

typedef struct {
    double mu, q, steps;
    acct_exchange_law law;
    acct_exchange_decay decay;
    acct_contour contour;
    double *memory;
} workspace;

static int workspace_set(workspace *w, double mu, double q, double steps) {
    w->mu = mu;
    w->q = q;
    w->steps = steps;
    w->memory = malloc((ACCT_EXCHANGE_DOUBLES + 2 * ACCT_MAX_POINTS) * sizeof(double));
    if (!w->memory) return ACCT_ENOMEM;
    w->contour.amplitude = w->memory + ACCT_EXCHANGE_DOUBLES;
    w->contour.phase = w->contour.amplitude + ACCT_MAX_POINTS;
    return ACCT_OK;
}

/* where a line at distance b answers: epsilon and about the log of delta there */
typedef struct {
    double b, epsilon, log_delta, spread;
} saddle;

static saddle saddle_at(workspace *w, double b) {
    acct_exchange_moments m;
    double lattice;
    acct_exchange_moments_set(&w->law, 1.0 + b, 0.0, &m, &lattice);
    const double n = w->steps, variance = n * m.m2 + 1.0 / (b * b) + 1.0 / ((1.0 + b) * (1.0 + b));
    saddle s = {.b = b, .epsilon = n * m.mean - 1.0 / b - 1.0 / (1.0 + b), .spread = sqrt(variance)};
    s.log_delta = n * m.log_mgf - b * s.epsilon - log(b * (1.0 + b)) - 0.5 * log(2.0 * ACCT_PI * variance);
    return s;
}

/* The saddle whose epsilon, or whose log of delta, is the one given: both are monotone in b.  Nodes grow with
 * the largest b that is tried.
 * returns  0 where there is none */
static int find_saddle(workspace *w, double epsilon, double log_delta, saddle *s) {
    double lo = 1e-6, hi = 1.0;
    const int by_epsilon = log_delta == 0.0;
    for (;;) {
        if (!acct_exchange_law_set(&w->law, w->memory, w->mu, w->q, 1.0 + hi, 0.0, 30.0)) return 0;
        *s = saddle_at(w, hi);
        if (by_epsilon ? s->epsilon >= epsilon : s->log_delta <= log_delta && s->epsilon >= 0.0) break;
        lo = hi;
        hi *= 3.0;
        if (!(hi < 1e9)) return 0;
    }
    for (int i = 0; i < 60 && hi > lo * 1.002; i++) {
        const double middle = sqrt(lo * hi);
        *s = saddle_at(w, middle);
        *((by_epsilon ? s->epsilon >= epsilon : s->log_delta <= log_delta && s->epsilon >= 0.0) ? &hi : &lo) =
            middle;
    }
    *s = saddle_at(w, hi);
    return 1;
}

/* bound on the terms beyond y, up to which they are computed; the decay is no slower further out */
static double truncated(const workspace *w, double b, double y, double dy) {
    double total = 0.0, from = y;
    for (int i = 0; i < 60 && from < INFINITY; i++) {
        const double power = w->steps * log(acct_exchange_decay_at(&w->decay, from)) * (1.0 - 1e-12);
        const double to = i < 59 && power > -100.0 ? 1.5 * from : INFINITY;
        total += acct_tail_weight(b, from, to, dy) * exp(power);
        from = to;
    }
    return total * ACCT_SLACK;
}

/* Chernoff's bound at another distance b2 bounds one side's aliases; the period that makes them e^{-digits} */
static double alias_at(workspace *w, double b2, double epsilon, double digits, acct_alias *alias) {
    acct_exchange_moments m;
    double lattice;
    acct_exchange_moments_set(&w->law, 1.0 + b2, 0.0, &m, &lattice);
    const acct_contour *k = &w->contour;
    alias->log_size = acct_log_chernoff(b2) + w->steps * (m.log_mgf + m.log_mgf_err) -
                      (k->log_scale - k->log_scale_err) + 1e-9 + 1e-12 * fabs(k->log_scale);
    alias->slope = b2 - k->b;
    const double period = (alias->log_size - alias->slope * epsilon + digits) / fabs(alias->slope);
    return period > 0.0 ? period : 1e-300;
}

static double alias_side(workspace *w, double epsilon, double digits, double spread, int sign,
                         acct_alias *best) {
    const double b = w->contour.b;
    double period = INFINITY, move = sqrt(2.0 * digits) / spread;
    if (sign < 0) { /* H <= 1 */
        *best = (acct_alias){.log_size = -(w->contour.log_scale - w->contour.log_scale_err), .slope = -b};
        period = (best->log_size + b * epsilon + digits) / b;
    }
    for (int i = 0; i < 8; i++, move *= 0.6) {
        acct_alias alias;
        const double b2 =
            acct_exact_distance(sign > 0 ? b + fmin(move, b + 4.0 / w->mu) : b / (1.0 + move / b));
        if (b2 == b || !(b2 > 0.0)) continue;
        const double p = alias_at(w, b2, epsilon, digits, &alias);
        if (p < period) {
            period = p;
            *best = alias;
        }
    }
    return period;
}

/* sets amplitudes, phases and the bound on their errors, as fill_terms of contour.c; lattice: of the sums */
static void fill_terms(workspace *w, const acct_exchange_moments *m, double lattice) {
    acct_contour *k = &w->contour;
    const double n = w->steps, adds = w->law.count + 40.0;
    double numerical = 0.0;
    for (int i = 0; i < k->count; i++) {
        const double y = i * k->dy, factor = acct_trapezoid_factor(k->b, y, k->dy, i);
        double re = 0.0, im = 0.0;
        if (i) acct_exchange_sum(&w->law, m, y, &re, &im);
        const double square = 2.0 * re + re * re + im * im, size = sqrt(re * re + im * im);
        const double modulus = sqrt((1.0 + re) * (1.0 + re) + im * im), arg = atan2(im, 1.0 + re);
        const double log_modulus = square > -0.5 ? 0.5 * log1p(square) : log(modulus);
        /* |e^{it} - 1| <= |t|: errors of weights, of losses, of phases and of the sum */
        const double error = 1.02 * (y * (m->weight_spread + 2.0 * m->blur + adds * ACCT_U * m->spread) +
                                     size * (m->weight_err + adds * ACCT_U) + 2.0 * lattice) +
                             8.0 * ACCT_U * size;
        const double amplitude = exp(n * log_modulus) * factor, rest = modulus - error;
        double err;
        if (rest > 0.0 && n * error < 100.0 * rest)
            err = amplitude * expm1(n * error / rest);
        else
            err = amplitude + exp(n * log(modulus + error)) * factor;
        if (amplitude > 0.0) err += amplitude * ACCT_U * (40.0 + 16.0 * n * (fabs(log_modulus) + fabs(arg)));
        numerical += err;
        k->amplitude[i] = amplitude;
        k->phase[i] = n * arg - atan2(y, k->b) - atan2(y, k->b + 1.0);
    }
    k->numerical = numerical * ACCT_SLACK;
}

/* sets the step of the lattice and the number of its points, and the bound on what is beyond them */
static int set_lattice(workspace *w, const saddle *s, double epsilon, double digits) {
    acct_contour *k = &w->contour;
    const double right = alias_side(w, epsilon, digits, s->spread, 1, &k->right);
    const double left = alias_side(w, epsilon, digits, s->spread, -1, &k->left);
    const double period = fmax(right, left), wanted = exp(-digits) / (k->b * (k->b + 1.0));
    if (!(period < INFINITY)) return 0;
    k->dy = acct_short_step(2.0 * ACCT_PI / period * (1.0 - 1e-12));
    double y = 5.0 / s->spread;
    for (int i = 0; i < 80; i++) {
        k->truncated = truncated(w, k->b, y, k->dy);
        if (k->truncated <= wanted) break;
        y *= 1.2;
    }
    const double points = floor(y / k->dy) + 2.0;
    if (!(k->truncated < INFINITY && points <= ACCT_MAX_POINTS)) return 0;
    k->count = (int)points;
    k->truncated = truncated(w, k->b, (k->count - 1) * k->dy, k->dy);
    return 1;
}

/* the line of a saddle, for brackets near its epsilon
 * returns  0 where there is none */
static int build(workspace *w, const saddle *s) {
    acct_contour *k = &w->contour;
    const double b = acct_exact_distance(s->b), n = w->steps;
    acct_exchange_moments m;
    double lattice;
    *k = (acct_contour){.direction = ACCT_REMOVE,
                        .steps = n,
                        .b = b,
                        .amplitude = k->amplitude,
                        .phase = k->phase,
                        .small_losses_log = -INFINITY};
    k->tail = (acct_tail_event){.direction = ACCT_REMOVE, .steps = n, .reverse_log = -INFINITY};
    /* the sum is smaller than its terms by the saddle's width; a step's errors count n times */
    const double digits = -FINE + 3.0, fine = digits + log(n) + 8.0;
    const double orders = 1.0 + b + fmin(sqrt(2.0 * digits) / s->spread, b + 4.0 / w->mu);
    if (!acct_exchange_law_set(&w->law, w->memory, w->mu, w->q, orders, 0.0, fine)) return 0;
    acct_exchange_moments_set(&w->law, 1.0 + b, 0.0, &m, &lattice);
    acct_exchange_decay_set(&w->decay, &w->law, 1.0 + b, m.mode, m.log_mgf + m.log_mgf_err);
    const double before = k->log_scale = n * m.log_mgf;
    k->log_scale_err = n * m.log_mgf_err + 8.0 * ACCT_U * fabs(before);
    if (!(k->log_scale_err < 1.0) || !set_lattice(w, s, fmax(s->epsilon, 0.0), digits)) return 0;
    const double last = (k->count - 1) * k->dy;
    if (!acct_exchange_law_set(&w->law, w->memory, w->mu, w->q, 1.0 + b, last, fine)) return 0;
    acct_exchange_moments_set(&w->law, 1.0 + b, last, &m, &lattice);
    const double far = fmax(w->law.loss[w->law.count - 1], -w->law.loss[0]) + fabs(m.mean);
    if (!((double)k->count * w->law.count < MOST_WORK && last * far < ACCT_MOST_ANGLE && lattice < 1e-3))
        return 0;
    k->log_scale = n * m.log_mgf;
    k->log_scale_err = n * m.log_mgf_err + 8.0 * ACCT_U * fabs(k->log_scale);
    k->right.log_size += fabs(before - k->log_scale) + k->log_scale_err;
    k->left.log_size += fabs(before - k->log_scale) + k->log_scale_err;
    k->drift = n * m.mean;
    fill_terms(w, &m, lattice);
    return k->log_scale_err < 1.0;
}

static int in_domain(double mu, double q, double steps) {
    return q > 0.0 && q < 1.0 && mu > 0.0 && mu <= 40.0 && acct_valid_steps(steps) && steps >= 2.0;
}

int acct_exchange_delta(double mu, double q, double steps, double epsilon, acct_bounds *out) {
    workspace w;
    saddle s;
    *out = (acct_bounds){0.0, 1.0};
    if (!in_domain(mu, q, steps) || !acct_valid_epsilon(epsilon)) return ACCT_EDOMAIN;
    const int status = workspace_set(&w, mu, q, steps);
    if (status) return status;
    if (find_saddle(&w, epsilon, 0.0, &s) && build(&w, &s)) {
        acct_profile_point p;
        acct_contour_profile(&w.contour, epsilon, &p);
        acct_bounds_intersect(out, p.bounds.lower, p.bounds.upper);
    }
    free(w.memory);
    return ACCT_OK;
}

int acct_exchange_renyi(double mu, double q, double order, acct_bounds *out) {
    *out = (acct_bounds){0.0, INFINITY};
    if (!in_domain(mu, q, 2.0) || !(order > 1.0 && order < INFINITY)) return ACCT_EDOMAIN;
    double *memory = malloc(ACCT_EXCHANGE_DOUBLES * sizeof(double)), lattice;
    if (!memory) return ACCT_ENOMEM;
    acct_exchange_law law;
    acct_exchange_moments m;
    if (acct_exchange_law_set(&law, memory, mu, q, order, 0.0, 36.0)) {
        acct_exchange_moments_set(&law, order, 0.0, &m, &lattice);
        if (m.log_mgf_err < INFINITY) {
            out->lower = fmax((m.log_mgf - m.log_mgf_err) / (order - 1.0) * (1.0 - 4.0 * ACCT_U), 0.0);
            out->upper = (m.log_mgf + m.log_mgf_err) / (order - 1.0) * (1.0 + 4.0 * ACCT_U);
        }
    }
    free(memory);
    return ACCT_OK;
}

int acct_exchange_epsilon(double mu, double q, double steps, double delta, acct_bounds *out) {
    workspace w;
    saddle s;
    *out = (acct_bounds){0.0, INFINITY};
    if (!in_domain(mu, q, steps) || !acct_valid_delta(delta)) return ACCT_EDOMAIN;
    const int status = workspace_set(&w, mu, q, steps);
    if (status) return status;
    if (find_saddle(&w, 0.0, fmin(log(delta), -1e-3), &s) && build(&w, &s)) {
        acct_bounds found;
        acct_invert(acct_contour_at, &w.contour, fmax(s.epsilon, 0.0), delta, &found);
        acct_bounds_intersect(out, found.lower, found.upper);
    }
    free(w.memory);
    return ACCT_OK;
}
