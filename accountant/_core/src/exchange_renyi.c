#include <math.h>
#include <stdlib.h>

#include "exchange.h"
#include "exchange_law.h"
#include "loss.h"
#include "rounding.h"
#include "status.h"

/* Beyond them exponentials are taken apart, and orders near 1 make no difference of 1. */
#define MOST_EXPONENT 600.0
#define FINE_DIGITS 64.0
#define DIGITS 36.0

/* A bound on what is beyond the nodes of the parts of G (Theorem D21): Ne^{cU + (1-c)W}, cNe^U and (c-1)Ne^W, the
 * latter at most what is beyond -lo under P. */
static double outside(const acct_exchange_law *law, double c) {
    const double lo = law->first * law->h, hi = (law->first + law->count - 1.0) * law->h;
    const double mu = law->mu, q = law->q, l = law->log_1mq;
    return exp(acct_exchange_log_outside(mu, q, l, c, lo, hi)) +
           2.0 * c *
               (exp(acct_exchange_log_outside(mu, q, l, 1.0, lo, hi)) +
                exp(acct_exchange_log_outside(mu, q, l, 1.0, lo, -lo)));
}

/* A(c) - 1 as a sum of positive terms N e^U (E2(tL) + t E2(-L)), t = c - 1
 * returns  0 where it is not resolved */
static int excess(acct_exchange_law *law, double c, acct_bounds *out) {
    const double t = c - 1.0;
    acct_exchange_moments m;
    double lattice, sum = 0.0, doubt = 0.0;
    acct_exchange_moments_set(law, c, 0.0, &m, &lattice);
    if (!(m.log_mgf + m.log_mgf_err < MOST_EXPONENT && lattice < 1e-3)) return 0;
    for (int j = 0; j < law->count; j++) {
        const double l = law->loss[j], e = law->doubt[j], up = law->rest[j] + l;
        if (!(fabs(c * l) < MOST_EXPONENT && fabs(up) < 1e300)) return 0;
        const double w = exp(up), g = acct_e2(t * l) + t * acct_e2(-l), move = c * fabs(expm1(t * l));
        sum += w * g;
        doubt += w * (g * (e + ACCT_U * (80.0 + 8.0 * (fabs(up) + fabs(c * l) + law->count))) +
                      1.01 * e * move + 2.2 * e * e * c * c * acct_max(1.0, exp(t * l)));
    }
    const double unit = law->h / ACCT_SQRT_2PI, s = unit * sum;
    const double off =
        1.02 * (unit * doubt + lattice * (2.0 * c + 1.0) * exp(m.log_mgf + m.log_mgf_err) + outside(law, c)) +
        8.0 * ACCT_U * s;
    if (!(off < 0.1 * s)) return 0;
    *out = (acct_bounds){s - off, s + off};
    return 1;
}

int acct_exchange_renyi(double mu, double q, double order, acct_bounds *out) {
    *out = (acct_bounds){0.0, INFINITY};
    if (!(q > 0.0 && q < 1.0 && mu > 0.0 && mu <= 40.0 && order > 1.0 && order < INFINITY))
        return ACCT_EDOMAIN;
    double *memory = malloc(ACCT_EXCHANGE_DOUBLES * sizeof(double)), lattice;
    if (!memory) return ACCT_ENOMEM;
    acct_exchange_law law;
    acct_exchange_moments m;
    acct_bounds e;
    const double t = order - 1.0;
    if (acct_exchange_law_set(&law, memory, mu, q, order, 0.0, DIGITS)) {
        acct_exchange_moments_set(&law, order, 0.0, &m, &lattice);
        if (m.log_mgf_err < INFINITY)
            acct_bounds_intersect(out, acct_max((m.log_mgf - m.log_mgf_err) / t * (1.0 - 4.0 * ACCT_U), 0.0),
                                  (m.log_mgf + m.log_mgf_err) / t * (1.0 + 4.0 * ACCT_U));
    }
    if (acct_exchange_law_set(&law, memory, mu, q, order, 0.0, FINE_DIGITS) && excess(&law, order, &e))
        acct_bounds_intersect(out, log1p(e.lower) / t * (1.0 - 16.0 * ACCT_U),
                              log1p(e.upper) / t * (1.0 + 16.0 * ACCT_U));
    free(memory);
    return ACCT_OK;
}
