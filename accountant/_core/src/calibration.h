/* The best noise, count or sampling probability for a target epsilon: equal Poisson-sampled Gaussian steps.
 *
 * Each answer is the last point, on the cheap side, whose certified epsilon was evaluated and found to be at
 * most the target; its neighbour, the adjacent double or the next integer, was evaluated too and found above.
 * There is no tolerance.
 */
#ifndef ACCT_CALIBRATION_H
#define ACCT_CALIBRATION_H

/* sets     *epsilon to an upper end for one direction, or with ACCT_EITHER for the larger one
 * returns  a status; ACCT_EPRECISION is taken for an infinite epsilon, any other but ACCT_OK ends the search */
typedef int acct_epsilon_upper(void *context, double q, double sigma, double steps, double delta,
                               int direction, double *epsilon);

typedef struct {
    double epsilon, delta;       /* the target: finite and > 0; in (0, 1) */
    double records;              /* of one user, >= 1: for the first guess, and where nothing is released */
    acct_epsilon_upper *upper;   /* NULL: acct_psg_epsilon, which is for one record */
    void *context;
} acct_target;

/* each returns ACCT_EDOMAIN where an argument is outside its domain (subsampled_gaussian.h), ACCT_ENOMEM, and
 * what `upper` returned */

/* sets     *sigma to the least noise multiplier that meets the target; the next smaller double does not
 * returns  ACCT_EUNBOUNDED where every sigma > 0 meets it: a record is used at all with probability at most
 *          delta; ACCT_EPRECISION where none was certified to */
int acct_calibrate_sigma(const acct_target *target, double q, double steps, double *sigma);

/* sets     *steps to the largest count that meets the target, 0 where one step does not
 * returns  ACCT_EUNBOUNDED where 2^53 steps do, or nothing is released: q = 0 or sigma = inf */
int acct_calibrate_steps(const acct_target *target, double q, double sigma, double *steps);

/* sets     *q to the largest sampling probability that meets the target; 1 where that does, 0 where no q > 0 is
 *          certified to */
int acct_calibrate_q(const acct_target *target, double sigma, double steps, double *q);

/* Where a calibration should begin: the root of approximations in plain floating point. */
/* repeated steps of one record, one number of which is unknown: `unknown` points to it */
typedef struct {
    double q, sigma, steps, *unknown;
} acct_unknown;

/* sets     *value to about where the steps cost epsilon at delta, and *power to about
 *          d log(epsilon) / d log(value) there, beginning with what they hold; *asked is left as it was
 * returns  whether it found that, else both are left as they were, or ACCT_ENOMEM; nothing is certified */
int acct_calibration_guess(acct_unknown *asked, double epsilon, double delta, double *value, double *power);

#endif
