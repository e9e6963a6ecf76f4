#include "contour.h"

#include <math.h>

#include "rounding.h"

double acct_invert_estimate(acct_profile_fn profile, const void *par, double start, double delta) {
    const double target = log(delta);
    double lo = 0.0, hi = INFINITY, x = start > 0.0 ? start : 0.0;
    for (int i = 0; i < 60; i++) {
        acct_profile_point p;
        profile(par, x, &p);
        const double gap = p.value > 0.0 ? log(p.value) - target : -INFINITY;
        if (gap > 0.0)
            lo = x;
        else
            hi = x;
        /* log delta is nearly linear in epsilon, or in log epsilon: Newton, kept in the bracket */
        double next = p.value > 0.0 && p.slope < 0.0 ? x - gap * p.value / p.slope : NAN;
        if (fabs(next - x) <= 1e-8 * x) return next; /* quadratic: good to round-off */
        if (!(next > lo)) next = hi < INFINITY ? 0.5 * (lo + hi) : 2.0 * x + 1e-6;
        if (!(next < hi)) next = 0.5 * (lo + hi);
        if (hi == INFINITY && next > 4.0 * x + 1.0) next = 4.0 * x + 1.0;
        if (fabs(gap) < 1e-14 && i > 0) return next;
        x = next;
        if (hi < 1e-300) return 0.0;
    }
    return x;
}

/* doublings of the step after which what it lands on may be far from the answer */
#define STRIDES 8

/* Bisection between a point where nothing was certified and one where something was: another such
 * point, nearer to the first */
static double nearer(acct_profile_fn profile, const void *par, double delta, int above, double fails,
                     double holds) {
    for (int i = 0; i < 50 && fabs(holds - fails) > 1e-9 * fabs(holds); i++) {
        const double middle = 0.5 * (fails + holds);
        acct_profile_point p;
        profile(par, middle, &p);
        if (above ? p.bounds.upper <= delta : p.bounds.lower > delta)
            holds = middle;
        else
            fails = middle;
    }
    return holds;
}

void acct_invert_certify(acct_profile_fn profile, const void *par, double estimate, double delta,
                         acct_bounds *out) {
    acct_profile_point p;
    profile(par, estimate, &p);
    const double rate = p.slope < 0.0 ? -1.0 / p.slope : 0.0;
    const double grain = 4.0 * ACCT_U * estimate + 1e-300;
    double step = acct_max(1.01 * rate * acct_max(p.bounds.upper - delta, 0.0), grain);
    double x = p.bounds.upper <= delta ? estimate : estimate + step;
    out->upper = INFINITY;
    double before = estimate;
    for (int i = 0; i < 60; i++) {
        acct_profile_point q;
        profile(par, x, &q);
        if (q.bounds.upper <= delta) {
            out->upper = i < STRIDES ? x : nearer(profile, par, delta, 1, before, x);
            break;
        }
        step *= 2.0;
        before = x;
        x += step;
        if (!(x < INFINITY)) break;
    }
    step = acct_max(1.01 * rate * acct_max(delta - p.bounds.lower, 0.0), grain);
    x = p.bounds.lower > delta ? estimate : estimate - step;
    out->lower = 0.0;
    before = estimate;
    for (int i = 0; i < 60 && x > 0.0; i++) {
        acct_profile_point q;
        profile(par, x, &q);
        if (q.bounds.lower > delta) {
            out->lower = i < STRIDES ? x : nearer(profile, par, delta, 0, before, x);
            break;
        }
        step *= 2.0;
        before = x;
        x -= step;
    }
}

void acct_invert(acct_profile_fn profile, const void *par, double start, double delta, acct_bounds *out) {
    acct_profile_point zero;
    profile(par, 0.0, &zero);
    if (zero.bounds.upper <= delta) {
        out->lower = out->upper = 0.0;
        return;
    }
    const double estimate = acct_invert_estimate(profile, par, start, delta);
    acct_invert_certify(profile, par, estimate, delta, out);
}
