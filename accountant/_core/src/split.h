/* Rare events: a contour for the outcomes with a middling loss but no large one (Theorem 15).
 *
 * Where the record is probably never sampled, the transform has a part that hardly decays: the
 * outcomes whose steps all have a tiny loss.  They contribute next to nothing to the profile.  Outcomes
 * with one loss far beyond epsilon make the line's integrand huge, and their share is known exactly.
 * Two smooth cuts of the loss (cut.h) make every step small, middling or large; with
 *     A = B + C,   B: small,   C: middling,
 * A^n - B^n is the transform of the positive measure of outcomes without a large step and with a
 * middling one, and decays like C.  What B^n contributes is bounded by Chernoff, what has a large step
 * is put-call parity as in jump.h.
 */
#ifndef ACCT_SPLIT_H
#define ACCT_SPLIT_H

#include "contour.h"

/* builds the split contour of the remove direction near problem->epsilon, which may be negative; of
 * the window only the lower end is used
 * returns ACCT_EPRECISION if no split leaves a usable one */

int acct_split_build(acct_contour *contour, acct_grid *grid, acct_grid *scratch, double *memory,
                     const acct_problem *problem, double log_delta, double tolerance);

#endif
