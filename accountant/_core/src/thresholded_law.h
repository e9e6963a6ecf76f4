/* The tilted law restricted by soft thresholds: integrals of N e^{cL} times the chance of being below the
 * outer threshold, between the thresholds, or above the outer one (Theorem 15). */
#ifndef ACCT_THRESHOLDED_LAW_H
#define ACCT_THRESHOLDED_LAW_H

#include "soft_threshold.h"
#include "tilted_law.h"

/* bounds on the quadrature errors of N, of N e^u and of N e^{-mL}, each times 1 - chi */
void acct_above_errors(const acct_tilted_law *law, double m, double *of_one, double *of_exp_u,
                       double *of_reverse);

/* A(c) = int chi N e^{cL} over the law's window, chi the chance of being below the threshold, c > 1;
 * certified if the panels were set for that threshold as window->threshold.  Leaves the tilted weights in
 * law->weight. */
void acct_thresholded_moments(acct_tilted_law *law, const double *above, const double *share,
                              acct_threshold threshold, double order, int certify, acct_moments *out);

/* its log A(c) alone, without errors, for searches */
double acct_thresholded_log_mgf(const acct_tilted_law *law, const double *above, const double *share,
                                acct_threshold threshold, double order);

/* the log of an upper bound on the same A(c), which does not cancel where A(c) is far below 1 */
double acct_thresholded_log_mgf_upper(const acct_tilted_law *law, const double *share,
                                      acct_threshold threshold, double order);

/* the log of an upper bound on int middle N e^{cL}, if the panels were set for both thresholds; and, for
 * searches, about its log */
double acct_between_log_mgf_upper(const acct_tilted_law *law, const acct_thresholds *thresholds,
                                  double order);
double acct_between_log_mgf(const acct_tilted_law *law, const double *middle, double order);

#endif
