#include "contour.h"

#include <math.h>

#include "cf_decay.h"
#include "rounding.h"
#include "vmath.h"
#include "bounds.h"

/* sets     *alias to Chernoff's bound at distance b2 from [0, 1] (Theorem 5)
 * ensures  the profile at any epsilon is at most exp(log_size - slope epsilon), in units of the contour's
 *          scale: with `certify` the errors of both log A are added, and 1e-9 for round-off
 * returns  the period at which the bound is below e^{-digits}; inf where b2 is not on the line's right (sign = +1)
 *          or left (sign = -1), or a NaN: a bound from the wrong side bounds nothing */
static double alias_at(const acct_contour *k, acct_tilted_law *law, double epsilon, double digits, double b2,
                       int sign, int certify, acct_alias *alias) {
    if (!(b2 > 0.0 && b2 < INFINITY)) return INFINITY;
    if (k->direction == ACCT_REMOVE) b2 = acct_exact_distance(b2);
    if (!(sign * (b2 - k->b) > 0.0)) return INFINITY;
    double error;
    const double log_mgf =
        acct_tilted_law_log_mgf(law, acct_order_at(k->direction, b2), certify ? &error : NULL);
    alias->log_front = acct_log_chernoff(b2) + 1e-9;
    alias->log_mgf = certify ? log_mgf + error : log_mgf;
    alias->log_size = alias->log_front + k->steps * alias->log_mgf - (k->log_scale - k->log_scale_err);
    alias->slope = b2 - k->b;
    return (alias->log_size - alias->slope * epsilon + digits) / fabs(alias->slope);
}

/* the order whose Chernoff bound needs the shortest period, and that period.  With a nearly normal
 * tilted law it is sqrt(2 digits)/spread away; heavy right tails want a closer one. */
static double alias_search(const acct_contour *k, acct_tilted_law *law, double epsilon, double digits,
                           double spread, int sign, int certify, acct_alias *best) {
    double period = INFINITY, move = sqrt(2.0 * digits) / spread;
    for (int i = 0; i < 12; i++) {
        acct_alias alias;
        const double b2 = sign > 0 ? k->b + move : k->b / (1.0 + move / k->b);
        const double p = alias_at(k, law, epsilon, digits, b2, sign, certify, &alias);
        if (p < period) {
            period = p;
            *best = alias;
        } else if (i > certify && period < INFINITY) {
            break;
        }
        move *= 0.55;
    }
    return period;
}

/* no search for a shorter period than this multiple of a normal law's */
#define NEARLY_NORMAL 1.08

/* Sets the right (sign = +1) or left (sign = -1) alias bound and returns the period it needs; one that is
 * at most `enough` will do.  The order of a nearly normal law first; then a plain search and one certified
 * evaluation; a certified search where the nodes are too coarse for that order. */
static double alias_side(const acct_contour *k, acct_tilted_law *law, double epsilon, double digits,
                         double spread, int sign, double enough, acct_alias *best) {
    const double move = sqrt(2.0 * digits) / spread;
    double period =
        alias_at(k, law, epsilon, digits, sign > 0 ? k->b + move : k->b / (1.0 + move / k->b), sign, 1, best);
    if (period <= acct_max(NEARLY_NORMAL * sqrt(2.0 * digits) * spread, enough)) return period;
    acct_alias alias;
    const double hoped = alias_search(k, law, epsilon, digits, spread, sign, 0, &alias);
    period = INFINITY;
    if (hoped < INFINITY) period = alias_at(k, law, epsilon, digits, k->b + alias.slope, sign, 1, &alias);
    if (!(period <= 1.1 * hoped)) period = alias_search(k, law, epsilon, digits, spread, sign, 1, &alias);
    if (period < INFINITY) *best = alias;
    return period;
}

double acct_contour_aliases(acct_contour *k, acct_tilted_law *law, double epsilon, double digits,
                            double spread) {
    const double right = alias_side(k, law, epsilon, digits, spread, 1, 0.0, &k->right);
    /* on the left H <= 1 is another bound */
    const double size = -(k->log_scale - k->log_scale_err);
    const double by_one = (size + k->b * epsilon + digits) / k->b;
    double left = INFINITY;
    if (!(by_one <= right)) left = alias_side(k, law, epsilon, digits, spread, -1, right, &k->left);
    if (!(left <= by_one)) {
        k->left = (acct_alias){.log_size = size, .slope = -k->b};
        left = by_one;
    }
    return acct_max(acct_max(right, left), 1e-300);
}

/* ensures  the aliases of one side at epsilon + k period, k = 1, 2, ..., add up to at most the returned
 *          value: a geometric series, its exponent rounded up by 1e-12 of the size of its parts */
static double alias_sum(const acct_alias *a, double epsilon, double period) {
    const double step = fabs(a->slope) * period;
    if (!(step > 0.0)) return INFINITY;
    const double log_first = a->log_size - a->slope * epsilon - step;
    const double all_but_first = step < 40.0 ? -expm1(-step) : 1.0; /* rounded: e^-40 < u/2 */
    return exp(log_first + 1e-12 * (fabs(a->log_size) + fabs(a->slope) * (fabs(epsilon) + period))) /
           all_but_first * ACCT_SLACK;
}

double acct_short_step(double x) {
    int e;
    const double m = frexp(x, &e);
    return ldexp(floor(m * 16777216.0), e - 24);
}

/* the first law of a contour resolves integrands that turn by at most this many radians, y L */
#define LAW_TURNS (11.0 * 30.0)

/* Sets the scale and the step of the lattice, so that the aliases on both sides are below e^{log_share}. */
static int set_step(acct_contour *k, acct_tilted_law *law, const acct_moments *m, const acct_problem *problem,
                    double log_share) {
    const double spread = sqrt(k->steps * m->m2 + 1.0 / (k->b * k->b));
    k->log_scale = k->steps * m->log_mgf;
    k->log_scale_err = k->steps * m->log_mgf_err;
    const double period = acct_contour_aliases(k, law, problem->epsilon, -log_share, spread);
    if (!(period < INFINITY)) return ACCT_EPRECISION;
    k->dy = acct_short_step(2.0 * ACCT_PI / period * (1.0 - 1e-12));
    return ACCT_OK;
}

/* Sets the number of points and the bound on the terms left out; ACCT_EPRECISION where they are too many. */
static int set_count(acct_contour *k, const acct_cf_decay *decay, double y_max, double most_points) {
    const double points = floor(y_max / k->dy) + 2.0;
    if (!(points <= most_points)) return ACCT_EPRECISION;
    k->count = (int)points;
    k->truncated = acct_cf_decay_tail_upper(decay, k->b, (k->count - 1) * k->dy, k->dy);
    k->built_truncated = k->truncated;
    return ACCT_OK;
}

static double sign_of(const acct_contour *k) { return k->direction == ACCT_REMOVE ? 1.0 : -1.0; }

/* scale, mean and terms of so many steps */
static void raise_values_of_line(acct_contour *k) {
    k->log_scale = k->steps * k->log_mgf;
    k->log_scale_err = k->steps * k->log_mgf_err + 4.0 * ACCT_U * fabs(k->log_scale);
    k->drift = sign_of(k) * k->steps * k->mean;
    k->numerical =
        acct_line_values_power(&k->values, k->count, k->steps, sign_of(k), k->terms.re, k->terms.im);
    acct_line_terms_set(&k->terms, k->count, k->dy);
}

/* Reads terms, scale and mean off the law's moments.  The aliases were bounded in units of the first
 * law's scale: the difference of the two scales, and the error of this one, are added to them. */
static void contour_terms(acct_contour *k, const acct_tilted_law *law, acct_characteristic_sum *cf,
                      const acct_moments *m) {
    const double old_scale = k->log_scale;
    acct_characteristic_sum_set(cf, law, m);
    acct_characteristic_sum_step(cf, k->dy);
    acct_line_values_set(&k->values, cf, law, m, k->b, k->dy, k->count);
    k->log_mgf = m->log_mgf;
    k->log_mgf_err = m->log_mgf_err;
    k->mean = m->mean;
    raise_values_of_line(k);
    k->right.log_size += fabs(old_scale - k->log_scale) + k->log_scale_err;
    k->left.log_size += fabs(old_scale - k->log_scale) + k->log_scale_err;
}

static void alias_for_steps(const acct_contour *k, acct_alias *alias) {
    alias->log_size = alias->log_front + k->steps * alias->log_mgf - (k->log_scale - k->log_scale_err);
}

/* The terms beyond the last are sums of f_j |phi_j|^n with f_j <= dy/(pi y_j^2), which add up to at most
 * 1/(pi y).  They fall with n, and for fewer steps Hoelder's inequality bounds them by those of more
 * (Theorem 18). */
void acct_contour_for_steps(acct_contour *k, const acct_tilted_law *law, double steps) {
    const double share = steps / k->built_steps, y = (k->count - 1) * k->dy;
    k->steps = steps;
    raise_values_of_line(k);
    alias_for_steps(k, &k->right);
    alias_for_steps(k, &k->left);
    k->truncated = k->built_truncated;
    if (share < 1.0)
        k->truncated = exp(share * log(acct_max(k->built_truncated, ACCT_TINY)) -
                           (1.0 - share) * log(ACCT_PI * y)) * ACCT_SLACK;
    acct_tail_event_for_steps(&k->tail, law, steps);
}

int acct_contour_build(acct_contour *k, acct_tilted_law *law, acct_tilted_law *scratch,
                       acct_characteristic_sum *cf, const acct_problem *problem) {
    const acct_step *step = &problem->step;
    const double steps = problem->steps;
    const double b = problem->direction == ACCT_REMOVE ? acct_exact_distance(problem->b) : problem->b;
    const double order = acct_order_at(problem->direction, b);
    /* each source of error gets a tenth of the tolerance */
    const double least = acct_min(problem->log_error, -1.0); /* a line far above the answer has digits, too */
    const double share = exp(least) * 0.1, log_share = least - 2.3;
    const double poles = b * (b + 1.0);
    if (!(b < ACCT_MOST_DISTANCE)) return ACCT_EPRECISION;
    k->direction = problem->direction;
    k->answers_add = 0;
    k->steps = steps;
    k->b = b;
    k->small_losses_log = -INFINITY;
    k->small_losses_slope = k->least = 0.0;
    /* where the terms stop: y_max first from the variance, then from the bound on the tail */
    acct_moments m;
    acct_cf_decay decay;
    const double y_guess = 11.0 / problem->spread;
    /* errors count relative to the transform, which is large on a line far to the right */
    const double log_error = acct_min(log_share + log(poles), 0.0) - log(steps) - 4.0 +
                             acct_max(problem->log_mgf, 0.0);
    const double fine = log_error - log(2.0 + LAW_TURNS);
    int status = acct_tilted_law_set(law, step, &problem->window, order, y_guess, fine);
    if (status) return status;
    acct_tilted_law_moments(law, order, 1, &m);
    k->built_steps = problem->least_steps > 0.0 ? problem->least_steps : steps;
    acct_cf_decay_set(&decay, law, &m, k->built_steps); /* more steps leave less behind the last term */
    status = set_step(k, law, &m, problem, log_share);
    if (status) return status;
    const double y_max = acct_cf_decay_stop(&decay, scratch, b, share);
    status = set_count(k, &decay, y_max, problem->most_points);
    if (status) return status;
    /* unless the first law does, one that resolves |y| <= y_last */
    const double y_last = (k->count - 1) * k->dy, reach = acct_tilted_law_reach(law, m.mean);
    if (!(y_last <= y_guess && y_last * reach <= LAW_TURNS)) {
        status = acct_tilted_law_set(law, step, &problem->window, order, y_last,
                                     log_error - log(2.0 + y_last * reach));
        if (status) return status;
        if ((double)k->count * law->count > (step->mixture ? 3e7 : 4e6)) return ACCT_EPRECISION;
    }
    /* the nodes may be others, or their weights those of an alias */
    if (law->weighed != order) acct_tilted_law_moments(law, order, 1, &m);
    contour_terms(k, law, cf, &m);
    acct_tail_event_set(&k->tail, law, steps, k->direction, problem->epsilon, problem->reverse_order, 1);
    return ACCT_OK;
}

/* sets     the bracket, the estimate and its slope
 * ensures  bounds.lower <= delta(epsilon) <= bounds.upper.  The trapezoid sum is the profile of the outcomes
 *          inside the window plus its aliases, which are non-negative, so they are taken off below only;
 *          errors of the terms, of truncation and of this summation widen both ends; the scale's error moves
 *          the exponent outward; the outcomes outside the window and those without a large loss are added. */
static void profile_of(const acct_contour *k, double epsilon, acct_profile_point *out) {
    const double period = 2.0 * ACCT_PI / k->dy;
    acct_line_sums s;
    acct_line_terms_sum(&k->terms, k->drift - epsilon, fabs(k->drift) + fabs(epsilon), k->b, &s);
    const double sum = s.re, slope = s.slope;
    const double error = (k->numerical + k->truncated + s.rounding) * ACCT_SLACK;
    const double alias = alias_sum(&k->right, epsilon, period) + alias_sum(&k->left, epsilon, period);
    const double log_unit = k->log_scale - k->b * epsilon;
    const double unit_err = k->log_scale_err +
                            8.0 * ACCT_U * (fabs(k->log_scale) + k->b * fabs(epsilon) + 1.0);
    out->value = sum * exp(log_unit);
    out->slope = slope * exp(log_unit);
    const double high = sum + error, low = sum - error - alias;
    if (!(error < INFINITY && fabs(log_unit) + unit_err < INFINITY)) {
        out->bounds = (acct_bounds){0.0, 1.0};
        return;
    }
    double upper = high > 0.0 ? acct_times_exp_upper(log_unit + unit_err, high) : 0.0;
    acct_bounds tail;
    acct_tail_event_profile(&k->tail, epsilon, &tail);
    upper += tail.upper;
    if (k->small_losses_log != -INFINITY) upper += exp(k->small_losses_log - k->small_losses_slope * epsilon);
    double lower = low > 0.0 ? acct_times_exp_lower(log_unit - unit_err, low) : 0.0;
    lower += tail.lower;
    out->value += 0.5 * (tail.lower + tail.upper);
    if (tail.lower > 0.0) out->slope -= exp(epsilon) * k->tail.q_mass;
    /* a NaN, as of masses that underflow, stays one here and becomes 1: acct_max would lose it */
    out->bounds.upper = acct_probability_upper(upper < k->least ? k->least : upper);
    out->bounds.lower = lower > k->least ? acct_probability_lower(lower) : 0.0;
}

void acct_contour_profile(const acct_contour *k, double epsilon, acct_profile_point *out) {
    if (!k->answers_add) {
        profile_of(k, epsilon, out);
        return;
    }
    /* E(1 - e^{eps + l})_+ = 1 - e^eps + e^eps E(e^l - e^{-eps})_+ (Theorem 17) */
    acct_profile_point p;
    profile_of(k, -epsilon, &p);
    const double grow = exp(epsilon), all = expm1(epsilon);
    out->value = grow * p.value - all;
    out->slope = grow * (p.value - 1.0 - p.slope);
    const double most = grow * p.bounds.upper * (1.0 + 16.0 * ACCT_U) - all * (1.0 - 16.0 * ACCT_U);
    out->bounds.upper = most < ACCT_TINY ? ACCT_TINY : acct_min(most, 1.0); /* a NaN becomes 1 */
    out->bounds.lower =
        acct_max(grow * p.bounds.lower * (1.0 - 16.0 * ACCT_U) - all * (1.0 + 16.0 * ACCT_U), 0.0);
}

void acct_contour_at(const void *contour, double epsilon, acct_profile_point *point) {
    acct_contour_profile(contour, epsilon, point);
}
