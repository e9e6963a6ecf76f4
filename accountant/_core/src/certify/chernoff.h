/* Bounds that always exist: wide, never wrong. */
#ifndef ACCT_CHERNOFF_H
#define ACCT_CHERNOFF_H

#include "bounds.h"
#include "plan.h"
#include "cf_decay.h"

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

/* ensures delta(epsilon) <= returned <= 1 by Chernoff at the saddle point (Theorem 5), one direction */
double acct_chernoff_delta_upper(acct_workspace *w, const acct_step *step, double steps, int direction,
                                 double epsilon, double log_delta);

/* A bound on the profile by the moduli along one vertical line (Theorem 20): no phases, no points, no aliases.
 *
 * At the saddle point phases only set in with the third power of y, so that little is lost; Chernoff's bound, the
 * maximum of the modulus, loses a factor.
 */
typedef struct {
    double chernoff; /* Chernoff's bound at the same distance (Theorem 5) */
    double upper;    /* the smaller of that and the bound by moduli (Theorem 20) */
    double doubt;    /* the share of both that the nodes' error is: other nodes may do better */
} acct_line_modulus;

/* sets     *out on the nodes of the law, at distance b of the direction's line; the second bound only if the first one
 *          is above `enough`; both are 1 where the law is not whole
 * ensures  delta(epsilon) <= out->upper <= out->chernoff <= 1 after so many steps
 * overwrites law->weight and scratch */
void acct_line_modulus_set(acct_line_modulus *out, acct_tilted_law *law, acct_tilted_law *scratch, double steps,
                           int direction, double b, double epsilon, double enough);

#endif
