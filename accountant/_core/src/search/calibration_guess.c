#include "calibration.h"

#include <math.h>
#include <stdlib.h>

#include "gaussian.h"
#include "order.h"
#include "plan.h"
#include "saddle_point.h"
#include "bounds.h"
#include "subsampled_gaussian.h"

/* values tried, the step in log(value) that ends the search, and the longest, without and with contours */
#define MOST_GUESSES 10
#define MOST_CONTOURS 9
#define CLOSE 1e-2
#define CLOSE_CONTOURS 1e-5
#define CLOSE_COUNT 1e-4
#define LONGEST 1.0
#define LONGEST_CONTOURS 0.4
/* the log of the least count that is worth contours */
#define LEAST_LOG_COUNT 4.0
/* relative error of delta that contours are built for: the first one, others, and others for a count, whose
 * neighbours are apart; the least change of the expansion's second order that asks for them */
#define FIRST_CONTOUR 1e-2
#define CONTOUR 1e-9
#define CONTOUR_COUNT 1e-6
#define NEARLY 0.5 /* |log(delta(epsilon) / delta)| from which on the next value deserves more digits */
#define DOUBTFUL 0.1
#define FALLING 0.5 /* how small a share of the second order the third must be: the orders first fall, then grow */
#define WORTHLESS 0.3 /* nothing is gained by looking for a root of such an expansion */
/* the log of the error of K, in units of 1/steps, that a difference of approximations needs */
#define GUESS_FINE (-16.0)
/* Newton's steps to one saddle point, and the change of log b that ends them */
#define MOST_NEWTON 4
#define SETTLED 1e-6
/* for derivatives by differences */
#define DIFFERENCE 1e-4
/* less noise has losses that leave the doubles */
#define LEAST_SIGMA 0.05

typedef struct {
    acct_workspace w;
    acct_unknown *asked;
    double epsilon, log_delta;
    int contours; /* whether to build them, for approximations are not good enough */
    double tolerance, fine; /* of the next contour, and of those near the root */
    double rate;  /* -d log(delta) / d epsilon, at the last value tried */
    double doubt; /* the change of the second order there */
} guess;

/* log of the factor of the saddle-point expansion's first three orders, by the cumulants of the exponent
 * n K(b) - b eps - log b - log(1 + b); the law's weights are those of its saddle point */
static double log_factor(guess *g, double mean, double steps, double b) {
    const acct_tilted_law *law = &g->w.law;
    double m2 = 0.0, m3 = 0.0, m4 = 0.0, m5 = 0.0, m6 = 0.0;
    for (int j = 0; j < law->count; j++) {
        const double d = law->loss[j] - mean, d2 = d * d, w = law->weight[j] * d2, v = w * d2;
        m2 += w;
        m3 += w * d;
        m4 += v;
        m5 += v * d;
        m6 += v * d2;
    }
    const double s = 1.0 / b, t = 1.0 / (b + 1.0), s2 = s * s, t2 = t * t, s4 = s2 * s2, t4 = t2 * t2;
    const double second = steps * m2 + s2 + t2, deviation = sqrt(second), fourfold = second * second;
    const double k3 = (steps * m3 - 2.0 * (s2 * s + t2 * t)) / (second * deviation);
    const double k4 = (steps * (m4 - 3.0 * m2 * m2) + 6.0 * (s4 + t4)) / fourfold;
    const double k5 = (steps * (m5 - 10.0 * m3 * m2) - 24.0 * (s4 * s + t4 * t)) / (fourfold * deviation);
    const double k6 =
        (steps * (m6 - 15.0 * m4 * m2 - 10.0 * m3 * m3 + 30.0 * m2 * m2 * m2) + 120.0 * (s4 * s2 + t4 * t2)) /
        (fourfold * second);
    const double r = k3 * k3, change = k4 / 8.0 - 5.0 / 24.0 * r;
    const double next = -k6 / 48.0 + 7.0 / 48.0 * k3 * k5 + 35.0 / 384.0 * k4 * k4 - 35.0 / 64.0 * r * k4 +
                        385.0 / 1152.0 * r * r - 0.5 * change * change;
    g->doubt = fabs(change);
    const int better = g->doubt < DOUBTFUL && fabs(next) < FALLING * g->doubt;
    return tanh(change) + (better ? next : 0.0) - 0.5 * log(2.0 * ACCT_PI * second);
}

/* log delta(epsilon) on the nodes of the law, by the saddle point next to *b, which becomes that */
static double log_profile(guess *g, double steps, double epsilon, double *b) {
    acct_tilted_law *law = &g->w.law;
    acct_moments m;
    double t = log(*b), log_delta = NAN;
    for (int i = 0; i < MOST_NEWTON; i++) {
        const double r = 1.0 / *b, s = 1.0 / (*b + 1.0);
        acct_tilted_law_moments(law, acct_order_at(ACCT_REMOVE, *b), 0, &m);
        const double gap = steps * m.mean - r - s - epsilon, curvature = steps * m.m2 + r * r + s * s;
        log_delta = steps * m.log_mgf - *b * epsilon + log(r) + log(s) + log_factor(g, m.mean, steps, *b);
        const double move = acct_max(acct_min(-gap / (*b * curvature), 1.5), -1.5);
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

/* the approximation on the nodes of the saddle point, or on fine ones, whose error is as good as smooth */
static double log_expanded(guess *g, const acct_unknown *a, int fine) {
    const double half = 0.5 * DIFFERENCE * g->epsilon;
    const acct_step step = acct_step_make(a->q, a->sigma);
    const acct_window window = acct_plan_window(&step, a->steps, ACCT_REMOVE, g->log_delta);
    acct_saddle s;
    if (acct_saddle_at_epsilon(&g->w.law, &step, a->steps, ACCT_REMOVE, &window, g->epsilon, &s)) return NAN;
    if (fine && acct_tilted_law_set(&g->w.law, &step, &window, 1.0 + s.b, 0.0, GUESS_FINE - log(a->steps)))
        return NAN;
    const double before = log_profile(g, a->steps, g->epsilon - half, &s.b);
    const double beyond = log_profile(g, a->steps, g->epsilon + half, &s.b);
    g->rate = (before - beyond) / (2.0 * half);
    return 0.5 * (before + beyond);
}

/* the profile itself, but for a small share */
static double log_on_contour(guess *g, const acct_unknown *a) {
    const acct_step step = acct_step_make(a->q, a->sigma);
    acct_profile_point p;
    if (acct_plan(&g->w, &step, a->steps, ACCT_REMOVE, g->epsilon, g->log_delta, g->tolerance, NULL)) return NAN;
    acct_contour_profile(&g->w.contour, g->epsilon, &p);
    g->rate = -p.slope / p.value;
    return log(p.value);
}

/* log(delta(epsilon) / delta); NaN where the approximations have none */
static double excess_of(guess *g, const acct_unknown *a, int fine) {
    const int valid = a->q >= ACCT_LEAST_Q && a->q < 1.0 && a->sigma > LEAST_SIGMA && a->sigma < 1e100;
    double here;
    if (!valid || !(a->steps > 1.0)) return NAN;
    if (g->contours) {
        here = log_on_contour(g, a);
    } else if (is_rare(a)) {
        g->doubt = DOUBTFUL;
        here = log_single(a, g->epsilon);
        g->rate = (here - log_single(a, g->epsilon * (1.0 + DIFFERENCE))) / (g->epsilon * DIFFERENCE);
    } else {
        here = log_expanded(g, a, fine);
    }
    return g->rate > 0.0 ? here - g->log_delta : NAN;
}

/* the same with e^t for the unknown */
static double excess_at(guess *g, double t, int fine) {
    const double before = *g->asked->unknown;
    double value = exp(t);
    if (g->asked->unknown == &g->asked->steps) value = acct_max(value, 2.0);
    *g->asked->unknown = value;
    const double found = excess_of(g, g->asked, fine);
    *g->asked->unknown = before;
    return found;
}

/* Secants from *t with the slope `power` of log epsilon, in what is known to hold a root; where a step did not halve
 * the excess, to the middle of that.  Leaves *t near a root and the slope there, and returns how it found one, or 0.
 * Where one approximation gives way to another the excess may jump. */
enum { BY_SECANT = 1, BY_BISECTION = 2 };

static int approach(guess *g, double close, int tries, double *t, double *power) {
    double y = excess_at(g, *t, 0), slope = *power * g->epsilon * g->rate;
    double end[2] = {-INFINITY, INFINITY}; /* where the excess has, and has not, the sign of the slope */
    double longest = g->contours ? LONGEST_CONTOURS : LONGEST;
    int slow = 0;
    for (int i = 0; i < tries && isfinite(y); i++) {
        const double before = y, here = *t;
        end[y * slope > 0.0] = here;
        double to = here + acct_max(acct_min(-y / slope, longest), -longest);
        if (isfinite(end[1] - end[0]) && (slow || !(to > end[0] && to < end[1]))) to = 0.5 * (end[0] + end[1]);
        if (fabs(to - here) >= longest) longest *= 2.0;
        *t = to;
        *power = slope / (g->epsilon * g->rate);
        if (fabs(to - here) < close) return fabs(y) < 2.0 * close * fabs(slope) ? BY_SECANT : BY_BISECTION;
        g->tolerance = fabs(y) < NEARLY ? g->fine : FIRST_CONTOUR;
        y = excess_at(g, *t, 0);
        if (isnan(y)) { /* nothing is known there: once more, half as far */
            *t = to = 0.5 * (here + to);
            y = excess_at(g, *t, 0);
        }
        const double rise = (y - before) / (to - here);
        if (!g->contours && i > 3 && g->doubt > WORTHLESS) return 0;
        slow = fabs(y) > 0.5 * fabs(before);
        if (rise * slope > 0.0) slope = rise;
    }
    return 0;
}

/* the same once more, by a difference of approximations close to each other */
static void refine(guess *g, double *t, double *power) {
    const double along = excess_at(g, *t + 0.5 * DIFFERENCE, 1), rate = g->rate;
    const double back = excess_at(g, *t - 0.5 * DIFFERENCE, 1), slope = (along - back) / DIFFERENCE;
    const double rise = 2.0 * slope / (g->epsilon * (g->rate + rate)), ratio = rise / *power;
    if (!(ratio > 0.5 && ratio < 2.0)) return; /* one is an approximation of another kind */
    *t -= 0.5 * (along + back) / slope;
    *power = rise;
}

static int find_guess(guess *g, double *t, double *power) {
    const double start = *t, given = *power;
    const int found = approach(g, CLOSE, MOST_GUESSES, t, power);
    if (g->doubt < DOUBTFUL && found == BY_SECANT) {
        refine(g, t, power);
        return 1;
    }
    if (!found) { /* what led nowhere is no place to begin */
        *t = start;
        *power = given;
    }
    const int counts = g->asked->unknown == &g->asked->steps;
    if (counts && !(*t > LEAST_LOG_COUNT)) return found != 0;
    const double first = *t, its = *power;
    g->contours = 1;
    g->tolerance = FIRST_CONTOUR;
    g->fine = counts ? CONTOUR_COUNT : CONTOUR;
    if (approach(g, counts ? acct_max(exp(-*t), CLOSE_COUNT) : CLOSE_CONTOURS, MOST_CONTOURS, t, power)) return 1;
    *t = first;
    *power = its;
    return found != 0;
}

int acct_calibration_guess(acct_unknown *asked, double epsilon, double delta, double *value, double *power) {
    guess g = {.asked = asked, .epsilon = epsilon, .log_delta = log(delta)};
    double t = log(*value), rise = *power;
    if (!isfinite(t)) return 0;
    const int status = acct_workspace_alloc(&g.w, ACCT_MAX_NODES);
    if (status) return status;
    int found = find_guess(&g, &t, &rise);
    const double at = exp(t);
    found = found && at > 0.0 && at < INFINITY && isfinite(rise) && rise != 0.0;
    if (found) {
        *value = at;
        *power = rise;
    }
    acct_workspace_free(&g.w);
    return found;
}
