#include "mix.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#include "gaussian.h"
#include "mix_line.h"
#include "mix_search.h"
#include "rounding.h"
#include "status.h"

typedef struct {
    const acct_part *part;
    int count, direction;
    double steps;        /* of all parts */
    double most_points;  /* of a line */
    double most_work;    /* points times nodes of one part */
    /* searches look at one part for all that are alike */
    acct_part *kind;
    acct_coarse *coarse; /* one a kind */
    int kinds;
    acct_grid grid;
    acct_line work;
    acct_mix_line line;
    acct_contour contour;
    double *block;
} mix;

static int valid(const acct_part *parts, int count, int direction, double *steps) {
    *steps = 0.0;
    for (int i = 0; i < count; i++) {
        const acct_part *p = &parts[i];
        if (!(p->q >= ACCT_LEAST_Q && p->q <= 1.0 && p->sigma > 0.0 && p->sigma < INFINITY)) return 0;
        if (!(p->steps >= 1.0 && p->steps == floor(p->steps))) return 0;
        *steps += p->steps;
    }
    return count >= 1 && *steps <= 9007199254740992.0 &&
           direction >= ACCT_REMOVE && direction <= ACCT_EITHER;
}

static void mix_free(mix *w) {
    free(w->block);
    free(w->coarse);
    free(w->kind);
}

static int mix_alloc(mix *w, const acct_part *parts, int count, int direction, double steps) {
    const size_t grid = ACCT_GRID_DOUBLES(ACCT_MAX_NODES);
    const size_t line = (size_t)ACCT_LINE_ARRAYS * ACCT_MAX_NODES;
    const size_t doubles = grid + line + ACCT_MIX_LINE_DOUBLES + 2 * (size_t)ACCT_MIX_POINTS;
    w->part = parts;
    w->count = count;
    w->direction = direction;
    w->steps = steps;
    w->most_points = ACCT_MIX_POINTS;
    w->most_work = fmax(2.5e5, 4e6 / count);
    w->kind = malloc((size_t)count * sizeof *w->kind);
    w->coarse = malloc((size_t)count * sizeof *w->coarse);
    w->block = malloc(doubles * sizeof(double));
    if (!w->block || !w->coarse || !w->kind) {
        mix_free(w);
        return ACCT_ENOMEM;
    }
    acct_grid_place(&w->grid, w->block, ACCT_MAX_NODES);
    acct_line_place(&w->work, w->block + grid, ACCT_MAX_NODES);
    acct_mix_line_place(&w->line, w->block + grid + line);
    w->contour.amplitude = w->block + grid + line + ACCT_MIX_LINE_DOUBLES;
    w->contour.phase = w->contour.amplitude + ACCT_MIX_POINTS;
    return ACCT_OK;
}

/* beyond z deviations steps * P(outside) is below 1e-14 of delta */
static double deviations(double steps, double log_delta) {
    return sqrt(2.0 * (log(steps) - log_delta + 33.0));
}

/* which cell of about four per cent in q and sigma a part falls in; all plain ones are alike */
static long cell(const acct_part *p) {
    if (p->q == 1.0) return -1000000000L;
    return lround(25.0 * log(p->q)) * 100000L + lround(25.0 * log(p->sigma));
}

static int by_cell(const void *a, const void *b) {
    const long x = cell(a), y = cell(b);
    return (x > y) - (x < y);
}

/* the parts of one cell, [first, last), as one: geometric means */
static acct_part joined(const acct_part *first, const acct_part *last) {
    double steps = 0.0, log_q = 0.0, log_sigma = 0.0, precision = 0.0;
    for (const acct_part *p = first; p < last; p++) {
        steps += p->steps;
        log_q += p->steps * log(p->q);
        log_sigma += p->steps * log(p->sigma);
        precision += p->steps / (p->sigma * p->sigma);
    }
    acct_part all = {exp(log_q / steps), exp(log_sigma / steps), steps};
    if (first->q == 1.0) all = (acct_part){1.0, sqrt(steps / precision), steps};
    return all;
}

static void set_kinds(mix *w, int count) {
    for (int i = 0; i < count; i++) w->kind[i] = w->part[i];
    qsort(w->kind, (size_t)count, sizeof *w->kind, by_cell);
    w->kinds = 0;
    for (int i = 0, j; i < count; i = j) {
        const long here = cell(&w->kind[i]);
        for (j = i + 1; j < count && cell(&w->kind[j]) == here; j++) continue;
        w->kind[w->kinds++] = joined(&w->kind[i], &w->kind[j]);
    }
}

static void set_coarse(mix *w, double log_delta, double cut) {
    const double z = deviations(w->steps, log_delta);
    for (int i = 0; i < w->kinds; i++) {
        const acct_window window = acct_part_window(&w->kind[i], w->direction, z, cut);
        acct_coarse_set(&w->coarse[i], &w->kind[i], &window);
    }
}

/* Jumps above the cut should not be undone by the other steps (plan.c): L(hi) = epsilon + several
 * deviations of the rest, as far as the put must be negligible; inf where no cut does */
static double choose_cut(mix *w, double epsilon, double log_delta, double digits,
                         double *put_order) {
    acct_coarse_mix m = {w->coarse, w->kinds, w->direction};
    const double var = acct_coarse_variance(&m, 0.4 * epsilon);
    for (double now = 0.3 * digits; now < 40.0 * digits; now *= 1.6) {
        const double cut = epsilon + 0.5 * var + sqrt(2.0 * var * now);
        if (!(cut > epsilon)) break;
        set_coarse(w, log_delta, cut);
        double best = INFINITY, order = 4.0 / (cut - epsilon);
        for (int i = 0; i < 24; i++, order *= 1.7) {
            const double put = acct_coarse_put(&m, order) + (order + 1.0) * epsilon;
            if (!(put < best)) break;
            best = put;
            *put_order = order;
            /* the least order that does: the quadrature is made for the line's */
            if (best < log_delta - digits - 2.0) return cut;
        }
    }
    *put_order = 0.0;
    return INFINITY;
}

/* the period at which the aliases on one side are below e^{-digits}, and the order that shows it */
static double alias_period(acct_coarse_mix *m, const acct_saddle *s, double digits, int sign,
                           double *best_b) {
    double best = INFINITY, move = sqrt(2.0 * digits) / sqrt(s->spread * s->spread + 1.0 / (s->b * s->b));
    for (int i = 0; i < 12; i++) {
        const double b2 = sign > 0 ? s->b + move : s->b / (1.0 + move / s->b);
        acct_cumulants k;
        acct_coarse_cumulants(m, b2, &k);
        const double slope = b2 - s->b;
        const double size = -log1p(b2) - b2 * log1p(1.0 / b2) + k.log_mgf - s->log_scale;
        const double period = (size - slope * s->epsilon + digits) / fabs(slope);
        if (period < best) {
            best = period;
            *best_b = b2;
        } else if (i > 1 && best < INFINITY) {
            break;
        }
        move *= 0.55;
    }
    return best;
}

/* Places a line for the kinds near epsilon, at least to y_least */
static int place(mix *w, double epsilon, double log_delta, double tolerance,
                 double y_least, acct_mix_plan *plan) {
    acct_coarse_mix m = {w->coarse, w->kinds, w->direction};
    acct_saddle s;
    acct_mix_saddle(&m, ACCT_AT_EPSILON, epsilon, &s);
    plan->cut = INFINITY;
    plan->put_order = 0.0;
    /* a cut only pays where the tilted law reaches the window's end */
    if (w->direction == ACCT_REMOVE && acct_coarse_reach(&m, s.b) > 1e-5 * tolerance) {
        plan->cut = choose_cut(w, epsilon, log_delta, 4.0 - log(tolerance), &plan->put_order);
        set_coarse(w, log_delta, plan->cut);
        acct_mix_saddle(&m, ACCT_AT_EPSILON, epsilon, &s);
    }
    plan->direction = w->direction;
    plan->most_work = w->most_work;
    plan->steps = w->steps;
    plan->deviations = deviations(w->steps, log_delta);
    plan->b = s.b;
    s.epsilon = epsilon;
    plan->log_error = log(tolerance) + log_delta - (s.log_scale - s.b * epsilon);
    const double digits = 2.3 - plan->log_error + 1.0, bb = s.b * (s.b + 1.0);
    const double right = alias_period(&m, &s, digits, 1, &plan->right_b);
    const double left = alias_period(&m, &s, digits, -1, &plan->left_b);
    const double period = fmax(fmax(right, left), 1e-300) * 1.02;
    plan->dy = acct_short_step(2.0 * ACCT_PI / period * (1.0 - 1e-12));
    const double y_last = fmax(1.1 * sqrt(2.0 * fmax(digits - log(bb), 4.0)) / s.spread, y_least);
    const double points = ceil(y_last / plan->dy) + 2.0;
    if (!(points <= w->most_points && s.b < ACCT_MOST_DISTANCE)) return ACCT_EPRECISION;
    plan->count = (int)points;
    /* minorants from where the moments of all losses, or of the bulk, cease to help */
    plan->bulk = acct_coarse_bulk(&m, s.b);
    plan->flat = fmax(1.2 * sqrt(w->steps) / s.spread, (plan->count - 1) * plan->dy);
    return ACCT_OK;
}

static int add_all(mix *w, const acct_mix_plan *plan, const acct_part *part, int count) {
    acct_mix_line_start(&w->line, plan);
    for (int i = 0; i < count; i++) {
        const int status = acct_mix_line_add(&w->line, &w->grid, &w->work, &part[i]);
        if (status) return status;
    }
    return ACCT_OK;
}

/* builds w->contour for the first `count` parts near epsilon, where the profile is about e^{log_delta};
 * the kinds first, to see where the line may end */
static int build(mix *w, int count, double epsilon, double log_delta, double tolerance) {
    double y_last = 0.0;
    for (int tries = 0; tries < 4; tries++) {
        acct_mix_plan plan;
        set_coarse(w, log_delta, INFINITY);
        int status = place(w, epsilon, log_delta, tolerance, y_last, &plan);
        if (status) return status;
        const double share = exp(plan.log_error);
        status = add_all(w, &plan, w->kind, w->kinds);
        if (status) return status;
        if (acct_mix_line_stop(&w->line, 0.5 * share) <= (plan.count - 1) * plan.dy) {
            status = w->kinds < count ? add_all(w, &plan, w->part, count) : ACCT_OK;
            if (status) return status;
            acct_mix_line_close(&w->line, &w->contour);
            if (w->contour.truncated <= share) return ACCT_OK;
        }
        y_last = acct_mix_line_stop(&w->line, 0.2 * share);
        if (!(y_last < INFINITY)) break;
    }
    return ACCT_EPRECISION;
}

static void intersect(acct_bounds *a, double lower, double upper) {
    if (lower > a->lower) a->lower = lower;
    if (upper < a->upper) a->upper = upper;
}

/* a composition never has a smaller profile than one of its parts (drop coordinates), nor a larger
 * one than the sum of its steps' epsilons at shares of delta */
static void coarse_epsilon(const acct_part *parts, int count, double steps, double delta,
                           int direction, acct_bounds *out) {
    double sum = 0.0;
    const double share = acct_down(delta / steps);
    for (int i = 0; i < count; i++) {
        const acct_part *p = &parts[i];
        acct_bounds whole;
        if (count <= 64 && !acct_psg_epsilon(p->q, p->sigma, p->steps, delta, direction, &whole))
            intersect(out, whole.lower, INFINITY);
        acct_single_epsilon(p->q, p->sigma, share, direction, &whole);
        sum += p->steps * whole.upper;
    }
    intersect(out, 0.0, sum * (1.0 + 2.0 * ACCT_U * (2.0 + count)));
}

static void contour_at(const void *par, double epsilon, acct_profile_point *point) {
    acct_contour_profile(par, epsilon, point);
}

/* relative error of delta that leaves epsilon 1e-10 relative */
static double tolerance_for(double epsilon, double b) {
    return fmax(fmin(1.5e-10 * epsilon * b, 3e-8), 1e-13);
}

static int epsilon_of(mix *w, int count, double delta, acct_bounds *out) {
    const double log_delta = log(delta);
    acct_coarse_mix m = {w->coarse, w->kinds, w->direction};
    acct_saddle s;
    acct_mix_saddle(&m, ACCT_AT_LOG_DELTA, log_delta, &s);
    double epsilon = fmax(s.epsilon, 0.0), tolerance = tolerance_for(epsilon, s.b);
    for (int i = 0; i < 6; i++) {
        int status = build(w, count, epsilon, log_delta, tolerance);
        if (status) return status;
        acct_bounds found;
        acct_profile_point p;
        acct_contour_profile(&w->contour, 0.0, &p);
        if (p.bounds.upper <= delta) {
            out->lower = out->upper = 0.0;
            return ACCT_OK;
        }
        const double next = acct_invert_estimate(contour_at, &w->contour, epsilon, delta);
        acct_contour_profile(&w->contour, next, &p);
        acct_invert_certify(contour_at, &w->contour, next, delta, &found);
        intersect(out, found.lower, found.upper);
        const double wanted = fmax(4.0 * tolerance_for(next, -p.slope / delta), 1e-13);
        if ((p.bounds.upper - p.bounds.lower) / delta <= wanted || next == epsilon) return ACCT_OK;
        if (fabs(next - epsilon) <= 1e-3 * next && i > 2) return ACCT_OK;
        tolerance = fabs(next - epsilon) <= 1e-3 * next ? 0.03 * tolerance
                                                        : tolerance_for(next, -p.slope / delta);
        epsilon = fmax(next, 0.0);
    }
    return ACCT_OK;
}

/* Whether the profile at epsilon is at most delta, by Chernoff at one order (Theorem 5): cheap, and
 * enough where this direction is well below the other */
static int chernoff_is_below(mix *w, double epsilon, double delta) {
    acct_coarse_mix m = {w->coarse, w->kinds, w->direction};
    acct_saddle s;
    set_coarse(w, log(delta), INFINITY);
    acct_mix_saddle(&m, ACCT_AT_EPSILON, epsilon, &s);
    const double b = w->direction == ACCT_REMOVE ? acct_exact_distance(s.b) : s.b;
    const double log_front = -log1p(b) - b * log1p(1.0 / b) - b * epsilon;
    if (!(s.log_scale + log_front < log(delta) - 1e-6)) return 0;
    const double z = deviations(w->steps, log(delta));
    double log_mgf = 0.0, err = 0.0, size = 0.0, outside = 0.0;
    for (int i = 0; i < w->count; i++) {
        const acct_part *p = &w->part[i];
        const acct_window window = acct_part_window(p, w->direction, z, INFINITY);
        const acct_step step = acct_step_make(p->q, p->sigma);
        acct_moments k = {.log_mgf = 0.5 * b * (b + 1.0) / (p->sigma * p->sigma)};
        k.log_mgf_err = 16.0 * ACCT_U * k.log_mgf;
        if (p->q < 1.0) {
            const double order = w->direction == ACCT_REMOVE ? 1.0 + b : -b;
            if (acct_grid_set(&w->grid, &step, &window, order, 0.0, -log(w->steps) - 20.0)) return 0;
            acct_grid_moments(&w->grid, order, 1, &k);
            outside += p->steps * (w->grid.outside + w->grid.q_above + fmax(w->grid.pq_above, 0.0));
        }
        log_mgf += p->steps * k.log_mgf;
        err += p->steps * k.log_mgf_err;
        size += p->steps * fabs(k.log_mgf);
    }
    const double round = ACCT_U * (64.0 + w->count) * (1.0 + size + fabs(log_front) + b * epsilon);
    return exp(log_mgf + log_front + (err + round) * ACCT_SLACK) + outside * ACCT_SLACK <= delta;
}

/* the bracket in one direction */
static void epsilon_one_way(mix *w, double delta, acct_bounds *out) {
    set_coarse(w, log(delta), INFINITY);
    epsilon_of(w, w->count, delta, out);
    if (!(out->upper < INFINITY && out->upper - out->lower <= 1e-3 * out->upper))
        coarse_epsilon(w->part, w->count, w->steps, delta, w->direction, out);
}

int acct_mix_epsilon(const acct_part *parts, int count, double delta, int direction,
                     acct_bounds *out) {
    double steps;
    *out = (acct_bounds){0.0, INFINITY};
    if (!valid(parts, count, direction, &steps) || !(delta > 0.0 && delta < 1.0))
        return ACCT_EDOMAIN;
    if (count == 1)
        return acct_psg_epsilon(parts->q, parts->sigma, parts->steps, delta, direction, out);
    mix w;
    int status = mix_alloc(&w, parts, count, direction == ACCT_ADD ? ACCT_ADD : ACCT_REMOVE, steps);
    if (status) return status;
    set_kinds(&w, count);
    epsilon_one_way(&w, delta, out);
    if (direction == ACCT_EITHER) {
        acct_bounds add = {0.0, INFINITY};
        w.direction = ACCT_ADD;
        if (!chernoff_is_below(&w, out->lower, delta)) {
            epsilon_one_way(&w, delta, &add);
            out->lower = fmax(out->lower, add.lower);
            out->upper = fmax(out->upper, add.upper);
        }
    }
    mix_free(&w);
    return ACCT_OK;
}

static void delta_one_way(mix *w, double epsilon, acct_bounds *out) {
    double log_delta = -30.0;
    *out = (acct_bounds){0.0, 1.0};
    for (int i = 0; i < 4; i++) {
        set_coarse(w, log_delta, INFINITY);
        acct_coarse_mix m = {w->coarse, w->kinds, w->direction};
        acct_saddle s;
        acct_mix_saddle(&m, ACCT_AT_EPSILON, epsilon, &s);
        const double guess = fmax(fmin(s.log_delta, -1e-3), -745.0);
        if (i == 0 && fabs(guess - log_delta) > 1.0) {
            log_delta = guess;
            continue;
        }
        acct_profile_point p;
        if (build(w, w->count, epsilon, log_delta, 1e-11)) break;
        acct_contour_profile(&w->contour, epsilon, &p);
        intersect(out, p.bounds.lower, p.bounds.upper);
        const double now = p.value > 0.0 ? fmax(log(p.value), -745.0) : log_delta - 5.0;
        if (fabs(now - log_delta) < 2.0 && out->upper - out->lower <= 1e-6 * out->upper) break;
        log_delta = now;
    }
    for (int i = 0; i < w->count && out->lower == 0.0 && w->count <= 64; i++) {
        const acct_part *p = &w->part[i];
        acct_bounds one;
        if (!acct_psg_delta(p->q, p->sigma, p->steps, epsilon, w->direction, &one))
            intersect(out, one.lower, 1.0);
    }
}

int acct_mix_delta(const acct_part *parts, int count, double epsilon, int direction,
                   acct_bounds *out) {
    double steps;
    *out = (acct_bounds){0.0, 1.0};
    if (!valid(parts, count, direction, &steps) || !(epsilon >= 0.0 && epsilon < INFINITY))
        return ACCT_EDOMAIN;
    if (count == 1)
        return acct_psg_delta(parts->q, parts->sigma, parts->steps, epsilon, direction, out);
    mix w;
    int status = mix_alloc(&w, parts, count, direction == ACCT_ADD ? ACCT_ADD : ACCT_REMOVE, steps);
    if (status) return status;
    set_kinds(&w, count);
    delta_one_way(&w, epsilon, out);
    if (direction == ACCT_EITHER) {
        acct_bounds add;
        w.direction = ACCT_ADD;
        delta_one_way(&w, epsilon, &add);
        out->lower = fmax(out->lower, add.lower);
        out->upper = fmax(out->upper, add.upper);
    }
    mix_free(&w);
    return ACCT_OK;
}

/* where the answers of the first `count` parts want their line */
static int place_prefix(mix *w, int count, double log_delta, double y_least, double *epsilon,
                        acct_mix_plan *plan) {
    acct_saddle s;
    set_kinds(w, count);
    set_coarse(w, log_delta, INFINITY);
    acct_coarse_mix m = {w->coarse, w->kinds, w->direction};
    acct_mix_saddle(&m, ACCT_AT_LOG_DELTA, log_delta, &s);
    *epsilon = fmax(s.epsilon, 0.0);
    return place(w, *epsilon, log_delta, tolerance_for(*epsilon, s.b), y_least, plan);
}

/* Reads the answers after each of the parts first .. last - 1 off one line: the last needs the longest
 * period, the first ends last */
static int read_along(mix *w, int first, int last, double delta, acct_bounds *out) {
    const double log_delta = log(delta);
    acct_mix_plan plan, start;
    double guess, unused, y_last = 0.0;
    int status = place_prefix(w, first + 1, log_delta, 0.0, &guess, &start);
    for (int tries = 0; tries < 3 && !status; tries++) {
        status = place_prefix(w, last, log_delta, fmax(y_last, (start.count - 1) * start.dy), &unused,
                              &plan);
        if (status) break;
        set_kinds(w, first + 1);
        status = add_all(w, &plan, w->kind, w->kinds);
        if (status) break;
        y_last = acct_mix_line_stop(&w->line, 0.3 * exp(plan.log_error));
        if (!(y_last < INFINITY)) status = ACCT_EPRECISION;
        if (y_last <= (plan.count - 1) * plan.dy) break;
    }
    if (status) return status;
    acct_mix_line_start(&w->line, &plan);
    for (int i = 0; i < last && !status; i++) {
        status = acct_mix_line_add(&w->line, &w->grid, &w->work, &w->part[i]);
        if (status || i < first) continue;
        acct_bounds found;
        acct_mix_line_close(&w->line, &w->contour);
        guess = acct_invert_estimate(contour_at, &w->contour, guess, delta);
        if (!(guess > 0.0)) break;
        acct_invert_certify(contour_at, &w->contour, guess, delta, &found);
        intersect(&out[i], found.lower, found.upper);
    }
    return status;
}

int acct_mix_odometer(const acct_part *parts, int count, double delta, int direction,
                      acct_bounds *out) {
    double steps;
    if (!valid(parts, count, direction, &steps) || direction == ACCT_EITHER ||
        !(delta > 0.0 && delta < 1.0))
        return ACCT_EDOMAIN;
    for (int i = 0; i < count; i++) out[i] = (acct_bounds){0.0, INFINITY};
    mix w;
    int status = mix_alloc(&w, parts, count, direction, steps);
    if (status) return status;
    w.most_work = 2.5e5;
    /* blocks that grow with the prefix; a line serves one of them */
    for (int first = 1, last; first < count; first = last) {
        last = first + 1 + (first < 500 ? first / 4 : 3 * first / 2);
        if (last > count) last = count;
        read_along(&w, first, last, delta, out);
    }
    /* what no line settled: the first few, whose transforms decay slowly; more parts never cost less */
    acct_psg_epsilon(parts->q, parts->sigma, parts->steps, delta, direction, &out[0]);
    double least = 0.0, sum = 0.0;
    const double share = acct_down(delta / steps);
    for (int i = 0; i < count; i++) {
        const acct_part *p = &parts[i];
        acct_bounds one;
        acct_single_epsilon(p->q, p->sigma, share, direction, &one);
        sum += p->steps * one.upper * (1.0 + 4.0 * ACCT_U);
        intersect(&out[i], least, sum * (1.0 + 2.0 * ACCT_U * (2.0 + i)));
        least = out[i].lower;
    }
    mix_free(&w);
    double most = INFINITY;
    for (int i = count - 1; i >= 0; i--) {
        if (out[i].upper > most) out[i].upper = most;
        most = out[i].upper;
    }
    return ACCT_OK;
}
