#include "gaussian_tail.h"

#include <float.h>
#include <math.h>

#include "rounding.h"

/* The range of a = eps/mu - mu/2: where the convergents agree to all digits, and beyond the least double,
 * e^{-a^2/2} < 4e-348.  Also 1 - H <= e^{-a^2/2} at -a, below the distance of any double from 1. */
#define NEAREST 12.0
#define FARTHEST 40.0
/* Relative errors of a logarithm and of an exponential of it, which the exponent's size dominates. */
#define SLACK 1e-11

/* Even convergents are above, odd ones below. */
double acct_mills(double x, int above) {
    double t = x;
    for (int k = above ? 40 : 39; k > 0; k--) t = x + k / t;
    return (above ? 1.0 + 8.0 * ACCT_U : 1.0 - 8.0 * ACCT_U) / t;
}

/* log of H = phi(a) (M(a) - M(a + mu)), rounded up or down; -inf where the difference has no digits */
static double log_profile(double a, double mu, int above) {
    const double near = acct_mills(a, above), far = acct_mills(a + mu, !above), sign = above ? 1.0 : -1.0;
    const double difference = near - far + sign * 8.0 * ACCT_U * near;
    if (!(difference > 0.0)) return -INFINITY;
    return -0.5 * a * a - log(ACCT_SQRT_2PI) + log(difference) + sign * SLACK;
}

/* sets *low < *high to neighbours: the bound on the profile is above `goal` at the first alone */
static void crossing(double mu, double goal, int above, double *low, double *high) {
    *low = NEAREST;
    *high = FARTHEST;
    for (;;) {
        const double middle = 0.5 * (*low + *high);
        if (middle == *low || middle == *high) return;
        *(log_profile(middle, mu, above) > goal ? low : high) = middle;
    }
}

/* epsilon = mu (mu/2 + a), infinite beyond the doubles; four roundings */
static double epsilon_at(double mu, double a) { return mu * (0.5 * mu + a); }

void acct_gaussian_tail_epsilon(double mu, double mu_err, double delta, acct_bounds *out) {
    const double most = mu * (1.0 + mu_err), least = mu * (1.0 - mu_err);
    const double up = 1.0 + 8.0 * ACCT_U, down = 1.0 - 8.0 * ACCT_U;
    if (mu >= ACCT_FAR_APART) {
        acct_bounds_intersect(out, acct_min(epsilon_at(least, -FARTHEST), DBL_MAX) * down,
                              epsilon_at(most, FARTHEST) * up);
        return;
    }
    if (!(delta < ACCT_FAINT)) return;
    const double goal = log(delta);
    double low, high;
    if (log_profile(NEAREST, most, 1) > goal) {
        crossing(most, goal, 1, &low, &high);
        acct_bounds_intersect(out, 0.0, epsilon_at(most, high) * up);
    }
    if (log_profile(NEAREST, least, 0) > goal) {
        crossing(least, goal, 0, &low, &high);
        acct_bounds_intersect(out, epsilon_at(least, low) * down, INFINITY);
    }
    out->lower = acct_min(out->lower, out->upper);
}

void acct_gaussian_tail_delta(double mu, double mu_err, double epsilon, acct_bounds *out) {
    const double most = mu * (1.0 + mu_err), least = mu * (1.0 - mu_err);
    if (mu >= ACCT_FAR_APART) {
        if (epsilon < epsilon_at(least, -FARTHEST) * (1.0 - 8.0 * ACCT_U))
            acct_bounds_intersect(out, acct_down(1.0), 1.0);
        if (epsilon > epsilon_at(most, FARTHEST) * (1.0 + 8.0 * ACCT_U))
            acct_bounds_intersect(out, 0.0, acct_up(0.0));
        return;
    }
    const double high = epsilon / most - 0.5 * most, low = epsilon / least - 0.5 * least;
    /* the rounding of a moves the exponent a^2/2 */
    const double moved = 4.0 * ACCT_U * (epsilon / least + most);
    if (!(high - moved > (out->upper < ACCT_FAINT ? NEAREST : FARTHEST))) return;
    const double upper = exp(log_profile(high - moved, most, 1)) * (1.0 + SLACK);
    acct_bounds_intersect(out, 0.0, acct_up(upper));
    if (low < FARTHEST) {
        const double lower = exp(log_profile(low + moved, least, 0)) * (1.0 - SLACK);
        acct_bounds_intersect(out, acct_down(lower), 1.0);
    }
    out->lower = acct_min(out->lower, out->upper);
}
