/* The questions of the entry points, and the domains of their arguments.
 * Every test is in positive form, so that a NaN fails it. */
#ifndef ACCT_DOMAIN_H
#define ACCT_DOMAIN_H

#include <math.h>

#include "mixture_loss.h"

/* One step: P = (1-q) N(0, sigma^2) + q N(1, sigma^2), Q = N(0, sigma^2).  ACCT_REMOVE is the pair
 * (P, Q), ACCT_ADD is (Q, P), ACCT_EITHER the larger profile of the two. */
enum acct_direction { ACCT_REMOVE = 0, ACCT_ADD = 1, ACCT_EITHER = 2 };

/* `steps` repetitions of one subsampled Gaussian; q = 1 is the plain Gaussian.  With a mixture the shift is
 * random (mixture_loss.h); q is then the probability of any, rounded to at most 1 */
typedef struct {
    double q, sigma, steps;
    const acct_mixture *mixture; /* NULL: one shift, of 1 */
} acct_part;

static inline int acct_part_is_plain(const acct_part *part) { return part->q == 1.0 && !part->mixture; }

/* Below this sampling probability the loss is not computed: all divergences grow with q, so the answer
 * here is the upper end there, and the lower end is 0 (every entry point sees to it). */
#define ACCT_LEAST_Q 1e-280

/* Counts are doubles: up to 2^53 every integer is one. */
#define ACCT_MOST_STEPS 0x1p53

static inline int acct_valid_noise(double q, double sigma) { return q >= 0.0 && q <= 1.0 && sigma > 0.0; }

static inline int acct_valid_steps(double steps) {
    return steps >= 0.0 && steps <= ACCT_MOST_STEPS && steps == floor(steps);
}

static inline int acct_valid_direction(int direction) {
    return direction >= ACCT_REMOVE && direction <= ACCT_EITHER;
}

static inline int acct_valid_epsilon(double epsilon) { return epsilon >= 0.0 && epsilon < INFINITY; }

static inline int acct_valid_delta(double delta) { return delta > 0.0 && delta < 1.0; }

#endif
