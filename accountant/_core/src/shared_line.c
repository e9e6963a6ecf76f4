#include "shared_line.h"

#include <math.h>
#include <stdlib.h>

#include "one_direction.h"
#include "rounding.h"
#include "plan.h"
#include "bounds.h"
#include "subsampled_gaussian.h"

/* relative error of delta that a line is built for: those far from where it was built need less */
#define SHARED_TOLERANCE 1e-13
#define LOOSER 1e-11
/* the least width of a bracket that is asked for, as a share of delta, and what share of the width wanted an upper
 * end may waste: a point that was guessed so well needs no other */
#define FINEST 1e-13
#define SPARE_STEP 0.02
/* how far from the answer a line may be built: as a share of it, or below it as a logarithm of delta */
#define NEAR_QUESTION 0.03
#define BELOW 1.0
/* how far ahead a line is put: a factor of the steps, and deviations of the total loss */
#define MOST_STEPS 2.5
#define MOST_DEVIATIONS 3.0
/* a line for fewer questions than this does not pay */
#define LEAST_QUESTIONS 4
/* lines that answer nothing, in a row, after which questions are answered one by one for a while */
#define SHARED_PATIENCE 2
#define WAIT 32

acct_shared_line *acct_shared_line_open(void) {
    const size_t lines = acct_workspace_doubles(ACCT_MAX_NODES);
    /* one block: of several, an allocator returns the pages to the system, and every call would fault them in again */
    acct_shared_line *s = malloc(sizeof *s + 2 * lines * sizeof(double));
    if (!s) return NULL;
    double *memory = (double *)(s + 1);
    acct_workspace_place(&s->remove, memory, ACCT_MAX_NODES);
    acct_workspace_place(&s->add, memory + lines, ACCT_MAX_NODES);
    s->remove.block = s->add.block = NULL;
    s->step.q = NAN;
    return s;
}

void acct_shared_line_close(acct_shared_line *s) { free(s); }

/* whether the line can be read for so many steps; reads it */
static int for_steps(acct_workspace *w, double steps) {
    acct_contour *k = &w->contour;
    if (steps == k->steps) return 1;
    if (k->small_losses_log > -INFINITY || k->answers_add) return 0; /* a rare-event contour */
    acct_contour_for_steps(k, &w->law, steps);
    return 1;
}

static double deviations(double log_delta) { return sqrt(-2.0 * log_delta); }

/* the question for which to build a line that the first of them, and those between, can use */
static long ahead(double reach, long count, const double *q, const double *sigma, const double *steps,
                  const double *delta) {
    const double most = MOST_STEPS * steps[0], here = deviations(log(delta[0]));
    const double deepest = here + reach, flattest = acct_max(here - reach, 0.0);
    const double least_delta = exp(-0.5 * deepest * deepest), most_delta = exp(-0.5 * flattest * flattest);
    long last = 0;
    for (long i = 1; i < count && q[i] == q[0] && sigma[i] == sigma[0]; i++) {
        if (!(steps[i] >= steps[0] && steps[i] <= most)) break;
        if (delta[i] >= least_delta && delta[i] <= most_delta) last = i;
    }
    return last;
}

/* a line at the answer, which the saddle point only guesses; for as few steps as `least`, too */
static void build(acct_shared_line *s, double least, double steps, double delta) {
    const double log_delta = log(delta);
    const acct_window window = acct_plan_window(&s->step, steps, ACCT_REMOVE, log_delta);
    acct_saddle saddle;
    s->removes = 0;
    s->remove.least_steps = least;
    if (acct_saddle_at_delta(&s->remove.law, &s->step, steps, ACCT_REMOVE, &window, log_delta, &saddle))
        return;
    double epsilon = acct_max(saddle.epsilon, 0.0);
    const double tolerance = least < steps ? LOOSER : SHARED_TOLERANCE;
    for (int i = 0; i < 4; i++) {
        const acct_saddle *hint = i == 0 && epsilon > 0.0 ? &saddle : NULL;
        int status = acct_plan(&s->remove, &s->step, steps, ACCT_REMOVE, epsilon, log_delta, tolerance, hint);
        if (status == ACCT_EPRECISION)
            status = acct_plan(&s->remove, &s->step, steps, ACCT_REMOVE, epsilon, log_delta, LOOSER, NULL);
        if (status) return;
        const double next = acct_invert_estimate(acct_contour_at, &s->remove.contour, epsilon, delta);
        const double above = next - epsilon; /* the line is more exact than it needs to be */
        const int near = fabs(above) <= NEAR_QUESTION * next || (above > 0.0 && above * s->remove.contour.b <= BELOW);
        epsilon = next;
        if (near) break;
    }
    s->removes = 1;
    s->steps = steps;
    s->log_delta = log_delta;
    s->epsilon = epsilon;
    s->slope = -s->remove.contour.b;
}

/* the add direction's bound by Chernoff, where that suffices, or its line */
static void build_add(acct_shared_line *s, double steps, double epsilon, double delta) {
    const double log_delta = log(delta);
    const acct_window window = acct_plan_window(&s->step, steps, ACCT_ADD, log_delta);
    acct_saddle saddle;
    s->adds = 0;
    s->bound.log_front = INFINITY;
    if (acct_saddle_at_epsilon(&s->add.law, &s->step, steps, ACCT_ADD, &window, epsilon, &saddle)) return;
    const double log_chernoff = saddle.log_scale - saddle.b * epsilon + acct_log_chernoff(saddle.b);
    if (!(log_chernoff < log_delta - 0.01))
        s->adds =
            !acct_plan(&s->add, &s->step, steps, ACCT_ADD, epsilon, log_delta, SHARED_TOLERANCE, &saddle);
    else if (acct_chernoff_set(&s->bound, &s->add.law, &s->step, &window, steps, ACCT_ADD, saddle.b))
        s->bound.log_front = INFINITY;
}

/* Newton on log delta from where the slope at the last answer leads, aimed at a point whose upper bound is just below
 * delta */
static int upper_end(acct_shared_line *s, double steps, double delta, double *end, acct_profile_point *p) {
    const acct_contour *k = &s->remove.contour;
    double x = s->epsilon + (log(delta) - s->log_delta) / s->slope + (steps - s->steps) * k->log_mgf / k->b;
    for (int i = 0; i < 8; i++) {
        if (!(x > 0.0)) x = 0.0;
        acct_contour_profile(&s->remove.contour, x, p);
        if (!(p->value > 0.0 && p->slope < 0.0)) return 0;
        const double above = p->bounds.upper - p->value, spare = delta - p->bounds.upper;
        if (x == 0.0 && spare >= 0.0) return 0;
        const double close = acct_tolerance_for(x, -p->slope / delta, FINEST) * delta;
        const double least = 0.3 * above + 4.0 * ACCT_U * delta - 8.0 * ACCT_U * x * p->slope;
        if (spare >= 0.0 && spare <= acct_max(least, SPARE_STEP * close)) {
            *end = x;
            s->steps = steps;
            s->log_delta = log(p->value);
            s->epsilon = x;
            s->slope = p->slope / p->value;
            return 1;
        }
        const double aim = (delta - 1.1 * above) / p->value;
        if (!(aim > 0.0)) return 0;
        x += log(aim) * p->value / p->slope + 4.0 * ACCT_U * x;
    }
    return 0;
}

/* both ends of the remove direction, where they are near enough */
static int ends(acct_shared_line *s, double steps, double delta, acct_bounds *out) {
    acct_profile_point p, below;
    double upper;
    if (!upper_end(s, steps, delta, &upper, &p)) return 0;
    const double close = acct_tolerance_for(upper, -p.slope / delta, FINEST);
    if (!(p.bounds.upper - p.bounds.lower <= close * delta)) return 0;
    const double lower = upper - 1.02 * (delta - p.bounds.lower) / -p.slope - 8.0 * ACCT_U * upper;
    acct_contour_profile(&s->remove.contour, lower, &below);
    if (!(lower > 0.0 && below.bounds.lower > delta)) return 0;
    *out = (acct_bounds){lower, upper};
    return 1;
}

/* whether the add direction needs no more than epsilon */
static int add_is_below(acct_shared_line *s, double steps, double epsilon, double delta) {
    acct_profile_point p;
    if (epsilon > acct_most_added_loss(&s->step, steps)) return 1;
    for (int tries = 0; tries < 2; tries++) {
        if (s->bound.log_front < INFINITY && acct_chernoff_at(&s->bound, steps, epsilon) <= delta) return 1;
        if (s->adds && for_steps(&s->add, steps)) {
            acct_contour_profile(&s->add.contour, epsilon, &p);
            if (p.bounds.upper <= delta) return 1;
            if (p.bounds.lower > delta) return 0;
        }
        if (tries == 0) build_add(s, steps, epsilon, delta);
    }
    return 0;
}

static int on_line(acct_shared_line *s, double steps, double delta, acct_bounds *out) {
    if (!s->removes || !for_steps(&s->remove, steps)) return 0;
    if (ends(s, steps, delta, out)) return add_is_below(s, steps, out->lower, delta);
    /* the profile at 0 is the same in both directions (Theorem 18) */
    acct_profile_point p;
    *out = (acct_bounds){0.0, 0.0};
    acct_contour_profile(&s->remove.contour, 0.0, &p);
    return p.bounds.upper <= delta;
}

/* questions that have answers of their own kind: no composition, or hardly any noise or sampling */
static int is_ordinary(double q, double sigma, double steps, double delta) {
    return q >= ACCT_LEAST_Q && q <= 0.999 && acct_valid_noise(q, sigma) && sigma < INFINITY &&
           acct_valid_steps(steps) && steps > 1.0 && acct_valid_delta(delta);
}

static int shared_answer(acct_shared_line *s, long count, const double *q, const double *sigma,
                         const double *steps, const double *delta, acct_bounds *out) {
    if (!is_ordinary(q[0], sigma[0], steps[0], delta[0])) return 0;
    if (!(s->step.q == q[0] && s->step.sigma == sigma[0])) {
        s->step = acct_step_make(q[0], sigma[0]);
        s->removes = s->adds = s->failures = s->waiting = 0;
        s->bound.log_front = INFINITY;
        s->reach = MOST_DEVIATIONS;
    }
    if (acct_ever_sampled_upper(&s->step, steps[0]) <= delta[0]) return 0;
    if (on_line(s, steps[0], delta[0], out)) return 1;
    if (s->waiting > 0) {
        s->waiting--;
        return 0;
    }
    const long last = ahead(s->reach, count, q, sigma, steps, delta);
    if (last + 1 < LEAST_QUESTIONS) return 0;
    /* in the middle of what it is to answer, or where that fails at its deepest end; a line for other numbers of
     * steps is at the last of them or nowhere, for a question alone costs less than two lines */
    for (long at = last; at == last || (at == 0 && steps[last] == steps[0]); at -= last) {
        build(s, steps[0], steps[at], delta[at]);
        if (on_line(s, steps[0], delta[0], out)) {
            s->failures = 0;
            if (at == last) s->reach = acct_min(1.2 * s->reach, MOST_DEVIATIONS);
            return 1;
        }
        s->reach *= 0.6;
    }
    s->failures++;
    if (steps[last] > steps[0]) /* there will be a line once there are more */
        s->waiting = s->failures < 6 ? 1 << (s->failures - 1) : WAIT;
    else if (s->failures >= SHARED_PATIENCE)
        s->waiting = WAIT;
    return 0;
}

int acct_shared_epsilon(acct_shared_line *s, long count, const double *q, const double *sigma,
                        const double *steps, const double *delta, acct_bounds *out) {
    if (shared_answer(s, count, q, sigma, steps, delta, out)) return ACCT_OK;
    return acct_psg_epsilon(q[0], sigma[0], steps[0], delta[0], ACCT_EITHER, out);
}
