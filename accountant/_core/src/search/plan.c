#include "plan.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "saddle_point.h"
#include "rare_event.h"
#include "bounds.h"

/* doubles in a line of cache: registers that cross one are loaded twice */
#define LINE 8

static double *align(double *memory) {
    const size_t bytes = LINE * sizeof(double), over = (uintptr_t)memory % bytes;
    return over ? memory + (bytes - over) / sizeof(double) : memory;
}

static size_t points_for(int nodes) { return nodes > ACCT_MAX_NODES ? ACCT_MIXTURE_POINTS : ACCT_MAX_POINTS; }

/* >= ACCT_SUM_ARRAYS */
static size_t sums_for(int nodes) { return (size_t)ACCT_RARE_EVENT_ARRAYS * (size_t)nodes; }

size_t acct_workspace_doubles(int nodes) {
    return LINE + 2 * ACCT_TILTED_LAW_DOUBLES(nodes) + sums_for(nodes) + 2 * ACCT_LINE_SPARE +
           (2 + ACCT_LINE_ARRAYS) * points_for(nodes);
}

void acct_workspace_place(acct_workspace *w, double *memory, int nodes) {
    const size_t law = ACCT_TILTED_LAW_DOUBLES(nodes), points = points_for(nodes);
    memory = align(memory);
    acct_tilted_law_place(&w->law, memory, nodes);
    acct_tilted_law_place(&w->scratch, memory + law, nodes);
    w->least_steps = 0.0;
    w->contour.direction = ACCT_REMOVE; /* as if a line had been built: no field is read that was never set */
    w->contour.small_losses_log = -INFINITY;
    w->rare_memory = memory + 2 * law;
    acct_characteristic_sum_place(&w->cf, w->rare_memory, nodes);
    w->contour.terms.re = w->rare_memory + sums_for(nodes);
    w->contour.terms.im = w->contour.terms.re + points + ACCT_LINE_SPARE;
    acct_line_values_place(&w->contour.values, w->contour.terms.im + points + ACCT_LINE_SPARE, points);
}

int acct_workspace_alloc(acct_workspace *w, int nodes) {
    w->block = malloc(acct_workspace_doubles(nodes) * sizeof(double));
    if (!w->block) return ACCT_ENOMEM;
    acct_workspace_place(w, w->block, nodes);
    return ACCT_OK;
}

void acct_workspace_free(acct_workspace *w) {
    free(w->block);
    w->block = NULL;
}

/* Upper end of the window (remove direction): the noise whose loss is epsilon + several deviations of the
 * other steps' total, so far that the reverse term of the tail event is negligible. */
static double choose_end(acct_tilted_law *law, const acct_step *step, double steps, double epsilon,
                         double log_delta, double digits, double hi, double *reverse_order) {
    double var = 0.0;
    for (int j = 0; j < law->count; j++)
        if (law->loss[j] < 0.4 * epsilon) var += law->gauss[j] * law->loss[j] * law->loss[j];
    var *= steps;
    for (double digits_now = 0.3 * digits; digits_now < 40.0 * digits; digits_now *= 1.4) {
        const double loss = epsilon + 0.5 * var + sqrt(2.0 * var * digits_now);
        double end = acct_loss_inverse(step, loss);
        if (!(end < hi)) return hi;
        if (end < 2.0 * step->sigma) end = 2.0 * step->sigma;
        acct_tail_event tail;
        const acct_window window = {.lo = law->lo, .hi = end};
        if (acct_tilted_law_set(law, step, &window, 0.0, 0.0, -log(steps) - 7.0)) return hi;
        acct_tail_event_set(&tail, law, steps, ACCT_REMOVE, epsilon, 0.0, 0);
        *reverse_order = tail.reverse_slope - 1.0;
        if (tail.reverse_log + tail.reverse_slope * epsilon < log_delta - digits) return end;
    }
    return hi;
}

acct_window acct_plan_window(const acct_step *step, double steps, int direction, double log_delta) {
    const double z = acct_window_deviations(steps, log_delta);
    const acct_window window = {.lo = -z * step->sigma,
                                .hi = (direction == ACCT_REMOVE ? acct_step_largest(step) : 0.0) + z * step->sigma};
    return window;
}

/* Lowers the window's upper end where that pays: where the tilted law reaches it.  Finds the saddle point
 * again on what is left. */
static int lower_window_end(acct_workspace *w, acct_problem *problem, double log_delta, double tolerance,
                            acct_saddle *saddle) {
    const acct_tilted_law *g = &w->law;
    const acct_step *step = &problem->step;
    const int last = g->count - 1;
    double reverse_order = 0.0;
    if (problem->direction != ACCT_REMOVE ||
        !(g->weight[last] > 1e-5 * tolerance * g->quad[last] * 2.5 * step->sigma))
        return ACCT_OK;
    const double end = choose_end(&w->law, step, problem->steps, problem->epsilon, log_delta,
                                  4.0 - log(tolerance), problem->window.hi, &reverse_order);
    if (!(end < problem->window.hi)) return ACCT_OK;
    problem->reverse_order = reverse_order;
    problem->window.hi = end;
    return acct_saddle_at_epsilon(&w->law, step, problem->steps, problem->direction, &problem->window,
                                  problem->epsilon, saddle);
}

/* A contour of the rare events alone (rare_event.h).  The add direction is answered by the remove
 * direction's profile at -epsilon (Theorem 17). */
static int build_rare_within(acct_workspace *w, acct_problem problem, double log_delta, double tolerance) {
    problem.reverse_order = 0.0;
    if (problem.direction == ACCT_REMOVE)
        return acct_rare_event_contour_build(&w->contour, &w->law, &w->scratch, w->rare_memory, &problem,
                                             log_delta, tolerance);
    const double epsilon = problem.epsilon;
    const double all = exp(log_delta - epsilon) - expm1(-epsilon);
    problem.epsilon = -epsilon;
    tolerance *= exp(log_delta - epsilon) / all;
    if (!(tolerance > 1e-13)) return ACCT_EPRECISION;
    const int status = acct_rare_event_contour_build(&w->contour, &w->law, &w->scratch, w->rare_memory,
                                                     &problem, log(all), tolerance);
    w->contour.answers_add = 1;
    return status;
}

/* The same; its own arrays hold ACCT_MAX_NODES nodes, whatever the laws' do. */
static int build_rare(acct_workspace *w, const acct_problem *problem, double log_delta, double tolerance) {
    const int nodes = w->law.capacity;
    w->law.capacity = w->scratch.capacity = nodes < ACCT_MAX_NODES ? nodes : ACCT_MAX_NODES;
    const int status = build_rare_within(w, *problem, log_delta, tolerance);
    w->law.capacity = w->scratch.capacity = nodes;
    return status;
}

/* a line of this tolerance only finds where another is to be, which will have some three times its points */
#define COARSE 1e-4

/* Whether round-off leaves so little of a line's terms that another line may be narrower. */
static int is_coarse(const acct_contour *k, double epsilon, double log_delta, double tolerance) {
    const double whole = exp(log_delta - (k->log_scale - k->b * epsilon));
    return k->numerical > acct_max(1e-6, 1e3 * tolerance) * whole;
}

int acct_plan(acct_workspace *w, const acct_step *step, double steps, int direction, double epsilon,
              double log_delta, double tolerance, const acct_saddle *hint) {
    acct_problem problem = {.step = *step,
                            .steps = steps,
                            .least_steps = w->least_steps,
                            .direction = direction,
                            .epsilon = epsilon,
                            .window = acct_plan_window(step, steps, direction, log_delta)};
    acct_saddle saddle;
    int status = ACCT_OK;
    if (hint)
        saddle = *hint;
    else
        status = acct_saddle_at_epsilon(&w->law, step, steps, direction, &problem.window, epsilon, &saddle);
    if (status) return status;
    acct_problem rare = problem; /* of the whole window, and its saddle point */
    rare.b = saddle.b;
    status = lower_window_end(w, &problem, log_delta, tolerance, &saddle);
    if (status) return status;
    acct_place_breaks(step, w->law.count, w->law.loss, w->law.weight, &problem.window);
    problem.b = saddle.b;
    problem.spread = rare.spread = saddle.spread;
    problem.log_mgf = saddle.log_scale / steps;
    problem.log_error = rare.log_error = log(tolerance) + log_delta - (saddle.log_scale - saddle.b * epsilon);
    /* first a line that ends early; then the rare events; then any line that fits */
    const double most_points = step->mixture ? ACCT_MIXTURE_POINTS : ACCT_MAX_POINTS;
    const int shared = problem.least_steps > 0.0 && problem.least_steps < steps;
    problem.most_points = direction != ACCT_REMOVE ? most_points : shared && tolerance >= COARSE ? 400 : 1500;
    status = acct_contour_build(&w->contour, &w->law, &w->scratch, &w->cf, &problem);
    if (shared || status != ACCT_EPRECISION) return status; /* rare events: for one number of steps */
    status = build_rare(w, &rare, log_delta, tolerance);
    if (!status && direction == ACCT_REMOVE && !step->mixture &&
        is_coarse(&w->contour, epsilon, log_delta, tolerance))
        status = ACCT_EPRECISION;
    if (status != ACCT_EPRECISION || direction == ACCT_ADD) return status;
    problem.most_points = most_points;
    return acct_contour_build(&w->contour, &w->law, &w->scratch, &w->cf, &problem);
}
