/* libaccountant: certified privacy accounting of Gaussian noise on Poisson samples (DP-SGD).
 *
 *     accountant_bounds epsilon;
 *     int status = accountant_epsilon_bounds(0.01, 1.1, 1000, 1e-5, ACCOUNTANT_EITHER, &epsilon);
 *     if (status == ACCOUNTANT_OK) printf("%.17g\n", epsilon.upper);
 *
 * What all functions share
 *   - They return a status (enum accountant_status) and write their answer through the last arguments. Where the
 *     status is not ACCOUNTANT_OK the answer says nothing: [0, inf], [0, 1] or NaN. A NULL where an answer
 *     or an array is needed is ACCOUNTANT_EDOMAIN.
 *   - A bracket [lower, upper] holds the exact value, round-off, truncation and quadrature included
 *     (docs/theorems.md). State upper ends: lower ends say how much is lost, never what is spent. upper may be inf.
 *   - No state, no global variables, no locks: any number of threads may call at the same time. They compute in
 *     round-to-nearest with subnormal numbers, whatever the caller set, and put back what the caller had. They
 *     free all memory before they return, need less than 64 kB of stack, write no file and print nothing.
 *   - epsilon and Rényi divergences are in nats.
 *
 * One step: a record is drawn with probability q and shifts Gaussian noise by 1; sigma is the noise multiplier,
 * the standard deviation over the shift (the clipping norm). Neighbouring data sets differ in one record
 * that is there or not (add or remove). q = 1 is the Gaussian mechanism.
 *
 * Domains: q in [0, 1]; sigma in (0, inf]; steps an integer in [0, 2^53] (a double, so that every language has
 * it); epsilon >= 0 and finite; delta in (0, 1); order > 1 and finite.
 */
#ifndef ACCOUNTANT_H
#define ACCOUNTANT_H

#include <stddef.h>

#define ACCOUNTANT_VERSION "0.1.0"

#if defined(_WIN32) && defined(ACCOUNTANT_BUILD)
#define ACCOUNTANT_API __declspec(dllexport)
#elif defined(__GNUC__) && !defined(_WIN32)
#define ACCOUNTANT_API __attribute__((visibility("default")))
#else
#define ACCOUNTANT_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

enum accountant_status {
    ACCOUNTANT_OK = 0,
    ACCOUNTANT_EDOMAIN = -1,    /* an argument is outside its domain */
    ACCOUNTANT_ENOMEM = -2,     /* no memory for the workspace */
    ACCOUNTANT_EPRECISION = -3, /* no certified answer was reached at any width: please report it */
    ACCOUNTANT_EUNBOUNDED = -4  /* calibration: every value meets the target, so that no best one exists */
};

/* which of two neighbouring data sets the privacy loss is that of */
enum accountant_direction {
    ACCOUNTANT_REMOVE = 0, /* with the record against without */
    ACCOUNTANT_ADD = 1,    /* without against with */
    ACCOUNTANT_EITHER = 2  /* the larger one: what differential privacy under add-or-remove asks for */
};

/* lower <= exact value <= upper */
typedef struct {
    double lower;
    double upper;
} accountant_bounds;

/* The release of the library at run time, as ACCOUNTANT_VERSION was when the caller was compiled. */
ACCOUNTANT_API const char *accountant_version(void);

/* One English sentence without an end; never NULL. */
ACCOUNTANT_API const char *accountant_status_message(int status);

/* --- Equal steps ------------------------------------------------------------------------------------------ */

/* epsilon(delta), the least epsilon >= 0 for which `steps` steps are (epsilon, delta)-differentially private */
ACCOUNTANT_API int accountant_epsilon_bounds(double q, double sigma, double steps, double delta,
                                             int direction, accountant_bounds *epsilon);

/* the privacy profile delta(epsilon) of `steps` steps */
ACCOUNTANT_API int accountant_delta_bounds(double q, double sigma, double steps, double epsilon,
                                           int direction, accountant_bounds *delta);

/* the Rényi divergence of ONE step at any real order > 1; that of n steps is n times it */
ACCOUNTANT_API int accountant_renyi_bounds(double q, double sigma, double order, int direction,
                                           accountant_bounds *divergence);

/* An upper bound on epsilon(delta) by way of Rényi differential privacy, at the best real order, which
 * it writes too: what accountants of moments would say. */
ACCOUNTANT_API int accountant_epsilon_renyi_upper(double q, double sigma, double steps, double delta,
                                                  double *epsilon, double *order);

/* --- The Gaussian mechanism (analytic), one release: q = 1 and one step ---------------------------------- */

ACCOUNTANT_API int accountant_gaussian_epsilon_bounds(double sigma, double delta, accountant_bounds *epsilon);
ACCOUNTANT_API int accountant_gaussian_delta_bounds(double sigma, double epsilon, accountant_bounds *delta);

/* --- Random shifts: P = w_0 N(0, sigma^2) + sum of w_j N(d_j, sigma^2), Q = N(0, sigma^2) ------------------- */

#define ACCOUNTANT_MOST_SHIFTS 256

/* A user with several records, repeated draws, groups. The arrays stay the caller's and are only read. */
typedef struct {
    size_t count;         /* of positive shifts, at most ACCOUNTANT_MOST_SHIFTS */
    const double *shift;  /* d_j: positive, increasing, in units of the shift that sigma is over */
    const double *weight; /* w_j > 1e-280 */
    /* 0: the weights are exact, and w_0, at least 1e-9, is what they leave of one. Else w_0 > 1e-250 */
    double no_shift;
    double weight_error; /* with no_shift > 0: relative error of all weights, at most 1e-13 */
} accountant_shifts;

/* sigma in (1e-100, 1e100), steps at least 1 */
ACCOUNTANT_API int accountant_mixture_epsilon_bounds(const accountant_shifts *law, double sigma, double steps,
                                                     double delta, int direction, accountant_bounds *epsilon);
ACCOUNTANT_API int accountant_mixture_delta_bounds(const accountant_shifts *law, double sigma, double steps,
                                                   double epsilon, int direction, accountant_bounds *delta);

/* --- Different steps ------------------------------------------------------------------------------------- */

/* `steps` equal steps of a composition; with `shifts` their shift is random, and q is not looked at */
typedef struct {
    double q, sigma, steps;
    const accountant_shifts *shifts; /* NULL: one shift, of 1 */
} accountant_part;

/* Of all parts one after the other, in any order. No parts, or parts that release nothing, spend nothing. At most
 * 2^53 steps in all. With a noise of 1e-100 or less the bracket is a trivial one. */
ACCOUNTANT_API int accountant_composition_epsilon_bounds(const accountant_part *parts, size_t count,
                                                         double delta, int direction,
                                                         accountant_bounds *epsilon);
ACCOUNTANT_API int accountant_composition_delta_bounds(const accountant_part *parts, size_t count,
                                                       double epsilon, int direction,
                                                       accountant_bounds *delta);

/* --- Calibration: the best value for which the upper end of epsilon(delta) is at most target_epsilon -------- */

/* Each answer was evaluated and meets the target, and its neighbour, the adjacent double or the next integer, was
 * evaluated and does not: there is no tolerance. target_epsilon is finite and > 0. */

/* the least noise multiplier. ACCOUNTANT_EUNBOUNDED: every sigma > 0 will do, as where a record is used at all
 * with probability at most delta */
ACCOUNTANT_API int accountant_calibrate_sigma(double target_epsilon, double delta, double q, double steps,
                                              double *sigma);

/* the largest number of steps, 0 where one is too dear. ACCOUNTANT_EUNBOUNDED: q = 0 or sigma = inf, or 2^53
 * steps will do */
ACCOUNTANT_API int accountant_calibrate_steps(double target_epsilon, double delta, double q, double sigma,
                                              double *steps);

/* the largest sampling probability; 1 where that will do, 0 where no q > 0 is certified to */
ACCOUNTANT_API int accountant_calibrate_q(double target_epsilon, double delta, double sigma, double steps,
                                          double *q);

#ifdef __cplusplus
}
#endif

#endif
