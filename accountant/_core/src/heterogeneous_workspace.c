#include "heterogeneous_workspace.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#include "rounding.h"
#include "bounds.h"

int acct_heterogeneous_valid(const acct_part *parts, int count, int direction, double *steps) {
    *steps = 0.0;
    for (int i = 0; i < count; i++) {
        const acct_part *p = &parts[i];
        if (!acct_valid_noise(p->q, p->sigma) || !(p->q >= ACCT_LEAST_Q && p->sigma < INFINITY)) return 0;
        if (p->mixture && !(p->sigma > 1e-100 && p->sigma < 1e100)) return 0;
        if (!acct_valid_steps(p->steps) || !(p->steps >= 1.0)) return 0;
        *steps += p->steps;
    }
    return count >= 1 && *steps <= ACCT_MOST_STEPS && acct_valid_direction(direction);
}

void acct_heterogeneous_free(acct_heterogeneous_workspace *w) {
    free(w->block);
    free(w->coarse);
    free(w->nodes);
    free(w->group);
    free(w->keyed);
    acct_noise_tables_free(&w->tables);
}

int acct_heterogeneous_alloc(acct_heterogeneous_workspace *w, const acct_part *parts, int count,
                             int direction, double steps) {
    size_t coarse = 0;
    w->mixed = 0;
    for (int i = 0; i < count; i++) {
        coarse += ACCT_COARSE_ARRAYS * (size_t)acct_coarse_nodes(&parts[i]);
        w->mixed = w->mixed || parts[i].mixture;
    }
    const int most_nodes = w->mixed ? ACCT_MIXTURE_NODES : ACCT_MAX_NODES;
    const size_t law = ACCT_TILTED_LAW_DOUBLES(most_nodes);
    const size_t sums = (size_t)ACCT_SUM_ARRAYS * (size_t)most_nodes;
    const size_t terms = ACCT_HETEROGENEOUS_POINTS + ACCT_LINE_SPARE;
    const size_t doubles = 2 * law + sums + ACCT_HETEROGENEOUS_SUM_DOUBLES + 2 * terms;
    w->part = parts;
    w->count = count;
    w->direction = direction;
    w->steps = steps;
    w->far = 0;
    w->most_points = w->mixed ? ACCT_HETEROGENEOUS_POINTS : 4136;
    w->most_work = acct_max(2.5e5, (w->mixed ? 3e7 : 4e6) / count);
    w->tables = (acct_noise_tables){.count = 0};
    w->group = malloc((size_t)count * sizeof *w->group);
    w->keyed = malloc((size_t)count * sizeof *w->keyed);
    w->coarse = malloc((size_t)count * sizeof *w->coarse);
    w->nodes = malloc(coarse * sizeof *w->nodes);
    w->block = malloc(doubles * sizeof(double));
    if (!w->block || !w->coarse || !w->nodes || !w->group || !w->keyed) {
        acct_heterogeneous_free(w);
        return ACCT_ENOMEM;
    }
    acct_tilted_law_place(&w->law, w->block, most_nodes);
    acct_tilted_law_place(&w->scratch, w->block + law, most_nodes);
    w->sums.scratch = &w->scratch;
    acct_characteristic_sum_place(&w->cf, w->block + 2 * law, most_nodes);
    acct_heterogeneous_sum_place(&w->sums, w->block + 2 * law + sums);
    w->contour.terms.re = w->block + 2 * law + sums + ACCT_HETEROGENEOUS_SUM_DOUBLES;
    w->contour.terms.im = w->contour.terms.re + terms;
    return ACCT_OK;
}

static int by_cell(const void *a, const void *b) {
    const int64_t x = ((const acct_keyed_part *)a)->cell, y = ((const acct_keyed_part *)b)->cell;
    return (x > y) - (x < y);
}

/* the parts of one cell, [first, last), as one: geometric means, or the random shift repeated most */
static acct_part joined(const acct_keyed_part *first, const acct_keyed_part *last) {
    double steps = 0.0, log_q = 0.0, log_sigma = 0.0, precision = 0.0;
    const acct_part *most = &first->part;
    for (const acct_keyed_part *l = first; l < last; l++) {
        const acct_part *p = &l->part;
        if (p->steps > most->steps) most = p;
        steps += p->steps;
        log_q += p->steps * log(p->q);
        log_sigma += p->steps * log(p->sigma);
        precision += p->steps / (p->sigma * p->sigma);
    }
    if (most->mixture) return (acct_part){most->q, most->sigma, steps, most->mixture};
    if (acct_part_is_plain(most)) return (acct_part){1.0, sqrt(steps / precision), steps, NULL};
    return (acct_part){exp(log_q / steps), exp(log_sigma / steps), steps, NULL};
}

void acct_heterogeneous_set_groups(acct_heterogeneous_workspace *w, int count) {
    for (int i = 0; i < count; i++)
        w->keyed[i] = (acct_keyed_part){acct_part_cell(&w->part[i]), w->part[i]};
    qsort(w->keyed, (size_t)count, sizeof *w->keyed, by_cell);
    w->groups = 0;
    double *memory = w->nodes;
    for (int i = 0, j; i < count; i = j) {
        for (j = i + 1; j < count && w->keyed[j].cell == w->keyed[i].cell; j++) continue;
        acct_part *group = &w->group[w->groups];
        *group = joined(&w->keyed[i], &w->keyed[j]);
        const int nodes = acct_coarse_nodes(group);
        acct_coarse_place(&w->coarse[w->groups++], memory, nodes);
        memory += ACCT_COARSE_ARRAYS * nodes;
    }
}

void acct_heterogeneous_set_coarse(acct_heterogeneous_workspace *w, double log_delta, double most_loss) {
    const double z = acct_window_deviations(w->steps, log_delta);
    for (int i = 0; i < w->groups; i++) {
        const acct_window window = acct_part_window(&w->group[i], w->direction, z, most_loss);
        acct_coarse_set(&w->coarse[i], &w->group[i], &window);
        if (w->mixed || w->far)
            w->coarse[i].lowered = window.hi < acct_part_window(&w->group[i], w->direction, z, INFINITY).hi;
    }
}

/* The loss at which windows end (remove direction), as in plan.c: epsilon + several deviations of the other
 * steps, so far that the reverse term is negligible; inf where no such end was found */
static double choose_part_end(acct_heterogeneous_workspace *w, double epsilon, double log_delta,
                              double digits, double *reverse_order) {
    acct_coarse_composition m = {w->coarse, w->groups, w->direction};
    const double var = acct_coarse_variance(&m, 0.4 * epsilon);
    for (double now = 0.3 * digits; now < 40.0 * digits; now *= 1.6) {
        const double most_loss = epsilon + 0.5 * var + sqrt(2.0 * var * now);
        if (!(most_loss > epsilon)) break;
        acct_heterogeneous_set_coarse(w, log_delta, most_loss);
        double best = INFINITY, order = 4.0 / (most_loss - epsilon);
        for (int i = 0; i < 24; i++, order *= 1.7) {
            const double reverse = acct_coarse_reverse(&m, order) + (order + 1.0) * epsilon;
            if (!(reverse < best)) break;
            best = reverse;
            *reverse_order = order;
            /* the least order that does: the quadrature is made for the line's */
            if (best < log_delta - digits - 2.0) return most_loss;
        }
    }
    *reverse_order = 0.0;
    return INFINITY;
}

/* the period at which the aliases on one side are below e^{-digits}, and the order that shows it */
static double alias_period(acct_coarse_composition *m, const acct_saddle *s, double digits, int sign,
                           double *best_b) {
    double best = INFINITY, move = sqrt(2.0 * digits) / sqrt(s->spread * s->spread + 1.0 / (s->b * s->b));
    for (int i = 0; i < 12; i++) {
        const double b2 = sign > 0 ? s->b + move : s->b / (1.0 + move / s->b);
        acct_cumulants k;
        acct_coarse_cumulants(m, b2, &k);
        const double slope = b2 - s->b;
        const double size = acct_log_chernoff(b2) + k.log_mgf - s->log_scale;
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

int acct_heterogeneous_lengthen(const acct_heterogeneous_workspace *w, double y_least,
                                acct_heterogeneous_plan *plan) {
    const double y_last = acct_max(plan->y_near, y_least);
    const double period = acct_max(plan->period, 2.0 * ACCT_PI / y_last);
    plan->dy = acct_short_step(2.0 * ACCT_PI / period * (1.0 - 1e-12));
    const double points = ceil(y_last / plan->dy) + 2.0;
    if (!(points <= w->most_points && plan->b < ACCT_MOST_DISTANCE)) return ACCT_EPRECISION;
    plan->count = (int)points;
    /* minorants from where the moments of all losses, or of the bulk, cease to help */
    plan->flat = acct_max(1.2 * sqrt(w->steps) / plan->spread, (plan->count - 1) * plan->dy);
    return ACCT_OK;
}

int acct_heterogeneous_place(acct_heterogeneous_workspace *w, double epsilon, double log_delta,
                             double tolerance, double y_least, acct_heterogeneous_plan *plan) {
    acct_coarse_composition m = {w->coarse, w->groups, w->direction};
    acct_saddle s;
    acct_heterogeneous_saddle(&m, ACCT_AT_EPSILON, epsilon, &s);
    plan->most_loss = INFINITY;
    plan->apart = w->mixed || w->far;
    plan->reverse_order = 0.0;
    /* a lower end mostly pays where the tilted law reaches the window's end; else where losses are rare */
    if (w->direction == ACCT_REMOVE && (w->far || acct_coarse_reach(&m, s.b) > 1e-5 * tolerance)) {
        plan->most_loss = choose_part_end(w, epsilon, log_delta, 4.0 - log(tolerance), &plan->reverse_order);
        acct_heterogeneous_set_coarse(w, log_delta, plan->most_loss);
        acct_heterogeneous_saddle(&m, ACCT_AT_EPSILON, epsilon, &s);
    }
    plan->direction = w->direction;
    plan->most_work = w->most_work;
    plan->steps = w->steps;
    plan->deviations = acct_window_deviations(w->steps, log_delta);
    plan->b = s.b;
    s.epsilon = epsilon;
    plan->log_error = log(tolerance) + log_delta - (s.log_scale - s.b * epsilon);
    /* where the tail event decides, a few digits do */
    const double digits = acct_max(2.3 - plan->log_error + 1.0, 3.0), bb = s.b * (s.b + 1.0);
    const double right = alias_period(&m, &s, digits, 1, &plan->right_b);
    const double left = alias_period(&m, &s, digits, -1, &plan->left_b);
    plan->y_near = 1.1 * sqrt(2.0 * acct_max(digits - log(bb), 4.0)) / s.spread;
    plan->period = acct_max(right, left) * 1.02;
    plan->spread = s.spread;
    plan->bulk = acct_coarse_bulk(&m, s.b);
    plan->far = 0.0;
    plan->paths = 0;
    return acct_heterogeneous_lengthen(w, y_least, plan);
}

int acct_heterogeneous_start(acct_heterogeneous_workspace *w, const acct_heterogeneous_plan *plan,
                             const acct_part *part, int count) {
    acct_heterogeneous_sum_start(&w->sums, plan);
    return acct_noise_tables_set(&w->tables, &w->sums, &w->law, &w->cf, part, count);
}

int acct_heterogeneous_add(acct_heterogeneous_workspace *w, const acct_part *part) {
    const acct_noise_table *table = acct_noise_tables_find(&w->tables, part);
    if (table && !acct_noise_table_add(table, &w->sums, &w->law, part)) return ACCT_OK;
    return acct_heterogeneous_sum_add(&w->sums, &w->law, &w->cf, part);
}

int acct_heterogeneous_add_all(acct_heterogeneous_workspace *w, const acct_heterogeneous_plan *plan,
                               const acct_part *part, int count) {
    int status = acct_heterogeneous_start(w, plan, part, count);
    for (int i = 0; i < count && !status; i++) status = acct_heterogeneous_add(w, &part[i]);
    return status;
}

/* a line that ends by y_least or beyond, made for the groups and then for the parts
 * sets     *stop to where it should have ended, inf if nowhere, and *placed to where it did */
static int try_line(acct_heterogeneous_workspace *w, int count, double epsilon, double log_delta,
                    double tolerance, double y_least, double *stop, double *placed) {
    acct_heterogeneous_plan plan;
    acct_heterogeneous_set_coarse(w, log_delta, INFINITY);
    int status = acct_heterogeneous_place(w, epsilon, log_delta, tolerance, y_least, &plan);
    if (status) return status;
    const double share = exp(plan.log_error);
    *placed = (plan.count - 1) * plan.dy;
    if (w->far) {
        plan.far = w->most_points * plan.dy;
        plan.flat = acct_min(plan.flat, 0.3 * *placed);
        plan.paths = w->steps < ACCT_MOST_STEPS_OF_PATHS;
    }
    status = acct_heterogeneous_add_all(w, &plan, w->group, w->groups);
    if (status) return status;
    *stop = acct_heterogeneous_sum_stop(&w->sums, 0.5 * share);
    if (*stop <= *placed) {
        status = w->groups < count ? acct_heterogeneous_add_all(w, &plan, w->part, count) : ACCT_OK;
        if (status) return status;
        acct_heterogeneous_sum_close(&w->sums, &w->contour);
        if (w->contour.truncated <= share) return ACCT_OK;
    }
    /* parts decay a little less than their groups */
    *stop = acct_heterogeneous_sum_stop(&w->sums, 0.2 * share) * (w->groups < count ? 1.05 : 1.0);
    return ACCT_EPRECISION;
}

int acct_heterogeneous_build(acct_heterogeneous_workspace *w, int count, double epsilon, double log_delta,
                             double tolerance) {
    double y_least = 0.0;
    int status = ACCT_EPRECISION;
    w->far = 0;
    for (int tries = 0; tries < 6 && status == ACCT_EPRECISION; tries++) {
        double stop = INFINITY, placed = 0.0;
        status = try_line(w, count, epsilon, log_delta, tolerance, y_least, &stop, &placed);
        if (stop < (w->far || !w->mixed ? INFINITY : 4.0 * placed)) {
            y_least = stop;
            continue;
        }
        if (w->far) break;
        /* the line is too long, or the bounds on its decay ended too early */
        w->far = 1;
        y_least = 0.0;
    }
    w->far = 0;
    return status;
}
