/* Bounds on the profile of one direction: a function for each kind of evidence. */
#ifndef SECOND_BOUNDS_H
#define SECOND_BOUNDS_H

#include "rule.h"

/* exp(n s (s - 1) d^2 / 2 sigma^2). */
static void plain_transform(acb_t to, const part *p, const acb_t s)
{
    acb_t t;
    acb_init(t);
    acb_sub_si(t, s, 1, prec);
    acb_mul(to, s, t, prec);
    acb_mul_arb(to, to, p->d, prec);
    acb_mul_arb(to, to, p->d, prec);
    acb_div_arb(to, to, p->sigma, prec);
    acb_div_arb(to, to, p->sigma, prec);
    acb_mul_2exp_si(to, to, -1);
    acb_mul_si(to, to, p->count, prec);
    acb_exp(to, to, prec);
    acb_clear(t);
}

/* Outcomes with a step outside its window (K3), for the first law of the pair. */
static void outside(arb_t to, part *parts, long size, int remove)
{
    arb_t kept, t, u;
    arb_init(kept);
    arb_init(t);
    arb_init(u);
    arb_one(kept);
    arb_zero(to);
    for (long i = 0; i < size; ++i) {
        part *p = parts + i;
        if (p->plain) continue;
        arb_div(t, p->low, p->sigma, prec);
        arb_neg(t, t);
        above(u, t);
        arb_mul_si(u, u, p->count, prec);
        arb_add(to, to, u, prec);
        mass_above(t, p, p->high, remove);
        arb_sub_si(t, t, 1, prec);
        arb_neg(t, t);
        arb_pow_ui(t, t, (ulong)p->count, prec);
        arb_mul(kept, kept, t, prec);
    }
    arb_add_si(to, to, 1, prec);
    arb_sub(to, to, kept, prec);
    arb_clear(kept);
    arb_clear(t);
    arb_clear(u);
}

/* The order c + ik step of a line. */
static void order(acb_t to, const arb_t c, const arb_t step, long k)
{
    arb_set(acb_realref(to), c);
    arb_mul_si(acb_imagref(to), step, k, prec);
}

/* F at the orders into values, and a bound on |F| beyond them into after: products over parts. */
static void compose(acb_ptr values, arb_t after, part *parts, long size, value *rules, const arb_t c,
                    const arb_t step, long orders)
{
    acb_t s, u;
    arb_t last;
    acb_init(s);
    acb_init(u);
    arb_init(last);
    for (long k = 0; k < orders; ++k) acb_one(values + k);
    arb_one(after);
    if ((long)length(rules) != size) refuse("one rule a part");
    long work = 0, terms = 0;
    value *rule = rules->first;
    for (part *p = parts; p < parts + size; ++p, rule = rule->next) {
        if (p->plain) { /* |F| decreases along the line */
            if (rule->kind != '0') refuse("plain noise has no rule");
            for (long k = 0; k <= orders; ++k) {
                order(s, c, step, k);
                plain_transform(u, p, s);
                if (k < orders) acb_mul(values + k, values + k, u, prec);
            }
            acb_abs(last, u, prec);
            arb_mul(after, after, last, prec);
            continue;
        }
        const long nodes = whole(maybe(rule, "nodes"), MOST_NODES);
        work += (orders + 100) * nodes;
        terms += p->shifts * (nodes + (long)length(maybe(rule, "decay")));
        if (work > MOST_PRODUCTS || terms > MOST_TERMS) refuse("too much work");
        set_rule(p, rule, c);
        part_on_line(p, values, after, c, step, orders);
    }
    acb_clear(s);
    acb_clear(u);
    arb_clear(last);
}

/* Theorem K4: the trapezoid sum of Theorem 2 on Re s = c, and what is beyond the last order. */
static void line_sum(arb_t to, acb_ptr values, const arb_t after, const arb_t c, const arb_t step,
                     long orders, const arb_t epsilon, int remove)
{
    acb_t s, u, v;
    arb_t end, t;
    acb_init(s);
    acb_init(u);
    acb_init(v);
    arb_init(end);
    arb_init(t);
    arb_zero(to);
    for (long k = 0; k < orders; ++k) {
        order(s, c, step, k);
        acb_sub_si(u, s, 1, prec);
        acb_mul(v, u, s, prec);
        acb_neg(u, u);
        acb_mul_arb(u, remove ? u : s, epsilon, prec);
        acb_exp(u, u, prec);
        acb_mul(u, u, values + k, prec);
        acb_div(u, u, v, prec); /* F e^{(1-s) epsilon} / s(s-1), of addition F e^{s epsilon} / s(s-1) */
        if (!k) acb_mul_2exp_si(u, u, -1);
        arb_add(to, to, acb_realref(u), prec);
    }
    arb_mul(to, to, step, prec);
    arb_mul_si(end, step, orders, prec);
    arb_div(t, step, end, prec);
    arb_add_si(t, t, 1, prec);
    arb_div(t, t, end, prec); /* step / end^2 + 1 / end */
    arb_addmul(to, t, after, prec);
    arb_const_pi(t, prec);
    arb_div(to, to, t, prec);
    acb_clear(s);
    acb_clear(u);
    acb_clear(v);
    arb_clear(end);
    arb_clear(t);
}

/* Theorem 5: b^b / (1 + b)^(1 + b) times F(c) e^(-b epsilon). */
static void one_moment(arb_t to, const arb_t moment, const arb_t b)
{
    arb_t t;
    arb_init(t);
    arb_pow(t, b, b, prec);
    arb_mul(to, moment, t, prec);
    arb_add_si(t, b, 1, prec);
    arb_pow(t, t, t, prec);
    arb_div(to, to, t, prec);
    arb_clear(t);
}

/* Theorem K4 (a line) or Theorem 5 (one moment); b, step > 0 (K4, 2; Theorem 5, 2). */
static void windowed(arb_t to, part *parts, long size, value *given, const arb_t epsilon, int remove)
{
    const int line = !strcmp(need(given, "kind", 's')->text, "line");
    const long orders = line ? whole(maybe(given, "orders"), MOST_ORDERS) : 1;
    if (maybe(given, "small") || maybe(given, "reverse")) exit(3);
    only(given, line ? " kind distance rules step orders " : " kind distance rules ");
    arb_t b, c, step, after, t;
    arb_ptr all[] = {b, c, step, after, t};
    for (size_t k = 0; k < sizeof all / sizeof *all; ++k) arb_init(all[k]);
    positive(b, maybe(given, "distance"));
    if (line) positive(step, maybe(given, "step"));
    if (remove) arb_add_si(c, b, 1, prec);
    else arb_neg(c, b);
    acb_ptr values = _acb_vec_init(orders);
    compose(values, after, parts, size, need(given, "rules", 'a'), c, step, orders);
    arb_mul(t, b, epsilon, prec);
    arb_neg(t, t);
    arb_exp(t, t, prec);
    if (line) {
        arb_mul(after, after, t, prec);
        line_sum(to, values, after, c, step, orders, epsilon, remove);
    } else {
        arb_mul(t, acb_realref(values), t, prec);
        one_moment(to, t, b);
    }
    outside(t, parts, size, remove);
    arb_add(to, to, t, prec);
    _acb_vec_clear(values, orders);
    for (size_t k = 0; k < sizeof all / sizeof *all; ++k) arb_clear(all[k]);
}

/* Theorem K6. */
static void never_moved(arb_t to, part *parts, long size, const arb_t epsilon, int remove)
{
    arb_t stays, u;
    arb_init(stays);
    arb_init(u);
    arb_one(stays);
    for (part *p = parts; p < parts + size; ++p) {
        arb_pow_ui(u, p->still, (ulong)p->count, prec);
        arb_mul(stays, stays, u, prec);
    }
    arb_sub_si(to, stays, 1, prec);
    arb_neg(to, to);
    arb_log(u, stays, prec);
    arb_neg(u, u);
    if (!remove && arb_is_positive(stays) && arb_ge(epsilon, u)) arb_zero(to);
    arb_clear(stays);
    arb_clear(u);
}

/* (Theorem 10, 3): one pair for all parts, with mu^2 the sum of count d^2 / sigma^2. */
static void plain(arb_t to, part *parts, long size, const arb_t epsilon)
{
    arb_t t, u, v;
    arb_init(t);
    arb_init(u);
    arb_init(v);
    for (part *p = parts; p < parts + size; ++p) {
        if (!p->plain) refuse("not all noise is plain");
        arb_div(u, p->d, p->sigma, prec);
        arb_sqr(u, u, prec);
        arb_addmul_si(t, u, p->count, prec);
    }
    arb_sqrt(t, t, prec);
    arb_div(u, epsilon, t, prec);
    arb_mul_2exp_si(t, t, -1);
    arb_add(v, u, t, prec);
    arb_sub(u, u, t, prec);
    above(to, u);
    above(t, v);
    arb_exp(u, epsilon, prec);
    arb_submul(to, u, t, prec);
    arb_clear(t);
    arb_clear(u);
    arb_clear(v);
}

/* Theorem D13: outcomes on one side of a threshold where the loss is at most epsilon. */
static void one_step(arb_t to, part *parts, long size, value *given, const arb_t epsilon, int remove)
{
    arb_t x, loss, other;
    arb_init(x);
    arb_init(loss);
    arb_init(other);
    if (size != 1 || parts->count != 1) refuse("one step");
    number(x, maybe(given, "threshold"));
    real_loss(loss, parts, x);
    mass_above(to, parts, x, remove);
    mass_above(other, parts, x, !remove);
    if (!remove) { /* below the threshold, of the reversed pair */
        arb_neg(loss, loss);
        arb_sub_si(to, to, 1, prec);
        arb_neg(to, to);
        arb_sub_si(other, other, 1, prec);
        arb_neg(other, other);
    }
    if (!arb_le(loss, epsilon)) refuse("threshold");
    arb_exp(loss, loss, prec);
    arb_submul(to, loss, other, prec);
    arb_clear(x);
    arb_clear(loss);
    arb_clear(other);
}

static void bound(arb_t to, part *parts, long size, value *given, const arb_t epsilon, int remove)
{
    const char *kind = need(given, "kind", 's')->text;
    if (!strcmp(kind, "line") || !strcmp(kind, "chernoff")) {
        windowed(to, parts, size, given, epsilon, remove);
    } else if (!strcmp(kind, "never_moved")) {
        only(given, " kind ");
        never_moved(to, parts, size, epsilon, remove);
    } else if (!strcmp(kind, "plain")) {
        only(given, " kind ");
        plain(to, parts, size, epsilon);
    } else if (!strcmp(kind, "one_step")) {
        only(given, " kind threshold ");
        one_step(to, parts, size, given, epsilon, remove);
    } else {
        exit(3);
    }
}

#endif
