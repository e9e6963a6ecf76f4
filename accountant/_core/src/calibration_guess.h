/* Where a calibration should begin: the root of approximations in plain floating point. */
#ifndef ACCT_CALIBRATION_GUESS_H
#define ACCT_CALIBRATION_GUESS_H

/* repeated steps of one record, one number of which is unknown: `unknown` points to it */
typedef struct {
    double q, sigma, steps, *unknown;
} acct_unknown;

/* sets     *value to about where the steps cost epsilon at delta, and *power to about
 *          d log(epsilon) / d log(value) there, beginning with what they hold; *asked is left as it was
 * returns  whether it found that, else both are left as they were, or ACCT_ENOMEM; nothing is certified */
int acct_calibration_guess(acct_unknown *asked, double epsilon, double delta, double *value, double *power);

#endif
