#include "contour.h"

#include <math.h>

#include "decay.h"
#include "rounding.h"
#include "vmath.h"
#include "status.h"

static double order_at(int direction, double b) { return direction == ACCT_REMOVE ? 1.0 + b : -b; }

/* sup over l of (1 - e^{-l}) e^{-b l}: H(eps) <= e^{log_chernoff(b) + K - b eps} */
static double log_chernoff(double b) {
    return b > 0.0 ? -log1p(b) - b * log1p(1.0 / b) : 0.0;
}

/* the alias bound by Chernoff at distance b2 from [0, 1], and the period it needs */
static double alias_at(const acct_contour *k, acct_grid *grid, double epsilon, double digits,
                       double b2, int certify, acct_alias *alias) {
    if (k->direction == ACCT_REMOVE) b2 = acct_exact_distance(b2);
    if (b2 == k->b) return INFINITY;
    acct_moments m;
    acct_grid_moments(grid, order_at(k->direction, b2), certify, &m);
    alias->log_size = log_chernoff(b2) + k->steps * (m.log_mgf + m.log_mgf_err) -
                      (k->log_scale - k->log_scale_err) + 1e-9;
    alias->slope = b2 - k->b;
    return (alias->log_size - alias->slope * epsilon + digits) / fabs(alias->slope);
}

/* the order whose Chernoff bound needs the shortest period, and that period.  With a nearly normal
 * tilted law it is sqrt(2 digits)/spread away; heavy right tails want a closer one. */
static double alias_search(const acct_contour *k, acct_grid *grid, double epsilon, double digits,
                           double spread, int sign, int certify, acct_alias *best) {
    double period = INFINITY, move = sqrt(2.0 * digits) / spread;
    for (int i = 0; i < 12; i++) {
        acct_alias alias;
        const double b2 = sign > 0 ? k->b + move : k->b / (1.0 + move / k->b);
        const double p = alias_at(k, grid, epsilon, digits, b2, certify, &alias);
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

/* sets the right (sign = +1) or left (sign = -1) alias bound and returns the period it needs: a plain
 * search and one certified evaluation; a certified search where the grid is too coarse for that order */
static double alias_side(const acct_contour *k, acct_grid *grid, double epsilon, double digits,
                         double spread, int sign, acct_alias *best) {
    acct_alias alias;
    const double hoped = alias_search(k, grid, epsilon, digits, spread, sign, 0, &alias);
    double period = INFINITY;
    if (hoped < INFINITY)
        period = alias_at(k, grid, epsilon, digits, k->b + alias.slope, 1, &alias);
    if (!(period <= 1.1 * hoped))
        period = alias_search(k, grid, epsilon, digits, spread, sign, 1, &alias);
    if (period < INFINITY) *best = alias;
    if (sign > 0) return period;
    /* H <= 1 */
    const double size = -(k->log_scale - k->log_scale_err);
    const double by_one = (size + k->b * epsilon + digits) / k->b;
    if (!(period <= by_one)) {
        best->slope = -k->b;
        best->log_size = size;
        period = by_one;
    }
    return period;
}

double acct_contour_aliases(acct_contour *k, acct_grid *grid, double epsilon, double digits,
                            double spread) {
    const double right = alias_side(k, grid, epsilon, digits, spread, 1, &k->right);
    const double left = alias_side(k, grid, epsilon, digits, spread, -1, &k->left);
    return fmax(fmax(right, left), 1e-300);
}

/* the geometric series over k = 1, 2, ... of the alias terms at distance k p */
static double alias_sum(const acct_alias *a, double epsilon, double period) {
    const double step = fabs(a->slope) * period;
    if (!(step > 0.0)) return INFINITY;
    const double log_first = a->log_size - a->slope * epsilon - step;
    return exp(log_first + 1e-12 * (fabs(a->log_size) + fabs(a->slope) * (fabs(epsilon) + period))) /
           -expm1(-step) * ACCT_SLACK;
}

double acct_short_step(double x) {
    int e;
    const double m = frexp(x, &e);
    return ldexp(floor(m * 16777216.0), e - 24);
}

/* fills the terms up to the line's y_k; returns the bound on their errors */
static double fill_terms(acct_contour *k, acct_line *line, const acct_grid *grid,
                         const acct_moments *m, double quadrature) {
    const double n = k->steps, b = k->b, dy = k->dy;
    const double sign = k->direction == ACCT_REMOVE ? 1.0 : -1.0;
    const double reach = acct_grid_reach(grid, m->mean);
    const double still = acct_grid_error(grid, m, 0.0);
    double re[ACCT_BLOCK], im[ACCT_BLOCK], numerical = 0.0;
    for (int first = 0; first < k->count; first += ACCT_BLOCK) {
        const int size = k->count - first < ACCT_BLOCK ? k->count - first : ACCT_BLOCK;
        const double round = acct_line_block(line, first, size, re, im);
        for (int i = 0; i < size; i++) {
            const double y = (first + i) * dy;
            const double u = re[i], v = im[i];
            const double mod = sqrt((1.0 + u) * (1.0 + u) + v * v);
            const double log_mod =
                u > -0.5 ? 0.5 * log1p(2.0 * u + u * u + v * v) : log(mod);
            const double arg = atan2(v, 1.0 + u);
            const double front = dy / (ACCT_PI * acct_poles(b, y)) * (first + i ? 1.0 : 0.5);
            const double amplitude = exp(n * log_mod) * front;
            /* error of V: three quadratures, the mean, round-off; relative to |1 + V| */
            const double err_v = (quadrature + still * (1.0 + y * reach) + y * m->mean_err + round +
                                  16.0 * ACCT_U * (fabs(u) + fabs(v))) * ACCT_SLACK;
            const double rest = mod - err_v;
            double err;
            if (rest > 0.0 && n * err_v < 100.0 * rest)
                err = amplitude * expm1(n * err_v / rest);
            else /* the term and its computed value apart */
                err = amplitude + exp(n * log(mod + err_v)) * front;
            if (amplitude > 0.0)
                err += amplitude * ACCT_U * (40.0 + 16.0 * n * (fabs(log_mod) + fabs(arg)));
            numerical += err;
            k->amplitude[first + i] = amplitude;
            k->phase[first + i] = sign * n * arg - atan2(y, b) - atan2(y, b + 1.0);
        }
    }
    return numerical * ACCT_SLACK;
}

int acct_contour_build(acct_contour *k, acct_grid *grid, acct_grid *scratch, acct_line *line,
                       const acct_problem *problem) {
    const acct_step *step = &problem->step;
    const double steps = problem->steps, epsilon = problem->epsilon;
    const int direction = problem->direction;
    const double b = direction == ACCT_REMOVE ? acct_exact_distance(problem->b) : problem->b;
    const double order = order_at(direction, b), sign = direction == ACCT_REMOVE ? 1.0 : -1.0;
    /* each source of error gets a share of the tolerance */
    const double share = exp(problem->log_error) * 0.1, log_share = problem->log_error - 2.3;
    const double poles = b * (b + 1.0);
    if (!(b < ACCT_MOST_DISTANCE)) return ACCT_EPRECISION;
    k->direction = direction;
    k->flipped = 0;
    k->steps = steps;
    k->b = b;
    k->small_log = -INFINITY;
    k->small_slope = 0.0;

    /* where the terms stop: y_max first from the variance, then from the bound on the tail */
    acct_moments m;
    acct_decay decay;
    const double y_guess = 11.0 / problem->spread;
    const double log_error = fmin(log_share + log(poles), 0.0) - log(steps) - 4.0;
    int status = acct_grid_set(grid, step, &problem->window, order, y_guess,
                               log_error - log(2.0 + 11.0 * 30.0));
    if (status) return status;
    acct_grid_moments(grid, order, 1, &m);
    acct_decay_set(&decay, grid, &m, steps);
    const double y_max = acct_decay_stop(&decay, scratch, b, share);
    if (!(y_max < INFINITY)) return ACCT_EPRECISION;

    /* the period, from both sides' aliases */
    const double digits = -log_share;
    const double spread = sqrt(steps * m.m2 + 1.0 / (b * b));
    k->log_scale = steps * m.log_mgf;
    k->log_scale_err = steps * m.log_mgf_err;
    const double period = acct_contour_aliases(k, grid, epsilon, digits, spread);
    if (!(period < INFINITY)) return ACCT_EPRECISION;
    k->dy = acct_short_step(2.0 * ACCT_PI / period * (1.0 - 1e-12));
    const double points = floor(y_max / k->dy) + 2.0;
    if (!(points <= problem->most_points)) return ACCT_EPRECISION;
    k->count = (int)points;
    const double y_last = (k->count - 1) * k->dy;
    k->truncated = acct_decay_tail_upper(&decay, b, y_last, k->dy);

    /* unless the first grid does, one that resolves |y| <= y_last; everything is read off it */
    const double reach = acct_grid_reach(grid, m.mean), old_scale = k->log_scale;
    if (!(y_last <= y_guess && y_last * reach <= 11.0 * 30.0)) {
        status = acct_grid_set(grid, step, &problem->window, order, y_last,
                               log_error - log(2.0 + y_last * reach));
        if (status) return status;
        if (points * grid->count > 4e6) return ACCT_EPRECISION;
    }
    acct_grid_moments(grid, order, 1, &m);
    acct_line_set(line, grid, &m);
    k->log_scale = steps * m.log_mgf;
    k->log_scale_err = steps * m.log_mgf_err + 4.0 * ACCT_U * fabs(k->log_scale);
    k->right.log_size += fabs(old_scale - k->log_scale) + k->log_scale_err;
    k->left.log_size += fabs(old_scale - k->log_scale) + k->log_scale_err;
    k->drift = sign * steps * m.mean;
    acct_line_step(line, k->dy);
    k->numerical = fill_terms(k, line, grid, &m, acct_grid_error(grid, &m, y_last));
    acct_jump_set(&k->jump, grid, steps, direction, epsilon, problem->put_order, 1);
    return ACCT_OK;
}

typedef struct {
    double re, slope, size, spin; /* sums of the terms, of their derivatives and of moduli */
} point_sums;

/* beyond the range of acct_vsincos */
static void sum_turning(const acct_contour *k, double rate, double speed, point_sums *s) {
    *s = (point_sums){0.0, 0.0, 0.0, 0.0};
    for (int i = 0; i < k->count; i++) {
        const double y = i * k->dy, phase = k->phase[i] + rate * y, a = k->amplitude[i];
        const double re = a * cos(phase);
        s->re += re;
        s->slope += y * a * sin(phase) - k->b * re;
        s->size += a;
        s->spin += a * (fabs(phase) + y * speed);
    }
}

#define STRANDS 4

ACCT_CLONES
static void sum_points(const acct_contour *k, double rate, double speed, point_sums *out) {
    const double *restrict amplitude = k->amplitude, *restrict angle = k->phase;
    const double dy = k->dy, b = k->b;
    double re[STRANDS] = {0}, slope[STRANDS] = {0}, size[STRANDS] = {0}, spin[STRANDS] = {0};
    double most = 0.0;
    for (int i = 0; i < k->count; i++) most = fmax(most, fabs(angle[i]));
    if (!(most + fabs(rate) * k->count * dy < 1048576.0)) {
        sum_turning(k, rate, speed, out);
        return;
    }
    int i = 0;
    for (; i + STRANDS <= k->count; i += STRANDS)
        for (int j = 0; j < STRANDS; j++) {
            const double y = (i + j) * dy, phase = angle[i + j] + rate * y, a = amplitude[i + j];
            double sin_phase, cos_phase;
            acct_vsincos(phase, &sin_phase, &cos_phase);
            const double part = a * cos_phase;
            re[j] += part;
            slope[j] += y * a * sin_phase - b * part;
            size[j] += a;
            spin[j] += a * (fabs(phase) + y * speed);
        }
    for (int j = 0; i < k->count; i++, j++) {
        const double y = i * dy, phase = angle[i] + rate * y, a = amplitude[i];
        double sin_phase, cos_phase;
        acct_vsincos(phase, &sin_phase, &cos_phase);
        re[j] += a * cos_phase;
        slope[j] += y * a * sin_phase - b * a * cos_phase;
        size[j] += a;
        spin[j] += a * (fabs(phase) + y * speed);
    }
    *out = (point_sums){(re[0] + re[1]) + (re[2] + re[3]), (slope[0] + slope[1]) + (slope[2] + slope[3]),
                        (size[0] + size[1]) + (size[2] + size[3]), (spin[0] + spin[1]) + (spin[2] + spin[3])};
}

static void profile_of(const acct_contour *k, double epsilon, acct_profile_point *out) {
    const double period = 2.0 * ACCT_PI / k->dy;
    const double rate = k->drift - epsilon;
    point_sums s;
    sum_points(k, rate, fabs(k->drift) + fabs(epsilon), &s);
    const double sum = s.re, slope = s.slope, size = s.size, spin = s.spin;
    /* round-off of the phases, of cos and of the sum */
    const double rounding = ACCT_U * (4.0 * spin + (24.0 + k->count) * size);
    const double error = (k->numerical + k->truncated + rounding) * ACCT_SLACK;
    const double alias = alias_sum(&k->right, epsilon, period) + alias_sum(&k->left, epsilon, period);
    const double log_unit = k->log_scale - k->b * epsilon;
    const double unit_err = k->log_scale_err + 8.0 * ACCT_U *
                            (fabs(k->log_scale) + k->b * fabs(epsilon) + 1.0);
    out->value = sum * exp(log_unit);
    out->slope = slope * exp(log_unit);
    const double high = sum + error, low = sum - error - alias;
    if (!(error < INFINITY)) {
        out->bounds = (acct_bounds){0.0, 1.0};
        return;
    }
    double upper = high > 0.0 ? exp(log_unit + unit_err) * high * (1.0 + 4e-15) : 0.0;
    acct_bounds jump;
    acct_jump_profile(&k->jump, epsilon, &jump);
    upper += jump.upper + exp(k->small_log - k->small_slope * epsilon);
    double lower = low > 0.0 ? exp(log_unit - unit_err) * low * (1.0 - 4e-15) : 0.0;
    lower += jump.lower;
    out->value += 0.5 * (jump.lower + jump.upper);
    if (jump.lower > 0.0) out->slope -= exp(epsilon) * k->jump.q_mass;
    out->bounds.upper = upper < 1.0 ? acct_up(fmax(upper, ACCT_TINY)) : 1.0;
    out->bounds.lower = lower > ACCT_TINY ? fmin(acct_down(lower), 1.0) : 0.0;
}

void acct_contour_profile(const acct_contour *k, double epsilon, acct_profile_point *out) {
    if (!k->flipped) {
        profile_of(k, epsilon, out);
        return;
    }
    /* E(1 - e^{eps + l})_+ = 1 - e^eps + e^eps E(e^l - e^{-eps})_+ (Theorem 17) */
    acct_profile_point p;
    profile_of(k, -epsilon, &p);
    const double grow = exp(epsilon), all = expm1(epsilon);
    out->value = grow * p.value - all;
    out->slope = grow * (p.value - 1.0 - p.slope);
    out->bounds.upper = fmin(fmax(grow * p.bounds.upper * (1.0 + 16.0 * ACCT_U) -
                                      all * (1.0 - 16.0 * ACCT_U), ACCT_TINY), 1.0);
    out->bounds.lower = fmax(grow * p.bounds.lower * (1.0 - 16.0 * ACCT_U) -
                                 all * (1.0 + 16.0 * ACCT_U), 0.0);
}
