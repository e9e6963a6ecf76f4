/* Smooth cuts of the loss: steps labelled small, middling or large at random, with probabilities that
 * are analytic in the noise (Theorem 15).
 *
 * With E = L - log(1 - q) > 0, t = 1 - e^{-(E/scale)^2} and m = 2^doublings a step counts as above the cut with probability
 * t^m, at most (E/scale)^{2m}, and below it with probability 1 - t^m <= m e^{-(E/scale)^2}.
 */
#ifndef ACCT_CUT_H
#define ACCT_CUT_H

#include <math.h>

#include "rounding.h"
#include "tilt.h"

/* bound on arg e^L where |Im x| <= theta sigma^2 and the density ratio at the real part is at most p */
double acct_loss_turn(double theta, double p);

/* bounds on the logs of |t^m| and |1 - t^m|, t = 1 - e^{-((L - origin)/scale)^2}, m = 2^doublings, where
 * Re L is in [low - modulus, high] and |Im L| <= arg; returns 0 where there are none */
int acct_cut_bounds(double low, double high, double modulus, double arg, acct_cut cut,
                    double *log_above, double *log_below);

/* sets what depends on the window's cuts; returns 0 where the ellipse admits no bounds */
int acct_cut_panel(acct_panel *panel, const acct_window *window, double p_hi);

/* whether the errors of a panel of a window with cuts are within e^{log_error} (acct_window) */
int acct_cut_fits(const acct_panel *p, const acct_window *window, const acct_step *step, double order,
                  double y_max, double log_error);

/* bounds on the quadrature errors of N, of N e^u and of N e^{-mL}, each times 1 - chi */
void acct_cut_above_errors(const acct_grid *grid, double m, double *of_one, double *of_exp_u,
                           double *of_put);

/* two cuts and what they give at a grid's nodes */
typedef struct {
    acct_cut outer, inner; /* the inner one at most half the outer one's scale */
    double *above_out, *share_out, *above_in, *share_in, *middle;
} acct_cuts;

/* at each loss the chance t^m of being above; that of being below is share * e^{-(E/scale)^2} */
void acct_cut_values(int count, const double *loss, acct_cut cut, double *above, double *share);

/* middle: the chance of being above the inner and below the outer cut, within 4 times the errors of either */
void acct_cut_between(int count, const double *loss, const acct_cuts *cuts, double *middle);

/* both chances at one complex loss */
void acct_cut_complex(double re, double im, acct_cut cut, double above[2], double below[2]);

/* relative errors of the chance of being above, and of being below, where E is off by `err`:
 * t^m moves by m t^{m-1} e^{-z} dz, z = (E/scale)^2, and 1 - t^m >= (1 - t) m t^{m-1} */
static inline double acct_cut_above_error(double e, acct_cut cut, double err) {
    const double z = e / cut.scale * (e / cut.scale), m = (double)(1 << cut.doublings);
    const double rate = z > 0.0 ? (z < 40.0 ? z / expm1(z) : 1e-15) : 1.0;
    return m * (16.0 * ACCT_U + (e > 0.0 ? 2.1 * rate * err / e : 0.0));
}

static inline double acct_cut_below_error(double e, acct_cut cut, double err) {
    const double z = e / cut.scale * (e / cut.scale), m = (double)(1 << cut.doublings);
    return (16.0 * m + 8.0 * z) * ACCT_U + 2.1 * z * err / (e > 0.0 ? e : 1.0);
}

/* A(c) = int chi N e^{cL} over the grid's window, chi the chance of being below the cut, c > 1;
 * certified if the panels were set for that cut as window->cut.  Leaves the tilted weights in
 * grid->weight. */
void acct_cut_moments(acct_grid *grid, const double *above, const double *share, acct_cut cut,
                      double order, int certify, acct_moments *out);

/* the log of an upper bound on the same A(c), which does not cancel where A(c) is far below 1 */
double acct_cut_below(const acct_grid *grid, const double *share, acct_cut cut, double order);

/* the log of int middle N e^{cL}; with `certify`, of an upper bound, if the panels were set for both */
double acct_cut_middle(const acct_grid *grid, const acct_cuts *cuts, double order, int certify);

#endif
