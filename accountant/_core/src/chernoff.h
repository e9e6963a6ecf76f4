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

/* Chernoff's bound at one distance b, for any number of steps and any epsilon */
typedef struct {
    double b, log_front, log_mgf; /* b^b/(1+b)^{1+b} and an upper bound on A of one step, their logs */
    double outside;               /* mass of one step's outcomes that A does not count */
} acct_chernoff;

/* sets     *bound at the order of b on the window; overwrites law
 * returns  a status */
int acct_chernoff_set(acct_chernoff *bound, acct_tilted_law *law, const acct_step *step,
                      const acct_window *window, double steps, int direction, double b);

/* ensures delta(epsilon) <= returned <= 1 after so many steps, in the direction it was set for (Theorem 5) */
double acct_chernoff_at(const acct_chernoff *bound, double steps, double epsilon);

/* ensures delta(epsilon) <= returned <= 1 by Chernoff at distance b, or at the saddle point if b is 0
 * (Theorem 5), one direction */
double acct_chernoff_delta_upper(acct_workspace *w, const acct_step *step, double steps, int direction,
                                 double epsilon, double log_delta, double b);

/* ensures delta(epsilon) >= returned >= 0: 1 - delta <= E min(1, e^{eps - L}) by Chernoff inside
 * (0, 1); useful where delta is within 1e-12 of 1 */
double acct_chernoff_delta_lower(acct_workspace *w, const acct_step *step, double steps, int direction,
                                 double epsilon);

#endif
