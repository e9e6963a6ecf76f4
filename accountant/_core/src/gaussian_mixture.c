#include "gaussian_mixture.h"

#include <math.h>
#include <stddef.h>

#include "domain.h"
#include "gauss_legendre.h"
#include "gaussian.h"
#include "mixture_loss.h"
#include "one_direction.h"
#include "rounding.h"
#include "bounds.h"

/* beyond so many deviations of the noise nothing is above ACCT_TINY */
#define FARTHEST_SHIFT 40.0

/* the profile of one shift of mu deviations at any real loss, which is known up to err */
static acct_bounds one_shift(double mu, double loss, double err) {
    acct_bounds at, out;
    const double high = loss + err, low = loss - err;
    acct_gaussian_delta(mu, 2.0 * ACCT_U, fabs(high), &at);
    out.lower = at.lower;
    /* H(a) = 1 - e^a + e^a H(-a) */
    if (high < 0.0)
        out.lower = -expm1(high) * (1.0 - 2.0 * ACCT_LIBM) + acct_times_exp_lower(high, at.lower);
    if (err > 0.0) acct_gaussian_delta(mu, 2.0 * ACCT_U, fabs(low), &at);
    out.upper = at.upper;
    if (low < 0.0) out.upper = -expm1(low) * (1.0 + 2.0 * ACCT_LIBM) + acct_times_exp_upper(low, at.upper);
    return out;
}

/* The profile at the loss of one outcome x: epsilon = +-L(x), which falls (grows) with x when removing
 * (adding).  Removing it is the sum of w_j H_j(u_j), adding that of w_j e^{epsilon + u_j} H_j(-u_j), all of
 * its terms positive. */
typedef struct {
    double epsilon, error; /* and the bound on its error */
    acct_bounds delta;
} outcome;

static outcome at_noise(const acct_step *step, int direction, double x, int certify) {
    const acct_mixture *m = step->mixture;
    acct_mixture_point p;
    acct_mixture_at(m, x, NULL, &p);
    const int add = direction == ACCT_ADD;
    outcome o = {add ? -p.loss : p.loss, p.error, {0.0, 0.0}};
    for (int j = 0; j < m->count; j++) {
        const double d = m->shift[j], w = m->weight[j], u = d * (2.0 * x - d) / m->var2;
        const double err = certify ? 8.0 * ACCT_U * fabs(u) : 0.0;
        if (!(w > 0.0)) continue;
        acct_bounds h = one_shift(d / step->sigma, add ? -u : u, err);
        if (add) { /* e^{epsilon + u} by one exponent: e^u alone may underflow */
            const double rise = o.epsilon + u, moved = err + o.error + 4.0 * ACCT_U * fabs(rise);
            h.lower = acct_times_exp_lower(rise - moved, h.lower);
            h.upper = acct_times_exp_upper(rise + moved, h.upper);
        }
        o.delta.lower += w * h.lower;
        o.delta.upper += w * h.upper;
    }
    const double wide = (m->count + 8.0) * ACCT_U + 1.01 * m->weight_err;
    const double lost = m->count * ACCT_UNDERFLOW; /* of the products */
    o.delta.lower = acct_probability_lower(o.delta.lower * (1.0 - wide) - lost);
    o.delta.upper = acct_probability_upper(o.delta.upper * (1.0 + wide) + lost);
    return o;
}

void acct_single_mixture_delta(const acct_step *step, double epsilon, int direction, acct_bounds *out) {
    const double sign = direction == ACCT_ADD ? -1.0 : 1.0;
    *out = (acct_bounds){0.0, 1.0};
    if (direction == ACCT_ADD && epsilon > acct_most_added_loss(step, 1.0)) {
        out->upper = 0.0; /* no outcome has that much loss */
        return;
    }
    const double x = direction == ACCT_ADD && !(epsilon < -step->log_1mq * (1.0 - 4.0 * ACCT_U))
                         ? -FARTHEST_SHIFT * step->sigma
                         : acct_mixture_inverse(step->mixture, sign * epsilon);
    /* outcomes of less and of more loss than epsilon, certainly */
    for (int side = -1; side <= 1; side += 2) {
        double move = 4.0 * ACCT_U * (fabs(x) + 1e-3 * step->sigma);
        for (int i = 0; i < 60; i++, move *= 2.0) {
            const outcome o = at_noise(step, direction, x + side * sign * move, 1);
            if (side < 0 && o.epsilon + o.error <= epsilon) {
                out->upper = acct_min(out->upper, o.delta.upper);
                break;
            }
            if (side > 0 && o.epsilon - o.error >= epsilon) {
                out->lower = o.delta.lower;
                break;
            }
        }
    }
    out->lower = acct_min(out->lower, out->upper);
}

/* The outcome, in units of sign x, whose profile is about delta: false position on the logarithm, from one
 * where it is larger to one where it is smaller.  *slope: of that logarithm.  Not rigorous. */
static double find_single(const acct_step *step, double delta, int direction, double larger, double smaller,
                          double *slope) {
    const double sign = direction == ACCT_ADD ? -1.0 : 1.0, target = log(delta);
    double a = larger, b = smaller, fa = 0.0, fb = 0.0, z = a;
    for (int i = 0; i < 100; i++) {
        z = i == 0 ? a : i == 1 ? b : (fa * b - fb * a) / (fa - fb);
        if (i > 1 && !(z > acct_min(a, b) && z < acct_max(a, b))) z = 0.5 * (a + b);
        const outcome o = at_noise(step, direction, sign * z, 0);
        const double f = acct_max(log(0.5 * (o.delta.lower + o.delta.upper)), -700.0) - target;
        if (i == 0) {
            fa = f;
            continue;
        }
        if (i == 1) {
            fb = f;
            continue;
        }
        *slope = (fa - fb) / (b - a);
        if (fabs(f) < 3e-13 || b - a < 4.0 * ACCT_U * fabs(z)) break;
        /* the end that stays is pulled down, or false position would creep */
        if (f > 0.0) {
            fb *= fa > 0.0 && a != larger ? 0.5 : 1.0;
            a = z;
            fa = f;
        } else {
            fa *= fb < 0.0 && b != smaller ? 0.5 : 1.0;
            b = z;
            fb = f;
        }
    }
    return z;
}

void acct_single_mixture_epsilon(const acct_step *step, double delta, int direction, acct_bounds *out) {
    const double sign = direction == ACCT_ADD ? -1.0 : 1.0;
    const double far = FARTHEST_SHIFT * step->sigma + (direction == ACCT_ADD ? 0.0 : acct_step_largest(step));
    acct_bounds zero;
    *out = (acct_bounds){0.0, direction == ACCT_ADD ? acct_most_added_loss(step, 1.0) : INFINITY};
    acct_single_mixture_delta(step, 0.0, direction, &zero);
    if (zero.upper <= delta) {
        out->upper = 0.0;
        return;
    }
    double slope = 0.0;
    const double z =
        find_single(step, delta, direction, sign * acct_mixture_inverse(step->mixture, 0.0), far, &slope);
    for (int side = -1; side <= 1; side += 2) {
        double move = acct_max(1e-13 / slope, 4.0 * ACCT_U * (fabs(z) + 1e-3 * step->sigma));
        for (int i = 0; i < 60 && move < far; i++, move *= 1.5) {
            const outcome o = at_noise(step, direction, sign * (z + side * move), 1);
            if (side > 0 && o.delta.upper <= delta) {
                out->upper = acct_min(out->upper, acct_max(o.epsilon + o.error, 0.0));
                break;
            }
            if (side < 0 && o.delta.lower > delta) {
                out->lower = acct_max(o.epsilon - o.error, 0.0);
                break;
            }
        }
    }
    out->lower = acct_min(out->lower, out->upper);
}

static int set_single(acct_mixture *mixture, const acct_mixture_part *part, double steps, int direction) {
    if (!(part->sigma > 1e-100 && part->sigma < 1e100)) return ACCT_EDOMAIN;
    if (!(acct_valid_steps(steps) && steps >= 1.0)) return ACCT_EDOMAIN;
    if (direction != ACCT_REMOVE && direction != ACCT_ADD) return ACCT_EDOMAIN;
    return acct_mixture_set(mixture, part);
}

int acct_gaussian_mixture_delta(const acct_mixture_part *part, double steps, double epsilon, int direction,
                                acct_bounds *out) {
    acct_mixture mixture;
    acct_workspace w;
    *out = (acct_bounds){0.0, 1.0};
    int status = acct_valid_epsilon(epsilon) ? set_single(&mixture, part, steps, direction) : ACCT_EDOMAIN;
    if (status) return status;
    const acct_step step = acct_step_make_mixture(&mixture, part->sigma);
    if (steps == 1.0) {
        acct_single_mixture_delta(&step, epsilon, direction, out);
    } else {
        status = acct_workspace_alloc(&w, ACCT_MIXTURE_NODES);
        if (!status) status = acct_delta_one_way(&w, &step, steps, epsilon, direction, out);
        acct_workspace_free(&w);
        if (status) return status;
    }
    out->upper = acct_min(out->upper, acct_ever_sampled_upper(&step, steps));
    out->lower = acct_min(out->lower, out->upper);
    return ACCT_OK;
}

int acct_gaussian_mixture_epsilon(const acct_mixture_part *part, double steps, double delta, int direction,
                                  acct_bounds *out) {
    acct_mixture mixture;
    acct_workspace w;
    *out = (acct_bounds){0.0, INFINITY};
    int status = acct_valid_delta(delta) ? set_single(&mixture, part, steps, direction) : ACCT_EDOMAIN;
    if (status) return status;
    const acct_step step = acct_step_make_mixture(&mixture, part->sigma);
    if (acct_ever_sampled_upper(&step, steps) <= delta) {
        out->upper = 0.0;
        return ACCT_OK;
    }
    if (steps == 1.0) {
        acct_single_mixture_epsilon(&step, delta, direction, out);
        return ACCT_OK;
    }
    status = acct_workspace_alloc(&w, ACCT_MIXTURE_NODES);
    if (!status) status = acct_epsilon_one_way(&w, &step, steps, delta, direction, out);
    acct_workspace_free(&w);
    out->lower = acct_min(out->lower, out->upper);
    return status;
}
