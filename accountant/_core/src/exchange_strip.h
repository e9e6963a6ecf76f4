/* The noise of a replace-one step in cells, with bounds on what is analytic above them
 * (docs/theorems_mixtures.md, Theorem D24, The sums).
 */
#ifndef ACCT_EXCHANGE_STRIP_H
#define ACCT_EXCHANGE_STRIP_H

#include "exchange_law.h"
#include "soft_threshold.h"

/* Re x in [x0, x1], x0 >= 0, and L, U and W at its ends */
typedef struct {
    double x0, x1;
    acct_exchange_point p0, p1;
} acct_exchange_cell;

/* the next cell; from the given one, or the first if its x1 is 0; the loss grows little beside scale or itself, and
 * the cell is at most about `widest` wide */
void acct_exchange_cell_next(const acct_exchange_law *law, double scale, double widest,
                             acct_exchange_cell *c);

/* posterior probability of the shift of U, at x */
double acct_exchange_posterior(const acct_exchange_law *law, double x);

/* -log of the least modulus of 1 - p + p e^{it}, |t| <= turn < pi, p the posterior probability of the shift */
double acct_exchange_lost_modulus(double p, double turn);

/* of the posterior probabilities on a cell the one that is nearest to 1/2 */
double acct_exchange_middle_posterior(const acct_exchange_law *law, const acct_exchange_cell *c);

/* the bounds of acct_threshold_bounds for the loss L on a cell, |Im x| <= turn/mu; 0 where there are none */
int acct_exchange_cell_bounds(const acct_exchange_law *law, acct_threshold threshold,
                              const acct_exchange_cell *c, double turn, double *above, double *below);

/* the same for U in place of L, and for all x < 0 */
int acct_exchange_cell_large(const acct_exchange_law *law, acct_threshold threshold,
                             const acct_exchange_cell *c, double turn, double *above, double *below);
int acct_exchange_left_large(const acct_exchange_law *law, acct_threshold threshold, double turn,
                             double *above, double *below);

#endif
