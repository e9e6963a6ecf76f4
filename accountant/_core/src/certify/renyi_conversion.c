#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#include "renyi.h"
#include "rounding.h"
#include "bounds.h"

/* Plain K, K', K'' for the search, on fixed coarse nodes around the bulk and a moving one around
 * the far mode (only where it counts). */
static void search_moments(acct_tilted_law *bulk, acct_tilted_law *far, const acct_step *step, double c,
                           double *k, double *k1, double *k2) {
    acct_moments m;
    acct_tilted_law_moments(bulk, c, 0, &m);
    *k = m.log_mgf;
    *k1 = m.mean;
    *k2 = m.m2;
    const double var = step->sigma * step->sigma, edge = bulk->hi;
    double x = c, p; /* the far mode, x = c p, walked to from above */
    if (x < edge - 4.0 * step->sigma) return;
    for (int i = 0; i < 30; i++) {
        acct_loss(step, x, &p);
        if (fabs(c * p - x) < 1e-2 * step->sigma) break;
        x = c * p;
    }
    if (x < edge - 4.0 * step->sigma) return;
    const double top = c * acct_loss(step, x, NULL) - 0.5 * x * x / var;
    if (top < -35.0) return;
    const acct_window w = {.lo = acct_max(edge, x - 7.0 * step->sigma), .hi = x + 7.0 * step->sigma};
    if (acct_tilted_law_set(far, step, &w, c, 0.0, top - 12.0)) return;
    double s0 = 0.0, s1 = 0.0, s2 = 0.0;
    for (int j = 0; j < far->count; j++) {
        const double e = far->quad[j] * exp(c * far->loss[j] - far->x2[j] - top);
        s0 += e;
        s1 += e * far->loss[j];
        s2 += e * far->loss[j] * far->loss[j];
    }
    const double shift = acct_max(*k, top), a = exp(*k - shift), b = exp(top - shift);
    const double t0 = a + b * s0, t1 = a * *k1 + b * s1, t2 = a * (*k2 + *k1 * *k1) + b * s2;
    *k = *k < 1e-3 && top < -1.0 ? *k + b * s0 : shift + log(t0);
    *k1 = t1 / t0;
    *k2 = t2 / t0 - *k1 * *k1;
}

/* laws for the search: of the bulk, and of the far mode; `gaussian`: K of the whole Gaussian is used
 * instead, which is exact at q = 1 and an upper bound otherwise */
typedef struct {
    acct_tilted_law bulk, far;
    const acct_step *step;
    double steps, log_delta;
    int gaussian;
} order_search;

static void cumulants_at(order_search *s, double b, double *k, double *k1, double *k2) {
    const double var = s->step->sigma * s->step->sigma, a = 1.0 + b;
    *k = 0.5 * a * b / var;
    *k1 = (a - 0.5) / var;
    *k2 = 1.0 / var;
    if (!s->gaussian) search_moments(&s->bulk, &s->far, s->step, a, k, k1, k2);
}

/* Log of the distance of the best order from 1: the stationary point of the conversion,
 * n ((a-1) K' - K) + log(delta a) = 0, whose left side increases; safeguarded Newton. */
static double best_log_distance(order_search *s) {
    const double steps = s->steps;
    double k, k1, k2, lo = -60.0, hi = 60.0;
    double t = 0.5 * log(-2.0 * s->log_delta / steps * (s->step->sigma * s->step->sigma));
    if (!s->gaussian) {
        search_moments(&s->bulk, &s->far, s->step, 1.0001, &k, &k1, &k2);
        t = 0.5 * log(-2.0 * s->log_delta / (steps * k2 + 1e-300));
    }
    for (int i = 0; i < 60; i++) {
        const double b = exp(t);
        cumulants_at(s, b, &k, &k1, &k2);
        const double g = b * k1 - k, r = -s->log_delta - log1p(b), h = steps * g - r;
        if (h > 0.0 || !(h == h))
            hi = t;
        else
            lo = t;
        double next = t - h / (steps * b * k2 * b + b / (1.0 + b));
        if (g > 0.0 && r > 0.0) /* on logarithms: K grows like b^2, and far like e^{b^2} */
            next = t - log(steps * g / r) / (b * b * k2 / g + b / ((1.0 + b) * r));
        if (!(next > t - 1.5)) next = t - 1.5;
        if (next > t + 1.5) next = t + 1.5;
        if (!(next > lo && next < hi)) next = 0.5 * (lo + hi);
        if (fabs(next - t) < 1e-4 || hi - lo < 1e-4) break;
        t = next;
    }
    return t;
}

/* The conversion at the order a > 1, rounded up: Canonne, Kamath, Steinke 2020, Proposition 12; in Python
 * the formula stands in analyses/renyi_conversion.py, and a test compares the two.  `renyi` is
 * an upper bound on one step's divergence; b = a - 1 is exact, or rounded once.  Eight u of every summand,
 * and of what was divided by b, cover the operations. */
static double convert_upper(double steps, double log_delta, double a, double renyi) {
    const double b = a - 1.0, log_a = log(a), log_b = log(b);
    const double x = steps * renyi, y = log_b - log_a, z = -(log_delta + log_a) / b;
    const double round = 8.0 * ACCT_U *
                         (x + fabs(log_b) + log_a + 1.0 + (fabs(z) * b + fabs(log_delta) + log_a) / b);
    const double bound = x + y + z + round;
    return bound > 0.0 ? bound : 0.0;
}

/* Sampling probabilities below it: A(c) - 1 is rounding in what the search adds up, or all of it. */
#define RARE 1e-10
#define GOLDEN 0.6180339887498949

/* epsilon by the order of distance e^t */
static double converted(const order_search *s, acct_tilted_law *law, double t) {
    const double a = 1.0 + exp(t);
    acct_bounds d;
    if (acct_renyi_with(law, s->step, a, ACCT_REMOVE, &d)) return INFINITY;
    return convert_upper(s->steps, s->log_delta, a, d.upper);
}

/* The log of the distance of the best order, by what orders certify: the conversion falls, then rises. */
static double golden_log_distance(const order_search *s, acct_tilted_law *law) {
    double lo = -8.0, hi = 36.0, x = hi - GOLDEN * (hi - lo), y = lo + GOLDEN * (hi - lo);
    double at_x = converted(s, law, x), at_y = converted(s, law, y);
    while (hi - lo > 1e-4) {
        if (at_x <= at_y || at_x == INFINITY) { /* what no sum certifies is on the rise */
            if (at_x == 0.0) return x;
            hi = y;
            y = x;
            at_y = at_x;
            x = hi - GOLDEN * (hi - lo);
            at_x = converted(s, law, x);
        } else {
            if (at_y == 0.0) return y;
            lo = x;
            x = y;
            at_x = at_y;
            y = lo + GOLDEN * (hi - lo);
            at_y = converted(s, law, y);
        }
    }
    return at_x <= at_y ? x : y; /* one that was certified */
}

int acct_psg_epsilon_renyi(double q, double sigma, double steps, double delta, double *epsilon,
                           double *order) {
    *epsilon = INFINITY;
    *order = 2.0;
    if (!acct_valid_noise(q, sigma) || !acct_valid_delta(delta) || !acct_valid_steps(steps))
        return ACCT_EDOMAIN;
    if (q == 0.0 || sigma == INFINITY || steps == 0.0) {
        *epsilon = 0.0;
        return ACCT_OK;
    }
    if (!(0.5 / sigma / sigma * steps < 1e280)) return ACCT_OK;
    const acct_step step = acct_step_make(acct_max(q, ACCT_LEAST_Q), sigma);
    double *memory = malloc(2 * ACCT_TILTED_LAW_DOUBLES(ACCT_MAX_NODES) * sizeof(double));
    if (!memory) return ACCT_ENOMEM;
    order_search s = {.step = &step, .steps = steps, .log_delta = log(delta), .gaussian = q == 1.0};
    acct_tilted_law_place(&s.bulk, memory, ACCT_MAX_NODES);
    acct_tilted_law_place(&s.far, memory + ACCT_TILTED_LAW_DOUBLES(ACCT_MAX_NODES), ACCT_MAX_NODES);
    const acct_window window = {.lo = -9.0 * sigma, .hi = 1.0 + 9.0 * sigma};
    const int rare = q < RARE;
    if (!rare && !s.gaussian && acct_tilted_law_set(&s.bulk, &step, &window, 2.0, 0.0, -log(steps) - 9.0))
        s.gaussian = 1;
    /* the order, as rounded, is what certifies */
    const double distance = exp(rare ? golden_log_distance(&s, &s.bulk) : best_log_distance(&s));
    const double a = acct_max(1.0 + distance, 1.0 + 2.0 * ACCT_LIBM);
    acct_bounds d;
    int status = s.gaussian ? ACCT_EPRECISION : acct_renyi_with(&s.bulk, &step, a, ACCT_EITHER, &d);
    if (status == ACCT_EPRECISION) {
        d.upper = 0.5 * a / (sigma * sigma) * (1.0 + 16.0 * ACCT_U);
        status = ACCT_OK;
    }
    *epsilon = convert_upper(steps, s.log_delta, a, d.upper);
    *order = a;
    free(memory);
    return status;
}
