#include "calibration.h"

#include <float.h>
#include <math.h>
#include <stddef.h>

#include "domain.h"
#include "gaussian.h"
#include "rounding.h"
#include "search.h"
#include "bounds.h"
#include "subsampled_gaussian.h"

#define LEAST_DOUBLE 0x1p-1074 /* divided by where a first guess would divide by an underflowed zero */
#define LEAST_RANK 1           /* of a positive double, and of a count */

/* a question with one unknown, which `unknown` points to */
typedef struct {
    const acct_target *target;
    acct_unknown of;
    int direction;
    acct_bounds met; /* the last bracket of one direction that met the target, */
    double met_at;   /* and of which value of the unknown it is */
} problem;

static int valid_target(const acct_target *t) {
    return t->epsilon > 0.0 && t->epsilon < INFINITY && acct_valid_delta(t->delta) && t->records >= 1.0 &&
           (t->upper || t->records == 1.0);
}

static int upper_of_one_record(problem *p, double *epsilon) {
    const acct_unknown *a = &p->of;
    acct_bounds found = {0.0, INFINITY};
    const int status = acct_psg_epsilon(a->q, a->sigma, a->steps, p->target->delta, p->direction, &found);
    *epsilon = found.lower <= found.upper ? found.upper : INFINITY;
    if (*epsilon <= p->target->epsilon) {
        p->met = found;
        p->met_at = *a->unknown;
    }
    return status;
}

static int spent(void *context, double value, double *epsilon) {
    problem *p = context;
    const acct_target *t = p->target;
    const acct_unknown *a = &p->of;
    *a->unknown = value;
    const int status =
        t->upper ? t->upper(t->context, a->q, a->sigma, a->steps, t->delta, p->direction, epsilon)
                 : upper_of_one_record(p, epsilon);
    if (status != ACCT_EPRECISION) return status;
    *epsilon = INFINITY;
    return ACCT_OK;
}

/* Searches by the direction that nearly always costs more; then asks for both.  What is too dear in one
 * direction is too dear; what is not, only if the other agrees.  Epsilon is about a `power` of the unknown. */
static int boundary(problem *p, enum acct_grid grid, double guess, double power, int64_t cheap, int64_t dear,
                    int64_t *rank) {
    const acct_target *t = p->target;
    const acct_search search = {spent, p, t->epsilon, grid};
    double both;
    const int near =
        t->upper ? 0 : acct_calibration_guess(&p->of, t->epsilon, t->delta, &guess, &power);
    if (near < 0) return near;
    const double slope = near ? fabs(power) : 0.0;
    p->direction = ACCT_REMOVE;
    p->met_at = NAN;
    int status = acct_boundary(&search, guess, slope, cheap, dear, rank);
    if (status || *rank == ACCT_NO_RANK) return status;
    const double found = acct_grid_value(grid, *rank);
    const acct_unknown *a = &p->of;
    *a->unknown = found; /* the last point that met the target */
    int decides = 0;
    if (!t->upper && p->met_at == found)
        decides = acct_psg_remove_decides(a->q, a->sigma, a->steps, t->delta, &p->met);
    if (decides) return decides < 0 ? decides : ACCT_OK;
    p->direction = ACCT_EITHER;
    status = spent(p, found, &both);
    if (status || both <= t->epsilon) return status;
    return acct_boundary(&search, found, slope, cheap, dear, rank);
}

#define GUESS_STEPS 6    /* of Newton, at most */
#define GUESS_CLOSE 1e-3 /* the change of log mu that ends them */

/* The mu of the Gaussian mechanism that spends the target, for one record, to a few digits: where the central limit
 * holds the unknown is near.  A place to start, no more. */
static double gaussian_guess(const acct_target *t) {
    const double tail = -2.0 * log(t->delta), e = t->epsilon;
    /* the root of epsilon = mu^2/2 + mu sqrt(2 log 1/delta), from which Newton's steps on log delta go */
    double mu = 2.0 * e / (sqrt(tail + 2.0 * e) + sqrt(tail));
    for (int i = 0; i < GUESS_STEPS; i++) {
        const double x = e / mu - 0.5 * mu, density = exp(-0.5 * x * x) / sqrt(2.0 * ACCT_PI);
        const double delta = 0.5 * (erfc(x / sqrt(2.0)) - exp(e) * erfc((x + mu) / sqrt(2.0)));
        const double move = delta * log(t->delta / delta) / (mu * density);
        if (!(fabs(move) < 1.0)) break;
        mu *= exp(move);
        if (fabs(move) < GUESS_CLOSE) break;
    }
    return mu / t->records;
}

/* the power with which epsilon changes with mu there */
static double gaussian_power(const acct_target *t, double mu) {
    const double half = 0.5 * mu * mu;
    return t->epsilon > half ? (t->epsilon + half) / t->epsilon : 2.0;
}

/* expm1(1/sigma^2), the chi^2 divergence of one Gaussian release; infinite on overflow */
static double gain_of(double sigma) { return sigma > 0.04 ? expm1(1.0 / sigma / sigma) : INFINITY; }

/* the probability that a record is used at all, to within some ulp: calibrations at its edge either have an
 * answer, which is certified, or are refused */
static double ever_used(double q, double draws) {
    if (draws == 0.0) return 0.0;
    return q == 1.0 ? 1.0 : -expm1(draws * log1p(-q));
}

int acct_calibrate_sigma(const acct_target *target, double q, double steps, double *sigma) {
    problem p = {.target = target, .of = {.q = q, .steps = steps, .unknown = &p.of.sigma}};
    int64_t rank;
    *sigma = NAN;
    if (!valid_target(target) || !acct_valid_noise(q, 1.0) || !acct_valid_steps(steps)) return ACCT_EDOMAIN;
    if (ever_used(q, steps * target->records) <= target->delta) return ACCT_EUNBOUNDED;
    /* Start where the central limit puts it: near the sigma of one Gaussian release. */
    const double mu = gaussian_guess(target);
    double guess = sqrt(steps) / (mu / q);
    double power = -gaussian_power(target, mu);
    const double excess = 1.0 / guess / guess;
    if (q < 1.0) {
        const double exponent = log1p(excess); /* 1/sigma^2 */
        guess = 1.0 / sqrt(exponent);
        if (exponent > 0.0) power *= exponent * (1.0 + excess) / excess;
    }
    const int status =
        boundary(&p, ACCT_DOUBLES, guess, power, acct_grid_rank(ACCT_DOUBLES, DBL_MAX), LEAST_RANK, &rank);
    if (status) return status;
    if (rank == ACCT_NO_RANK) return ACCT_EPRECISION;
    if (rank == LEAST_RANK) return ACCT_EUNBOUNDED;
    *sigma = acct_grid_value(ACCT_DOUBLES, rank);
    return ACCT_OK;
}

/* whether one step's delta is certainly above the target's, and so every certified epsilon of it */
static int one_is_too_dear(const acct_target *t, double q, double sigma) {
    acct_bounds one = {0.0, 1.0};
    if (t->upper || !(q >= ACCT_LEAST_Q && q < 1.0)) return 0;
    acct_single_delta(q, sigma, t->epsilon, ACCT_REMOVE, &one);
    return one.lower > t->delta;
}

int acct_calibrate_steps(const acct_target *target, double q, double sigma, double *steps) {
    problem p = {.target = target, .of = {.q = q, .sigma = sigma, .unknown = &p.of.steps}};
    int64_t rank;
    *steps = NAN;
    if (!valid_target(target) || !acct_valid_noise(q, sigma)) return ACCT_EDOMAIN;
    if (q == 0.0 || sigma == INFINITY) return ACCT_EUNBOUNDED;
    if (one_is_too_dear(target, q, sigma)) { /* none costs nothing */
        *steps = 0.0;
        return ACCT_OK;
    }
    const double mu = gaussian_guess(target), ratio = mu / q;
    const double guess = ratio * ratio / acct_max(gain_of(sigma), LEAST_DOUBLE);
    const double power = 0.5 * gaussian_power(target, mu);
    const int status = boundary(&p, ACCT_COUNTS, guess, power, LEAST_RANK, (int64_t)ACCT_MOST_STEPS, &rank);
    if (status) return status;
    if (rank == (int64_t)ACCT_MOST_STEPS) return ACCT_EUNBOUNDED;
    *steps = rank == ACCT_NO_RANK ? 0.0 : (double)rank;
    return ACCT_OK;
}

int acct_calibrate_q(const acct_target *target, double sigma, double steps, double *q) {
    problem p = {.target = target,
                 .of = {.sigma = sigma, .steps = steps, .unknown = &p.of.q},
                 .direction = ACCT_EITHER};
    int64_t rank;
    double whole;
    *q = NAN;
    if (!valid_target(target) || !acct_valid_noise(1.0, sigma) || !acct_valid_steps(steps))
        return ACCT_EDOMAIN;
    int status = spent(&p, 1.0, &whole);
    if (status) return status;
    if (whole <= target->epsilon) {
        *q = 1.0;
        return ACCT_OK;
    }
    const double mu = gaussian_guess(target);
    const double guess = mu / sqrt(acct_max(steps * gain_of(sigma), LEAST_DOUBLE));
    const double power = gaussian_power(target, mu);
    status = boundary(&p, ACCT_DOUBLES, guess, power, LEAST_RANK, acct_grid_rank(ACCT_DOUBLES, 1.0), &rank);
    if (status) return status;
    *q = rank == ACCT_NO_RANK ? 0.0 : acct_grid_value(ACCT_DOUBLES, rank); /* nothing is released at q = 0 */
    return ACCT_OK;
}
