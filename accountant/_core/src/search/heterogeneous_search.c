#include "heterogeneous_search.h"

#include <math.h>
#include <stddef.h>

#include "loss.h"
#include "order.h"
#include "rounding.h"
#include "vmath.h"

/* parts are of one cell where logarithms differ by less than a twelfth, about */
#define FINENESS 12.0

/* a number of the four logarithms, rounded; unequal ones rarely share it */
static int64_t mixture_cell(const acct_part *part) {
    double first = 0.0, second = 0.0;
    for (int j = 0; j < part->mixture->count; j++) {
        const double d = part->mixture->shift[j], w = part->mixture->weight[j];
        first += w * d;
        second += w * d * d;
    }
    const double at[4] = {part->q, part->sigma, first, second};
    uint64_t mixed = 0;
    for (int i = 0; i < 4; i++)
        mixed = mixed * UINT64_C(6364136223846793005) + (uint64_t)llround(FINENESS * log(at[i]));
    return -1100000000 - (int64_t)(mixed >> 35);
}

int64_t acct_part_cell(const acct_part *part) {
    if (part->mixture) return mixture_cell(part);
    if (part->q == 1.0) return -1000000000;
    return llround(FINENESS * log(part->q)) * 100000 + llround(FINENESS * log(part->sigma));
}

acct_window acct_part_window(const acct_part *part, int direction, double deviations, double most_loss) {
    const double reach = deviations * part->sigma, largest = part->mixture ? part->mixture->largest : 1.0;
    acct_window window = {.lo = -reach, .hi = (direction == ACCT_REMOVE ? largest : 0.0) + reach};
    if (most_loss < INFINITY && !acct_part_is_plain(part)) {
        const acct_step step = acct_part_step(part);
        const double hi = acct_max(acct_loss_inverse(&step, most_loss), acct_max(2.0 * part->sigma, 0.6));
        window.hi = acct_min(window.hi, hi);
    }
    return window;
}

int acct_coarse_nodes(const acct_part *part) {
    const double more = part->mixture ? part->mixture->largest / (8.0 * part->sigma) : 0.0;
    return ACCT_GL_ORDER * (int)acct_min(ACCT_COARSE_PANELS + ceil(more), ACCT_MOST_COARSE_PANELS);
}

void acct_coarse_place(acct_coarse *k, double *memory, int nodes) {
    k->nodes = nodes;
    k->loss = memory;
    k->gauss = memory + nodes;
    k->exp_loss = memory + 2 * nodes;
    k->e2_plus = memory + 3 * nodes;
    k->e2_minus = memory + 4 * nodes;
    k->log_gauss = memory + 5 * nodes;
}

/* a panel's nodes */
ACCT_CLONES
static void fill(acct_coarse *k, const acct_step *step, int panel, double half) {
    const int first = panel * ACCT_GL_ORDER;
    const double sigma = step->sigma, var2 = 2.0 * sigma * sigma, lo = k->lo, at = 2.0 * panel + 1.0;
    const double norm = half / (sigma * ACCT_SQRT_2PI), q = step->q, log_q = step->log_q;
    const double log_1mq = step->log_1mq, odds = step->odds;
    double *restrict loss = k->loss + first, *restrict gauss = k->gauss + first;
    double *restrict exp_loss = k->exp_loss + first;
    double *restrict e2_plus = k->e2_plus + first, *restrict e2_minus = k->e2_minus + first;
    for (int j = 0; j < ACCT_GL_ORDER && step->mixture; j++) {
        acct_mixture_point point;
        acct_mixture_at(step->mixture, lo + half * (at + ACCT_GL_NODE[j]), NULL, &point);
        loss[j] = point.loss;
    }
    for (int j = 0; j < ACCT_GL_ORDER && !step->mixture; j++) {
        double p;
        const double x = lo + half * (at + ACCT_GL_NODE[j]);
        loss[j] = acct_loss_at((2.0 * x - 1.0) / var2, q, log_q, log_1mq, odds, &p);
    }
    for (int j = 0; j < ACCT_GL_ORDER; j++) {
        const double x = lo + half * (at + ACCT_GL_NODE[j]), l = loss[j];
        gauss[j] = norm * ACCT_GL_WEIGHT[j] * acct_vexp(-x * x / var2);
        exp_loss[j] = acct_vexp(l);
        e2_plus[j] = acct_ve2(l, acct_vexpm1(l));
        e2_minus[j] = acct_ve2(-l, acct_vexpm1(-l));
    }
    /* shifts may be so far apart that losses matter where N leaves the doubles */
    for (int j = 0; j < ACCT_GL_ORDER; j++) {
        const double x = lo + half * (at + ACCT_GL_NODE[j]);
        k->log_gauss[first + j] =
            step->mixture ? log(norm * ACCT_GL_WEIGHT[j]) - x * x / var2 : log(gauss[j] + 1e-300);
    }
}

/* P - Q beyond the window */
static double excess_above(const acct_part *part, double hi, double root) {
    const double q_above = erfc(hi * root);
    if (!part->mixture) return part->q * 0.5 * (erfc((hi - 1.0) * root) - q_above);
    double sum = 0.0;
    for (int j = 0; j < part->mixture->count; j++)
        sum += part->mixture->weight[j] * 0.5 * (erfc((hi - part->mixture->shift[j]) * root) - q_above);
    return sum;
}

void acct_coarse_set(acct_coarse *k, const acct_part *part, const acct_window *window) {
    k->steps = part->steps;
    k->plain = 0.0;
    k->lowered = 1;
    if (acct_part_is_plain(part)) {
        k->plain = part->steps / (part->sigma * part->sigma);
        return;
    }
    const acct_step step = acct_part_step(part);
    const double root = 1.0 / (part->sigma * sqrt(2.0));
    const double half = 0.5 * (window->hi - window->lo) / (k->nodes / ACCT_GL_ORDER);
    k->lo = window->lo;
    k->hi = window->hi;
    k->q_above = 0.5 * erfc(k->hi * root);
    k->pq_above = excess_above(part, k->hi, root);
    k->loss_hi = acct_loss(&step, k->hi, NULL);
    for (int i = 0; i < k->nodes / ACCT_GL_ORDER; i++)
        fill(k, &step, i, half);
}

/* as in tilted_law.c: sums of one sign, so that a tiny A - 1 keeps its digits */
ACCT_CLONES
static void small(const acct_coarse *k, int remove, double c, double *a1, double *d1, double *mm) {
    const double t = remove ? c - 1.0 : c;
    const double *restrict loss = k->loss, *restrict gauss = k->gauss, *restrict exp_loss = k->exp_loss;
    const double *restrict e2_other = remove ? k->e2_minus : k->e2_plus, sign = remove ? 1.0 : -1.0;
    double a[ACCT_LANES] = {0}, d[ACCT_LANES] = {0}, m[ACCT_LANES] = {0};
    for (int j = 0; j < k->nodes; j += ACCT_LANES)
        ACCT_EACH_LANE for (int i = 0; i < ACCT_LANES; i++) {
            const double l = loss[j + i], z = t * l, em1 = acct_vexpm1(z), e2 = acct_ve2(z, em1);
            const double rest = sign * e2_other[j + i], one = exp_loss[j + i];
            const double g = gauss[j + i] * (remove ? one : 1.0);
            a[i] += g * (e2 + t * rest);
            d[i] += g * (rest + l * em1);
            m[i] += g * (1.0 + em1) * l * l;
        }
    *a1 = acct_lanes_total(a) - (k->q_above + c * k->pq_above);
    *d1 = acct_lanes_total(d) - k->pq_above;
    *mm = acct_lanes_total(m);
}

static void large(const acct_coarse *k, double c, double *log_a, double *mean, double *second) {
    double top = -INFINITY, a = 0.0, m1 = 0.0, m2 = 0.0;
    for (int j = 0; j < k->nodes; j++) top = acct_max(top, c * k->loss[j] + k->log_gauss[j]);
    for (int j = 0; j < k->nodes; j++) {
        const double w = exp(c * k->loss[j] + k->log_gauss[j] - top);
        a += w;
        m1 += w * k->loss[j];
        m2 += w * k->loss[j] * k->loss[j];
    }
    *log_a = top + log(a);
    *mean = m1 / a;
    *second = m2 / a;
}

void acct_coarse_cumulants(void *par, double b, acct_cumulants *out) {
    const acct_coarse_composition *composition = par;
    const int remove = composition->direction == ACCT_REMOVE;
    const double c = acct_order_at(composition->direction, b), sign = remove ? 1.0 : -1.0;
    *out = (acct_cumulants){0.0, 0.0, 0.0};
    for (int i = 0; i < composition->count; i++) {
        const acct_coarse *k = &composition->part[i];
        if (k->plain > 0.0) {
            out->log_mgf += 0.5 * k->plain * b * (b + 1.0);
            out->mean += k->plain * (b + 0.5);
            out->variance += k->plain;
            continue;
        }
        double log_a, mean, second;
        if (acct_max(c * k->loss[0], c * k->loss[k->nodes - 1]) < 600.0) {
            double a1, d1, mm;
            small(k, remove, c, &a1, &d1, &mm);
            log_a = log1p(a1);
            mean = d1 / (1.0 + a1);
            second = mm / (1.0 + a1);
        } else {
            large(k, c, &log_a, &mean, &second);
        }
        out->log_mgf += k->steps * log_a;
        out->mean += k->steps * sign * mean;
        out->variance += k->steps * acct_max(second - mean * mean, 1e-300);
    }
}

double acct_coarse_reverse(const acct_coarse_composition *composition, double m) {
    double log_all = 0.0, events = 0.0;
    for (int i = 0; i < composition->count; i++) {
        const acct_coarse *k = &composition->part[i];
        if (k->plain > 0.0) {
            log_all += 0.5 * k->plain * m * (m + 1.0);
            continue;
        }
        double a1, d1, mm;
        small(k, 0, -m, &a1, &d1, &mm);
        const double tail = k->q_above * exp(-m * k->loss_hi), a = 1.0 + a1 + tail;
        log_all += k->steps * log(a);
        if (k->lowered) events += k->steps * tail / a;
    }
    return acct_log_chernoff(m) + log_all + log(events);
}

double acct_coarse_variance(const acct_coarse_composition *composition, double most) {
    double var = 0.0;
    for (int i = 0; i < composition->count; i++) {
        const acct_coarse *k = &composition->part[i];
        double sum = 0.0;
        for (int j = 0; j < k->nodes && k->plain == 0.0; j++)
            if (k->loss[j] < most) sum += k->gauss[j] * k->loss[j] * k->loss[j];
        var += k->steps * sum + k->plain;
    }
    return var;
}

void acct_coarse_weights(const acct_coarse *k, double c, double *weight) {
    double top = -INFINITY, sum = 0.0;
    for (int j = 0; j < k->nodes; j++) top = acct_max(top, c * k->loss[j] + k->log_gauss[j]);
    for (int j = 0; j < k->nodes; j++) {
        const double rise = c * k->loss[j] - top, log_gauss = k->log_gauss[j];
        weight[j] = log_gauss < -695.0 ? acct_vexp(rise + log_gauss) : k->gauss[j] * acct_vexp(rise);
        sum += weight[j];
    }
    for (int j = 0; j < k->nodes; j++) weight[j] /= sum;
}

double acct_coarse_bulk(const acct_coarse_composition *composition, double b) {
    const double c = acct_order_at(composition->direction, b);
    double weight[ACCT_MOST_COARSE_NODES], sum = 0.0, steps = 0.0, mean;
    for (int i = 0; i < composition->count; i++) {
        const acct_coarse *k = &composition->part[i];
        if (k->plain > 0.0) continue;
        acct_coarse_weights(k, c, weight);
        sum += k->steps * acct_bulk(k->nodes, k->loss, weight, &mean);
        steps += k->steps;
    }
    return steps > 0.0 ? sum / steps : 0.0;
}

double acct_coarse_reach(const acct_coarse_composition *composition, double b) {
    const double c = acct_order_at(composition->direction, b);
    double weight[ACCT_MOST_COARSE_NODES], most = 0.0;
    for (int i = 0; i < composition->count; i++) {
        if (composition->part[i].plain > 0.0) continue;
        acct_coarse_weights(&composition->part[i], c, weight);
        most = acct_max(most, weight[composition->part[i].nodes - 1]);
    }
    return most;
}

void acct_heterogeneous_saddle(acct_coarse_composition *composition, enum acct_target kind, double target,
                               acct_saddle *out) {
    acct_cumulants k;
    acct_coarse_cumulants(composition, 1e-9, &k);
    const double var = k.variance + 1e-300;
    double b;
    if (kind == ACCT_AT_EPSILON) {
        const double gap = (target - k.mean) / var;
        b = gap > 0.0 ? gap + 1.0 / sqrt(var) : 1.0 / (k.mean - target + sqrt(var));
    } else {
        b = sqrt(2.0 * (0.1 - target) / var);
    }
    acct_saddle_solve(acct_coarse_cumulants, composition, kind, target, b, out);
}
