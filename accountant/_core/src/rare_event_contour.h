/* Rare events: a contour for the outcomes with a middling loss but no large one (Theorem 15).
 *
 * Where the record is probably never sampled, the transform has a part that hardly decays: the
 * outcomes whose steps all have a tiny loss.  They contribute next to nothing to the profile.  Outcomes
 * with one loss far beyond epsilon make the line's integrand huge, and their share is known exactly.
 * Two soft thresholds of the loss (soft_threshold.h) make every step small, middling or large; with
 *     A = B + C,   B: small,   C: middling,
 * A^n - B^n is the transform of the positive measure of outcomes without a large step and with a
 * middling one, and decays like C.  The contribution of B^n is bounded by Chernoff,
 * that of the outcomes with a large step is the tail event of tail_event.h.
 */
#ifndef ACCT_RARE_EVENT_CONTOUR_H
#define ACCT_RARE_EVENT_CONTOUR_H

#include "contour.h"

/* builds the rare-event contour of the remove direction near problem->epsilon, which may be negative; of
 * the window only the lower end is used
 * returns ACCT_EPRECISION if no pair of thresholds leaves a usable one */

int acct_rare_event_contour_build(acct_contour *contour, acct_tilted_law *law, acct_tilted_law *scratch,
                                  double *memory, const acct_problem *problem, double log_delta,
                                  double tolerance);

#endif
