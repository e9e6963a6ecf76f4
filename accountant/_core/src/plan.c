#include "plan.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#include "search.h"
#include "split.h"
#include "split_line.h"
#include "status.h"

int acct_workspace_alloc(acct_workspace *w) {
    const size_t grid = ACCT_GRID_DOUBLES(ACCT_MAX_NODES);
    const size_t line = (size_t)ACCT_SPLIT_ARRAYS * ACCT_MAX_NODES; /* >= ACCT_LINE_ARRAYS */
    w->block = malloc((2 * grid + line + 2 * (size_t)ACCT_MAX_POINTS) * sizeof(double));
    if (!w->block) return ACCT_ENOMEM;
    acct_grid_place(&w->grid, w->block, ACCT_MAX_NODES);
    acct_grid_place(&w->scratch, w->block + grid, ACCT_MAX_NODES);
    w->split_memory = w->block + 2 * grid;
    acct_line_place(&w->line, w->split_memory, ACCT_MAX_NODES);
    w->contour.amplitude = w->split_memory + line;
    w->contour.phase = w->contour.amplitude + ACCT_MAX_POINTS;
    return ACCT_OK;
}

void acct_workspace_free(acct_workspace *w) {
    free(w->block);
    w->block = NULL;
}

/* Upper end of the window (remove direction).  Jumps beyond it should not be undone by the other
 * steps: L(hi) = epsilon + several deviations of the rest, as far as the put must be negligible. */
static double choose_cut(acct_grid *grid, const acct_step *step, double steps, double epsilon,
                         double log_delta, double digits, double hi, double *put_order) {
    double var = 0.0;
    for (int j = 0; j < grid->count; j++)
        if (grid->loss[j] < 0.4 * epsilon)
            var += grid->gauss[j] * grid->loss[j] * grid->loss[j];
    var *= steps;
    for (double digits_now = 0.3 * digits; digits_now < 40.0 * digits; digits_now *= 1.4) {
        const double loss = epsilon + 0.5 * var + sqrt(2.0 * var * digits_now);
        double cut = acct_loss_inverse(step, loss);
        if (!(cut < hi)) return hi;
        if (cut < 2.0 * step->sigma) cut = 2.0 * step->sigma;
        acct_jump jump;
        const acct_window window = {.lo = grid->lo, .hi = cut};
        if (acct_grid_set(grid, step, &window, 0.0, 0.0, -log(steps) - 7.0)) return hi;
        acct_jump_set(&jump, grid, steps, ACCT_REMOVE, epsilon, 0.0, 0);
        *put_order = jump.put_slope - 1.0;
        if (jump.put_log + jump.put_slope * epsilon < log_delta - digits) return cut;
    }
    return hi;
}

acct_window acct_plan_window(const acct_step *step, double steps, int direction, double log_delta) {
    /* beyond z deviations n P(outside) is below 1e-12 of delta */
    const double z = sqrt(2.0 * (log(steps) - log_delta + 33.0));
    const acct_window window = {
        .lo = -z * step->sigma,
        .hi = (direction == ACCT_REMOVE ? 1.0 : 0.0) + z * step->sigma};
    return window;
}

int acct_plan(acct_workspace *w, const acct_step *step, double steps, int direction, double epsilon,
              double log_delta, double tolerance, const acct_saddle *hint) {
    acct_problem problem = {
        .step = *step,
        .steps = steps,
        .direction = direction,
        .epsilon = epsilon,
        .window = acct_plan_window(step, steps, direction, log_delta)};
    acct_saddle saddle;
    int status = ACCT_OK;
    if (hint)
        saddle = *hint;
    else
        status = acct_saddle_at_epsilon(&w->grid, step, steps, direction, &problem.window, epsilon,
                                        &saddle);
    if (status) return status;
    const acct_window whole = problem.window;
    const double b_whole = saddle.b;
    /* a cut only pays where the tilted law reaches the window's end */
    const acct_grid *g = &w->grid;
    double put_order = 0.0;
    if (direction == ACCT_REMOVE &&
        g->weight[g->count - 1] > 1e-5 * tolerance * g->quad[g->count - 1] * 2.5 * step->sigma) {
        const double cut = choose_cut(&w->grid, step, steps, epsilon, log_delta,
                                      4.0 - log(tolerance), problem.window.hi, &put_order);
        if (cut < problem.window.hi) {
            problem.put_order = put_order;
            problem.window.hi = cut;
            status = acct_saddle_at_epsilon(&w->grid, step, steps, direction, &problem.window,
                                            epsilon, &saddle);
            if (status) return status;
        }
    }
    acct_place_breaks(step, w->grid.count, w->grid.loss, w->grid.weight, &problem.window);
    problem.b = saddle.b;
    problem.spread = saddle.spread;
    problem.log_error = log(tolerance) + log_delta - (saddle.log_scale - saddle.b * epsilon);
    /* first a line that ends early; then a split of the measure; then any line that fits */
    problem.most_points = direction == ACCT_REMOVE ? 1500 : ACCT_MAX_POINTS;
    status = acct_contour_build(&w->contour, &w->grid, &w->scratch, &w->line, &problem);
    if (status != ACCT_EPRECISION) return status;
    acct_problem rare = problem;
    rare.put_order = 0.0;
    rare.window = whole;
    rare.b = b_whole;
    if (direction == ACCT_ADD) { /* by the remove direction's profile at -epsilon (Theorem 17) */
        const double all = exp(log_delta - epsilon) - expm1(-epsilon);
        rare.epsilon = -epsilon;
        tolerance *= exp(log_delta - epsilon) / all;
        if (!(tolerance > 1e-13)) return ACCT_EPRECISION;
        status = acct_split_build(&w->contour, &w->grid, &w->scratch, w->split_memory, &rare, log(all),
                                  tolerance);
        w->contour.flipped = 1;
        return status;
    }
    status = acct_split_build(&w->contour, &w->grid, &w->scratch, w->split_memory, &rare, log_delta,
                              tolerance);
    if (status != ACCT_EPRECISION) return status;
    problem.most_points = 6000;
    return acct_contour_build(&w->contour, &w->grid, &w->scratch, &w->line, &problem);
}
