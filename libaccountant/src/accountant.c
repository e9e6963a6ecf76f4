#include "accountant.h"

#include <assert.h>

#include "calibration.h"
#include "domain.h"
#include "guard.h"
#include "subsampled_gaussian.h"

static_assert((int)ACCOUNTANT_EDOMAIN == (int)ACCT_EDOMAIN && (int)ACCOUNTANT_ENOMEM == (int)ACCT_ENOMEM &&
                  (int)ACCOUNTANT_EPRECISION == (int)ACCT_EPRECISION &&
                  (int)ACCOUNTANT_EUNBOUNDED == (int)ACCT_EUNBOUNDED,
              "the core's status codes are the public ones");
static_assert((int)ACCOUNTANT_REMOVE == (int)ACCT_REMOVE && (int)ACCOUNTANT_ADD == (int)ACCT_ADD &&
                  (int)ACCOUNTANT_EITHER == (int)ACCT_EITHER,
              "the core's directions are the public ones");

const char *accountant_version(void) { return ACCOUNTANT_VERSION; }

const char *accountant_status_message(int status) {
    switch (status) {
        case ACCOUNTANT_OK:
            return "the answer is certified";
        case ACCOUNTANT_EDOMAIN:
            return "an argument is outside its domain";
        case ACCOUNTANT_ENOMEM:
            return "there is no memory for the workspace";
        case ACCOUNTANT_EPRECISION:
            return "no certified answer was reached at any width";
        case ACCOUNTANT_EUNBOUNDED:
            return "every value meets the target, so that no best one exists";
        default:
            return "this is no status of the library";
    }
}

typedef int profile(double q, double sigma, double steps, double given, int direction, acct_bounds *out);

static int bracket(profile *question, double q, double sigma, double steps, double given, int direction,
                   acct_bounds nothing, accountant_bounds *out) {
    acct_environment saved;
    acct_bounds found = nothing;
    if (!out) return ACCOUNTANT_EDOMAIN;
    acct_enter(&saved);
    const int status = question(q, sigma, steps, given, direction, &found);
    acct_leave(&saved);
    return guard_bracket(status, found, nothing, out);
}

int accountant_epsilon_bounds(double q, double sigma, double steps, double delta, int direction,
                              accountant_bounds *epsilon) {
    return bracket(acct_psg_epsilon, q, sigma, steps, delta, direction, NO_EPSILON, epsilon);
}

int accountant_delta_bounds(double q, double sigma, double steps, double epsilon, int direction,
                            accountant_bounds *delta) {
    return bracket(acct_psg_delta, q, sigma, steps, epsilon, direction, NO_DELTA, delta);
}

int accountant_gaussian_epsilon_bounds(double sigma, double delta, accountant_bounds *epsilon) {
    return accountant_epsilon_bounds(1.0, sigma, 1.0, delta, ACCOUNTANT_EITHER, epsilon);
}

int accountant_gaussian_delta_bounds(double sigma, double epsilon, accountant_bounds *delta) {
    return accountant_delta_bounds(1.0, sigma, 1.0, epsilon, ACCOUNTANT_EITHER, delta);
}

int accountant_renyi_bounds(double q, double sigma, double order, int direction,
                            accountant_bounds *divergence) {
    acct_environment saved;
    acct_bounds found = NO_EPSILON;
    if (!divergence) return ACCOUNTANT_EDOMAIN;
    acct_enter(&saved);
    const int status = acct_psg_renyi(q, sigma, order, direction, &found);
    acct_leave(&saved);
    return guard_bracket(status, found, NO_EPSILON, divergence);
}

int accountant_epsilon_renyi_upper(double q, double sigma, double steps, double delta, double *epsilon,
                                   double *order) {
    acct_environment saved;
    double found = NAN, at = NAN;
    if (!epsilon || !order) return ACCOUNTANT_EDOMAIN;
    acct_enter(&saved);
    int status = acct_psg_epsilon_renyi(q, sigma, steps, delta, &found, &at);
    acct_leave(&saved);
    if (status == ACCT_OK && !(found >= 0.0)) status = ACCT_EPRECISION;
    *epsilon = status == ACCT_OK ? found : INFINITY;
    *order = status == ACCT_OK ? at : NAN;
    return status;
}

typedef int calibration(const acct_target *target, double first, double second, double *found);

static int calibrated(calibration *question, double target_epsilon, double delta, double first, double second,
                      double *found) {
    acct_environment saved;
    const acct_target target = {.epsilon = target_epsilon, .delta = delta, .records = 1.0};
    if (!found) return ACCOUNTANT_EDOMAIN;
    acct_enter(&saved);
    const int status = question(&target, first, second, found);
    acct_leave(&saved);
    if (status != ACCT_OK) *found = NAN;
    return status;
}

int accountant_calibrate_sigma(double target_epsilon, double delta, double q, double steps, double *sigma) {
    return calibrated(acct_calibrate_sigma, target_epsilon, delta, q, steps, sigma);
}

int accountant_calibrate_steps(double target_epsilon, double delta, double q, double sigma, double *steps) {
    return calibrated(acct_calibrate_steps, target_epsilon, delta, q, sigma, steps);
}

int accountant_calibrate_q(double target_epsilon, double delta, double sigma, double steps, double *q) {
    return calibrated(acct_calibrate_q, target_epsilon, delta, sigma, steps, q);
}
