#include "random_shifts.h"

#include <assert.h>

#include "domain.h"
#include "gaussian_mixture.h"
#include "guard.h"
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
