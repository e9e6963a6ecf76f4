#include "subsampled_gaussian.h"

#include <math.h>
#include <stddef.h>

#include "fallback.h"
#include "gaussian.h"
#include "loss.h"
#include "plan.h"
#include "rounding.h"
#include "search.h"
#include "status.h"

static int valid(double q, double sigma, double steps, int direction) {
    return q >= 0.0 && q <= 1.0 && sigma > 0.0 && steps >= 0.0 && steps <= 9007199254740992.0 &&
           steps == floor(steps) && direction >= ACCT_REMOVE && direction <= ACCT_EITHER;
}

static int nothing_released(double q, double sigma, double steps) {
    return q == 0.0 || steps == 0.0 || sigma == INFINITY;
}

static void intersect(acct_bounds *a, double lower, double upper) {
    if (lower > a->lower) a->lower = lower;
    if (upper < a->upper) a->upper = upper;
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
    int status = acct_saddle_at_epsilon(&w->grid, step, steps, direction, &window, epsilon, &saddle);
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
        intersect(out, p.bounds.lower, p.bounds.upper);
        const double now = p.value > 0.0 ? log(p.value) : log_delta - 5.0;
        good = fabs(now - log_delta) < 2.0 &&
               out->upper - out->lower <= fmax(1e-6, 10.0 * tolerance) * out->upper;
        log_delta = fmax(now, -745.0);
    }
    if (!good) {
        intersect(out, 0.0,
                  acct_chernoff_delta_upper(w, step, steps, direction, epsilon, log_delta, 0.0));
        intersect(out, acct_chernoff_delta_lower(w, step, steps, direction, epsilon),
                  acct_mixture_delta_upper(step->q, step->sigma, steps, epsilon));
        intersect(out, 0.0, fmax(acct_up(steps * step->q), ACCT_TINY)); /* the record is never sampled otherwise */
    }
    return ACCT_OK;
}

int acct_psg_delta(double q, double sigma, double steps, double epsilon, int direction,
                   acct_bounds *out) {
    *out = (acct_bounds){0.0, 1.0};
    if (!valid(q, sigma, steps, direction) || !(epsilon >= 0.0 && epsilon < INFINITY))
        return ACCT_EDOMAIN;
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
        if (mu > 1e-150 && mu < 1e150) acct_gaussian_delta(mu, 4.0 * ACCT_U, epsilon, out);
        else if (mu <= 1e-150) out->upper = 1e-150; /* delta(0) <= mu/2 */
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
    out->lower = fmax(one[0].lower, one[1].lower);
    out->upper = fmax(one[0].upper, one[1].upper);
    return ACCT_OK;
}

static void contour_at(const void *par, double epsilon, acct_profile_point *point) {
    acct_contour_profile(par, epsilon, point);
}

/* relative error of delta that leaves epsilon 1e-10 relative */
static double tolerance_for(double epsilon, double b) {
    return fmax(fmin(1.5e-10 * epsilon * b, 3e-8), 2e-14);
}

static int is_narrow(const acct_bounds *b, double relative) {
    return b->upper < INFINITY && b->upper - b->lower <= relative * b->upper;
}

/* One walk from a guess to epsilon(delta): contour, Newton on it, and again where that ends.  Every
 * contour's bracket is intersected into *out.  `loose`: any width near the tolerance will do.
 * returns 1 once the bracket is as narrow as wanted */
static int walk(acct_workspace *w, const acct_step *step, double steps, double delta, int direction,
                double epsilon, double tolerance, int loose, const acct_saddle *hint,
                acct_bounds *out) {
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
        const double next = acct_invert_estimate(contour_at, &w->contour, epsilon, delta);
        acct_contour_profile(&w->contour, next, &p);
        const double width = (p.bounds.upper - p.bounds.lower) / delta;
        const double close = tolerance_for(next, -p.slope / delta);
        const double wanted = fmax(4.0 * fmax(close, loose * tolerance), 1e-13);
        const int split = w->contour.small_log > -INFINITY;
        if (next > 0.0 || epsilon == 0.0) { /* any contour certifies something */
            acct_bounds found;
            acct_invert_certify(contour_at, &w->contour, next, delta, &found);
            intersect(out, found.lower, found.upper);
            /* a split takes milliseconds: not another one for digits nobody asked for */
            const int lenient = step->q < 1e-6 || out->upper < 1e-3;
            if (width <= wanted || (split && is_narrow(out, lenient ? 1e-7 : 3e-10))) return 1;
        }
        if (fabs(next - epsilon) <= 1e-3 * next) {
            if (tolerance <= 2e-14 || refined++ > 1 || loose || width > 0.7 * before) return loose;
            before = width;
            tolerance = fmax(0.03 * tolerance, 2e-14);
        } else {
            tolerance = fmax(close, loose * tolerance);
        }
        /* far from where it was built, a split has little to say: once, not so far */
        const int far = split && !(next < 30.0 * epsilon && next > epsilon / 30.0) && !limited++;
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
    if (acct_saddle_at_delta(&w->grid, step, steps, direction, &window, log_delta, &saddle))
        return ACCT_OK;
    const double middle = fmax(saddle.epsilon, 0.0), close = tolerance_for(middle, saddle.b);
    const int rare = direction == ACCT_REMOVE && steps * step->q < 2.0 && step->sigma < 2.0;
    if (!rare && walk(w, step, steps, delta, direction, middle, close, 0,
                      saddle.epsilon > 0.0 ? &saddle : NULL, out))
        return ACCT_OK;
    /* where events are rare, one step spends everything */
    double jump = 0.0;
    if (direction == ACCT_REMOVE) {
        acct_bounds single;
        acct_single_epsilon(step->q, step->sigma, delta / steps, direction, &single);
        if (single.upper < INFINITY) jump = single.upper;
    }
    if (jump > 0.0 && walk(w, step, steps, delta, direction, jump, 1e-10, 0, NULL, out))
        return ACCT_OK;
    if (rare && walk(w, step, steps, delta, direction, middle, close, 0, NULL, out)) return ACCT_OK;
    /* better a wide bracket than none */
    const double best = jump > 0.0 ? jump : middle;
    for (double loose = 1e-8; loose < 0.1 && !is_narrow(out, 1e-6); loose *= 300.0)
        if (walk(w, step, steps, delta, direction, best, loose, 1, NULL, out)) break;
    if (rare && !is_narrow(out, 1e-2)) walk(w, step, steps, delta, direction, middle, 1e-4, 1, NULL, out);
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
    if (acct_saddle_at_epsilon(&w->grid, step, steps, ACCT_ADD, &window, epsilon, &saddle)) return 0;
    const double b = saddle.b;
    const double log_chernoff = saddle.log_scale - b * epsilon - log1p(b) - b * log1p(1.0 / b);
    if (log_chernoff < log_delta - 0.01 &&
        acct_chernoff_delta_upper(w, step, steps, ACCT_ADD, epsilon, log_delta, b) <= delta)
        return 1;
    if (log_chernoff < log_delta - 0.01) /* the grid is no longer the saddle's */
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
    intersect(out, fmin(first.lower, out->upper), acct_up(steps * each.upper));
    intersect(out, 0.0, acct_mixture_epsilon_upper(q, sigma, steps, delta));
    const int status = acct_psg_epsilon_renyi(q, sigma, steps, delta, &renyi, &order);
    if (status == ACCT_OK) intersect(out, 0.0, renyi);
    return status == ACCT_ENOMEM ? status : ACCT_OK;
}

int acct_psg_epsilon(double q, double sigma, double steps, double delta, int direction,
                     acct_bounds *out) {
    *out = (acct_bounds){0.0, INFINITY};
    if (!valid(q, sigma, steps, direction) || !(delta > 0.0 && delta < 1.0)) return ACCT_EDOMAIN;
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
        if (mu > 1e-150 && mu < 1e150) acct_gaussian_epsilon(mu, 4.0 * ACCT_U, delta, out);
        else if (mu <= 1e-150) out->upper = delta >= 1e-150 ? 0.0 : 1e-140;
        return ACCT_OK;
    }
    const acct_step step = acct_step_make(q, sigma);
    acct_bounds one[2] = {{0.0, 0.0}, {0.0, 0.0}};
    if (steps == 1.0) {
        for (int d = ACCT_REMOVE; d <= ACCT_ADD; d++)
            if (direction == ACCT_EITHER || direction == d)
                acct_single_epsilon(q, sigma, delta, d, &one[d]);
    } else {
        acct_workspace w;
        int status = acct_workspace_alloc(&w);
        if (!status && direction != ACCT_ADD)
            status = epsilon_one_way(&w, &step, steps, delta, ACCT_REMOVE, &one[0]);
        if (!status && (direction == ACCT_ADD ||
                        (direction == ACCT_EITHER &&
                         !add_is_below(&w, &step, steps, one[0].lower, delta))))
            status = epsilon_one_way(&w, &step, steps, delta, ACCT_ADD, &one[1]);
        acct_workspace_free(&w);
        for (int d = ACCT_REMOVE; d <= ACCT_ADD && !status; d++)
            if ((direction == ACCT_EITHER || direction == d) &&
                !(one[d].upper < INFINITY && one[d].upper - one[d].lower <= 1e-3 * one[d].upper))
                status = coarse_epsilon(q, sigma, steps, delta, d, &one[d]);
        if (status) return status;
    }
    out->lower = fmax(one[0].lower, one[1].lower);
    out->upper = fmax(one[0].upper, one[1].upper);
    return ACCT_OK;
}
