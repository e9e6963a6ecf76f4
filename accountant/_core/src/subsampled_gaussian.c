#include "subsampled_gaussian.h"

#include <math.h>
#include <stddef.h>

#include "chernoff.h"
#include "gaussian.h"
#include "loss.h"
#include "plan.h"
#include "rounding.h"
#include "saddle_point.h"
#include "status.h"

static int valid(double q, double sigma, double steps, int direction) {
    return acct_valid_noise(q, sigma) && acct_valid_steps(steps) && acct_valid_direction(direction);
}

static int nothing_released(double q, double sigma, double steps) {
    return q == 0.0 || steps == 0.0 || sigma == INFINITY;
}

/* at least the probability 1 - (1-q)^n that the record is sampled at all: no delta is above it */
static double ever_sampled_upper(const acct_step *step, double steps) {
    return fmax(-expm1(steps * step->log_1mq) * (1.0 + 64.0 * ACCT_U), ACCT_TINY);
}

/* Whether the bracket is wide, or so near to q = 1 that the closed form there may be below it:
 * sampling never costs more */
static int needs_unsampled(double q, const acct_bounds *b) {
    return q > 0.999 || !acct_bounds_are_narrow(b, 1e-6);
}

/* relative error of delta aimed at */
#define TOLERANCE 1e-11

static int delta_one_way(acct_workspace *w, const acct_step *step, double steps, double epsilon,
                         int direction, acct_bounds *out) {
    *out = (acct_bounds){0.0, 1.0};
    const double most = -steps * step->log_1mq * (1.0 + 4.0 * ACCT_U); /* loss, when adding */
    if (direction == ACCT_ADD && epsilon > most) {
        out->upper = 0.0; /* no outcome has that much loss */
        return ACCT_OK;
    }
    if (direction == ACCT_ADD) /* 1 - e^{eps - loss} is at most this */
        out->upper = fmin(fmax(-expm1(epsilon - most) * (1.0 + 1e-14), ACCT_TINY), 1.0);
    acct_saddle saddle;
    const acct_window window = {.lo = -12.0 * step->sigma, .hi = 1.0 + 12.0 * step->sigma};
    int status = acct_saddle_at_epsilon(&w->law, step, steps, direction, &window, epsilon, &saddle);
    double log_delta = status ? -1.0 : fmax(fmin(saddle.log_delta, -1e-3), -745.0);
    int good = 0;
    double tolerance = TOLERANCE;
    for (int i = 0; i < 8 && !status && !good; i++) {
        acct_profile_point p;
        status = acct_plan(w, step, steps, direction, epsilon, log_delta, tolerance, NULL);
        if (status == ACCT_EPRECISION && tolerance < 1e-4) { /* better a wide bracket than none */
            tolerance *= 1e3;
            status = ACCT_OK;
            continue;
        }
        if (status) break;
        acct_contour_profile(&w->contour, epsilon, &p);
        acct_bounds_intersect(out, p.bounds.lower, p.bounds.upper);
        const double now = p.value > 0.0 ? log(p.value) : log_delta - 5.0;
        good = fabs(now - log_delta) < 2.0 &&
               out->upper - out->lower <= fmax(1e-6, 10.0 * tolerance) * out->upper;
        log_delta = fmax(now, -745.0);
    }
    if (!good) {
        acct_bounds_intersect(out, 0.0,
                              acct_chernoff_delta_upper(w, step, steps, direction, epsilon, log_delta, 0.0));
        acct_bounds_intersect(out, acct_chernoff_delta_lower(w, step, steps, direction, epsilon),
                              acct_mixture_delta_upper(step->q, step->sigma, steps, epsilon));
        acct_bounds_intersect(
            out, 0.0, fmax(acct_up(steps * step->q), ACCT_TINY)); /* the record is never sampled otherwise */
    }
    return ACCT_OK;
}

int acct_psg_delta(double q, double sigma, double steps, double epsilon, int direction, acct_bounds *out) {
    *out = (acct_bounds){0.0, 1.0};
    if (!valid(q, sigma, steps, direction) || !acct_valid_epsilon(epsilon)) return ACCT_EDOMAIN;
    if (nothing_released(q, sigma, steps)) {
        out->upper = 0.0;
        return ACCT_OK;
    }
    if (q < ACCT_LEAST_Q) {
        const int status = acct_psg_delta(ACCT_LEAST_Q, sigma, steps, epsilon, direction, out);
        out->lower = 0.0;
        return status;
    }
    if (q == 1.0) {
        const double mu = sqrt(steps) / sigma;
        if (mu > 1e-150 && mu < 1e150)
            acct_gaussian_delta(mu, 4.0 * ACCT_U, epsilon, out);
        else if (mu <= 1e-150)
            out->upper = 1e-150; /* delta(0) <= mu/2 */
        return ACCT_OK;
    }
    acct_bounds one[2] = {{0.0, 0.0}, {0.0, 0.0}};
    acct_workspace w;
    int status = acct_workspace_alloc(&w);
    const acct_step step = acct_step_make(q, sigma);
    for (int d = ACCT_REMOVE; d <= ACCT_ADD && !status; d++) {
        if (direction != ACCT_EITHER && direction != d) continue;
        if (steps == 1.0)
            acct_single_delta(q, sigma, epsilon, d, &one[d]);
        else
            status = delta_one_way(&w, &step, steps, epsilon, d, &one[d]);
    }
    acct_workspace_free(&w);
    if (status) return status;
    *out = acct_bounds_larger(one[0], one[1]);
    out->upper = fmin(out->upper, ever_sampled_upper(&step, steps));
    if (needs_unsampled(q, out)) {
        acct_bounds plain = {0.0, 1.0};
        status = acct_psg_delta(1.0, sigma, steps, epsilon, ACCT_REMOVE, &plain);
        out->upper = fmin(out->upper, plain.upper);
    }
    out->lower = fmin(out->lower, out->upper);
    return status;
}

/* the least relative error of delta that a contour is asked for */
#define LEAST_TOLERANCE 2e-14

/* One walk from a guess to epsilon(delta): contour, Newton on it, and again where that ends.  Every
 * contour's bracket is intersected into *out.  `loose`: any width near the tolerance will do.
 * returns 1 once the bracket is as narrow as wanted */
static int walk(acct_workspace *w, const acct_step *step, double steps, double delta, int direction,
                double epsilon, double tolerance, int loose, const acct_saddle *hint, acct_bounds *out) {
    const double log_delta = log(delta);
    int refined = 0, limited = 0;
    double before = INFINITY; /* the width before the last refinement */
    for (int i = 0; i < 10; i++) {
        if (acct_plan(w, step, steps, direction, epsilon, log_delta, tolerance, i == 0 ? hint : NULL))
            return 0;
        acct_profile_point zero, p;
        if (epsilon == 0.0) {
            acct_contour_profile(&w->contour, 0.0, &zero);
            if (zero.bounds.upper <= delta) {
                out->upper = 0.0;
                return 1;
            }
        }
        const double next = acct_invert_estimate(acct_contour_at, &w->contour, epsilon, delta);
        acct_contour_profile(&w->contour, next, &p);
        const double width = (p.bounds.upper - p.bounds.lower) / delta;
        const double close = acct_tolerance_for(next, -p.slope / delta, LEAST_TOLERANCE);
        const double wanted = fmax(4.0 * fmax(close, loose * tolerance), 1e-13);
        const int rare_contour = w->contour.small_losses_log > -INFINITY;
        if (next > 0.0 || epsilon == 0.0) { /* any contour certifies something */
            acct_bounds found;
            acct_invert_certify(acct_contour_at, &w->contour, next, delta, &found);
            acct_bounds_intersect(out, found.lower, found.upper);
            /* a rare-event contour takes milliseconds: no second one once the bracket is narrow enough */
            const int lenient = step->q < 1e-6 || out->upper < 1e-3;
            if (width <= wanted || (rare_contour && acct_bounds_are_narrow(out, lenient ? 1e-7 : 3e-10)))
                return 1;
        }
        if (fabs(next - epsilon) <= 1e-3 * next) {
            if (tolerance <= LEAST_TOLERANCE || refined++ > 1 || loose || width > 0.7 * before) return loose;
            before = width;
            tolerance = fmax(0.03 * tolerance, LEAST_TOLERANCE);
        } else {
            tolerance = fmax(close, loose * tolerance);
        }
        /* far from where it was built a rare-event contour is wide: move there in two steps */
        const int far = rare_contour && !(next < 30.0 * epsilon && next > epsilon / 30.0) && !limited++;
        const double near = far ? fmax(fmin(next, 30.0 * epsilon), epsilon / 30.0) : next;
        epsilon = near < 1e-300 ? 0.0 : near;
    }
    return 0;
}

static int epsilon_one_way(acct_workspace *w, const acct_step *step, double steps, double delta,
                           int direction, acct_bounds *out) {
    const double log_delta = log(delta);
    *out = (acct_bounds){0.0, INFINITY};
    if (direction == ACCT_ADD) out->upper = -steps * step->log_1mq * (1.0 + 4.0 * ACCT_U);
    const acct_window window = acct_plan_window(step, steps, direction, log_delta);
    acct_saddle saddle;
    if (acct_saddle_at_delta(&w->law, step, steps, direction, &window, log_delta, &saddle)) return ACCT_OK;
    const double middle = fmax(saddle.epsilon, 0.0),
                 close = acct_tolerance_for(middle, saddle.b, LEAST_TOLERANCE);
    const int rare = direction == ACCT_REMOVE && steps * step->q < 2.0 && step->sigma < 2.0;
    if (!rare &&
        walk(w, step, steps, delta, direction, middle, close, 0, saddle.epsilon > 0.0 ? &saddle : NULL, out))
        return ACCT_OK;
    /* where events are rare, one step spends everything */
    double tail = 0.0;
    if (direction == ACCT_REMOVE) {
        acct_bounds single;
        acct_single_epsilon(step->q, step->sigma, delta / steps, direction, &single);
        if (single.upper < INFINITY) tail = single.upper;
    }
    if (tail > 0.0 && walk(w, step, steps, delta, direction, tail, 1e-10, 0, NULL, out)) return ACCT_OK;
    if (rare && walk(w, step, steps, delta, direction, middle, close, 0, NULL, out)) return ACCT_OK;
    /* better a wide bracket than none */
    const double best = tail > 0.0 ? tail : middle;
    for (double loose = 1e-8; loose < 0.1 && !acct_bounds_are_narrow(out, 1e-6); loose *= 300.0)
        if (walk(w, step, steps, delta, direction, best, loose, 1, NULL, out)) break;
    if (rare && !acct_bounds_are_narrow(out, 1e-2))
        walk(w, step, steps, delta, direction, middle, 1e-4, 1, NULL, out);
    return ACCT_OK;
}

/* Whether the add direction needs less than `epsilon` at `delta`: by Chernoff if that looks likely,
 * else by a contour */
static int add_is_below(acct_workspace *w, const acct_step *step, double steps, double epsilon,
                        double delta) {
    const double log_delta = log(delta);
    if (epsilon > -steps * step->log_1mq * (1.0 + 4.0 * ACCT_U)) return 1;
    const acct_window window = acct_plan_window(step, steps, ACCT_ADD, log_delta);
    acct_saddle saddle;
    if (acct_saddle_at_epsilon(&w->law, step, steps, ACCT_ADD, &window, epsilon, &saddle)) return 0;
    const double b = saddle.b;
    const double log_chernoff = saddle.log_scale - b * epsilon + acct_log_chernoff(b);
    if (log_chernoff < log_delta - 0.01 &&
        acct_chernoff_delta_upper(w, step, steps, ACCT_ADD, epsilon, log_delta, b) <= delta)
        return 1;
    if (log_chernoff < log_delta - 0.01) /* the law's nodes are no longer the saddle point's */
        return 0;
    /* a few digits do if the saddle-point approximation, good to a few per cent, is far below */
    const double gap = log_delta - saddle.log_delta;
    acct_profile_point p;
    if (gap > 0.15) {
        if (acct_plan(w, step, steps, ACCT_ADD, epsilon, log_delta, 1e-3, &saddle)) return 0;
        acct_contour_profile(&w->contour, epsilon, &p);
        if (p.bounds.upper <= delta) return 1;
        if (acct_plan(w, step, steps, ACCT_ADD, epsilon, log_delta, 1e-9, NULL)) return 0;
    } else if (acct_plan(w, step, steps, ACCT_ADD, epsilon, log_delta, 1e-9, &saddle)) {
        return 0;
    }
    acct_contour_profile(&w->contour, epsilon, &p);
    return p.bounds.upper <= delta;
}

/* Brackets that always exist: at least one step's epsilon (more steps never cost less), at most
 * basic composition, the binomial mixture or the Renyi conversion */
static int coarse_epsilon(double q, double sigma, double steps, double delta, int direction,
                          acct_bounds *out) {
    acct_bounds first, each;
    double renyi, order;
    acct_single_epsilon(q, sigma, delta, direction, &first);
    acct_single_epsilon(q, sigma, acct_down(delta / steps), direction, &each);
    acct_bounds_intersect(out, fmin(first.lower, out->upper), acct_up(steps * each.upper));
    acct_bounds_intersect(out, 0.0, acct_mixture_epsilon_upper(q, sigma, steps, delta));
    const int status = acct_psg_epsilon_renyi(q, sigma, steps, delta, &renyi, &order);
    if (status == ACCT_OK) acct_bounds_intersect(out, 0.0, renyi);
    return status == ACCT_ENOMEM ? status : ACCT_OK;
}

/* The brackets of several steps in the directions asked for; that of the add direction stays [0, 0] where it
 * is known to need less than the remove one. */
static int composed_epsilon(const acct_step *step, double steps, double delta, int direction,
                            acct_bounds one[2]) {
    acct_workspace w;
    int status = acct_workspace_alloc(&w);
    if (!status && direction != ACCT_ADD)
        status = epsilon_one_way(&w, step, steps, delta, ACCT_REMOVE, &one[0]);
    if (!status && (direction == ACCT_ADD ||
                    (direction == ACCT_EITHER && !add_is_below(&w, step, steps, one[0].lower, delta))))
        status = epsilon_one_way(&w, step, steps, delta, ACCT_ADD, &one[1]);
    acct_workspace_free(&w);
    for (int d = ACCT_REMOVE; d <= ACCT_ADD && !status; d++)
        if ((direction == ACCT_EITHER || direction == d) && !acct_bounds_are_narrow(&one[d], 1e-3))
            status = coarse_epsilon(step->q, step->sigma, steps, delta, d, &one[d]);
    return status;
}

int acct_psg_epsilon(double q, double sigma, double steps, double delta, int direction, acct_bounds *out) {
    *out = (acct_bounds){0.0, INFINITY};
    if (!valid(q, sigma, steps, direction) || !acct_valid_delta(delta)) return ACCT_EDOMAIN;
    if (nothing_released(q, sigma, steps)) {
        out->upper = 0.0;
        return ACCT_OK;
    }
    if (q < ACCT_LEAST_Q) {
        const int status = acct_psg_epsilon(ACCT_LEAST_Q, sigma, steps, delta, direction, out);
        out->lower = 0.0;
        return status;
    }
    if (q == 1.0) {
        const double mu = sqrt(steps) / sigma;
        if (mu > 1e-150 && mu < 1e150)
            acct_gaussian_epsilon(mu, 4.0 * ACCT_U, delta, out);
        else if (mu <= 1e-150)
            out->upper = delta >= 1e-150 ? 0.0 : 1e-140;
        return ACCT_OK;
    }
    const acct_step step = acct_step_make(q, sigma);
    acct_bounds one[2] = {{0.0, 0.0}, {0.0, 0.0}};
    if (ever_sampled_upper(&step, steps) <= delta) {
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
    int status = ACCT_OK;
    if (needs_unsampled(q, out)) {
        acct_bounds plain = {0.0, INFINITY};
        status = acct_psg_epsilon(1.0, sigma, steps, delta, ACCT_REMOVE, &plain);
        out->upper = fmin(out->upper, plain.upper);
    }
    out->lower = fmin(out->lower, out->upper);
    return status;
}
