/* Bounds that always exist: wide, never wrong. */
#ifndef ACCT_CHERNOFF_H
#define ACCT_CHERNOFF_H

#include "bounds.h"
#include "plan.h"

/* ensures delta(epsilon) <= returned <= 1 in either direction: the number of times the record is
 * sampled is binomial, and the profile is jointly convex (Theorem 11) */
double acct_mixture_delta_upper(double q, double sigma, double steps, double epsilon);

/* ensures epsilon(delta) <= returned, by the same; may be inf */
double acct_mixture_epsilon_upper(double q, double sigma, double steps, double delta);

/* ensures delta(epsilon) <= returned <= 1 by Chernoff at distance b, or at the saddle point if b is 0
 * (Theorem 5), one direction */
double acct_chernoff_delta_upper(acct_workspace *w, const acct_step *step, double steps, int direction,
                                 double epsilon, double log_delta, double b);

/* ensures delta(epsilon) >= returned >= 0: 1 - delta <= E min(1, e^{eps - L}) by Chernoff inside
 * (0, 1); useful where delta is within 1e-12 of 1 */
double acct_chernoff_delta_lower(acct_workspace *w, const acct_step *step, double steps, int direction,
                                 double epsilon);

#endif
