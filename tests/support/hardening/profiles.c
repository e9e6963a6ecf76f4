/* Drives the entry points that bracket a privacy loss, over random and extreme arguments.
 * Usage: profiles CALLS SEED */
#include <float.h>

#include "drive.h"
#include "exchange.h"
#include "heterogeneous.h"
#include "loss.h"
#include "bounds.h"
#include "subsampled_gaussian.h"

static long answered, refused, unreached;

static void judge(const char *what, int status, acct_bounds b, double most, int outside, double x0,
                  double x1, double x2, double x3, int direction) {
#define AT "%s(%a, %a, %a, %a, %d) = %d [%a, %a]", what, x0, x1, x2, x3, direction, status, b.lower, b.upper
    REQUIRE(status == ACCT_OK || status == ACCT_EDOMAIN || status == ACCT_EPRECISION, AT);
    REQUIRE((status == ACCT_EDOMAIN) == outside, AT);
    if (status == ACCT_OK) {
        REQUIRE(b.lower >= 0.0 && b.lower <= b.upper && b.upper <= most, AT);
        answered++;
    } else if (status == ACCT_EDOMAIN) {
        refused++;
    } else {
        unreached++;
        fprintf(stderr, "note: no certified answer: " AT);
        fputc('\n', stderr);
    }
#undef AT
}

static int in_domain(double q, double sigma, double steps, int direction) {
    return q >= 0.0 && q <= 1.0 && sigma > 0.0 && steps >= 0.0 && steps <= 0x1p53 &&
           steps == floor(steps) && direction >= ACCT_REMOVE && direction <= ACCT_EITHER;
}

static void alone(void) {
    double q = probability(), sigma = deviation(), steps = repetitions(), epsilon = loss(), delta = tail();
    double order = 1.0 + (chance(4) ? log_uniform(1e-15, 1e-3) : log_uniform(1e-3, 1e6));
    int direction = (int)below(3);
    if (chance(6)) {
        double *which[] = {&q, &sigma, &steps, &epsilon, &delta, &order};
        *PICK(which) = any_double();
        if (chance(4)) direction = (int)(word() & 0xffffffff);
    }
    const int fine = in_domain(q, sigma, steps, direction);
    acct_bounds b = {NAN, NAN};
    int status = acct_psg_delta(q, sigma, steps, epsilon, direction, &b);
    judge("delta", status, b, 1.0, !fine || !(epsilon >= 0.0 && epsilon <= DBL_MAX), q, sigma, steps,
          epsilon, direction);
    b = (acct_bounds){NAN, NAN};
    status = acct_psg_epsilon(q, sigma, steps, delta, direction, &b);
    judge("epsilon", status, b, INFINITY, !fine || !(delta > 0.0 && delta < 1.0), q, sigma, steps, delta,
          direction);
    b = (acct_bounds){NAN, NAN};
    status = acct_psg_renyi(q, sigma, order, direction, &b);
    judge("renyi", status, b, INFINITY,
          !in_domain(q, sigma, 1.0, direction) || !(order > 1.0 && order <= DBL_MAX), q, sigma, order, 0.0,
          direction);
    double at = NAN;
    b = (acct_bounds){0.0, NAN};
    status = acct_psg_epsilon_renyi(q, sigma, steps, delta, &b.upper, &at);
    judge("epsilon_renyi", status, b, INFINITY,
          !in_domain(q, sigma, steps, 0) || !(delta > 0.0 && delta < 1.0), q, sigma, steps, delta, 0);
    if (status == ACCT_OK) REQUIRE(at >= 1.0, "epsilon_renyi: order %a", at);
}

/* makes the part one with a random shift, if the numbers drawn are a law of shifts */
static void shift_at_random(acct_part *part, acct_mixture *mixture) {
    const int count = (int)(1 + below(chance(4) ? 40 : 5));
    double *shift = exactly((size_t)count, sizeof *shift), *weight = exactly((size_t)count, sizeof *weight);
    double at = 0.0, left = chance(6) ? 1.0 : unit();
    for (int i = 0; i < count; i++) {
        shift[i] = at += chance(2) ? 1.0 : log_uniform(1e-3, 30.0);
        weight[i] = chance(30) ? any_double() : left * probability();
        left -= weight[i];
    }
    const acct_mixture_part law = {.sigma = part->sigma, .count = count, .shift = shift, .weight = weight,
                                   .silent = chance(8) ? left : 0.0, .weight_err = chance(2) ? 0.0 : 1e-14};
    const int status = acct_part_set_mixture(part, mixture, &law, part->steps);
    REQUIRE(status == ACCT_OK || (status == ACCT_EDOMAIN && !part->mixture), "%d shifts: %d", count, status);
    free(shift);
    free(weight);
}

static void together(void) {
    const int count = chance(4) ? 1 : (int)(2 + below(6));
    acct_part *parts = exactly((size_t)count, sizeof *parts);
    acct_mixture *mixtures = exactly((size_t)count, sizeof *mixtures);
    int mixed = 0;
    const double alike = deviation();
    double total = 0.0;
    int fine = 1;
    for (int i = 0; i < count; i++) {
        acct_part *p = &parts[i];
        p->mixture = NULL;
        p->q = chance(4) ? 1.0 : fmax(probability(), ACCT_LEAST_Q);
        p->sigma = chance(2) ? fmin(alike, 1e200) : fmin(deviation(), 1e200);
        p->steps = fmax(1.0, floor(repetitions() / 8.0));
        if (chance(40)) p->q = any_double();
        if (chance(40)) p->sigma = any_double();
        if (chance(40)) p->steps = any_double();
        if (chance(4)) shift_at_random(p, &mixtures[i]);
        mixed = mixed || p->mixture;
        fine = fine && (!p->mixture || (p->sigma > 1e-100 && p->sigma < 1e100));
        fine = fine && p->q >= ACCT_LEAST_Q && in_domain(p->q, p->sigma, p->steps, 0) && p->steps >= 1.0 &&
               p->sigma <= DBL_MAX;
        total += p->steps;
    }
    fine = fine && total <= 0x1p53;
    const double epsilon = loss(), delta = tail();
    const int direction = (int)below(3), one_way = (int)below(2);
    acct_bounds b = {NAN, NAN};
    int status = acct_heterogeneous_delta(parts, count, epsilon, direction, &b);
    judge("mix_delta", status, b, 1.0, !fine, parts->q, parts->sigma, parts->steps, epsilon, direction);
    b = (acct_bounds){NAN, NAN};
    status = acct_heterogeneous_epsilon(parts, count, delta, direction, &b);
    judge("mix_epsilon", status, b, INFINITY, !fine, parts->q, parts->sigma, parts->steps, delta, direction);
    acct_bounds *each = exactly((size_t)count, sizeof *each);
    status = acct_heterogeneous_odometer(parts, count, delta, one_way, below(2) ? 0.0 : 1e-3,
                                         (int)below((unsigned)count), count, each);
    for (int i = 0; i < (status ? 1 : count); i++)
        judge("mix_odometer", status, each[i], INFINITY, !fine || mixed, parts->q, parts->sigma, parts->steps, delta,
              one_way);
    free(each);
    free(mixtures);
    free(parts);
}

/* Poisson samples under replace-one */
static void exchanged(void) {
    const double mu = chance(20) ? any_double() : log_uniform(1e-9, 40.0);
    const double q = probability(), steps = repetitions(), epsilon = loss(), delta = tail();
    const int fine = q > 0.0 && q < 1.0 && mu > 0.0 && mu <= 40.0 && in_domain(q, 1.0, steps, 0) &&
                     steps >= 2.0;
    acct_bounds b = {NAN, NAN};
    int status = acct_exchange_delta(mu, q, steps, epsilon, &b);
    judge("exchange_delta", status, b, 1.0, !fine || !(epsilon >= 0.0 && epsilon <= DBL_MAX), mu, q, steps,
          epsilon, 0);
    b = (acct_bounds){NAN, NAN};
    status = acct_exchange_epsilon(mu, q, steps, delta, &b);
    judge("exchange_epsilon", status, b, INFINITY, !fine || !(delta > 0.0 && delta < 1.0), mu, q, steps,
          delta, 0);
    const double order = chance(20) ? any_double() : 1.0 + log_uniform(1e-15, 1e9);
    b = (acct_bounds){NAN, NAN};
    status = acct_exchange_renyi(mu, q, order, &b);
    judge("exchange_renyi", status, b, INFINITY,
          !(q > 0.0 && q < 1.0 && mu > 0.0 && mu <= 40.0 && order > 1.0 && order <= DBL_MAX), mu, q, order,
          0.0, 0);
}

int main(int argc, char **argv) {
    const long calls = argc > 1 ? atol(argv[1]) : 100;
    state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    for (long i = 0; i < calls; i++) {
        alone();
        exchanged();
        if (i % 4 == 0) together();
    }
    printf("profiles: %ld answered, %ld refused, %ld without a certified answer\n", answered, refused, unreached);
    return answered > 0 && refused > 0 ? 0 : 1;
}
