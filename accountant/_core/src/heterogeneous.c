#include "heterogeneous.h"

#include <math.h>

#include "gaussian.h"
#include "heterogeneous_workspace.h"
#include "one_direction.h"
#include "order.h"
#include "rounding.h"
#include "bounds.h"
#include "subsampled_gaussian.h"

/* a composition never has a smaller profile than one of its parts (drop coordinates), nor a larger
 * one than the sum of its steps' epsilons at shares of delta */
static int coarse_parts_epsilon(const acct_part *parts, int count, double steps, double delta, int direction,
                          acct_bounds *out) {
    double sum = 0.0;
    const double share = acct_down(delta / steps);
    for (int i = 0; i < count; i++) {
        const acct_part *p = &parts[i];
        acct_bounds whole;
        if (count <= 64 && !p->mixture) {
            const int status = acct_psg_epsilon(p->q, p->sigma, p->steps, delta, direction, &whole);
            if (status == ACCT_ENOMEM) return status;
            if (status == ACCT_OK) acct_bounds_intersect(out, whole.lower, INFINITY);
        }
        /* a random shift costs at most the largest one taken whenever there is any (Theorem M15) */
        const double sigma = p->mixture ? acct_down(p->sigma / p->mixture->largest) : p->sigma;
        acct_single_epsilon(p->q, sigma, share, direction, &whole);
        sum += p->steps * whole.upper;
    }
    acct_bounds_intersect(out, 0.0, sum * (1.0 + 2.0 * ACCT_U * (2.0 + count)));
    return ACCT_OK;
}

/* at least the largest loss: when adding, that of a record that is never sampled; inf where some part is plain */
static double most_loss(const acct_heterogeneous_workspace *w) {
    if (w->direction == ACCT_REMOVE) return INFINITY;
    double sum = 0.0;
    for (int i = 0; i < w->count; i++) sum -= w->part[i].steps * acct_part_step(&w->part[i]).log_1mq;
    return sum * (1.0 + ACCT_U * (16.0 + 2.0 * w->count));
}

/* the relative error of delta that a line is asked for where none was found for less */
#define LOOSE 3e-6

static int epsilon_of(acct_heterogeneous_workspace *w, int count, double delta, acct_bounds *out) {
    const double log_delta = log(delta);
    acct_coarse_composition m = {w->coarse, w->groups, w->direction};
    acct_saddle s;
    acct_heterogeneous_saddle(&m, ACCT_AT_LOG_DELTA, log_delta, &s);
    double epsilon = acct_max(s.epsilon, 0.0),
           tolerance = acct_tolerance_for(epsilon, s.b, ACCT_HETEROGENEOUS_LEAST_TOLERANCE);
    int loose = 0;
    for (int i = 0; i < 6 + 2 * loose; i++) {
        const int status = acct_heterogeneous_build(w, count, epsilon, log_delta, tolerance);
        if (status == ACCT_EPRECISION && w->mixed && !acct_bounds_are_narrow(out, 1e-7) &&
            tolerance < LOOSE) {
            tolerance = tolerance < 1e-7 && !loose ? 1e-7 : LOOSE; /* better a wide bracket than none */
            loose = 1;
            continue;
        }
        if (status) return status;
        acct_bounds found;
        acct_profile_point p;
        acct_contour_profile(&w->contour, 0.0, &p);
        if (p.bounds.upper <= delta) {
            out->lower = out->upper = 0.0;
            return ACCT_OK;
        }
        const double next = acct_invert_estimate(acct_contour_at, &w->contour, epsilon, delta);
        acct_contour_profile(&w->contour, next, &p);
        acct_invert_certify(acct_contour_at, &w->contour, next, delta, &found);
        acct_bounds_intersect(out, found.lower, found.upper);
        const double wanted =
            acct_max(4.0 * acct_tolerance_for(next, -p.slope / delta, ACCT_HETEROGENEOUS_LEAST_TOLERANCE), 1e-13);
        if ((p.bounds.upper - p.bounds.lower) / delta <= wanted || next == epsilon) return ACCT_OK;
        if (fabs(next - epsilon) <= 1e-3 * next && (i > 2 || loose)) return ACCT_OK;
        tolerance = fabs(next - epsilon) <= 1e-3 * next
                        ? 0.03 * tolerance
                        : acct_tolerance_for(next, -p.slope / delta, ACCT_HETEROGENEOUS_LEAST_TOLERANCE);
        epsilon = acct_max(next, 0.0);
    }
    return ACCT_OK;
}

/* Whether the profile at epsilon is at most delta, by Chernoff at one order (Theorem 5): cheap, and
 * enough where this direction is well below the other */
static int chernoff_is_below(acct_heterogeneous_workspace *w, double epsilon, double delta) {
    acct_coarse_composition m = {w->coarse, w->groups, w->direction};
    acct_saddle s;
    acct_heterogeneous_set_coarse(w, log(delta), INFINITY);
    acct_heterogeneous_saddle(&m, ACCT_AT_EPSILON, epsilon, &s);
    const double b = w->direction == ACCT_REMOVE ? acct_exact_distance(s.b) : s.b;
    const double log_front = acct_log_chernoff(b) - b * epsilon;
    if (!(s.log_scale + log_front < log(delta) - 1e-6)) return 0;
    const double z = acct_window_deviations(w->steps, log(delta));
    double log_mgf = 0.0, err = 0.0, size = 0.0, outside = 0.0;
    for (int i = 0; i < w->count; i++) {
        const acct_part *p = &w->part[i];
        const acct_window window = acct_part_window(p, w->direction, z, INFINITY);
        const acct_step step = acct_part_step(p);
        acct_moments k = {.log_mgf = 0.5 * b * (b + 1.0) / (p->sigma * p->sigma)};
        k.log_mgf_err = 16.0 * ACCT_U * k.log_mgf;
        if (!acct_part_is_plain(p)) {
            const double order = acct_order_at(w->direction, b);
            if (acct_tilted_law_set(&w->law, &step, &window, order, 0.0, -log(w->steps) - 20.0)) return 0;
            acct_tilted_law_moments(&w->law, order, 1, &k);
            outside += p->steps * acct_tilted_law_mass_outside(&w->law);
        }
        log_mgf += p->steps * k.log_mgf;
        err += p->steps * k.log_mgf_err;
        size += p->steps * fabs(k.log_mgf);
    }
    const double round = ACCT_U * (64.0 + w->count) * (1.0 + size + fabs(log_front) + b * epsilon);
    return exp(log_mgf + log_front + (err + round) * ACCT_SLACK) + outside * ACCT_SLACK <= delta;
}

/* the bracket in one direction */
static int epsilon_one_way(acct_heterogeneous_workspace *w, double delta, acct_bounds *out) {
    acct_bounds_intersect(out, 0.0, most_loss(w));
    acct_heterogeneous_set_coarse(w, log(delta), INFINITY);
    epsilon_of(w, w->count, delta, out);
    if (acct_bounds_are_narrow(out, 1e-3)) return ACCT_OK;
    return coarse_parts_epsilon(w->part, w->count, w->steps, delta, w->direction, out);
}

/* at least both directions' profiles at epsilon = 0: distances in variation add up over the parts (Theorem 18), and a
 * random shift costs at most the largest one taken whenever there is any (Theorem M15) */
static double parts_without_loss_upper(const acct_part *parts, int count) {
    double sum = 0.0;
    for (int i = 0; i < count; i++) {
        const acct_part *p = &parts[i];
        const acct_step step = acct_step_make(p->q, p->mixture ? acct_down(p->sigma / p->mixture->largest) : p->sigma);
        sum += acct_without_loss_upper(&step, p->steps);
    }
    return sum * (1.0 + 2.0 * ACCT_U * (2.0 + count));
}

int acct_heterogeneous_epsilon(const acct_part *parts, int count, double delta, int direction,
                               acct_bounds *out) {
    double steps;
    *out = (acct_bounds){0.0, INFINITY};
    if (!acct_heterogeneous_valid(parts, count, direction, &steps) || !acct_valid_delta(delta))
        return ACCT_EDOMAIN;
    if (count == 1 && !parts->mixture)
        return acct_psg_epsilon(parts->q, parts->sigma, parts->steps, delta, direction, out);
    if (parts_without_loss_upper(parts, count) <= delta) {
        out->upper = 0.0;
        return ACCT_OK;
    }
    acct_heterogeneous_workspace w;
    int status =
        acct_heterogeneous_alloc(&w, parts, count, direction == ACCT_ADD ? ACCT_ADD : ACCT_REMOVE, steps);
    if (status) return status;
    acct_heterogeneous_set_groups(&w, count);
    status = epsilon_one_way(&w, delta, out);
    if (direction == ACCT_EITHER && !status) {
        acct_bounds add = {0.0, INFINITY};
        w.direction = ACCT_ADD;
        if (!chernoff_is_below(&w, out->lower, delta)) {
            status = epsilon_one_way(&w, delta, &add);
            *out = acct_bounds_larger(*out, add);
        }
    }
    acct_heterogeneous_free(&w);
    return status;
}

static int delta_one_way(acct_heterogeneous_workspace *w, double epsilon, acct_bounds *out) {
    double log_delta = -30.0, tolerance = 1e-11;
    *out = (acct_bounds){0.0, 1.0};
    const double most = most_loss(w);
    if (epsilon > most) {
        out->upper = 0.0;
        return ACCT_OK;
    }
    if (most < INFINITY) /* 1 - e^{eps - loss} is at most this */
        out->upper = acct_min(acct_max(-expm1(epsilon - most) * (1.0 + 1e-14), ACCT_TINY), 1.0);
    for (int i = 0; i < 6; i++) {
        acct_heterogeneous_set_coarse(w, log_delta, INFINITY);
        acct_coarse_composition m = {w->coarse, w->groups, w->direction};
        acct_saddle s;
        acct_heterogeneous_saddle(&m, ACCT_AT_EPSILON, epsilon, &s);
        const double guess = acct_max(acct_min(s.log_delta, -1e-3), -745.0);
        if (i == 0 && fabs(guess - log_delta) > 1.0) {
            log_delta = guess;
            continue;
        }
        acct_profile_point p;
        const int status = acct_heterogeneous_build(w, w->count, epsilon, log_delta, tolerance);
        if (status == ACCT_EPRECISION && w->mixed && out->lower == 0.0 && tolerance < LOOSE) {
            tolerance = LOOSE;
            continue;
        }
        if (status) break;
        acct_contour_profile(&w->contour, epsilon, &p);
        acct_bounds_intersect(out, p.bounds.lower, p.bounds.upper);
        const double now = p.value > 0.0 ? acct_max(log(p.value), -745.0) : log_delta - 5.0;
        const double wanted = acct_max(1e-6, 10.0 * tolerance);
        if (fabs(now - log_delta) < 2.0 && out->upper - out->lower <= wanted * out->upper) break;
        log_delta = now;
    }
    for (int i = 0; i < w->count && out->lower == 0.0 && w->count <= 64; i++) {
        const acct_part *p = &w->part[i];
        if (p->mixture) continue;
        acct_bounds one;
        const int status = acct_psg_delta(p->q, p->sigma, p->steps, epsilon, w->direction, &one);
        if (status == ACCT_ENOMEM) return status;
        if (status == ACCT_OK) acct_bounds_intersect(out, one.lower, 1.0);
    }
    return ACCT_OK;
}

int acct_heterogeneous_delta(const acct_part *parts, int count, double epsilon, int direction,
                             acct_bounds *out) {
    double steps;
    *out = (acct_bounds){0.0, 1.0};
    if (!acct_heterogeneous_valid(parts, count, direction, &steps) || !acct_valid_epsilon(epsilon))
        return ACCT_EDOMAIN;
    if (count == 1 && !parts->mixture)
        return acct_psg_delta(parts->q, parts->sigma, parts->steps, epsilon, direction, out);
    acct_heterogeneous_workspace w;
    int status =
        acct_heterogeneous_alloc(&w, parts, count, direction == ACCT_ADD ? ACCT_ADD : ACCT_REMOVE, steps);
    if (status) return status;
    acct_heterogeneous_set_groups(&w, count);
    status = delta_one_way(&w, epsilon, out);
    if (direction == ACCT_EITHER && !status) {
        acct_bounds add;
        w.direction = ACCT_ADD;
        status = delta_one_way(&w, epsilon, &add);
        *out = acct_bounds_larger(*out, add);
    }
    acct_heterogeneous_free(&w);
    return status;
}
