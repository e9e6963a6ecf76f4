/* Calls every public function with random, extreme and impossible arguments: the status must say so, an answer must
 * be a bracket, and nothing may crash (run it under sanitizers and valgrind).
 * Usage: hostile CALLS [SEED] */
#include "accountant.h"

#include <fenv.h>
#include <float.h>
#include <string.h>

#include "drive.h"

static long answered, refused, unreached;

/* `valid`: 1 or 0 where the arguments are known to be in their domain or outside, -1 where either may be */
static void judge(const char *what, int status, accountant_bounds b, double most, int valid) {
#define AT "%s: status %d [%a, %a]", what, status, b.lower, b.upper
    REQUIRE(status == ACCOUNTANT_OK || status == ACCOUNTANT_EDOMAIN || status == ACCOUNTANT_EPRECISION, AT);
    if (valid == 1) REQUIRE(status != ACCOUNTANT_EDOMAIN, AT);
    if (valid == 0) REQUIRE(status == ACCOUNTANT_EDOMAIN, AT);
    if (status) REQUIRE(b.lower == 0.0 && b.upper == most, AT);
    REQUIRE(b.lower >= 0.0 && b.lower <= b.upper && b.upper <= most, AT);
    answered += status == ACCOUNTANT_OK;
    refused += status == ACCOUNTANT_EDOMAIN;
    unreached += status == ACCOUNTANT_EPRECISION;
#undef AT
}

static int is_count(double steps) { return steps >= 0.0 && steps <= 0x1p53 && steps == floor(steps); }
static int is_noise(double q, double sigma) { return q >= 0.0 && q <= 1.0 && sigma > 0.0; }
static int is_direction(int d) { return d >= 0 && d <= 2; }
static int is_loss(double epsilon) { return epsilon >= 0.0 && epsilon <= DBL_MAX; }
static int is_tail(double delta) { return delta > 0.0 && delta < 1.0; }

static int way(void) { return chance(20) ? (int)(word() & 0xffffffffu) : (int)below(3); }

static void equal_steps(void) {
    double q = probability(), sigma = deviation(), steps = repetitions(), epsilon = loss(), delta = tail();
    double order = 1.0 + log_uniform(1e-9, 1e6);
    const int d = way();
    double *which[] = {&q, &sigma, &steps, &epsilon, &delta, &order};
    if (chance(4)) *PICK(which) = any_double();
    const int fine = is_noise(q, sigma) && is_count(steps) && is_direction(d);
    accountant_bounds b = {NAN, NAN};
    int status = accountant_epsilon_bounds(q, sigma, steps, delta, d, &b);
    judge("epsilon", status, b, INFINITY, fine && is_tail(delta));
    status = accountant_delta_bounds(q, sigma, steps, epsilon, d, &b);
    judge("delta", status, b, 1.0, fine && is_loss(epsilon));
    status = accountant_renyi_bounds(q, sigma, order, d, &b);
    judge("renyi", status, b, INFINITY,
          is_noise(q, sigma) && is_direction(d) && order > 1.0 && order <= DBL_MAX);
    status = accountant_gaussian_epsilon_bounds(sigma, delta, &b);
    judge("gaussian epsilon", status, b, INFINITY, sigma > 0.0 && is_tail(delta));
    status = accountant_gaussian_delta_bounds(sigma, epsilon, &b);
    judge("gaussian delta", status, b, 1.0, sigma > 0.0 && is_loss(epsilon));
    double at;
    b.lower = 0.0;
    status = accountant_epsilon_renyi_upper(q, sigma, steps, delta, &b.upper, &at);
    judge("renyi epsilon", status, b, INFINITY, is_noise(q, sigma) && is_count(steps) && is_tail(delta));
}

static accountant_shifts law_of(double *shift, double *weight, size_t most) {
    const size_t count = chance(20) ? 0 : 1 + below(most);
    double at = 0.0, left = 1.0;
    for (size_t i = 0; i < count; i++) {
        shift[i] = at += chance(60) ? any_double() : log_uniform(1e-2, 3.0);
        weight[i] = chance(60) ? any_double() : 0.5 * left * unit();
        left -= weight[i];
    }
    return (accountant_shifts){
        .count = chance(40) ? 1 + (size_t)word() % 2000 + ACCOUNTANT_MOST_SHIFTS : count,
        .shift = chance(40) ? NULL : shift,
        .weight = chance(40) ? NULL : weight,
        .no_shift = chance(4)    ? left
                    : chance(20) ? any_double()
                                 : 0.0,
        .weight_error = chance(20) ? any_double() : 0.0};
}

static void random_shifts(void) {
    double *shift = doubles(ACCOUNTANT_MOST_SHIFTS), *weight = doubles(ACCOUNTANT_MOST_SHIFTS);
    const accountant_shifts law = law_of(shift, weight, chance(10) ? ACCOUNTANT_MOST_SHIFTS : 4);
    const double sigma = chance(10) ? any_double() : log_uniform(0.3, 30.0), steps = repetitions();
    const int d = way(),
              shown = law.count && law.count <= ACCOUNTANT_MOST_SHIFTS && law.shift && law.weight ? -1 : 0;
    accountant_bounds b = {NAN, NAN};
    int status = accountant_mixture_epsilon_bounds(&law, sigma, steps, tail(), d, &b);
    judge("mixture epsilon", status, b, INFINITY, shown);
    status = accountant_mixture_delta_bounds(&law, sigma, steps, loss(), d, &b);
    judge("mixture delta", status, b, 1.0, shown);
    free(shift);
    free(weight);
}

static void different_steps(void) {
    const size_t count = below(6);
    accountant_part *part = exactly(count, sizeof *part);
    double shift[4], weight[4];
    const accountant_shifts law = law_of(shift, weight, 4);
    int valid = 1;
    double total = 0.0;
    for (size_t i = 0; i < count; i++) {
        part[i] = (accountant_part){probability(), deviation(), floor(repetitions() / 8.0), NULL};
        if (chance(30)) part[i].q = any_double();
        if (chance(30)) part[i].sigma = any_double();
        if (chance(30)) part[i].steps = any_double();
        if (chance(6)) part[i].shifts = &law;
        if (part[i].shifts)
            valid = valid ? -1 : 0;
        else if (!is_noise(part[i].q, part[i].sigma) || !is_count(part[i].steps))
            valid = 0;
        else if (part[i].q > 0.0 && part[i].sigma < INFINITY)
            total += part[i].steps;
    }
    const double delta = chance(20) ? any_double() : tail(), epsilon = chance(20) ? any_double() : loss();
    const int d = way();
    if (!is_direction(d) || total > 0x1p53) valid = 0;
    accountant_bounds b = {NAN, NAN};
    int status = accountant_composition_epsilon_bounds(part, count, delta, d, &b);
    judge("composition epsilon", status, b, INFINITY, is_tail(delta) ? valid : 0);
    status = accountant_composition_delta_bounds(part, count, epsilon, d, &b);
    judge("composition delta", status, b, 1.0, is_loss(epsilon) ? valid : 0);
    free(part);
}

/* what is found must meet the target, and its neighbour must not */
static void calibration(void) {
    double target = loss(), delta = tail(), q = probability(), sigma = deviation(), steps = repetitions();
    double *which[] = {&q, &sigma, &steps, &target, &delta};
    if (chance(4)) *PICK(which) = any_double();
    const int fine = target > 0.0 && target <= DBL_MAX && is_tail(delta);
    double found;
    accountant_bounds b, beside = {0.0, INFINITY};
#define MEETS(what, at_found, at_beside, has_neighbour, valid)                                           \
    REQUIRE((status == ACCOUNTANT_EDOMAIN) == !(valid), what " of %a, %a: status %d", target, delta,     \
            status);                                                                                     \
    REQUIRE(status != ACCOUNTANT_ENOMEM && (status == ACCOUNTANT_OK) == (found == found),                \
            what ": status %d", status);                                                                 \
    if (status == ACCOUNTANT_OK) {                                                                       \
        REQUIRE(!(at_found) && b.upper <= target, what ": %a costs %a, not %a", found, b.upper, target); \
        if (has_neighbour)                                                                               \
            REQUIRE((at_beside) || beside.upper > target, what ": beside %a, %a would do", found,        \
                    beside.upper);                                                                       \
    }                                                                                                    \
    answered += status == ACCOUNTANT_OK;                                                                 \
    refused += status == ACCOUNTANT_EDOMAIN
    int status = accountant_calibrate_sigma(target, delta, q, steps, &found);
    MEETS("sigma", accountant_epsilon_bounds(q, found, steps, delta, 2, &b),
          accountant_epsilon_bounds(q, nextafter(found, 0.0), steps, delta, 2, &beside), 1,
          fine && is_noise(q, 1.0) && is_count(steps));
    status = accountant_calibrate_steps(target, delta, q, sigma, &found);
    MEETS("steps", accountant_epsilon_bounds(q, sigma, found, delta, 2, &b),
          accountant_epsilon_bounds(q, sigma, found + 1.0, delta, 2, &beside), 1, fine && is_noise(q, sigma));
    status = accountant_calibrate_q(target, delta, sigma, steps, &found);
    MEETS("q", accountant_epsilon_bounds(found, sigma, steps, delta, 2, &b),
          accountant_epsilon_bounds(nextafter(found, 1.0), sigma, steps, delta, 2, &beside), found < 1.0,
          fine && is_noise(1.0, sigma) && is_count(steps));
#undef MEETS
}

/* nothing to write to or to read from */
static void nowhere(void) {
    const accountant_shifts law = {.count = 1};
    const accountant_part part = {0.01, 1.0, 10.0, &law};
    accountant_bounds b;
    double x;
    const int statuses[] = {accountant_epsilon_bounds(0.1, 1, 1, 0.1, 2, NULL),
                            accountant_delta_bounds(0.1, 1, 1, 1, 2, NULL),
                            accountant_renyi_bounds(0.1, 1, 2, 2, NULL),
                            accountant_epsilon_renyi_upper(0.1, 1, 1, 0.1, &x, NULL),
                            accountant_epsilon_renyi_upper(0.1, 1, 1, 0.1, NULL, &x),
                            accountant_gaussian_epsilon_bounds(1, 0.1, NULL),
                            accountant_gaussian_delta_bounds(1, 1, NULL),
                            accountant_mixture_epsilon_bounds(NULL, 1, 1, 0.1, 2, &b),
                            accountant_mixture_delta_bounds(&law, 1, 1, 1, 2, &b),
                            accountant_mixture_delta_bounds(&law, 1, 1, 1, 2, NULL),
                            accountant_composition_epsilon_bounds(NULL, 1, 0.1, 2, &b),
                            accountant_composition_delta_bounds(&part, 1, 1, 2, &b),
                            accountant_composition_delta_bounds(&part, 1, 1, 2, NULL),
                            accountant_composition_delta_bounds(&part, (size_t)-1, 1, 2, &b),
                            accountant_calibrate_sigma(1, 0.1, 1, 1, NULL),
                            accountant_calibrate_steps(1, 0.1, 1, 1, NULL),
                            accountant_calibrate_q(1, 0.1, 1, 1, NULL)};
    for (size_t i = 0; i < COUNT(statuses); i++) REQUIRE(statuses[i] == ACCOUNTANT_EDOMAIN, "call %zu", i);
    REQUIRE(accountant_composition_epsilon_bounds(NULL, 0, 0.1, 2, &b) == ACCOUNTANT_OK && b.upper == 0.0,
            "no parts");
}

/* A caller that rounds upward gets the same answer, and still rounds upward afterwards. */
static void rounding(void) {
    accountant_bounds usual, upward;
    double sigma, other;
    REQUIRE(accountant_epsilon_bounds(0.01, 1.0, 1000, 1e-5, 2, &usual) == ACCOUNTANT_OK, "usual");
    REQUIRE(accountant_calibrate_sigma(1.0, 1e-5, 0.01, 1000, &sigma) == ACCOUNTANT_OK, "usual");
    if (fesetround(FE_UPWARD)) return;
    const int status = accountant_epsilon_bounds(0.01, 1.0, 1000, 1e-5, 2, &upward);
    const int calibrated = accountant_calibrate_sigma(1.0, 1e-5, 0.01, 1000, &other);
    const int kept = fegetround() == FE_UPWARD;
    fesetround(FE_TONEAREST);
    REQUIRE(!status && !calibrated && kept, "status %d, %d, kept %d", status, calibrated, kept);
    REQUIRE(usual.lower == upward.lower && usual.upper == upward.upper && sigma == other, "%a", upward.upper);
}

int main(int argc, char **argv) {
    const long calls = argc > 1 ? atol(argv[1]) : 100;
    state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    REQUIRE(strcmp(accountant_version(), ACCOUNTANT_VERSION) == 0, "%s", accountant_version());
    for (int status = -9; status < 9; status++) REQUIRE(accountant_status_message(status), "%d", status);
    nowhere();
    rounding();
    for (long i = 0; i < calls; i++) {
        equal_steps();
        random_shifts();
        different_steps();
        if (i % 8 == 0) calibration();
    }
    printf("hostile: %ld answered, %ld refused, %ld without a certified answer\n", answered, refused,
           unreached);
    return answered > 0 && refused > 0 ? 0 : 1;
}
