#include "heterogeneous_sum.h"

#include <math.h>
#include <string.h>

#include "cf_decay.h"
#include "heterogeneous_search.h"
#include "rounding.h"
#include "bounds.h"
#include "vmath.h"

void acct_heterogeneous_sum_place(acct_heterogeneous_sum *sums, double *memory) {
    const size_t n = ACCT_HETEROGENEOUS_POINTS;
    sums->log_mod = (acct_sum *)memory;
    sums->arg = (acct_sum *)(memory + 2 * n);
    sums->relative = memory + 4 * n;
    sums->high = memory + 5 * n;
    sums->size = memory + 6 * n;
    sums->factor = memory + 7 * n;
    sums->poles = memory + 8 * n;
    sums->coarse = memory + 9 * n;
}

/* what all sums over the parts are multiplied by at the points, and beyond them (Theorem 9, *Tail of the sum*) */
static void set_factors(acct_heterogeneous_sum *sums) {
    const double b = sums->plan.b, dy = sums->plan.dy;
    for (int k = 0; k < sums->plan.count; k++) {
        const double y = k * dy;
        sums->factor[k] = acct_trapezoid_factor(b, y, dy, k);
        sums->poles[k] = atan2(y, b) + atan2(y, b + 1.0);
    }
    for (int j = 0; j < sums->levels; j++)
        sums->weight[j] = acct_tail_weight(b, sums->level[j], sums->level[j + 1], dy);
    const double y_last = sums->level[sums->levels];
    sums->weight[sums->levels] = (1.0 + dy / y_last) / (ACCT_PI * y_last);
}

void acct_heterogeneous_sum_start(acct_heterogeneous_sum *sums, const acct_heterogeneous_plan *plan) {
    const size_t n = (size_t)plan->count;
    sums->plan = *plan;
    if (plan->direction == ACCT_REMOVE) {
        sums->plan.b = acct_exact_distance(plan->b);
        sums->plan.right_b = acct_exact_distance(plan->right_b);
        sums->plan.left_b = acct_exact_distance(plan->left_b);
    }
    sums->order = acct_order_at(plan->direction, sums->plan.b);
    memset(sums->log_mod, 0, n * sizeof(acct_sum));
    memset(sums->arg, 0, n * sizeof(acct_sum));
    memset(sums->relative, 0, n * sizeof(double));
    memset(sums->high, 0, n * sizeof(double));
    memset(sums->size, 0, n * sizeof(double));
    sums->log_mgf = sums->drift = (acct_sum){0.0, 0.0};
    sums->parts = 0;
    sums->log_mgf_err = sums->outside = 0.0;
    sums->log_stay = sums->log_stay_ratio = sums->stay_err = sums->below = sums->lost = 0.0;
    sums->reverse_log = 0.0;
    sums->reverse_events = -INFINITY;
    sums->right_log = sums->right_err = sums->left_log = sums->left_err = 0.0;
    /* geometric levels, beyond the reach of the moments */
    const double first = (plan->count - 1) * plan->dy;
    const double near = acct_max(7.0 * plan->flat, plan->bulk > 0.0 ? 7.0 / plan->bulk : 0.0);
    const double end = acct_max(near, plan->far);
    const double ratio = acct_max(pow(end / first, 1.0 / ACCT_DECAY_LEVELS), 1.1);
    sums->level[0] = first;
    sums->levels = 0;
    while (sums->levels < ACCT_DECAY_LEVELS && sums->level[sums->levels] < end) {
        sums->level[sums->levels + 1] = ratio * sums->level[sums->levels];
        sums->levels++;
    }
    memset(sums->decay, 0, sizeof sums->decay);
    set_factors(sums);
}

/* K = n b (b+1) / (2 sigma^2) and all that follows from it is exact up to a few roundings */
static void add_plain(acct_heterogeneous_sum *sums, const acct_part *part) {
    const acct_heterogeneous_plan *p = &sums->plan;
    const double rate = part->steps / (part->sigma * part->sigma);
    for (int k = 0; k < p->count; k++) {
        const double y = k * p->dy, fall = 0.5 * rate * y * y;
        acct_sum_add(&sums->log_mod[k], -fall);
        sums->high[k] -= fall * (1.0 - 8.0 * ACCT_U);
        /* of the exponent, and of the phase y * mean */
        sums->size[k] += fall + y * rate * (p->b + 0.5);
    }
    acct_sum_add(&sums->log_mgf, 0.5 * rate * p->b * (p->b + 1.0));
    sums->log_mgf_err += 8.0 * ACCT_U * rate * p->b * (p->b + 1.0);
    acct_sum_add(&sums->drift, rate * (p->b + 0.5));
    sums->right_log += 0.5 * rate * p->right_b * (p->right_b + 1.0);
    sums->left_log += 0.5 * rate * p->left_b * (p->left_b + 1.0);
    for (int j = 0; j <= sums->levels; j++) /* the last one for all y beyond */
        sums->decay[j] -= 0.5 * rate * sums->level[j] * sums->level[j] * (1.0 - 1e-12);
}

/* size[k] is the sum of the moduli to which the round-off of the sums and of y * mean is relative */
ACCT_CLONES
void acct_heterogeneous_add_block(acct_heterogeneous_sum *sums, int first, double n, double log_scale, double mean,
                                  const acct_characteristic_polar *b) {
    const int rest = sums->plan.count - first, count = rest < ACCT_SUM_BLOCK ? rest : ACCT_SUM_BLOCK;
    const double dy = sums->plan.dy;
    acct_sum *restrict log_mod = sums->log_mod + first, *restrict arg = sums->arg + first;
    double *restrict relative = sums->relative + first, *restrict high = sums->high + first;
    double *restrict size = sums->size + first;
    for (int i = 0; i < count; i++) {
        acct_sum_add(&log_mod[i], n * (b->log_modulus[i] - log_scale));
        acct_sum_add(&arg[i], n * b->arg[i]);
    }
    for (int i = 0; i < count; i++) {
        relative[i] += n * b->ratio[i];
        high[i] += n * (b->log_most[i] - log_scale);
        size[i] += n * (fabs(b->log_modulus[i]) + fabs(log_scale) + fabs(b->arg[i]) + (first + i) * dy * fabs(mean));
    }
}

/* lowers bound[j], of every y from level j on, by the paths of one part; no path helps where many steps share
 * the work (acct_cf_decay_minorant_upper does) */
static void try_paths(const acct_heterogeneous_sum *sums, const acct_cf_decay *decay, double *bound) {
    static const double SHARE[] = {1.0, 0.5, 0.25};
    const acct_step *step = &decay->law->step;
    const double most = acct_min(1.5 * step->sigma / acct_step_largest(step), 3.0) * step->sigma;
    const double log_error = acct_min(1.5 * sums->plan.log_error / sums->plan.steps, -12.0);
    for (int i = 0; i < 3; i++) {
        acct_cf_decay_path path;
        if (acct_cf_decay_path_set(decay, sums->scratch, SHARE[i] * most, log_error, &path)) continue;
        for (int j = 0; j <= sums->levels; j++)
            bound[j] = acct_min(bound[j], acct_cf_decay_path_upper(&path, sums->level[j]));
    }
}

void acct_heterogeneous_decay(const acct_heterogeneous_sum *sums, const acct_tilted_law *law,
                              const acct_moments *m, const double *known, double *bound) {
    /* far below the wanted error nothing more is asked of a level */
    const double enough = 2.0 * sums->plan.log_error - 60.0;
    double flat = 0.0; /* a bound for every y from here on */
    double along[ACCT_DECAY_LEVELS + 1] = {0.0};
    int skip = 0;
    acct_cf_decay decay;
    acct_cf_decay_set(&decay, law, m, 1.0);
    if (sums->plan.paths) try_paths(sums, &decay, along);
    for (int j = 0; j <= sums->levels; j++) {
        bound[j] = 0.0;
        if (known && !(known[j] > enough)) continue;
        if (sums->level[j] >= sums->plan.flat && skip++ % 4 == 0)
            flat = acct_min(flat, acct_cf_decay_minorant_upper(&decay, sums->level[j], 1, 24, -1.0));
        bound[j] = acct_min(flat, along[j]);
        if (j < sums->levels)
            bound[j] = acct_min(bound[j], acct_cf_decay_moment_upper(&decay, sums->level[j], sums->level[j + 1]));
    }
}

static void add_part_decay(acct_heterogeneous_sum *sums, const acct_tilted_law *law, const acct_moments *m,
                      double n) {
    double bound[ACCT_DECAY_LEVELS + 1];
    acct_heterogeneous_decay(sums, law, m, sums->decay, bound);
    for (int j = 0; j <= sums->levels; j++) sums->decay[j] += n * bound[j];
}

/* adds n K at an alias order to *log, and n times the bound on its error to *err */
static void add_alias(acct_tilted_law *law, int direction, double b, double n, double *log, double *err) {
    double one_err;
    const double one = acct_tilted_law_log_mgf(law, acct_order_at(direction, b), &one_err);
    *log += n * one;
    *err += n * (one_err + 4.0 * ACCT_U * fabs(one));
}

int acct_heterogeneous_add_tail(acct_heterogeneous_sum *sums, const acct_tilted_law *law,
                                const acct_part *part, double low, double low_err) {
    const acct_heterogeneous_plan *p = &sums->plan;
    const double m = p->reverse_order, n = part->steps;
    const double q = law->q_above, pq = acct_max(law->pq_above, 0.0);
    const double loss_hi = acct_loss(&law->step, law->hi, NULL);
    const double tail = (q + ACCT_UNDERFLOW) * exp(-m * loss_hi - low);
    const double below = law->step.log_1mq > -INFINITY ? law->outside * exp(-m * law->step.log_1mq - low)
                                                       : 0.0;
    sums->below += acct_below_share(law, n);
    sums->reverse_log += n * (low + low_err + (tail + below) * ACCT_SLACK + 1e-14 * fabs(low));
    if (p->apart && !(law->hi < acct_part_window(part, p->direction, p->deviations, INFINITY).hi)) return 0;
    sums->log_stay += n * log1p(-q);
    sums->log_stay_ratio += n * log1p(-pq / (1.0 - q));
    sums->stay_err = acct_max(sums->stay_err, law->above_err);
    sums->lost += acct_tail_event_lost(law, n, 0);
    /* A(-m) >= A_I(-m) */
    const double log_event = log(n * (q + ACCT_UNDERFLOW)) - m * loss_hi - low + low_err +
                             1e-9 * (1.0 + fabs(m * loss_hi));
    const double most = acct_max(sums->reverse_events, log_event), least = acct_min(sums->reverse_events, log_event);
    sums->reverse_events = most + log1p(exp(least - most));
    return 1;
}

void acct_heterogeneous_add_outside(acct_heterogeneous_sum *sums, const acct_tilted_law *law,
                                    const acct_part *part, int lowered) {
    sums->outside += part->steps * law->outside;
    if (lowered) return;
    /* under the first law: Q, or P, at most that of the largest shift alone */
    const double shift = sums->plan.direction == ACCT_REMOVE ? acct_step_largest(&law->step) : 0.0;
    const double above = 0.5 * erfc((law->hi - shift) / (part->sigma * sqrt(2.0)));
    sums->outside += part->steps * (above + ACCT_UNDERFLOW) * ACCT_SLACK;
}

int acct_heterogeneous_grid(acct_heterogeneous_sum *sums, acct_tilted_law *law, const acct_step *step,
                            const acct_part *part, const acct_window *given, double finer) {
    const acct_heterogeneous_plan *p = &sums->plan;
    const double y_last = (p->count - 1) * p->dy;
    const double reach = fabs(acct_loss(step, given->hi, NULL)) + 1.0;
    const double log_error = p->log_error - 2.3 + acct_min(log(p->b * (p->b + 1.0)), 0.0) - log(p->steps) - 4.0 -
                             log(2.0 + y_last * reach) - finer;
    acct_window window = *given;
    double *weight = sums->coarse;
    acct_coarse coarse;
    acct_coarse_place(&coarse, weight + ACCT_MOST_COARSE_NODES, acct_coarse_nodes(part));
    acct_coarse_set(&coarse, part, &window);
    acct_coarse_weights(&coarse, sums->order, weight);
    acct_place_breaks(step, coarse.nodes, coarse.loss, weight, &window);
    return acct_tilted_law_set(law, step, &window, sums->order, y_last, log_error - 0.7);
}

int acct_heterogeneous_sum_add(acct_heterogeneous_sum *sums, acct_tilted_law *law,
                               acct_characteristic_sum *cf, const acct_part *part) {
    const acct_heterogeneous_plan *p = &sums->plan;
    const double n = part->steps;
    sums->parts++;
    if (acct_part_is_plain(part)) {
        add_plain(sums, part);
        return ACCT_OK;
    }
    const acct_step step = acct_part_step(part);
    const acct_window window = acct_part_window(part, p->direction, p->deviations, p->most_loss);
    acct_moments m;
    const int status = acct_heterogeneous_grid(sums, law, &step, part, &window, 0.0);
    if (status) return status;
    if ((double)p->count * law->count > p->most_work) return ACCT_EPRECISION;
    /* the moments at the line's order last: the weights must be theirs */
    add_alias(law, p->direction, p->right_b, n, &sums->right_log, &sums->right_err);
    add_alias(law, p->direction, p->left_b, n, &sums->left_log, &sums->left_err);
    int lowered = 0;
    if (p->reverse_order > 0.0) {
        double low_err;
        const double low = acct_tilted_law_log_mgf(law, -p->reverse_order, &low_err);
        lowered = acct_heterogeneous_add_tail(sums, law, part, low, low_err);
    }
    acct_tilted_law_moments(law, sums->order, 1, &m);
    acct_characteristic_sum_set(cf, law, &m);
    acct_characteristic_sum_step(cf, p->dy);
    const acct_characteristic_errors errors = acct_characteristic_errors_set(law, &m, (p->count - 1) * p->dy);
    for (int first = 0; first < p->count; first += ACCT_SUM_BLOCK) {
        acct_characteristic_polar block;
        const int rest = p->count - first;
        acct_characteristic_polar_sum(cf, &errors, first, rest < ACCT_SUM_BLOCK ? rest : ACCT_SUM_BLOCK, &block);
        acct_heterogeneous_add_block(sums, first, n, 0.0, m.mean, &block);
    }
    add_part_decay(sums, law, &m, n);
    acct_sum_add(&sums->log_mgf, n * m.log_mgf);
    sums->log_mgf_err += n * (m.log_mgf_err + 4.0 * ACCT_U * fabs(m.log_mgf));
    acct_sum_add(&sums->drift, n * (p->direction == ACCT_REMOVE ? m.mean : -m.mean));
    acct_heterogeneous_add_outside(sums, law, part, lowered);
    return ACCT_OK;
}

/* sum over lattice points beyond the given level (Theorem 9, *Tail of the sum*); the least exponential of
 * acct_vexp is too large, which is safe */
ACCT_CLONES
static double tail_upper(const acct_heterogeneous_sum *sums, int first) {
    double term[ACCT_DECAY_LEVELS + 1], sum = 0.0;
    for (int j = 0; j <= sums->levels; j++) term[j] = acct_vexp(sums->decay[j]) * sums->weight[j];
    for (int j = first; j <= sums->levels; j++) sum += term[j];
    return sum * ACCT_SLACK;
}

double acct_heterogeneous_sum_stop(const acct_heterogeneous_sum *sums, double share) {
    if (!(tail_upper(sums, sums->levels) <= share)) return INFINITY;
    int j = sums->levels;
    while (j > 0 && tail_upper(sums, j - 1) <= share) j--;
    return sums->level[j];
}

/* the sums of n K at the aliases' orders are plain: u a part */
static acct_alias alias(double b, double log_mgf, double err, double parts, const acct_contour *k) {
    acct_alias a;
    a.log_size = acct_log_chernoff(b) + log_mgf + err * ACCT_SLACK - (k->log_scale - k->log_scale_err) +
                 1e-9 + ACCT_U * (16.0 + parts) * (fabs(log_mgf) + fabs(k->log_scale));
    a.slope = b - k->b;
    return a;
}

/* sets     the terms of the line: moduli and phases
 * ensures  the terms are off by at most the returned value in all, but for the round-off of the phases.  Where the
 *          relative error says nothing, a term and its computed value are bounded apart, by the product of the upper
 *          bounds `high`; exp, the sums and the factor move a term by (40 + 24 size) u of itself. */
ACCT_CLONES
static double parts_terms(const acct_heterogeneous_sum *sums, double sign, double *restrict amplitude,
                        double *restrict phase) {
    const acct_sum *restrict log_mod = sums->log_mod, *restrict arg = sums->arg;
    const double *restrict relative = sums->relative, *restrict high = sums->high, *restrict size = sums->size;
    const double *restrict factor = sums->factor, *restrict poles = sums->poles;
    double error[ACCT_SUM_BLOCK], total = 0.0;
    for (int first = 0; first < sums->plan.count; first += ACCT_SUM_BLOCK) {
        const int count = sums->plan.count - first < ACCT_SUM_BLOCK ? sums->plan.count - first : ACCT_SUM_BLOCK;
        for (int i = 0; i < count; i++) {
            const int k = first + i;
            const double power = log_mod[k].sum + log_mod[k].lost, turn = arg[k].sum + arg[k].lost;
            const double above = high[k] + 1e-9 * (1.0 + fabs(high[k]));
            const double product = acct_vexp(power) * factor[k], larger = acct_vexp(above) * factor[k];
            const double a = power < ACCT_LEAST_LOG ? 0.0 : power > ACCT_MOST_LOG ? INFINITY : product;
            const double most = above > ACCT_MOST_LOG ? INFINITY : larger;
            const double moved = a * acct_vexpm1(relative[k]), apart = a + most;
            const double near = relative[k] < ACCT_MOST_RELATIVE ? moved : apart;
            amplitude[k] = a;
            phase[k] = sign * turn - poles[k];
            error[i] = (power < ACCT_LEAST_LOG ? apart : near) + a * ACCT_U * (40.0 + 24.0 * size[k]);
        }
        for (int i = 0; i < count; i++) total += error[i];
    }
    return total * ACCT_SLACK;
}

void acct_heterogeneous_sum_close(const acct_heterogeneous_sum *sums, acct_contour *k) {
    k->answers_add = 0;
    const acct_heterogeneous_plan *p = &sums->plan;
    const double b = p->b, sign = p->direction == ACCT_REMOVE ? 1.0 : -1.0;
    k->direction = p->direction;
    k->steps = p->steps;
    k->b = b;
    k->dy = p->dy;
    k->count = p->count;
    k->small_losses_log = -INFINITY;
    k->small_losses_slope = k->least = 0.0;
    k->drift = acct_sum_total(&sums->drift);
    k->log_scale = acct_sum_total(&sums->log_mgf);
    k->log_scale_err = sums->log_mgf_err * ACCT_SLACK + 8.0 * ACCT_U * fabs(k->log_scale);
    k->numerical = parts_terms(sums, sign, k->terms.re, k->terms.im);
    acct_line_terms_set(&k->terms, k->count, k->dy);
    k->truncated = tail_upper(sums, 0);
    k->right = alias(p->right_b, sums->right_log, sums->right_err, sums->parts, k);
    k->left = alias(p->left_b, sums->left_log, sums->left_err, sums->parts, k);
    /* outcomes outside a window: in full, or the tail event by Theorem 16 */
    memset(&k->tail, 0, sizeof k->tail);
    k->tail.direction = ACCT_ADD;
    k->tail.steps = p->steps;
    k->tail.outside = sums->outside * ACCT_SLACK;
    if (p->reverse_order > 0.0) {
        const double m = p->reverse_order;
        k->tail.direction = ACCT_REMOVE;
        k->tail.q_mass = -expm1(sums->log_stay);
        k->tail.pq_mass = exp(sums->log_stay) * -expm1(sums->log_stay_ratio);
        k->tail.mass_err = (sums->stay_err + ACCT_U * (16.0 + sums->parts)) *
                               (1.0 - sums->log_stay - sums->log_stay_ratio) +
                           acct_min(sums->below * ACCT_SLACK, 1.0);
        k->tail.lost = sums->lost;
        k->tail.reverse_slope = m + 1.0;
        k->tail.reverse_log = acct_log_chernoff(m) + sums->reverse_log + sums->reverse_events +
                              1e-9 * (1.0 + fabs(sums->reverse_log));
    }
}
