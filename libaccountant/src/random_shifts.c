#include "random_shifts.h"

#include <assert.h>
#include <string.h>

#include "domain.h"
#include "gaussian_mixture.h"
#include "guard.h"
#include "mixture_renyi.h"
#include "rounding.h"

static_assert(ACCOUNTANT_MOST_SHIFTS == ACCT_MOST_SHIFTS, "the header says how many shifts the core takes");

int acct_random_shifts(const accountant_shifts *law, double sigma, acct_mixture_part *part) {
    if (!law || !law->shift || !law->weight || law->count < 1 || law->count > ACCT_MOST_SHIFTS) return 0;
    *part = (acct_mixture_part){.sigma = sigma,
                                .count = (int)law->count,
                                .shift = law->shift,
                                .weight = law->weight,
                                .silent = law->no_shift,
                                .weight_err = law->weight_error};
    return 1;
}

typedef int profile(const acct_mixture_part *part, double steps, double given, int direction,
                    acct_bounds *out);

/* in one direction, or the larger of both */
static int asked(profile *question, const acct_mixture_part *part, double steps, double given, int direction,
                 acct_bounds *out) {
    if (direction != ACCT_EITHER) return question(part, steps, given, direction, out);
    acct_bounds add;
    int status = question(part, steps, given, ACCT_REMOVE, out);
    if (!status) status = question(part, steps, given, ACCT_ADD, &add);
    if (!status) *out = acct_bounds_larger(*out, add);
    return status;
}

static int bracket(profile *question, const accountant_shifts *law, double sigma, double steps, double given,
                   int direction, acct_bounds nothing, accountant_bounds *out) {
    acct_environment saved;
    acct_mixture_part part;
    acct_bounds found = nothing;
    int status = ACCT_EDOMAIN;
    if (!out) return ACCOUNTANT_EDOMAIN;
    acct_enter(&saved);
    if (acct_random_shifts(law, sigma, &part))
        status = asked(question, &part, steps, given, direction, &found);
    acct_leave(&saved);
    return guard_bracket(status, found, nothing, out);
}

int accountant_mixture_epsilon_bounds(const accountant_shifts *law, double sigma, double steps, double delta,
                                      int direction, accountant_bounds *epsilon) {
    return bracket(acct_gaussian_mixture_epsilon, law, sigma, steps, delta, direction, NO_EPSILON, epsilon);
}

int accountant_mixture_delta_bounds(const accountant_shifts *law, double sigma, double steps, double epsilon,
                                    int direction, accountant_bounds *delta) {
    return bracket(acct_gaussian_mixture_delta, law, sigma, steps, epsilon, direction, NO_DELTA, delta);
}

static int renyi(const acct_mixture_part *part, double order, int direction, acct_bounds *out) {
    acct_mixture checked;
    const int status = acct_mixture_set(&checked, part);
    if (status) return status;
    if (direction < ACCT_REMOVE || direction > ACCT_EITHER) return ACCT_EDOMAIN;
    /* the curve's law begins with the weight of no shift */
    double shift[1 + ACCT_MOST_SHIFTS] = {0.0}, weight[1 + ACCT_MOST_SHIFTS] = {checked.silent};
    memcpy(shift + 1, part->shift, (size_t)part->count * sizeof *shift);
    memcpy(weight + 1, part->weight, (size_t)part->count * sizeof *weight);
    const acct_mixture_curve curve = {.sigma = part->sigma,
                                      .count = 1 + part->count,
                                      .shift = shift,
                                      .weight = weight,
                                      .first_err = checked.weight_err + 4.0 * ACCT_U,
                                      .weight_err = checked.weight_err};
    acct_bounds one[2] = {{0.0, 0.0}, {0.0, 0.0}};
    for (int d = ACCT_REMOVE; d <= ACCT_ADD; d++) {
        if (direction != ACCT_EITHER && direction != d) continue;
        const int failed = acct_mixture_renyi(&curve, order, d, &one[d]);
        if (failed) return failed;
    }
    *out = acct_bounds_larger(one[0], one[1]);
    return ACCT_OK;
}

int accountant_mixture_renyi_bounds(const accountant_shifts *law, double sigma, double order, int direction,
                                    accountant_bounds *divergence) {
    acct_environment saved;
    acct_mixture_part part;
    acct_bounds found = NO_EPSILON;
    int status = ACCT_EDOMAIN;
    if (!divergence) return ACCOUNTANT_EDOMAIN;
    acct_enter(&saved);
    if (acct_random_shifts(law, sigma, &part)) status = renyi(&part, order, direction, &found);
    acct_leave(&saved);
    return guard_bracket(status, found, NO_EPSILON, divergence);
}
