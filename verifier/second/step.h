/* One step of noise with random shifts, as the document gives it, and its loss L and density N. */
#ifndef SECOND_STEP_H
#define SECOND_STEP_H

#include <acb.h>
#include <arb.h>
#include <arb_hypgeom.h>

#include "json.h"

enum { MOST_PARTS = 100, MOST_SHIFTS = 2000, MOST_NODES = 10000, MOST_ORDERS = 100000,
       MOST_PRODUCTS = 300000000, MOST_TERMS = 500000 };
static const long MOST_STEPS = 1000000000000000L;
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

#endif
