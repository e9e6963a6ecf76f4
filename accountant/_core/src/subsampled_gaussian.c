#include "subsampled_gaussian.h"

#include <math.h>
#include <stddef.h>

#include "chernoff.h"
#include "gaussian.h"
#include "loss.h"
#include "one_direction.h"
#include "plan.h"
#include "rounding.h"
#include "saddle_point.h"
#include "bounds.h"

static int valid(double q, double sigma, double steps, int direction) {
    return acct_valid_noise(q, sigma) && acct_valid_steps(steps) && acct_valid_direction(direction);
}

static int nothing_released(double q, double sigma, double steps) {
    return q == 0.0 || steps == 0.0 || sigma == INFINITY;
}

/* Whether the bracket is wide, or so near to q = 1 that the closed form there may be below it:
 * sampling never costs more */
static int needs_unsampled(double q, const acct_bounds *b) {
    return q > 0.999 || !acct_bounds_are_narrow(b, 1e-6);
}

/* The brackets at q = 1. */
static void unsampled_delta(double sigma, double steps, double epsilon, acct_bounds *out) {
    const double mu = sqrt(steps) / sigma;
    *out = (acct_bounds){0.0, 1e-150}; /* delta(0) <= mu/2 */
    if (mu > 1e-150) acct_gaussian_delta(mu, 4.0 * ACCT_U, epsilon, out);
}

static void unsampled_epsilon(double sigma, double steps, double delta, acct_bounds *out) {
    const double mu = sqrt(steps) / sigma;
    *out = (acct_bounds){0.0, delta >= 1e-150 ? 0.0 : 1e-140};
    if (mu > 1e-150) acct_gaussian_epsilon(mu, 4.0 * ACCT_U, delta, out);
}

/* 0 < q < 1 */
static int sampled_delta(double q, double sigma, double steps, double epsilon, int direction, acct_bounds *out) {
    acct_bounds one[2] = {{0.0, 0.0}, {0.0, 0.0}};
    acct_workspace w;
    int status = acct_workspace_alloc(&w, ACCT_MAX_NODES);
    const acct_step step = acct_step_make(q, sigma);
    for (int d = ACCT_REMOVE; d <= ACCT_ADD && !status; d++) {
        if (direction != ACCT_EITHER && direction != d) continue;
        if (steps == 1.0)
            acct_single_delta(q, sigma, epsilon, d, &one[d]);
        else
            status = acct_delta_one_way(&w, &step, steps, epsilon, d, &one[d]);
    }
    acct_workspace_free(&w);
    if (status) return status;
    *out = acct_bounds_larger(one[0], one[1]);
    out->upper = acct_min(out->upper, acct_ever_sampled_upper(&step, steps));
    if (needs_unsampled(q, out)) {
        acct_bounds plain;
        unsampled_delta(sigma, steps, epsilon, &plain);
        out->upper = acct_min(out->upper, plain.upper);
    }
    out->lower = acct_min(out->lower, out->upper);
    return ACCT_OK;
}

int acct_psg_delta(double q, double sigma, double steps, double epsilon, int direction, acct_bounds *out) {
    *out = (acct_bounds){0.0, 1.0};
    if (!valid(q, sigma, steps, direction) || !acct_valid_epsilon(epsilon)) return ACCT_EDOMAIN;
    if (nothing_released(q, sigma, steps)) {
        out->upper = 0.0;
        return ACCT_OK;
    }
    int status = ACCT_OK;
    if (q == 1.0)
        unsampled_delta(sigma, steps, epsilon, out);
    else
        status = sampled_delta(acct_max(q, ACCT_LEAST_Q), sigma, steps, epsilon, direction, out);
    if (q < ACCT_LEAST_Q) out->lower = 0.0;
    return status;
}

/* Brackets that always exist: at least one step's epsilon (more steps never cost less), at most
 * basic composition, the binomial mixture or the Renyi conversion */
static int coarse_epsilon(double q, double sigma, double steps, double delta, int direction,
                          acct_bounds *out) {
    acct_bounds first, each;
    double renyi, order;
    acct_single_epsilon(q, sigma, delta, direction, &first);
    acct_single_epsilon(q, sigma, acct_down(delta / steps), direction, &each);
    acct_bounds_intersect(out, acct_min(first.lower, out->upper), acct_up(steps * each.upper));
    acct_bounds_intersect(out, 0.0, acct_mixture_epsilon_upper(q, sigma, steps, delta));
    const int status = acct_psg_epsilon_renyi(q, sigma, steps, delta, &renyi, &order);
    if (status == ACCT_OK) acct_bounds_intersect(out, 0.0, renyi);
    return status == ACCT_ENOMEM ? status : ACCT_OK;
}

/* The brackets of several steps in the directions asked for; that of the add direction stays [0, 0] where it
 * is known to need less than the remove one, or that needs nothing: both are the same at 0 (Theorem 18). */
static int composed_epsilon(const acct_step *step, double steps, double delta, int direction,
                            acct_bounds one[2]) {
    acct_workspace w;
    int status = acct_workspace_alloc(&w, ACCT_MAX_NODES);
    if (!status && direction != ACCT_ADD)
        status = acct_epsilon_one_way(&w, step, steps, delta, ACCT_REMOVE, &one[0]);
    if (!status && (direction == ACCT_ADD ||
                    (direction == ACCT_EITHER && one[0].upper > 0.0 &&
                     !acct_add_is_below(&w, step, steps, one[0].lower, delta))))
        status = acct_epsilon_one_way(&w, step, steps, delta, ACCT_ADD, &one[1]);
    acct_workspace_free(&w);
    for (int d = ACCT_REMOVE; d <= ACCT_ADD && !status; d++)
        if ((direction == ACCT_EITHER || direction == d) && !acct_bounds_are_narrow(&one[d], 1e-3))
            status = coarse_epsilon(step->q, step->sigma, steps, delta, d, &one[d]);
    return status;
}

/* 0 < q < 1 */
static int sampled_epsilon(double q, double sigma, double steps, double delta, int direction, acct_bounds *out) {
    const acct_step step = acct_step_make(q, sigma);
    acct_bounds one[2] = {{0.0, 0.0}, {0.0, 0.0}};
    if (acct_ever_sampled_upper(&step, steps) <= delta || acct_without_loss_upper(&step, steps) <= delta) {
        out->upper = 0.0;
        return ACCT_OK;
    }
    if (steps == 1.0) {
        for (int d = ACCT_REMOVE; d <= ACCT_ADD; d++)
            if (direction == ACCT_EITHER || direction == d) acct_single_epsilon(q, sigma, delta, d, &one[d]);
    } else {
        const int status = composed_epsilon(&step, steps, delta, direction, one);
        if (status) return status;
    }
    *out = acct_bounds_larger(one[0], one[1]);
    if (needs_unsampled(q, out)) {
        acct_bounds plain;
        unsampled_epsilon(sigma, steps, delta, &plain);
        out->upper = acct_min(out->upper, plain.upper);
    }
    out->lower = acct_min(out->lower, out->upper);
    return ACCT_OK;
}

int acct_psg_epsilon(double q, double sigma, double steps, double delta, int direction, acct_bounds *out) {
    *out = (acct_bounds){0.0, INFINITY};
    if (!valid(q, sigma, steps, direction) || !acct_valid_delta(delta)) return ACCT_EDOMAIN;
    if (nothing_released(q, sigma, steps)) {
        out->upper = 0.0;
        return ACCT_OK;
    }
    int status = ACCT_OK;
    if (q == 1.0)
        unsampled_epsilon(sigma, steps, delta, out);
    else
        status = sampled_epsilon(acct_max(q, ACCT_LEAST_Q), sigma, steps, delta, direction, out);
    if (q < ACCT_LEAST_Q) out->lower = 0.0;
    return status;
}

int acct_psg_remove_decides(double q, double sigma, double steps, double delta, const acct_bounds *remove) {
    acct_workspace w;
    if (!valid(q, sigma, steps, ACCT_REMOVE) || !acct_valid_delta(delta)) return 0;
    if (!(q >= ACCT_LEAST_Q && steps > 1.0 && sigma < INFINITY && remove->lower > 0.0)) return 0;
    if (needs_unsampled(q, remove)) return 0;
    const int status = acct_workspace_alloc(&w, ACCT_MAX_NODES);
    if (status) return status;
    const acct_step step = acct_step_make(q, sigma);
    const int decides = acct_add_is_below(&w, &step, steps, remove->lower, delta);
    acct_workspace_free(&w);
    return decides;
}
