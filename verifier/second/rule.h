/* The transform of one step on a line, and how it falls (Theorems K1 and K2). */
#ifndef SECOND_RULE_H
#define SECOND_RULE_H

#include "step.h"

/* Sup of |e^{cL}| over the strip above an edge of a cell (K1, 3). */
static void growth(arb_t to, const part *p, const arb_t edge, const arb_t c, const arb_t angle)
{
    arb_t s;
    arb_init(s);
    if (arb_is_negative(c)) {
        arb_cos(s, angle, prec);
        arb_log(s, s, prec);
        arb_mul(s, s, p->sigma, prec);
        arb_mul(s, s, p->sigma, prec);
        arb_div(s, s, p->furthest, prec);
    }
    arb_add(s, s, edge, prec);
    real_loss(to, p, s);
    arb_mul(to, to, c, prec);
    arb_exp(to, to, prec);
    arb_clear(s);
}

/* Nodes x_j + ia, x_j = first + jh, with L there, weights at Re s = c, and their sum. */
static void set_nodes(part *p, const arb_t first, const arb_t c)
{
    acb_t z, u;
    acb_init(z);
    acb_init(u);
    p->loss = _acb_vec_init(p->nodes);
    p->weight = _acb_vec_init(p->nodes);
    for (long j = 0; j < p->nodes; ++j) {
        arb_mul_si(acb_realref(z), p->spacing, j, prec);
        arb_add(acb_realref(z), acb_realref(z), first, prec);
        arb_set(acb_imagref(z), p->rise);
        ratio(u, p, z);
        acb_log(p->loss + j, u, prec); /* principal: 0 <= arg < pi/2 */
        acb_mul_arb(u, p->loss + j, c, prec);
        acb_exp(u, u, prec);
        density(z, p, z);
        acb_mul(u, u, z, prec);
        acb_mul_arb(p->weight + j, u, p->spacing, prec);
        arb_add(p->mass, p->mass, acb_realref(p->weight + j), prec);
    }
    acb_clear(z);
    acb_clear(u);
}

/* The window's ends; sums over its cells [x_j - h/2, x_j + h/2], and its ends, of sup N |e^{cL}|. */
static void over_cells(arb_t total, arb_t ends, part *p, const arb_t first, const arb_t c,
                       const arb_t angle)
{
    arb_t left, right, grown, before, t;
    arb_ptr all[] = {left, right, grown, before, t};
    for (size_t k = 0; k < sizeof all / sizeof *all; ++k) arb_init(all[k]);
    for (long j = 0; j <= p->nodes; ++j) {
        arb_set_si(t, 2 * j - 1);
        arb_mul_2exp_si(t, t, -1);
        arb_mul(t, t, p->spacing, prec);
        arb_add(right, first, t, prec); /* the cell's end, its node half a step before */
        growth(grown, p, right, c, angle);
        if (j == 0 || j == p->nodes) {
            arb_set(j ? p->high : p->low, right);
            real_density(t, p, right);
            arb_addmul(ends, t, grown, prec);
        }
        if (j) { /* N is largest next to 0, and e^{cL} at one of the ends: L increases */
            arb_zero(t);
            if (arb_is_positive(left)) arb_set(t, left);
            if (arb_is_negative(right)) arb_set(t, right);
            real_density(t, p, t);
            arb_max(before, before, grown, prec);
            arb_addmul(total, t, before, prec);
        }
        arb_set(before, grown);
        arb_set(left, right);
    }
    for (size_t k = 0; k < sizeof all / sizeof *all; ++k) arb_clear(all[k]);
}

/* Theorem K1: nodes, weights at Re s = c, their error, and the transform at c. */
static void set_rule(part *p, value *rule, const arb_t c)
{
    if (maybe(rule, "labels")) exit(3);
    only(rule, " rise spacing first nodes decay ");
    p->rule = rule;
    p->nodes = whole(maybe(rule, "nodes"), MOST_NODES);
    positive(p->rise, maybe(rule, "rise"));
    positive(p->spacing, maybe(rule, "spacing"));
    arb_t first, angle, limit, total, ends, t;
    arb_ptr all[] = {first, angle, limit, total, ends, t};
    for (size_t k = 0; k < sizeof all / sizeof *all; ++k) arb_init(all[k]);
    number(first, maybe(rule, "first"));
    arb_mul(angle, p->rise, p->furthest, prec);
    arb_mul_2exp_si(angle, angle, 1);
    arb_div(angle, angle, p->sigma, prec);
    arb_div(angle, angle, p->sigma, prec);
    arb_const_pi(limit, prec);
    if (!arb_is_nonnegative(c)) arb_mul_2exp_si(limit, limit, -1);
    if (!arb_lt(angle, limit)) refuse("rise is too high"); /* (K1, 1; K1, 3) */
    set_nodes(p, first, c);
    over_cells(total, ends, p, first, c, angle);
    /* (2 h total / (e^{2 pi a / h} - 1) + 2 a ends) e^{2 a^2 / sigma^2} */
    arb_const_pi(t, prec);
    arb_mul_2exp_si(t, t, 1);
    arb_mul(t, t, p->rise, prec);
    arb_div(t, t, p->spacing, prec);
    arb_expm1(t, t, prec);
    arb_mul(total, total, p->spacing, prec);
    arb_div(total, total, t, prec);
    arb_addmul(total, p->rise, ends, prec);
    arb_mul_2exp_si(total, total, 1);
    arb_div(t, p->rise, p->sigma, prec);
    arb_sqr(t, t, prec);
    arb_mul_2exp_si(t, t, 1);
    arb_exp(t, t, prec);
    arb_mul(p->error, total, t, prec);
    arb_add_error(p->mass, p->error);
    for (size_t k = 0; k < sizeof all / sizeof *all; ++k) arb_clear(all[k]);
}

/* 1 - sup |sin t' / t'| over t' >= t, from below. */
static void sinc_gap(arb_t to, const arb_t t)
{
    arb_t bound;
    arb_init(bound);
    arb_set_str(bound, "0.2173", prec); /* the largest value beyond 3 */
    arb_set_d(to, 3.0);
    if (arb_lt(t, to)) {
        arb_sinc(to, t, prec);
        arb_max(bound, bound, to, prec);
    } else if (!arb_gt(t, to))
        arb_one(bound);
    arb_sub_si(bound, bound, 1, prec);
    arb_neg(to, bound);
    arb_clear(bound);
}

/* Theorem K2 (b): takes off mass - A what intervals of the loss are sure to lose. */
static void take_off_drop(arb_t bound, const part *p, const arb_t c, const arb_t y)
{
    if (!maybe(p->rule, "decay")) return;
    value *knots = need(p->rule, "decay", 'a');
    arb_t x[2], loss[2], line, least, best, slope, middle, t;
    arb_ptr all[] = {x[0], x[1], loss[0], loss[1], line, least, best, slope, middle, t};
    for (size_t k = 0; k < sizeof all / sizeof *all; ++k) arb_init(all[k]);
    for (value *u = knots->first; u && u->next; u = u->next) {
        number(x[0], u);
        number(x[1], u->next);
        if (!arb_le(p->low, x[0]) || !arb_lt(x[0], x[1]) || !arb_le(x[1], p->high))
            refuse("decay"); /* (K2, 1) */
        real_loss(loss[0], p, x[0]);
        real_loss(loss[1], p, x[1]);
        arb_add(middle, x[0], x[1], prec);
        arb_mul_2exp_si(middle, middle, -1);
        mean_shift(slope, p, middle);
        arb_div(slope, slope, p->sigma, prec);
        arb_div(slope, slope, p->sigma, prec);
        for (int end = 0; end < 2; ++end) {
            arb_set(line, loss[end]);
            if (arb_is_nonnegative(c)) { /* the tangent at the middle */
                real_loss(line, p, middle);
                arb_sub(t, x[end], middle, prec);
                arb_addmul(line, slope, t, prec);
            }
            arb_mul(line, line, c, prec);
            arb_exp(line, line, prec);
            real_density(t, p, x[end]);
            arb_mul(least, line, t, prec);
            if (end) arb_min(best, best, least, prec);
            else arb_set(best, least);
        }
        mean_shift(t, p, x[1]);
        arb_div(best, best, t, prec);
        arb_mul(best, best, p->sigma, prec);
        arb_mul(best, best, p->sigma, prec);
        arb_sub(t, loss[1], loss[0], prec);
        arb_mul(best, best, t, prec);
        arb_mul(t, t, y, prec);
        arb_mul_2exp_si(t, t, -1);
        sinc_gap(least, t);
        arb_mul(best, best, least, prec);
        if (arb_is_positive(best)) arb_sub(bound, bound, best, prec);
    }
    for (size_t k = 0; k < sizeof all / sizeof *all; ++k) arb_clear(all[k]);
}

/* Sums over nodes: A(c + ik step) into values, and a bound beyond the last order into after. */
static void part_on_line(part *p, acb_ptr values, arb_t after, const arb_t c, const arb_t step,
                         long orders)
{
    acb_ptr turn = _acb_vec_init(p->nodes), now = _acb_vec_init(p->nodes);
    acb_t sum;
    arb_t end, bound, other, t;
    acb_init(sum);
    arb_init(end);
    arb_init(bound);
    arb_init(other);
    arb_init(t);
    arb_mul_si(end, step, orders, prec);
    arb_set(bound, p->error);
    for (long j = 0; j < p->nodes; ++j) {
        acb_mul_arb(turn + j, p->loss + j, step, prec);
        acb_mul_onei(turn + j, turn + j);
        acb_exp(turn + j, turn + j, prec);
        arb_mul(t, end, acb_imagref(p->loss + j), prec);
        arb_neg(t, t);
        arb_exp(t, t, prec);
        acb_abs(other, p->weight + j, prec);
        arb_addmul(bound, other, t, prec);
    }
    for (long k = 0; k < orders; ++k) {
        acb_zero(sum);
        for (long j = 0; j < p->nodes; ++j) {
            if (k % 16 == 0) { /* anew: each product widens the ball */
                arb_mul_si(t, step, k, prec);
                acb_mul_arb(now + j, p->loss + j, t, prec);
                acb_mul_onei(now + j, now + j);
                acb_exp(now + j, now + j, prec);
                acb_mul(now + j, now + j, p->weight + j, prec);
            } else
                acb_mul(now + j, now + j, turn + j, prec);
            acb_add(sum, sum, now + j, prec);
        }
        arb_add_error(acb_realref(sum), p->error);
        arb_add_error(acb_imagref(sum), p->error);
        acb_pow_ui(sum, sum, (ulong)p->count, prec);
        acb_mul(values + k, values + k, sum, prec);
    }
    arb_set(other, p->mass);
    take_off_drop(other, p, c, end);
    arb_min(bound, bound, other, prec);
    arb_pow_ui(bound, bound, (ulong)p->count, prec);
    arb_mul(after, after, bound, prec);
    _acb_vec_clear(turn, p->nodes);
    _acb_vec_clear(now, p->nodes);
    acb_clear(sum);
    arb_clear(end);
    arb_clear(bound);
    arb_clear(other);
    arb_clear(t);
}

#endif
