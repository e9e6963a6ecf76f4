#include "calibration_guess.h"

#include <math.h>
#include <stdlib.h>

#include "gaussian.h"
#include "order.h"
#include "plan.h"
#include "saddle_point.h"
#include "status.h"
#include "subsampled_gaussian.h"

/* values tried; the step in log(value) that ends the search, and the longest */
#define MOST_TRIES 10
#define CLOSE 1e-3
#define LONGEST 1.0
/* Newton's steps to one saddle point, and the change of log b that ends them */
#define MOST_NEWTON 4
#define SETTLED 1e-6
/* for derivatives by differences */
#define APART 1e-4
/* less noise has losses that leave the doubles */
#define LEAST_SIGMA 0.05

typedef struct {
    acct_tilted_law law;
    acct_unknown *asked;
    double epsilon, log_delta;
    double rate; /* -d log(delta) / d epsilon, at the last value tried */
} guess;

/* log of the factor of the saddle-point expansion's first two orders, by the cumulants of the exponent
 * n K(b) - b eps - log b - log(1 + b); the law's weights are those of its saddle point */
static double log_factor(const acct_tilted_law *law, double mean, double steps, double b) {
    double m2 = 0.0, m3 = 0.0, m4 = 0.0;
    for (int j = 0; j < law->count; j++) {
        const double d = law->loss[j] - mean, w = law->weight[j] * d * d;
        m2 += w;
        m3 += w * d;
        m4 += w * d * d;
    }
    const double s = 1.0 / b, t = 1.0 / (b + 1.0), s2 = s * s, t2 = t * t;
    const double second = steps * m2 + s2 + t2, third = steps * m3 - 2.0 * (s2 * s + t2 * t);
    const double fourth = steps * (m4 - 3.0 * m2 * m2) + 6.0 * (s2 * s2 + t2 * t2);
    const double change = (fourth - 5.0 / 3.0 * third * third / second) / (8.0 * second * second);
    return (fabs(change) < 0.5 ? log1p(change) : 0.0) - 0.5 * log(2.0 * ACCT_PI * second);
}

/* log delta(epsilon) on the nodes of the law, by the saddle point next to *b, which becomes that */
static double log_profile(acct_tilted_law *law, double steps, double epsilon, double *b) {
    acct_moments m;
    double t = log(*b), log_delta = NAN;
    for (int i = 0; i < MOST_NEWTON; i++) {
        const double r = 1.0 / *b, s = 1.0 / (*b + 1.0);
        acct_tilted_law_moments(law, acct_order_at(ACCT_REMOVE, *b), 0, &m);
        const double gap = steps * m.mean - r - s - epsilon, curvature = steps * m.m2 + r * r + s * s;
        log_delta = steps * m.log_mgf - *b * epsilon + log(r) + log(s) + log_factor(law, m.mean, steps, *b) -
                    0.5 * gap * gap / curvature; /* what is left to the saddle point, to second order */
        const double move = fmax(fmin(-gap / (*b * curvature), 1.5), -1.5);
        if (fabs(move) < SETTLED) break;
        t += move;
        *b = exp(t);
    }
    return log_delta;
}

/* Log of the expected part of the profile of steps whose own loss is above epsilon: where a record is hardly
 * ever used, and noise is small, one step spends everything. */
static double log_single(const acct_unknown *a, double epsilon) {
    acct_bounds one;
    acct_single_delta(a->q, a->sigma, epsilon, ACCT_REMOVE, &one);
    return log(a->steps * one.upper);
}

static int is_rare(const acct_unknown *a) {
    const double used = a->steps * a->q;
    return used < 2.0 && (a->sigma < 2.0 || used < 0.05);
}

/* log(delta(epsilon) / delta); NaN where the approximations have none */
static double excess_of(guess *g, const acct_unknown *a) {
    const double near = g->epsilon * (1.0 + APART);
    const int valid = a->q >= ACCT_LEAST_Q && a->q < 1.0 && a->sigma > LEAST_SIGMA && a->sigma < 1e100;
    double here, there;
    if (!valid || !(a->steps > 1.0)) return NAN;
    if (is_rare(a)) {
        here = log_single(a, g->epsilon);
        there = log_single(a, near);
    } else {
        const acct_step step = acct_step_make(a->q, a->sigma);
        const acct_window window = acct_plan_window(&step, a->steps, ACCT_REMOVE, g->log_delta);
        acct_saddle s;
        if (acct_saddle_at_epsilon(&g->law, &step, a->steps, ACCT_REMOVE, &window, g->epsilon, &s))
            return NAN;
        here = log_profile(&g->law, a->steps, g->epsilon, &s.b);
        there = log_profile(&g->law, a->steps, near, &s.b);
    }
    g->rate = (here - there) / (g->epsilon * APART);
    return g->rate > 0.0 ? here - g->log_delta : NAN;
}

/* the same with e^t for the unknown */
static double excess(guess *g, double t) {
    const double before = *g->asked->unknown;
    *g->asked->unknown = exp(t);
    const double found = excess_of(g, g->asked);
    *g->asked->unknown = before;
    return found;
}

/* Secants from *t with the slope `power` of log epsilon; leaves *t near a root, and returns whether there is
 * one. */
static int approach(guess *g, double *t, double power) {
    double y = excess(g, *t), slope = power * g->epsilon * g->rate;
    for (int i = 0; i < MOST_TRIES && isfinite(y); i++) {
        const double step = fmax(fmin(-y / slope, LONGEST), -LONGEST), before = y;
        *t += step;
        if (fabs(step) < CLOSE) return 1;
        y = excess(g, *t);
        const double rise = (y - before) / step;
        if (rise * slope > 0.0) slope = rise;
    }
    return 0;
}

int acct_calibration_guess(acct_unknown *asked, double epsilon, double delta, double *value, double *power) {
    guess *g = malloc(sizeof *g);
    double *memory = malloc(ACCT_TILTED_LAW_DOUBLES(ACCT_MAX_NODES) * sizeof(double));
    double t = log(*value);
    int found = g && memory ? 0 : ACCT_ENOMEM;
    if (!found && isfinite(t)) {
        acct_tilted_law_place(&g->law, memory, ACCT_MAX_NODES);
        g->asked = asked;
        g->epsilon = epsilon;
        g->log_delta = log(delta);
        found = approach(g, &t, *power);
    }
    if (found > 0) {
        const double along = excess(g, t + APART), here = excess(g, t), slope = (along - here) / APART;
        const double at = exp(t - here / slope), rise = slope / (epsilon * g->rate);
        found = at > 0.0 && at < INFINITY && isfinite(rise) && rise != 0.0;
        if (found) {
            *value = at;
            *power = rise;
        }
    }
    free(memory);
    free(g);
    return found;
}
