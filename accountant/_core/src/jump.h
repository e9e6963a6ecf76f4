/* What the contour leaves out: outcomes in which some step's noise lies above the window.
 *
 * Let x_c be the window's upper end and mu the law of the n steps on the event that at least one
 * x_i > x_c.  Its share of the profile is, by put-call parity,
 *     int (1 - e^{eps - L})_+ dP = P(mu) - e^eps Q(mu) + int (e^eps - e^L)_+ dQ,
 * the masses in closed form; the put needs the other steps to undo the jump and is bounded by
 * Chernoff (docs/theorems.md, Theorem 3).
 */
#ifndef ACCT_JUMP_H
#define ACCT_JUMP_H

#include "cut.h"
#include "subsampled_gaussian.h"
#include "tilt.h"

typedef struct {
    int direction;
    double steps;
    double q_mass;   /* Q^n(mu) */
    double pq_mass;  /* P^n(mu) - Q^n(mu) */
    double mass_err; /* relative error of both */
    double outside;  /* mass below the window: upper bound, either law */
    double put_log, put_slope; /* put(eps) <= exp(put_log + put_slope * eps) */
} acct_jump;

/* reads the window off the grid; epsilon places the Chernoff bound,
 * unless put_order > 0 does.  Without `certify` (searches)
 * the grid's own errors are left out.  Overwrites grid->weight. */
void acct_jump_set(acct_jump *jump, acct_grid *grid, double steps, int direction, double epsilon,
                   double put_order, int certify);

/* the same for outcomes with some step above the outer cut or the window (Theorem 15); the grid must
 * have been set for that cut; plain: for the transform at -put_order, overwritten */
void acct_jump_cut(acct_jump *jump, const acct_grid *grid, acct_grid *plain, const acct_cuts *cuts,
                   double steps, double put_order);

/* the bracket of this share at epsilon */
void acct_jump_profile(const acct_jump *jump, double epsilon, acct_bounds *out);

#endif
