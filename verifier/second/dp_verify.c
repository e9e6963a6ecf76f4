/* A second checker of certificates, for noise with random shifts and evidence without labels.
 *
 * It shares nothing with the first (verifier/dp_verifier) but the theorems that both were written
 * from, docs/theorems_certificates.md (K), docs/theorems.md and docs/theorems_mixtures.md (D), and
 * Arb's balls. Exit code 0: shown; 1: refused; 3: a kind of evidence that only the first knows.
 *
 *     cc -O2 dp_verify.c -o dp_verify_c -lflint-arb -lflint -lm     (-lflint alone from FLINT 3)
 */
#include <acb.h>
#include <arb.h>
#include <arb_hypgeom.h>
#include <time.h>

#include "json.h"

enum { MOST_PARTS = 100, MOST_SHIFTS = 2000, MOST_NODES = 10000, MOST_ORDERS = 100000,
       MOST_PRODUCTS = 300000000, MOST_TERMS = 500000 };
static const long MOST_STEPS = 1000000000000000L;
static const clock_t MOST_SECONDS = 15; /* after which no higher precision is begun */
static slong prec;

typedef struct {
    value *given, *rule;
    long count, shifts, nodes;
    int plain;
    arb_t sigma, still, furthest, low, high, rise, spacing, mass, error;
    arb_ptr d, w;
    acb_ptr loss, weight;
} part;

static void number(arb_t to, const value *from)
{
    if (!from || from->kind != 'n' || arb_set_str(to, from->text, prec) || !arb_is_finite(to))
        refuse("a number was expected");
}

static void positive(arb_t to, const value *from)
{
    number(to, from);
    if (!arb_is_positive(to)) refuse("a number must be positive");
}

/* Everything that a document says of a part, at the precision that now holds. */
static void read_part(part *p, value *given)
{
    p->given = given;
    p->count = whole(maybe(given, "count"), MOST_STEPS);
    if (maybe(given, "lost") || !maybe(given, "sigma")) exit(3);
    only(given, " sigma shifts weights count ");
    value *shifts = need(given, "shifts", 'a'), *weights = need(given, "weights", 'a');
    p->shifts = (long)length(shifts);
    if (p->shifts < 1 || p->shifts > MOST_SHIFTS || (size_t)p->shifts != length(weights))
        refuse("shifts and weights");
    p->d = _arb_vec_init(p->shifts);
    p->w = _arb_vec_init(p->shifts);
    arb_ptr fields[] = {p->sigma, p->still, p->furthest, p->low, p->high, p->rise, p->spacing,
                        p->mass, p->error};
    for (size_t k = 0; k < sizeof fields / sizeof *fields; ++k) arb_init(fields[k]);
    positive(p->sigma, need(given, "sigma", 'n'));
    arb_one(p->still);
    value *u = shifts->first, *v = weights->first;
    for (long j = 0; j < p->shifts; ++j, u = u->next, v = v->next) {
        positive(p->d + j, u);
        number(p->w + j, v);
        if (arb_is_negative(p->w + j)) refuse("a weight must not be negative");
        arb_sub(p->still, p->still, p->w + j, prec);
        arb_max(p->furthest, p->furthest, p->d + j, prec);
    }
    p->plain = p->shifts == 1 && arb_equal_si(p->w, 1);
    if (p->plain)
        arb_zero(p->still);
    else if (!arb_is_positive(p->still))
        refuse("the weights must leave something, or be 1");
}

/* e^{L(z)}. */
static void ratio(acb_t to, const part *p, const acb_t z)
{
    acb_t u;
    arb_t s;
    acb_init(u);
    arb_init(s);
    acb_set_arb(to, p->still);
    arb_sqr(s, p->sigma, prec);
    arb_mul_2exp_si(s, s, 1);
    for (long j = 0; j < p->shifts; ++j) {
        acb_mul_2exp_si(u, z, 1);
        acb_sub_arb(u, u, p->d + j, prec);
        acb_mul_arb(u, u, p->d + j, prec);
        acb_div_arb(u, u, s, prec);
        acb_exp(u, u, prec);
        acb_mul_arb(u, u, p->w + j, prec);
        acb_add(to, to, u, prec);
    }
    arb_clear(s);
    acb_clear(u);
}

static void real_loss(arb_t to, const part *p, const arb_t x)
{
    acb_t z, r;
    acb_init(z);
    acb_init(r);
    acb_set_arb(z, x);
    ratio(r, p, z);
    arb_log(to, acb_realref(r), prec);
    acb_clear(z);
    acb_clear(r);
}

/* N(z) = exp(-z^2 / 2 sigma^2) / (sigma sqrt(2 pi)). */
static void density(acb_t to, const part *p, const acb_t z)
{
    arb_t s;
    arb_init(s);
    acb_div_arb(to, z, p->sigma, prec);
    acb_sqr(to, to, prec);
    acb_mul_2exp_si(to, to, -1);
    acb_neg(to, to);
    acb_exp(to, to, prec);
    arb_const_pi(s, prec);
    arb_mul_2exp_si(s, s, 1);
    arb_sqrt(s, s, prec);
    arb_mul(s, s, p->sigma, prec);
    acb_div_arb(to, to, s, prec);
    arb_clear(s);
}

static void real_density(arb_t to, const part *p, const arb_t x)
{
    acb_t z, r;
    acb_init(z);
    acb_init(r);
    acb_set_arb(z, x);
    density(r, p, z);
    arb_set(to, acb_realref(r));
    acb_clear(z);
    acb_clear(r);
}

/* P{normal > x}. */
static void above(arb_t to, const arb_t x)
{
    arb_t root;
    arb_init(root);
    arb_sqrt_ui(root, 2, prec);
    arb_div(to, x, root, prec);
    arb_hypgeom_erfc(to, to, prec);
    arb_mul_2exp_si(to, to, -1);
    arb_clear(root);
}

/* The mass above x under the law that moves, or under the other one. */
static void mass_above(arb_t to, const part *p, const arb_t x, int moves)
{
    arb_t u, total;
    arb_init(u);
    arb_init(total);
    arb_div(u, x, p->sigma, prec);
    above(total, u);
    if (moves) {
        arb_mul(total, total, p->still, prec);
        for (long j = 0; j < p->shifts; ++j) {
            arb_sub(u, x, p->d + j, prec);
            arb_div(u, u, p->sigma, prec);
            above(u, u);
            arb_addmul(total, u, p->w + j, prec);
        }
    }
    arb_set(to, total);
    arb_clear(u);
    arb_clear(total);
}

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

/* Theorem K1: nodes, weights at Re s = c, their error, and the transform at c. */
static void set_rule(part *p, value *rule, const arb_t c)
{
    if (maybe(rule, "labels")) exit(3);
    only(rule, " rise spacing first nodes decay ");
    p->rule = rule;
    p->nodes = whole(maybe(rule, "nodes"), MOST_NODES);
    positive(p->rise, maybe(rule, "rise"));
    positive(p->spacing, maybe(rule, "spacing"));
    p->loss = _acb_vec_init(p->nodes);
    p->weight = _acb_vec_init(p->nodes);
    arb_t first, angle, limit, left, right, grown, before, total, ends, t;
    arb_ptr all[] = {first, angle, limit, left, right, grown, before, total, ends, t};
    for (size_t k = 0; k < sizeof all / sizeof *all; ++k) arb_init(all[k]);
    acb_t z, u;
    acb_init(z);
    acb_init(u);
    number(first, maybe(rule, "first"));
    arb_mul(angle, p->rise, p->furthest, prec);
    arb_mul_2exp_si(angle, angle, 1);
    arb_div(angle, angle, p->sigma, prec);
    arb_div(angle, angle, p->sigma, prec);
    arb_const_pi(limit, prec);
    if (!arb_is_nonnegative(c)) arb_mul_2exp_si(limit, limit, -1);
    if (!arb_lt(angle, limit)) refuse("rise is too high"); /* (K1, 1; K1, 3) */
    for (long j = 0; j <= p->nodes; ++j) {
        arb_set_si(t, 2 * j - 1);
        arb_mul_2exp_si(t, t, -1);
        arb_mul(t, t, p->spacing, prec);
        arb_add(right, first, t, prec); /* the cell's end, its node half a step further */
        growth(grown, p, right, c, angle);
        if (j == 0 || j == p->nodes) {
            arb_set(j ? p->high : p->low, right);
            real_density(t, p, right);
            arb_addmul(ends, t, grown, prec);
        }
        if (j) {
            arb_zero(t);
            if (arb_is_positive(left)) arb_set(t, left);
            if (arb_is_negative(right)) arb_set(t, right);
            real_density(t, p, t);
            arb_max(before, before, grown, prec);
            arb_addmul(total, t, before, prec);
        }
        arb_set(before, grown);
        arb_set(left, right);
        if (j == p->nodes) break;
        arb_mul_si(acb_realref(z), p->spacing, j, prec);
        arb_add(acb_realref(z), acb_realref(z), first, prec);
        arb_set(acb_imagref(z), p->rise);
        ratio(u, p, z);
        acb_log(p->loss + j, u, prec);
        acb_mul_arb(u, p->loss + j, c, prec);
        acb_exp(u, u, prec);
        density(z, p, z);
        acb_mul(u, u, z, prec);
        acb_mul_arb(p->weight + j, u, p->spacing, prec);
        arb_add(p->mass, p->mass, acb_realref(p->weight + j), prec);
    }
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
    acb_clear(z);
    acb_clear(u);
}

/* The mean of the shift under its posterior law. */
static void mean_shift(arb_t to, const part *p, const arb_t x)
{
    arb_t u, v, s, total;
    arb_init(u);
    arb_init(v);
    arb_init(s);
    arb_init(total);
    arb_sqr(s, p->sigma, prec);
    arb_mul_2exp_si(s, s, 1);
    arb_set(total, p->still);
    arb_zero(v);
    for (long j = 0; j < p->shifts; ++j) {
        arb_mul_2exp_si(u, x, 1);
        arb_sub(u, u, p->d + j, prec);
        arb_mul(u, u, p->d + j, prec);
        arb_div(u, u, s, prec);
        arb_exp(u, u, prec);
        arb_mul(u, u, p->w + j, prec);
        arb_add(total, total, u, prec);
        arb_addmul(v, u, p->d + j, prec);
    }
    arb_div(to, v, total, prec);
    arb_clear(u);
    arb_clear(v);
    arb_clear(s);
    arb_clear(total);
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
    value *knots = maybe(p->rule, "decay");
    if (!knots) return;
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

/* Theorem K4 (orders > 0), or Theorem 5 (orders = 0); b, step > 0 (K4, 2; Theorem 5, 2). */
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
    value *rules = need(given, "rules", 'a'), *rule = rules->first;
    if ((long)length(rules) != size) refuse("one rule a part");
    acb_ptr values = _acb_vec_init(orders);
    acb_t s, u;
    acb_init(s);
    acb_init(u);
    for (long k = 0; k < orders; ++k) acb_one(values + k);
    arb_one(after);
    long work = 0, terms = 0;
    for (long i = 0; i < size; ++i, rule = rule->next) {
        part *p = parts + i;
        if (p->plain) {
            if (rule->kind != '0') refuse("plain noise has no rule");
            for (long k = 0; k <= orders; ++k) {
                arb_set(acb_realref(s), c);
                arb_mul_si(acb_imagref(s), step, k, prec);
                plain_transform(u, p, s);
                if (k < orders) acb_mul(values + k, values + k, u, prec);
                else acb_abs(t, u, prec);
            }
            arb_mul(after, after, t, prec);
            continue;
        }
        const long nodes = whole(maybe(rule, "nodes"), MOST_NODES);
        value *knots = maybe(rule, "decay");
        work += (orders + 100) * nodes;
        terms += p->shifts * (nodes + (knots ? (long)length(knots) : 0));
        if (work > MOST_PRODUCTS || terms > MOST_TERMS) refuse("too much work");
        set_rule(p, rule, c);
        part_on_line(p, values, after, c, step, orders);
    }
    arb_mul(t, b, epsilon, prec);
    arb_neg(t, t);
    arb_exp(t, t, prec);
    if (line) {
        arb_t total, end;
        arb_init(total);
        arb_init(end);
        arb_mul(after, after, t, prec);
        for (long k = 0; k < orders; ++k) {
            arb_set(acb_realref(s), c);
            arb_mul_si(acb_imagref(s), step, k, prec);
            acb_sub_si(u, s, 1, prec);
            acb_mul(u, u, s, prec);
            acb_div(values + k, values + k, u, prec);
            if (remove) {
                acb_sub_si(u, s, 1, prec);
                acb_neg(u, u);
            } else
                acb_set(u, s);
            acb_mul_arb(u, u, epsilon, prec);
            acb_exp(u, u, prec);
            acb_mul(u, u, values + k, prec);
            if (!k) acb_mul_2exp_si(u, u, -1);
            arb_add(total, total, acb_realref(u), prec);
        }
        arb_mul(total, total, step, prec);
        arb_mul_si(end, step, orders, prec);
        arb_div(t, step, end, prec);
        arb_add_si(t, t, 1, prec);
        arb_div(t, t, end, prec); /* step / end^2 + 1 / end */
        arb_addmul(total, t, after, prec);
        arb_const_pi(t, prec);
        arb_div(to, total, t, prec);
        arb_clear(total);
        arb_clear(end);
    } else { /* b^b / (1 + b)^(1 + b) F(c) e^(-b epsilon) */
        arb_mul(to, acb_realref(values), t, prec);
        arb_pow(t, b, b, prec);
        arb_mul(to, to, t, prec);
        arb_add_si(t, b, 1, prec);
        arb_pow(t, t, t, prec);
        arb_div(to, to, t, prec);
    }
    outside(t, parts, size, remove);
    arb_add(to, to, t, prec);
    _acb_vec_clear(values, orders);
    for (size_t k = 0; k < sizeof all / sizeof *all; ++k) arb_clear(all[k]);
    acb_clear(s);
    acb_clear(u);
}

static void bound(arb_t to, part *parts, long size, value *given, const arb_t epsilon, int remove)
{
    const char *kind = need(given, "kind", 's')->text;
    arb_t t, u, v;
    arb_init(t);
    arb_init(u);
    arb_init(v);
    if (!strcmp(kind, "never_moved") || !strcmp(kind, "plain")) only(given, " kind ");
    if (!strcmp(kind, "one_step")) only(given, " kind threshold ");
    if (!strcmp(kind, "line") || !strcmp(kind, "chernoff")) {
        windowed(to, parts, size, given, epsilon, remove);
    } else if (!strcmp(kind, "never_moved")) { /* Theorem K6 */
        arb_one(t);
        for (long i = 0; i < size; ++i) {
            arb_pow_ui(u, parts[i].still, (ulong)parts[i].count, prec);
            arb_mul(t, t, u, prec);
        }
        arb_log(u, t, prec);
        arb_neg(u, u);
        arb_sub_si(to, t, 1, prec);
        arb_neg(to, to);
        if (!remove && arb_is_positive(t) && arb_ge(epsilon, u)) arb_zero(to);
    } else if (!strcmp(kind, "plain")) { /* (Theorem 10, 3) */
        for (long i = 0; i < size; ++i) {
            if (!parts[i].plain) refuse("not all noise is plain");
            arb_div(u, parts[i].d, parts[i].sigma, prec);
            arb_sqr(u, u, prec);
            arb_addmul_si(t, u, parts[i].count, prec);
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
    } else if (!strcmp(kind, "one_step")) { /* Theorem D13 */
        if (size != 1 || parts->count != 1) refuse("one step");
        number(t, maybe(given, "threshold"));
        real_loss(u, parts, t);
        if (!remove) arb_neg(u, u);
        if (!arb_le(u, epsilon)) refuse("threshold");
        mass_above(to, parts, t, remove);
        mass_above(v, parts, t, !remove);
        if (!remove) { /* below the threshold */
            arb_sub_si(to, to, 1, prec);
            arb_neg(to, to);
            arb_sub_si(v, v, 1, prec);
            arb_neg(v, v);
        }
        arb_exp(u, u, prec);
        arb_submul(to, u, v, prec);
    } else
        exit(3);
    arb_clear(t);
    arb_clear(u);
    arb_clear(v);
}

/* Whether one direction is shown, at the first precision that decides. */
static int shown(value *claim, value *given, int remove)
{
    static part parts[MOST_PARTS];
    for (prec = 128; prec <= 1024; prec *= 2) {
        if (clock() > MOST_SECONDS * CLOCKS_PER_SEC) refuse("too much time");
        arb_t epsilon, delta, found;
        arb_init(epsilon);
        arb_init(delta);
        arb_init(found);
        number(epsilon, need(claim, "epsilon", 'n'));
        number(delta, need(claim, "delta", 'n'));
        if (!arb_is_nonnegative(epsilon)) refuse("epsilon must not be negative"); /* (K6, 1) */
        long size = 0;
        memset(parts, 0, sizeof parts);
        for (value *u = need(claim, "parts", 'a')->first; u; u = u->next) {
            if (size == MOST_PARTS) refuse("too many parts");
            read_part(parts + size++, u);
        }
        if (!size) refuse("no parts");
        for (long i = 0; i < size && !strcmp(need(claim, "relation", 's')->text, "replace-one"); ++i)
            if (!parts[i].plain) refuse("the pair of a sample is not that of replacing a record");
        bound(found, parts, size, given, epsilon, remove);
        printf("%s: H(epsilon) <= ", remove ? "remove" : "add");
        arb_printn(found, 8, 0);
        printf(" at %ld bits\n", (long)prec);
        if (arb_le(found, delta)) return 1;
        if (arb_gt(found, delta)) return 0;
    }
    return 0;
}

int main(int count, char **names)
{
    static char text[MOST_BYTES + 1];
    if (count != 2) return fprintf(stderr, "usage: dp_verify_c certificate.json\n"), 2;
    FILE *file = fopen(names[1], "rb");
    if (!file) refuse("the file cannot be read");
    const size_t size = fread(text, 1, sizeof text, file);
    fclose(file);
    if (size > MOST_BYTES || strlen(text) != size) refuse("too large, or a zero byte");
    const char *at = text;
    value *document = parsed(&at, 0);
    skip(&at);
    if (*at) refuse("more than one document");
    if (strcmp(need(document, "format", 's')->text, "dp-certificate")) refuse("format");
    only(document, " format version claim evidence note ");
    whole(maybe(document, "version"), 1);
    value *claim = need(document, "claim", 'o'), *evidence = need(document, "evidence", 'o');
    only(claim, " relation direction epsilon delta parts ");
    const char *way = need(claim, "direction", 's')->text;
    const char *relation = need(claim, "relation", 's')->text;
    const int both = !strcmp(way, "both");
    if (!both && strcmp(way, "remove") && strcmp(way, "add")) refuse("direction");
    if (strcmp(relation, "add-or-remove") && strcmp(relation, "replace-one") && strcmp(relation, "zero-out"))
        refuse("relation");
    only(evidence, both ? " remove add " : *way == 'r' ? " remove " : " add ");
    if ((both || !strcmp(way, "remove")) && !shown(claim, need(evidence, "remove", 'o'), 1))
        refuse("remove is not shown");
    if ((both || !strcmp(way, "add")) && !shown(claim, need(evidence, "add", 'o'), 0))
        refuse("add is not shown");
    printf("PASS\n");
    return 0;
}
