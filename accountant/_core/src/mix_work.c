#include "mix_work.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#include "rounding.h"
#include "status.h"

int acct_mix_valid(const acct_part *parts, int count, int direction, double *steps) {
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

void acct_mix_free(acct_mix_work *w) {
    free(w->block);
    free(w->coarse);
    free(w->kind);
    free(w->located);
    free(w->line.alike);
}

int acct_mix_alloc(acct_mix_work *w, const acct_part *parts, int count, int direction, double steps) {
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
    w->located = malloc((size_t)count * sizeof *w->located);
    w->coarse = malloc((size_t)count * sizeof *w->coarse);
    w->line.alike = malloc(ACCT_MIX_ALIKE * sizeof *w->line.alike);
    w->block = malloc(doubles * sizeof(double));
    if (!w->block || !w->coarse || !w->kind || !w->located || !w->line.alike) {
        acct_mix_free(w);
        return ACCT_ENOMEM;
    }
    acct_grid_place(&w->grid, w->block, ACCT_MAX_NODES);
    acct_line_place(&w->work, w->block + grid, ACCT_MAX_NODES);
    acct_mix_line_place(&w->line, w->block + grid + line);
    w->contour.amplitude = w->block + grid + line + ACCT_MIX_LINE_DOUBLES;
    w->contour.phase = w->contour.amplitude + ACCT_MIX_POINTS;
    return ACCT_OK;
}

double acct_mix_deviations(double steps, double log_delta) {
    return sqrt(2.0 * (log(steps) - log_delta + 33.0));
}

static int by_cell(const void *a, const void *b) {
    const long x = ((const acct_located *)a)->cell, y = ((const acct_located *)b)->cell;
    return (x > y) - (x < y);
}

/* the parts of one cell, [first, last), as one: geometric means */
static acct_part joined(const acct_located *first, const acct_located *last) {
    double steps = 0.0, log_q = 0.0, log_sigma = 0.0, precision = 0.0;
    for (const acct_located *l = first; l < last; l++) {
        const acct_part *p = &l->part;
        steps += p->steps;
        log_q += p->steps * log(p->q);
        log_sigma += p->steps * log(p->sigma);
        precision += p->steps / (p->sigma * p->sigma);
    }
    acct_part all = {exp(log_q / steps), exp(log_sigma / steps), steps};
    if (first->part.q == 1.0) all = (acct_part){1.0, sqrt(steps / precision), steps};
    return all;
}

void acct_mix_set_kinds(acct_mix_work *w, int count) {
    for (int i = 0; i < count; i++) w->located[i] = (acct_located){acct_part_cell(&w->part[i], 12.0), w->part[i]};
    qsort(w->located, (size_t)count, sizeof *w->located, by_cell);
    w->kinds = 0;
    for (int i = 0, j; i < count; i = j) {
        for (j = i + 1; j < count && w->located[j].cell == w->located[i].cell; j++) continue;
        w->kind[w->kinds++] = joined(&w->located[i], &w->located[j]);
    }
}

void acct_mix_set_coarse(acct_mix_work *w, double log_delta, double cut) {
    const double z = acct_mix_deviations(w->steps, log_delta);
    for (int i = 0; i < w->kinds; i++) {
        const acct_window window = acct_part_window(&w->kind[i], w->direction, z, cut);
        acct_coarse_set(&w->coarse[i], &w->kind[i], &window);
    }
}

/* Jumps above the cut should not be undone by the other steps (plan.c): L(hi) = epsilon + several
 * deviations of the rest, as far as the put must be negligible; inf where no cut does */
static double choose_cut(acct_mix_work *w, double epsilon, double log_delta, double digits,
                         double *put_order) {
    acct_coarse_mix m = {w->coarse, w->kinds, w->direction};
    const double var = acct_coarse_variance(&m, 0.4 * epsilon);
    for (double now = 0.3 * digits; now < 40.0 * digits; now *= 1.6) {
        const double cut = epsilon + 0.5 * var + sqrt(2.0 * var * now);
        if (!(cut > epsilon)) break;
        acct_mix_set_coarse(w, log_delta, cut);
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

int acct_mix_place(acct_mix_work *w, double epsilon, double log_delta, double tolerance,
                 double y_least, acct_mix_plan *plan) {
    acct_coarse_mix m = {w->coarse, w->kinds, w->direction};
    acct_saddle s;
    acct_mix_saddle(&m, ACCT_AT_EPSILON, epsilon, &s);
    plan->cut = INFINITY;
    plan->put_order = 0.0;
    /* a cut only pays where the tilted law reaches the window's end */
    if (w->direction == ACCT_REMOVE && acct_coarse_reach(&m, s.b) > 1e-5 * tolerance) {
        plan->cut = choose_cut(w, epsilon, log_delta, 4.0 - log(tolerance), &plan->put_order);
        acct_mix_set_coarse(w, log_delta, plan->cut);
        acct_mix_saddle(&m, ACCT_AT_EPSILON, epsilon, &s);
    }
    plan->direction = w->direction;
    plan->most_work = w->most_work;
    plan->steps = w->steps;
    plan->deviations = acct_mix_deviations(w->steps, log_delta);
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

int acct_mix_add_all(acct_mix_work *w, const acct_mix_plan *plan, const acct_part *part, int count) {
    acct_mix_line_start(&w->line, plan);
    for (int i = 0; i < count; i++) {
        const int status = acct_mix_line_add(&w->line, &w->grid, &w->work, &part[i]);
        if (status) return status;
    }
    return ACCT_OK;
}

/* the kinds first, to see where the line may end */
int acct_mix_build(acct_mix_work *w, int count, double epsilon, double log_delta, double tolerance) {
    double y_last = 0.0;
    for (int tries = 0; tries < 4; tries++) {
        acct_mix_plan plan;
        acct_mix_set_coarse(w, log_delta, INFINITY);
        int status = acct_mix_place(w, epsilon, log_delta, tolerance, y_last, &plan);
        if (status) return status;
        const double share = exp(plan.log_error);
        status = acct_mix_add_all(w, &plan, w->kind, w->kinds);
        if (status) return status;
        if (acct_mix_line_stop(&w->line, 0.5 * share) <= (plan.count - 1) * plan.dy) {
            status = w->kinds < count ? acct_mix_add_all(w, &plan, w->part, count) : ACCT_OK;
            if (status) return status;
            acct_mix_line_close(&w->line, &w->contour);
            if (w->contour.truncated <= share) return ACCT_OK;
        }
        y_last = acct_mix_line_stop(&w->line, 0.2 * share);
        if (!(y_last < INFINITY)) break;
    }
    return ACCT_EPRECISION;
}

double acct_mix_tolerance(double epsilon, double b) {
    return fmax(fmin(1.5e-10 * epsilon * b, 3e-8), 1e-13);
}

void acct_mix_contour_at(const void *par, double epsilon, acct_profile_point *point) {
    acct_contour_profile(par, epsilon, point);
}

