#include "exchange_rare_profile.h"

#include <math.h>

/* logs of the relative errors of delta aimed at; ways: all steps together, or without those that are all small */
static const double FINE[] = {-25.0, -17.0};
#define WAYS 2
#define MOST_LINES 6
#define NARROW 3e-8

/* a walk of lines, each where the last one ended */
static void walk(acct_exchange_rare *r, double delta, double start, int small, acct_bounds *out) {
    double at = acct_min(acct_max(start, out->lower), out->upper);
    for (int i = 0; i < MOST_LINES && at > 0.0; i++) {
        acct_bounds bracket;
        r->epsilon = at;
        if (!acct_exchange_rare_line(r, small)) return;
        acct_invert(acct_contour_at, r->contour, at, delta, &bracket);
        acct_bounds_intersect(out, bracket.lower, bracket.upper);
        const double next = acct_invert_estimate(acct_contour_at, r->contour, at, delta);
        if (acct_bounds_are_narrow(out, NARROW) || !(fabs(next - at) > 1e-3 * next)) return;
        at = next;
    }
}

void acct_exchange_rare_epsilon(acct_exchange_rare *r, double delta, acct_bounds *out) {
    r->log_delta = log(delta);
    const double start = acct_exchange_rare_guess(r, delta);
    for (int i = 0; i < WAYS * 2 && !acct_bounds_are_narrow(out, 1e-7); i++) {
        r->fine = FINE[i / WAYS];
        walk(r, delta, start, i % WAYS, out);
    }
}

void acct_exchange_rare_delta(acct_exchange_rare *r, double epsilon, acct_bounds *out) {
    const double single = r->steps * acct_exchange_cells_single(&r->cells, epsilon);
    const acct_exchange_law *g = &r->bare;
    r->log_delta = acct_max(log(acct_max(acct_min(single, out->upper), out->lower)), -700.0);
    r->epsilon = acct_max(epsilon, 0.1 * acct_exchange_at(g->mu, g->q, g->log_1mq, 1.0).loss);
    /* each way twice: the second time about the answer of the first */
    for (int i = 0; i < 4 * WAYS && out->upper - out->lower > 1e-8 * out->upper; i++) {
        acct_profile_point p;
        r->fine = FINE[i / (2 * WAYS)];
        if (!acct_exchange_rare_line(r, i % (2 * WAYS) / 2)) continue;
        acct_contour_profile(r->contour, epsilon, &p);
        acct_bounds_intersect(out, p.bounds.lower, p.bounds.upper);
        if (p.value > 0.0) r->log_delta = acct_max(acct_min(log(p.value), log(out->upper)), -700.0);
    }
}
