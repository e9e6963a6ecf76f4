/* The outcomes that the contour leaves out: those in which some step's noise lies above the window.
 *
 * Let E be that event for n steps.  Since (a)_+ = a + (-a)_+, its share of the profile is
 *     int_E (1 - e^{eps - L})_+ dP = P(E) - e^eps Q(E) + int_E (e^eps - e^L)_+ dQ.
 * The masses have closed forms.  The last integral, the *reverse term*, is a hockey-stick divergence of the
 * reversed pair: it needs the other steps' losses to bring the total below eps, and Chernoff's bound at an
 * order -m < 0 shows that it is tiny (docs/theorems.md, Theorem 3).
 */
#ifndef ACCT_TAIL_EVENT_H
#define ACCT_TAIL_EVENT_H

#include "bounds.h"
#include "domain.h"
#include "tilted_law.h"

typedef struct {
    int direction;
    double steps;
    double q_mass;   /* Q^n(E) */
    double pq_mass;  /* P^n(E) - Q^n(E) */
    double mass_err; /* relative error of both */
    double lost;     /* what underflow moves both by, at most */
    double outside;  /* mass below the window: upper bound, either law */
    double reverse_log, reverse_slope; /* reverse term <= exp(reverse_log + reverse_slope * eps) */
    double reverse_order, log_mgf; /* order and log A of one step that acct_tail_event_set made it of */
    /* what all numbers of steps share: the loss at the window's upper end, Chernoff's factor at the reverse order, and
     * log(1 - q) and log(1 - pq/(1 - q)) of one step's masses above it */
    double loss_hi, reverse_front, log_stay, log_stay_ratio;
} acct_tail_event;

/* What underflow moves the masses of `steps` steps by, at most: two values of exp or erfc and three products
 * for each shift, and for each of the `nodes` of a sum that they are. */
double acct_tail_event_lost(const acct_tilted_law *law, double steps, int nodes);

/* reads the window off the law; epsilon places the Chernoff bound,
 * unless reverse_order > 0 does.  Without `certify` (searches)
 * the law's own errors are left out.  May overwrite law->weight. */
void acct_tail_event_set(acct_tail_event *tail, acct_tilted_law *law, double steps, int direction,
                         double epsilon, double reverse_order, int certify);

/* what acct_tail_event_set has set, for another number of steps; reads the same law */
void acct_tail_event_for_steps(acct_tail_event *tail, const acct_tilted_law *law, double steps);

/* the same for outcomes with some step above the outer threshold or the window (Theorem 15); the law must
 * have been set for that threshold; plain: for the transform at -reverse_order, overwritten */
void acct_tail_event_set_thresholded(acct_tail_event *tail, const acct_tilted_law *law,
                                     acct_tilted_law *plain, const acct_thresholds *thresholds, double steps,
                                     double reverse_order);

/* Where there is always a shift, losses have no lower bound, and the event is that some step lies above and none
 * below the window (Theorem D26): at most this share of either law's mass of the whole event is left out.  0 for
 * other steps. */
double acct_below_share(const acct_tilted_law *law, double steps);

/* the bracket of this share at epsilon */
void acct_tail_event_profile(const acct_tail_event *tail, double epsilon, acct_bounds *out);

#endif
