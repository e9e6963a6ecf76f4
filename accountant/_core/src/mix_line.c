#include "mix_line.h"

#include <math.h>
#include <string.h>

#include "decay.h"
#include "mix_search.h"
#include "rounding.h"
#include "status.h"


static void add(acct_sum *s, double x) {
    const double t = s->sum + x;
    s->lost += fabs(s->sum) >= fabs(x) ? (s->sum - t) + x : (x - t) + s->sum;
    s->sum = t;
}

static double total(const acct_sum *s) { return s->sum + s->lost; }

static double order_at(int direction, double b) { return direction == ACCT_REMOVE ? 1.0 + b : -b; }

void acct_mix_line_place(acct_mix_line *line, double *memory) {
    const size_t n = ACCT_MIX_POINTS;
    line->log_mod = (acct_sum *)memory;
    line->arg = (acct_sum *)(memory + 2 * n);
    line->relative = memory + 4 * n;
    line->high = memory + 5 * n;
    line->size = memory + 6 * n;
}

void acct_mix_line_start(acct_mix_line *line, const acct_mix_plan *plan) {
    const size_t n = (size_t)plan->count;
    line->plan = *plan;
    if (plan->direction == ACCT_REMOVE) {
        line->plan.b = acct_exact_distance(plan->b);
        line->plan.right_b = acct_exact_distance(plan->right_b);
        line->plan.left_b = acct_exact_distance(plan->left_b);
    }
    line->order = order_at(plan->direction, line->plan.b);
    memset(line->log_mod, 0, n * sizeof(acct_sum));
    memset(line->arg, 0, n * sizeof(acct_sum));
    memset(line->relative, 0, n * sizeof(double));
    memset(line->high, 0, n * sizeof(double));
    memset(line->size, 0, n * sizeof(double));
    line->log_mgf = line->drift = (acct_sum){0.0, 0.0};
    line->parts = 0;
    for (int i = 0; i < ACCT_MIX_ALIKE; i++) line->alike[i].cell = line->alike[i].layout.panels = 0;
    line->log_mgf_err = line->outside = 0.0;
    line->log_stay = line->log_stay_ratio = line->stay_err = line->put_log = line->put_jumps = 0.0;
    line->right_log = line->right_err = line->left_log = line->left_err = 0.0;
    /* geometric levels, beyond the reach of the moments */
    const double first = (plan->count - 1) * plan->dy;
    const double end = fmax(7.0 * plan->flat, plan->bulk > 0.0 ? 7.0 / plan->bulk : 0.0);
    const double ratio = fmax(pow(end / first, 1.0 / ACCT_MIX_LEVELS), 1.1);
    line->level[0] = first;
    line->levels = 0;
    while (line->levels < ACCT_MIX_LEVELS && line->level[line->levels] < end) {
        line->level[line->levels + 1] = ratio * line->level[line->levels];
        line->levels++;
    }
    memset(line->decay, 0, sizeof line->decay);
}

/* K = n b (b+1) / (2 sigma^2) and all that follows from it is exact up to a few roundings */
static void add_plain(acct_mix_line *line, const acct_part *part) {
    const acct_mix_plan *p = &line->plan;
    const double rate = part->steps / (part->sigma * part->sigma);
    for (int k = 0; k < p->count; k++) {
        const double y = k * p->dy, fall = 0.5 * rate * y * y;
        add(&line->log_mod[k], -fall);
        line->high[k] -= fall * (1.0 - 8.0 * ACCT_U);
        /* of the exponent, and of the phase y * mean */
        line->size[k] += fall + y * rate * (p->b + 0.5);
    }
    add(&line->log_mgf, 0.5 * rate * p->b * (p->b + 1.0));
    line->log_mgf_err += 8.0 * ACCT_U * rate * p->b * (p->b + 1.0);
    add(&line->drift, rate * (p->b + 0.5));
    line->right_log += 0.5 * rate * p->right_b * (p->right_b + 1.0);
    line->left_log += 0.5 * rate * p->left_b * (p->left_b + 1.0);
    for (int j = 0; j <= line->levels; j++) /* the last one for all y beyond */
        line->decay[j] -= 0.5 * rate * line->level[j] * line->level[j] * (1.0 - 1e-12);
}

/* the points' terms, as fill_terms in contour.c but in logarithms */
static void add_points(acct_mix_line *line, acct_line *work, const acct_grid *grid,
                       const acct_moments *m, double n) {
    const acct_mix_plan *p = &line->plan;
    const double reach = acct_grid_reach(grid, m->mean);
    const double still = acct_grid_error(grid, m, 0.0);
    const double quadrature = acct_grid_error(grid, m, (p->count - 1) * p->dy);
    double re[ACCT_BLOCK], im[ACCT_BLOCK];
    for (int first = 0; first < p->count; first += ACCT_BLOCK) {
        const int size = p->count - first < ACCT_BLOCK ? p->count - first : ACCT_BLOCK;
        const double round = acct_line_block(work, first, size, re, im);
        for (int i = 0; i < size; i++) {
            const int k = first + i;
            const double y = k * p->dy, u = re[i], v = im[i];
            const double mod = sqrt((1.0 + u) * (1.0 + u) + v * v);
            const double log_mod =
                u > -0.5 ? 0.5 * log1p(2.0 * u + u * u + v * v) : log(fmax(mod, 1e-300));
            const double arg = atan2(v, 1.0 + u);
            const double err_v = (quadrature + still * (1.0 + y * reach) + y * m->mean_err + round +
                                  16.0 * ACCT_U * (fabs(u) + fabs(v))) * ACCT_SLACK;
            const double rest = mod - err_v;
            add(&line->log_mod[k], n * log_mod);
            add(&line->arg[k], n * arg);
            line->relative[k] += rest > 0.0 ? n * err_v / rest : INFINITY;
            line->high[k] += mod > 1e-290 ? n * (log_mod + err_v / mod) : n * log(1e-290 + err_v);
            line->size[k] += n * (fabs(log_mod) + fabs(arg)) + y * n * fabs(m->mean);
        }
    }
}

static void add_decay(acct_mix_line *line, const acct_grid *grid, const acct_moments *m, double n) {
    /* far below the wanted error nothing more is asked of a level */
    const double enough = 2.0 * line->plan.log_error - 60.0;
    double flat = 0.0; /* a bound for every y from here on */
    int skip = 0;
    acct_decay decay;
    acct_decay_set(&decay, grid, m, n);
    for (int j = 0; j <= line->levels; j++) {
        if (!(line->decay[j] > enough)) continue;
        if (line->level[j] >= line->plan.flat && skip++ % 4 == 0)
            flat = fmin(flat, acct_decay_minorant_upper(&decay, line->level[j], 1, 24, -1.0));
        double bound = flat;
        if (j < line->levels)
            bound = fmin(bound, acct_decay_moment_upper(&decay, line->level[j], line->level[j + 1]));
        line->decay[j] += n * bound;
    }
}

/* n K at the alias orders, outward by n times its error */
static void add_alias(acct_grid *grid, int direction, double b, double n, double *log, double *err) {
    double one_err;
    const double one = acct_grid_log_mgf(grid, order_at(direction, b), &one_err);
    *log += n * one;
    *err += n * (one_err + 4.0 * ACCT_U * fabs(one));
}

/* the jumps above the cut: masses, and the put's bound at order -m; overwrites grid->weight */
static void add_jumps(acct_mix_line *line, acct_grid *grid, double n) {
    const double m = line->plan.put_order;
    const double q = grid->q_above, pq = fmax(grid->pq_above, 0.0);
    line->log_stay += n * log1p(-q);
    line->log_stay_ratio += n * log1p(-pq / (1.0 - q));
    line->stay_err = fmax(line->stay_err, grid->above_err);
    double low_err;
    const double low = acct_grid_log_mgf(grid, -m, &low_err);
    const double loss_hi = acct_loss(&grid->step, grid->hi, NULL);
    const double jump = q * exp(-m * loss_hi - low);
    const double below = grid->outside * exp(-m * grid->step.log_1mq - low);
    line->put_log += n * (low + low_err + (jump + below) * ACCT_SLACK +
                          1e-14 * fabs(low));
    /* A(-m) >= A_I(-m) */
    line->put_jumps += n * jump * exp(low_err) * (1.0 + 1e-9 * (1.0 + fabs(m * loss_hi)));
}

/* Nodes for a part: on the panels of one before it that was alike, where they do */
static int set_grid(acct_mix_line *line, acct_grid *grid, const acct_step *step, const acct_part *part,
                    const acct_window *given) {
    const acct_mix_plan *p = &line->plan;
    const double y_last = (p->count - 1) * p->dy;
    const double reach = fabs(acct_loss(step, given->hi, NULL)) + 1.0;
    const double log_error = p->log_error - 2.3 + fmin(log(p->b * (p->b + 1.0)), 0.0) - log(p->steps) -
                             4.0 - log(2.0 + y_last * reach);
    const long cell = acct_part_cell(part, 50.0);
    acct_alike *alike = &line->alike[(unsigned long)cell % ACCT_MIX_ALIKE];
    if (alike->cell == cell &&
        !acct_grid_set_along(grid, step, given, line->order, y_last, log_error, &alike->layout))
        return ACCT_OK;
    acct_window window = *given;
    double weight[ACCT_COARSE_NODES];
    acct_coarse coarse;
    acct_coarse_set(&coarse, part, &window);
    acct_coarse_weights(&coarse, line->order, weight);
    acct_place_breaks(step, ACCT_COARSE_NODES, coarse.loss, weight, &window);
    /* a little finer than needed, so that the panels do for the next one */
    const int status = acct_grid_set(grid, step, &window, line->order, y_last, log_error - 0.7);
    alike->cell = cell;
    acct_grid_layout(grid, &alike->layout);
    if (status) alike->layout.panels = 0;
    return status;
}

int acct_mix_line_add(acct_mix_line *line, acct_grid *grid, acct_line *work, const acct_part *part) {
    const acct_mix_plan *p = &line->plan;
    const double n = part->steps;
    line->parts++;
    if (part->q == 1.0) {
        add_plain(line, part);
        return ACCT_OK;
    }
    const acct_step step = acct_step_make(part->q, part->sigma);
    const acct_window window = acct_part_window(part, p->direction, p->deviations, p->cut);
    acct_moments m;
    const int status = set_grid(line, grid, &step, part, &window);
    if (status) return status;
    if ((double)p->count * grid->count > p->most_work) return ACCT_EPRECISION;
    /* the moments at the line's order last: the weights must be theirs */
    add_alias(grid, p->direction, p->right_b, n, &line->right_log, &line->right_err);
    add_alias(grid, p->direction, p->left_b, n, &line->left_log, &line->left_err);
    if (p->put_order > 0.0) add_jumps(line, grid, n);
    acct_grid_moments(grid, line->order, 1, &m);
    acct_line_set(work, grid, &m);
    acct_line_step(work, p->dy);
    add_points(line, work, grid, &m, n);
    add_decay(line, grid, &m, n);
    add(&line->log_mgf, n * m.log_mgf);
    line->log_mgf_err += n * (m.log_mgf_err + 4.0 * ACCT_U * fabs(m.log_mgf));
    add(&line->drift, n * (p->direction == ACCT_REMOVE ? m.mean : -m.mean));
    line->outside += n * grid->outside;
    if (!(p->put_order > 0.0)) { /* P(x > hi) is at most N(1, sigma^2)'s */
        const double above = 0.5 * erfc((window.hi - 1.0) / (part->sigma * sqrt(2.0)));
        line->outside += n * above * ACCT_SLACK;
    }
    return ACCT_OK;
}

/* sum over lattice points beyond the given level (Theorem 9, *Tail of the sum*) */
static double tail_upper(const acct_mix_line *line, int first) {
    const double b = line->plan.b, bb = b * (b + 1.0), dy = line->plan.dy;
    const double y_last = line->level[line->levels];
    double sum = exp(line->decay[line->levels]) * (1.0 + dy / y_last) / (ACCT_PI * y_last);
    for (int j = first; j < line->levels; j++) {
        const double y = line->level[j], y1 = line->level[j + 1];
        const double weight =
            fmin(1.0 / y - 1.0 / y1 + dy / (y * y), (y1 - y + dy) / bb) / ACCT_PI;
        sum += exp(line->decay[j]) * weight;
    }
    return sum * ACCT_SLACK;
}

double acct_mix_line_stop(const acct_mix_line *line, double share) {
    if (!(tail_upper(line, line->levels) <= share)) return INFINITY;
    int j = line->levels;
    while (j > 0 && tail_upper(line, j - 1) <= share) j--;
    return line->level[j];
}

/* the sums of n K at the aliases' orders are plain: u a part */
static acct_alias alias(double b, double log_mgf, double err, double parts, const acct_contour *k) {
    acct_alias a;
    a.log_size = -log1p(b) - b * log1p(1.0 / b) + log_mgf + err * ACCT_SLACK -
                 (k->log_scale - k->log_scale_err) + 1e-9 +
                 ACCT_U * (16.0 + parts) * (fabs(log_mgf) + fabs(k->log_scale));
    a.slope = b - k->b;
    return a;
}

void acct_mix_line_close(const acct_mix_line *line, acct_contour *k) {
    k->flipped = 0;
    const acct_mix_plan *p = &line->plan;
    const double b = p->b, sign = p->direction == ACCT_REMOVE ? 1.0 : -1.0;
    k->direction = p->direction;
    k->steps = p->steps;
    k->b = b;
    k->dy = p->dy;
    k->count = p->count;
    k->small_log = -INFINITY;
    k->small_slope = 0.0;
    k->drift = total(&line->drift);
    k->log_scale = total(&line->log_mgf);
    k->log_scale_err = line->log_mgf_err * ACCT_SLACK + 8.0 * ACCT_U * fabs(k->log_scale);
    k->numerical = 0.0;
    for (int i = 0; i < p->count; i++) {
        const double y = i * p->dy;
        const double front = p->dy / (ACCT_PI * acct_poles(b, y)) * (i ? 1.0 : 0.5);
        const double amplitude = exp(total(&line->log_mod[i])) * front;
        double err = line->relative[i] < 100.0
                         ? amplitude * expm1(line->relative[i])
                         : amplitude + exp(line->high[i] + 1e-9 * (1.0 + fabs(line->high[i]))) * front;
        if (amplitude > 0.0) err += amplitude * ACCT_U * (40.0 + 24.0 * line->size[i]);
        k->numerical += err;
        k->amplitude[i] = amplitude;
        k->phase[i] = sign * total(&line->arg[i]) - atan2(y, b) - atan2(y, b + 1.0);
    }
    k->numerical *= ACCT_SLACK;
    k->truncated = tail_upper(line, 0);
    k->right = alias(p->right_b, line->right_log, line->right_err, line->parts, k);
    k->left = alias(p->left_b, line->left_log, line->left_err, line->parts, k);
    /* outcomes outside a window: in full, or those above the cut by put-call parity */
    memset(&k->jump, 0, sizeof k->jump);
    k->jump.direction = ACCT_ADD;
    k->jump.outside = line->outside * ACCT_SLACK;
    if (p->put_order > 0.0) {
        const double m = p->put_order;
        k->jump.direction = ACCT_REMOVE;
        k->jump.q_mass = -expm1(line->log_stay);
        k->jump.pq_mass = exp(line->log_stay) * -expm1(line->log_stay_ratio);
        k->jump.mass_err = (line->stay_err + ACCT_U * (16.0 + line->parts)) *
                           (1.0 - line->log_stay - line->log_stay_ratio);
        k->jump.put_slope = m + 1.0;
        k->jump.put_log = -log1p(m) - m * log1p(1.0 / m) + line->put_log + log(line->put_jumps) +
                          1e-9 * (1.0 + fabs(line->put_log));
    }
}
