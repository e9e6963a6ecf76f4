#include "exchange.h"

#include <math.h>
#include <stdlib.h>

#include "chernoff.h"
#include "contour.h"
#include "exchange_law.h"
#include "one_direction.h"
#include "order.h"
#include "rounding.h"
#include "bounds.h"
#include "vmath.h"

/* log of the error of delta aimed at, relative to it; the error itself is always bounded */
#define EXCHANGE_FINE (-25.0)
/* exponentials of one line, about half a second of them; beyond that the grid of the Python side answers */
#define EXCHANGE_MOST_WORK 5e7
/* lines of one search for an epsilon; it stops where the next one would be this near, relatively */
#define MOST_LINES 6
#define SAME_PLACE 1e-3
/* widths of brackets that end a search: of epsilon over the real noise, of delta, and of epsilon on a path, which is
 * tried for no narrower one; they decide about time alone */
#define NARROW_EPSILON 1e-9
#define NARROW_DELTA 1e-8
#define SLOW_NARROW 3e-8

typedef struct {
    double mu, q, steps;
    acct_exchange_law law;
    acct_exchange_path path; /* used if path.count > 0 */
    acct_exchange_decay decay;
    acct_contour contour;
    double *memory;
} workspace;

/* one block, to be freed; NULL where there is no memory */
static workspace *workspace_new(double mu, double q, double steps) {
    const size_t nodes = ACCT_EXCHANGE_DOUBLES + ACCT_EXCHANGE_PATH_DOUBLES;
    const size_t terms = ACCT_MIXTURE_POINTS + ACCT_LINE_SPARE, doubles = nodes + 2 * terms;
    workspace *w = malloc(sizeof *w + doubles * sizeof(double));
    if (!w) return NULL;
    w->mu = mu;
    w->q = q;
    w->steps = steps;
    w->memory = (double *)(w + 1);
    w->contour.terms.re = w->memory + nodes;
    w->contour.terms.im = w->contour.terms.re + terms;
    return w;
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

/* by epsilon, or where log_delta is not 0 by that */
static int is_beyond(const saddle *s, double epsilon, double log_delta) {
    return log_delta == 0.0 ? s->epsilon >= epsilon : s->log_delta <= log_delta && s->epsilon >= 0.0;
}

/* The saddle whose epsilon, or whose log of delta, is the one given: both are monotone in b.  Nodes grow with
 * the largest b that is tried.  Returns 0 where there is none. */
static int find_saddle(workspace *w, double epsilon, double log_delta, saddle *s) {
    double lo = 1e-6, hi = 1.0;
    for (;; lo = hi, hi *= 3.0) {
        if (!(hi < 1e9 && acct_exchange_law_set(&w->law, w->memory, w->mu, w->q, 1.0 + hi, 0.0, 30.0))) return 0;
        *s = saddle_at(w, hi);
        if (is_beyond(s, epsilon, log_delta)) break;
    }
    for (int i = 0; i < 60 && hi > lo * 1.002; i++) {
        const double middle = sqrt(lo * hi);
        *s = saddle_at(w, middle);
        *(is_beyond(s, epsilon, log_delta) ? &hi : &lo) = middle;
    }
    *s = saddle_at(w, hi);
    return 1;
}

/* log of a bound on the modulus of the transform of all steps, relative to the real order, at y and beyond */
static double log_modulus_upper(const workspace *w, double y) {
    double most = acct_exchange_decay_at(&w->decay, y);
    if (w->path.count) most = acct_min(most, acct_exchange_path_decay(&w->path, y));
    return w->steps * log(most) * (1.0 - 1e-12);
}

/* bound on the terms beyond y, up to which they are computed; the decay is no slower further out */
static double truncated(const workspace *w, double b, double y, double dy) {
    double total = 0.0, from = y;
    for (int i = 0; i < 20 && from < INFINITY; i++) {
        const double power = log_modulus_upper(w, from);
        const double to = i < 19 && power > -100.0 ? 1.5 * from : INFINITY;
        total += acct_tail_weight(b, from, to, dy) * exp(power);
        from = to;
    }
    return total * ACCT_SLACK;
}

/* Chernoff's bound at another distance b2 bounds one side's aliases; the period that makes them e^{-digits} */
static double exchange_alias_at(workspace *w, double b2, double epsilon, double digits, acct_alias *alias) {
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

static double exchange_alias_side(workspace *w, double epsilon, double digits, double spread, int sign,
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
            acct_exact_distance(sign > 0 ? b + acct_min(move, b + 4.0 / w->mu) : b / (1.0 + move / b));
        if (b2 == b || !(b2 > 0.0)) continue;
        const double p = exchange_alias_at(w, b2, epsilon, digits, &alias);
        if (p < period) {
            period = p;
            *best = alias;
        }
    }
    return period;
}

/* what the terms are sums of: the path, if there is one, or the real noise */
typedef struct {
    const workspace *w;
    const acct_exchange_moments *m;
    double lattice;
} summed;

/* V at y and a bound on its error: |e^{it} - 1| <= |t|: errors of weights, of losses, of phases and of the sum */
static double transform(const summed *s, double y, double *re, double *im) {
    const acct_exchange_moments *m = s->m;
    if (s->w->path.count) return acct_exchange_path_sum(&s->w->path, y, re, im);
    const double adds = s->w->law.count + 40.0;
    *re = *im = 0.0;
    if (y > 0.0) acct_exchange_sum(&s->w->law, m, y, re, im);
    const double size = sqrt(*re * *re + *im * *im);
    return 1.02 * (y * (m->weight_spread + 2.0 * m->blur + adds * ACCT_U * m->spread) +
                   size * (m->weight_err + adds * ACCT_U) + 2.0 * s->lattice);
}

/* sets the step of the lattice and the number of its points, and the bound on what is beyond them */
static int set_lattice(workspace *w, const saddle *s, double epsilon, double digits) {
    acct_contour *k = &w->contour;
    const double right = exchange_alias_side(w, epsilon, digits, s->spread, 1, &k->right);
    const double left = exchange_alias_side(w, epsilon, digits, s->spread, -1, &k->left);
    const double period = acct_max(right, left), wanted = exp(-digits) / (k->b * (k->b + 1.0));
    if (!(period < INFINITY)) return 0;
    k->dy = acct_short_step(2.0 * ACCT_PI / period * (1.0 - 1e-12));
    double y = 5.0 / s->spread;
    const double most = (w->path.count ? ACCT_MIXTURE_POINTS : ACCT_MAX_POINTS) - 2.0;
    if (!(truncated(w, k->b, most * k->dy, k->dy) <= wanted)) return 0;
    while (y < most * k->dy) {
        k->truncated = truncated(w, k->b, y, k->dy);
        if (k->truncated <= wanted) break;
        y *= 1.2;
    }
    const double points = floor(y / k->dy) + 2.0;
    if (!(k->truncated <= wanted && points <= most + 2.0)) return 0;
    k->count = (int)points;
    k->truncated = truncated(w, k->b, (k->count - 1) * k->dy, k->dy);
    return 1;
}

/* Nodes for the points of the line: of the real noise, for all frequencies; or of the path, which is set. */
static int resolve(workspace *w, double order, double digits, acct_exchange_moments *m, double *lattice) {
    acct_contour *k = &w->contour;
    const double last = (k->count - 1) * k->dy, before = k->log_scale, n = w->steps;
    if (w->path.count)
        return (double)k->count * w->path.count < EXCHANGE_MOST_WORK &&
               acct_exchange_path_in_range(&w->path, last);
    if (!acct_exchange_law_set(&w->law, w->memory, w->mu, w->q, order, last, digits)) return 0;
    acct_exchange_moments_set(&w->law, order, last, m, lattice);
    const double far = acct_max(w->law.loss[w->law.count - 1], -w->law.loss[0]) + fabs(m->mean);
    if (!((double)k->count * w->law.count < EXCHANGE_MOST_WORK && last * far < ACCT_MOST_ANGLE &&
          *lattice < 1e-3))
        return 0;
    k->log_scale = n * m->log_mgf;
    k->log_scale_err = n * m->log_mgf_err + 8.0 * ACCT_U * fabs(k->log_scale);
    k->right.log_size += fabs(before - k->log_scale) + k->log_scale_err;
    k->left.log_size += fabs(before - k->log_scale) + k->log_scale_err;
    return k->log_scale_err < 1.0;
}

/* sets the terms of a contour whose points and steps are set, n-th powers of the transform, and their errors' bound */
static void exchange_terms(acct_contour *k, const summed *terms) {
    const double n = k->steps;
    double numerical = 0.0;
    for (int i = 0; i < k->count; i++) {
        const double y = i * k->dy, factor = acct_trapezoid_factor(k->b, y, k->dy, i);
        double re, im;
        const double off = transform(terms, y, &re, &im);
        const double square = 2.0 * re + re * re + im * im, size = sqrt(re * re + im * im);
        const double modulus = sqrt((1.0 + re) * (1.0 + re) + im * im), arg = atan2(im, 1.0 + re);
        const double log_modulus = square > -0.5 ? 0.5 * log1p(square) : log(modulus);
        const double error = off + 8.0 * ACCT_U * size;
        const double amplitude = exp(n * log_modulus) * factor, rest = modulus - error;
        double err = rest > 0.0 && n * error < 100.0 * rest ? amplitude * expm1(n * error / rest)
                                                            : amplitude + exp(n * log(modulus + error)) * factor;
        if (amplitude > 0.0) err += amplitude * ACCT_U * (48.0 + 16.0 * n * (fabs(log_modulus) + fabs(arg)));
        numerical += err;
        k->terms.re[i] = amplitude;
        k->terms.im[i] = n * arg - atan2(y, k->b) - atan2(y, k->b + 1.0);
    }
    k->numerical = numerical * ACCT_SLACK;
    acct_line_terms_set(&k->terms, k->count, k->dy);
}

/* how the transform is summed: over the real noise, and over a path above it, for probabilities up to one half */
enum { PLAIN, RAISED };

/* the line of a saddle, for brackets near its epsilon
 * returns  0 where there is none */
static int build_line(workspace *w, const saddle *s, int way) {
    acct_contour *k = &w->contour;
    const double b = acct_exact_distance(s->b), n = w->steps;
    acct_exchange_moments m;
    double lattice;
    *k = (acct_contour){.direction = ACCT_REMOVE,
                        .steps = n,
                        .b = b,
                        .terms = k->terms,
                        .small_losses_log = -INFINITY,
                        .least = ACCT_EXCHANGE_LEAST};
    k->tail = (acct_tail_event){.direction = ACCT_REMOVE, .steps = n, .reverse_log = -INFINITY};
    const double orders = 1.0 + b + acct_min(sqrt(2.0 * (3.0 - EXCHANGE_FINE)) / s->spread, b + 4.0 / w->mu);
    if (!acct_exchange_law_set(&w->law, w->memory, w->mu, w->q, orders, 0.0, 36.0 + log(n))) return 0;
    acct_exchange_moments_set(&w->law, 1.0 + b, 0.0, &m, &lattice);
    k->log_scale = n * m.log_mgf;
    k->log_scale_err = n * m.log_mgf_err + 8.0 * ACCT_U * fabs(k->log_scale);
    /* the sum is smaller than its terms by the saddle's width; a step's errors count n times */
    const double digits = -EXCHANGE_FINE + 3.0, fine = digits + log(n) + 8.0, mean = m.mean;
    w->path.count = 0;
    if (way == RAISED &&
        !acct_exchange_path_set(&w->path, w->memory + ACCT_EXCHANGE_DOUBLES, w->mu, w->q, 1.0 + b, mean, fine))
        return 0;
    if (!acct_exchange_law_set(&w->law, w->memory, w->mu, w->q, orders, 0.0, fine)) return 0;
    acct_exchange_moments_set(&w->law, 1.0 + b, 0.0, &m, &lattice);
    acct_exchange_decay_set(&w->decay, &w->law, 1.0 + b, m.mode, m.log_mgf + m.log_mgf_err);
    if (!(k->log_scale_err < 1.0) || !set_lattice(w, s, acct_max(s->epsilon, 0.0), digits)) return 0;
    if (!resolve(w, 1.0 + b, fine, &m, &lattice)) return 0;
    k->drift = n * (way == PLAIN ? m.mean : mean);
    const summed terms = {w, &m, lattice};
    exchange_terms(k, &terms);
    return 1;
}

static int in_domain(double mu, double q, double steps) {
    return q > 0.0 && q < 1.0 && mu > 0.0 && mu <= 40.0 && acct_valid_steps(steps) && steps >= 2.0;
}

/* Only a record that was drawn is seen, and the draws may be revealed: then the steps that drew it are noise of the
 * distance 2 mu (Theorem D25). */
static double ever_drawn_upper(double q, double steps) {
    const acct_step step = acct_step_make(q, 1.0);
    return acct_ever_sampled_upper(&step, steps);
}

static double noise_of(double mu) { return 0.5 / mu * (1.0 - 4.0 * ACCT_U); }

int acct_exchange_delta(double mu, double q, double steps, double epsilon, acct_bounds *out) {
    saddle s;
    *out = (acct_bounds){0.0, 1.0};
    if (!in_domain(mu, q, steps) || !acct_valid_epsilon(epsilon)) return ACCT_EDOMAIN;
    acct_bounds_intersect(out, 0.0, ever_drawn_upper(q, steps));
    acct_bounds_intersect(out, 0.0, acct_mixture_delta_upper(q, noise_of(mu), steps, epsilon));
    workspace *w = workspace_new(mu, q, steps);
    if (!w) return ACCT_ENOMEM;
    const int found = find_saddle(w, epsilon, 0.0, &s);
    for (int way = PLAIN; found && way <= (q > 0.5 ? PLAIN : RAISED); way++) {
        acct_profile_point p;
        if (!build_line(w, &s, way)) continue;
        acct_contour_profile(&w->contour, epsilon, &p);
        acct_bounds_intersect(out, p.bounds.lower, p.bounds.upper);
        if (out->upper - out->lower <= NARROW_DELTA * out->upper) break;
    }
    free(w);
    return ACCT_OK;
}

/* Lines, each where the last one ended: where events are rare the saddle point is a poor guess.  Every line's bracket
 * is intersected into *out; *s is where the next line should be. */
static void follow_lines(workspace *w, saddle *s, double delta, int way, acct_bounds *out) {
    double before = -1.0;
    for (int i = 0; i < MOST_LINES && build_line(w, s, way); i++) {
        acct_bounds bracket;
        const double at = acct_max(s->epsilon, 0.0);
        acct_invert(acct_contour_at, &w->contour, at, delta, &bracket);
        acct_bounds_intersect(out, bracket.lower, bracket.upper);
        if (acct_bounds_are_narrow(out, way == PLAIN ? NARROW_EPSILON : SLOW_NARROW)) return;
        const double next = acct_invert_estimate(acct_contour_at, &w->contour, at, delta);
        if (!(next > 0.0 && fabs(next - before) > SAME_PLACE * next) || !find_saddle(w, next, 0.0, s)) return;
        before = next;
    }
}

int acct_exchange_epsilon(double mu, double q, double steps, double delta, acct_bounds *out) {
    saddle s;
    *out = (acct_bounds){0.0, INFINITY};
    if (!in_domain(mu, q, steps) || !acct_valid_delta(delta)) return ACCT_EDOMAIN;
    if (ever_drawn_upper(q, steps) <= delta) {
        out->upper = 0.0;
        return ACCT_OK;
    }
    out->upper = acct_mixture_epsilon_upper(q, noise_of(mu), steps, delta);
    workspace *w = workspace_new(mu, q, steps);
    if (!w) return ACCT_ENOMEM;
    if (find_saddle(w, 0.0, acct_min(log(delta), -1e-3), &s))
        for (int way = PLAIN; way <= (q > 0.5 ? PLAIN : RAISED) && !acct_bounds_are_narrow(out, SLOW_NARROW); way++)
            follow_lines(w, &s, delta, way, out);
    free(w);
    return ACCT_OK;
}

/* Beyond them exponentials are taken apart, and orders near 1 make no difference of 1. */
#define RENYI_MOST_EXPONENT 600.0
#define RENYI_FINE_DIGITS 64.0
#define RENYI_DIGITS 36.0

/* A bound on what is beyond the nodes of the parts of G (Theorem D21): Ne^{cU + (1-c)W}, cNe^U and (c-1)Ne^W, the
 * latter at most what is beyond -lo under P. */
static double outside(const acct_exchange_law *law, double c) {
    const double lo = law->first * law->h, hi = (law->first + law->count - 1.0) * law->h;
    const double mu = law->mu, q = law->q, l = law->log_1mq;
    return exp(acct_exchange_log_outside(mu, q, l, c, lo, hi)) +
           2.0 * c *
               (exp(acct_exchange_log_outside(mu, q, l, 1.0, lo, hi)) +
                exp(acct_exchange_log_outside(mu, q, l, 1.0, lo, -lo)));
}

/* A(c) - 1 as a sum of positive terms N e^U (E2(tL) + t E2(-L)), t = c - 1
 * returns  0 where it is not resolved */
static int second_order(acct_exchange_law *law, double c, acct_bounds *out) {
    const double t = c - 1.0;
    acct_exchange_moments m;
    double lattice, sum = 0.0, doubt = 0.0;
    acct_exchange_moments_set(law, c, 0.0, &m, &lattice);
    if (!(m.log_mgf + m.log_mgf_err < RENYI_MOST_EXPONENT && lattice < 1e-3)) return 0;
    for (int j = 0; j < law->count; j++) {
        const double l = law->loss[j], e = law->doubt[j], up = law->rest[j] + l;
        if (!(fabs(c * l) < RENYI_MOST_EXPONENT && fabs(up) < 1e300)) return 0;
        const double w = exp(up), g = acct_e2(t * l) + t * acct_e2(-l), move = c * fabs(expm1(t * l));
        sum += w * g;
        doubt += w * (g * (e + ACCT_U * (80.0 + 8.0 * (fabs(up) + fabs(c * l) + law->count))) +
                      1.01 * e * move + 2.2 * e * e * c * c * acct_max(1.0, exp(t * l)));
    }
    const double unit = law->h / ACCT_SQRT_2PI, s = unit * sum;
    const double off =
        1.02 * (unit * doubt + lattice * (2.0 * c + 1.0) * exp(m.log_mgf + m.log_mgf_err) + outside(law, c)) +
        8.0 * ACCT_U * s;
    if (!(off < 0.1 * s)) return 0;
    *out = (acct_bounds){s - off, s + off};
    return 1;
}

int acct_exchange_renyi(double mu, double q, double order, acct_bounds *out) {
    *out = (acct_bounds){0.0, INFINITY};
    if (!(q > 0.0 && q < 1.0 && mu > 0.0 && mu <= 40.0 && order > 1.0 && order < INFINITY))
        return ACCT_EDOMAIN;
    double *memory = malloc(ACCT_EXCHANGE_DOUBLES * sizeof(double)), lattice;
    if (!memory) return ACCT_ENOMEM;
    acct_exchange_law law;
    acct_exchange_moments m;
    acct_bounds e;
    const double t = order - 1.0;
    if (acct_exchange_law_set(&law, memory, mu, q, order, 0.0, RENYI_DIGITS)) {
        acct_exchange_moments_set(&law, order, 0.0, &m, &lattice);
        if (m.log_mgf_err < INFINITY)
            acct_bounds_intersect(out, acct_max((m.log_mgf - m.log_mgf_err) / t * (1.0 - 4.0 * ACCT_U), 0.0),
                                  (m.log_mgf + m.log_mgf_err) / t * (1.0 + 4.0 * ACCT_U));
    }
    if (acct_exchange_law_set(&law, memory, mu, q, order, 0.0, RENYI_FINE_DIGITS) &&
        second_order(&law, order, &e))
        acct_bounds_intersect(out, log1p(e.lower) / t * (1.0 - 16.0 * ACCT_U),
                              log1p(e.upper) / t * (1.0 + 16.0 * ACCT_U));
    free(memory);
    return ACCT_OK;
}
