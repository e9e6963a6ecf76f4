#include "one_direction.h"

#include <math.h>
#include <stddef.h>

#include "chernoff.h"
#include "gaussian.h"
#include "rounding.h"
#include "saddle_point.h"
#include "bounds.h"

/* By Cauchy and Schwarz half the root of the chi-square divergence (Theorem 18).  Where that divergence is below
 * 1, 1/sigma^2 < 1300 as q >= ACCT_LEAST_Q: its two roundings move the result by 2600 u, the other operations by
 * less than 64 u, and 1e-12 covers both.  A ratio below 1e-150 is raised, against underflow of its square. */
double acct_without_loss_upper(const acct_step *step, double steps) {
    const double ratio = acct_max(step->q * sqrt(expm1(1.0 / (step->sigma * step->sigma))), 1e-150);
    const double chi_square = expm1(steps * log1p(ratio * ratio));
    return chi_square < 1.0 ? 0.5 * sqrt(chi_square) * (1.0 + 1e-12) : 1.0;
}

double acct_ever_sampled_upper(const acct_step *step, double steps) {
    return acct_max(-expm1(steps * step->log_1mq) * (1.0 + 64.0 * ACCT_U), ACCT_TINY);
}

/* The binomial mixture's bound; a random shift costs at most the largest one taken whenever there is any
 * (Theorem M15). */
static double largest_shift_delta_upper(const acct_step *step, double steps, double epsilon) {
    const double sigma = step->mixture ? acct_down(step->sigma / step->mixture->largest) : step->sigma;
    return acct_mixture_delta_upper(step->q, sigma, steps, epsilon);
}

/* what one step spends, roughly; 0 where it is not known */
static double single_epsilon(const acct_step *step, double delta) {
    const acct_mixture *m = step->mixture;
    acct_bounds single;
    double most = 0.0;
    if (!m) {
        acct_single_epsilon(step->q, step->sigma, delta, ACCT_REMOVE, &single);
        return single.upper < INFINITY ? single.upper : 0.0;
    }
    for (int j = 0; j < m->count; j++) {
        if (!(m->weight[j] > delta)) continue;
        acct_single_epsilon(m->weight[j], step->sigma / m->shift[j], delta, ACCT_REMOVE, &single);
        if (single.upper < INFINITY) most = acct_max(most, single.upper);
    }
    return most;
}

/* relative error of delta aimed at */
#define DELTA_TOLERANCE 1e-11
/* logarithms of the least delta that the first and the last window are made for */
#define FIRST_REACH -40.0
#define LAST_REACH -745.0
/* the search for a saddle point ends beyond this distance where there is none */
#define NO_SADDLE 1e30

/* Contours for the profile at epsilon, the first for about e^{log_delta}, where the last one was or where that is
 * narrow.  Every contour's bracket is intersected into *out; returns 1 once it is as narrow as wanted. */
static int narrow_delta(acct_workspace *w, const acct_step *step, double steps, double epsilon, int direction,
                        double *log_delta, acct_bounds *out) {
    double tolerance = DELTA_TOLERANCE;
    for (int i = 0; i < 8; i++) {
        acct_profile_point p;
        const int status = acct_plan(w, step, steps, direction, epsilon, *log_delta, tolerance, NULL);
        if (status == ACCT_EPRECISION && tolerance < 1e-4) { /* better a wide bracket than none */
            tolerance *= 1e3;
            continue;
        }
        if (status) return 0;
        acct_contour_profile(&w->contour, epsilon, &p);
        acct_bounds_intersect(out, p.bounds.lower, p.bounds.upper);
        const double before = *log_delta, now = p.value > 0.0 ? log(p.value) : before - 5.0;
        *log_delta = acct_max(now, LAST_REACH);
        if (fabs(now - before) < 2.0 && out->upper - out->lower <= acct_max(1e-6, 10.0 * tolerance) * out->upper)
            return 1;
    }
    return 0;
}

/* The saddle point on a window for what is likely, then on one for the answer, and no larger: at the orders of a far
 * answer outcomes beyond it outweigh all others.  A window that does not reach epsilon has none. */
static int saddle_within_reach(acct_workspace *w, const acct_step *step, double steps, int direction,
                               double epsilon, acct_saddle *saddle) {
    double reach = FIRST_REACH;
    acct_window window = acct_plan_window(step, steps, direction, reach + log(steps));
    int status = acct_saddle_at_epsilon(&w->law, step, steps, direction, &window, epsilon, saddle);
    while (!status && reach > LAST_REACH) {
        const int reached = saddle->b < NO_SADDLE, below = saddle->log_delta < reach;
        if (reached && !below && saddle->log_delta < 1.0) break;
        const double next = !reached ? 1.6 * reach : below ? 1.02 * saddle->log_delta - 5.0 : LAST_REACH;
        reach = acct_max(next, LAST_REACH);
        window = acct_plan_window(step, steps, direction, reach);
        status = acct_saddle_at_epsilon(&w->law, step, steps, direction, &window, epsilon, saddle);
    }
    return status;
}

int acct_delta_one_way(acct_workspace *w, const acct_step *step, double steps, double epsilon,
                         int direction, acct_bounds *out) {
    *out = (acct_bounds){0.0, 1.0};
    const double most = acct_most_added_loss(step, steps);
    if (direction == ACCT_ADD && epsilon > most) {
        out->upper = 0.0; /* no outcome has that much loss */
        return ACCT_OK;
    }
    if (direction == ACCT_ADD) /* 1 - e^{eps - loss} is at most this */
        out->upper = acct_min(acct_max(-expm1(epsilon - most) * (1.0 + 1e-14), ACCT_TINY), 1.0);
    acct_saddle saddle;
    const int status = saddle_within_reach(w, step, steps, direction, epsilon, &saddle);
    double log_delta = status ? -1.0 : acct_max(acct_min(saddle.log_delta, -1e-3), LAST_REACH);
    const int good = !status && narrow_delta(w, step, steps, epsilon, direction, &log_delta, out);
    if (!good) {
        /* whatever the window, what is outside counts in full */
        acct_bounds_intersect(out, 0.0,
                              acct_chernoff_delta_upper(w, step, steps, direction, epsilon, log_delta));
        const double nearest = acct_min(2.0 * FIRST_REACH, 0.5 * log_delta);
        for (double log_within = LAST_REACH; log_within < nearest; log_within *= 0.8)
            acct_bounds_intersect(
                out, 0.0, acct_chernoff_delta_upper(w, step, steps, direction, epsilon, log_within));
        acct_bounds_intersect(out, 0.0, largest_shift_delta_upper(step, steps, epsilon));
        acct_bounds_intersect(
            out, 0.0, acct_max(acct_up(steps * step->q), ACCT_TINY)); /* the record is never sampled otherwise */
    }
    return ACCT_OK;
}

/* the least relative error of delta that a contour is asked for */
#define LEAST_TOLERANCE 2e-14

/* Chance of being sampled at all above which one step's epsilon is far from that of all; the tolerance of the
 * line that then finds where the answer is, and of the one that is built there. */
#define GOOD_GUESS 0.05
#define FIND 1e-4
#define TAIL_TOLERANCE 1e-10

/* an estimate so far below where the line was built looks for an answer of 0 */
#define VANISHING 1e-6

/* an estimate so large, in units of where the line was built or of 1, is noise */
#define ABSURD 1e6
/* the factor by which a walk first moves away from a rare-event contour, at most */
#define FARTHEST_MOVE 30.0

/* One walk from a guess to epsilon(delta): contour, Newton on it, and again where that ends.  Every
 * contour's bracket is intersected into *out.  `loose`: any width near the tolerance will do.
 * returns 1 once the bracket is as narrow as wanted */
static int walk(acct_workspace *w, const acct_step *step, double steps, double delta, int direction,
                double epsilon, double tolerance, int loose, const acct_saddle *hint, acct_bounds *out) {
    const double log_delta = log(delta);
    const int finding = !loose && tolerance >= FIND;
    int refined = 0, limited = 0;
    double before = INFINITY; /* the width before the last refinement */
    for (int i = 0; i < 10; i++) {
        if (acct_plan(w, step, steps, direction, epsilon, log_delta, tolerance, i == 0 ? hint : NULL))
            return 0;
        acct_profile_point zero, p;
        double next = acct_invert_estimate(acct_contour_at, &w->contour, epsilon, delta);
        const int rare_contour = w->contour.small_losses_log > -INFINITY;
        if (next > ABSURD * acct_max(epsilon, 1.0)) return 0;
        if (next < VANISHING * epsilon) next = 0.0;
        if (next == 0.0) {
            acct_contour_profile(&w->contour, 0.0, &zero);
            if (zero.bounds.upper <= delta) {
                out->upper = 0.0;
                return 1;
            }
        }
        acct_contour_profile(&w->contour, next, &p);
        const double width = (p.bounds.upper - p.bounds.lower) / delta;
        const double close = acct_tolerance_for(next, -p.slope / delta, LEAST_TOLERANCE);
        const double fine = finding ? acct_min(close, TAIL_TOLERANCE) : close;
        const double wanted = acct_max(4.0 * acct_max(close, loose * tolerance), 1e-13);
        if (next > 0.0 || epsilon == 0.0) { /* any contour certifies something */
            acct_bounds found;
            acct_invert_certify(acct_contour_at, &w->contour, next, delta, &found);
            acct_bounds_intersect(out, found.lower, found.upper);
            /* a rare-event contour takes milliseconds: no second one once the bracket is narrow enough */
            const int lenient = step->mixture || step->q < 1e-6 || out->upper < 1e-3;
            if (width <= wanted || (rare_contour && acct_bounds_are_narrow(out, lenient ? 1e-7 : 3e-10)))
                return 1;
        }
        if (fabs(next - epsilon) <= 1e-3 * next) {
            if (tolerance <= LEAST_TOLERANCE || refined++ > 1 || loose || width > 0.7 * before) return loose;
            before = width;
            tolerance = acct_max(acct_min(0.03 * tolerance, fine), LEAST_TOLERANCE);
        } else {
            tolerance = acct_max(fine, loose * tolerance);
        }
        /* far from where it was built a rare-event contour is wide: move there in two steps */
        const int far =
            rare_contour && !(next < FARTHEST_MOVE * epsilon && next > epsilon / FARTHEST_MOVE) && !limited++;
        epsilon = far ? acct_max(acct_min(next, FARTHEST_MOVE * epsilon), epsilon / FARTHEST_MOVE) : next;
    }
    return 0;
}

int acct_epsilon_one_way(acct_workspace *w, const acct_step *step, double steps, double delta,
                           int direction, acct_bounds *out) {
    const double log_delta = log(delta);
    *out = (acct_bounds){0.0, INFINITY};
    if (direction == ACCT_ADD) out->upper = acct_most_added_loss(step, steps);
    const acct_window window = acct_plan_window(step, steps, direction, log_delta);
    acct_saddle saddle;
    if (acct_saddle_at_delta(&w->law, step, steps, direction, &window, log_delta, &saddle)) return ACCT_OK;
    const double middle = acct_max(saddle.epsilon, 0.0),
                 close = acct_tolerance_for(middle, saddle.b, LEAST_TOLERANCE);
    const int rare = direction == ACCT_REMOVE && steps * step->q < 2.0 &&
                     (step->sigma < 2.0 * acct_step_smallest(step) || steps * step->q < 0.05);
    if (!rare &&
        walk(w, step, steps, delta, direction, middle, close, 0, saddle.epsilon > 0.0 ? &saddle : NULL, out))
        return ACCT_OK;
    if (step->mixture && acct_bounds_are_narrow(out, 1e-8)) return ACCT_OK; /* as its round-off allows */
    /* where events are rare, one step spends everything */
    const double single = direction == ACCT_REMOVE ? single_epsilon(step, delta / steps) : 0.0;
    const double first = step->mixture && steps * step->q > GOOD_GUESS ? FIND : TAIL_TOLERANCE;
    if (single > 0.0 && walk(w, step, steps, delta, direction, single, first, 0, NULL, out)) return ACCT_OK;
    if (rare && walk(w, step, steps, delta, direction, middle, close, 0, NULL, out)) return ACCT_OK;
    /* better a wide bracket than none */
    const double guess = single > 0.0 ? single : middle, best[] = {guess, middle, 1.02 * guess, 1.2 * guess};
    for (int i = 0; i < 4; i++)
        for (double loose = 1e-8; loose < 0.1 && !acct_bounds_are_narrow(out, 1e-6); loose *= 300.0)
            if (walk(w, step, steps, delta, direction, best[i], loose, 1, NULL, out)) break;
    return ACCT_OK;
}

/* Whether the law's nodes are those of a line of the remove direction, which serve the other's saddle point, too:
 * they are finer than it needs. */
static int has_nodes(const acct_workspace *w, const acct_window *window) {
    const acct_tilted_law *g = &w->law;
    const acct_contour *k = &w->contour;
    return g->whole && k->direction == ACCT_REMOVE && k->small_losses_log == -INFINITY &&
           g->lo <= window->lo && g->hi >= 0.8 * window->hi;
}

/* how far the other direction is below, in logarithms, for bounds by moduli to show it; the error of the nodes, of
 * which others are worth their time; and the log of the error of one step that these are set for */
#define LEAST_GAP 1e-3
#define MOST_DOUBT 1e-3
#define MODULI_FINE -24.0

int acct_add_is_below(acct_workspace *w, const acct_step *step, double steps, double epsilon,
                        double delta) {
    const double log_delta = log(delta);
    if (epsilon > acct_most_added_loss(step, steps)) return 1;
    const acct_window window = acct_plan_window(step, steps, ACCT_ADD, log_delta);
    acct_saddle saddle;
    if (has_nodes(w, &window))
        acct_saddle_on_nodes(&w->law, steps, ACCT_ADD, epsilon, &saddle);
    else if (acct_saddle_at_epsilon(&w->law, step, steps, ACCT_ADD, &window, epsilon, &saddle))
        return 0;
    const double gap = log_delta - saddle.log_delta;
    if (gap > LEAST_GAP) {
        acct_line_modulus moduli;
        acct_line_modulus_set(&moduli, &w->law, &w->scratch, steps, ACCT_ADD, saddle.b, epsilon, delta);
        if (moduli.upper > delta && moduli.doubt > MOST_DOUBT) {
            const double order = acct_order_at(ACCT_ADD, saddle.b);
            if (acct_tilted_law_set(&w->law, step, &window, order, 0.0, MODULI_FINE - log(steps))) return 0;
            acct_line_modulus_set(&moduli, &w->law, &w->scratch, steps, ACCT_ADD, saddle.b, epsilon, delta);
        }
        if (moduli.upper <= delta) return 1;
    }
    /* a few digits do if the saddle-point approximation, good to a few per cent, is far below */
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
