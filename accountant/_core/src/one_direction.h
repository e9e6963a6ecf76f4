/* Brackets of one direction of repeated equal steps, by contours alone.  The step may have a random shift. */
#ifndef ACCT_ONE_DIRECTION_H
#define ACCT_ONE_DIRECTION_H

#include "bounds.h"
#include "plan.h"

/* at least the probability 1 - (1-q)^n that the record is sampled at all: no delta is above it */
double acct_ever_sampled_upper(const acct_step *step, double steps);

/* at least both directions' profiles at epsilon = 0, of a plain step (no random shift); no more than 1 */
double acct_without_loss_upper(const acct_step *step, double steps);

/* sets     *out to a bracket of the profile at epsilon >= 0
 * ensures  out->lower <= delta(epsilon) <= out->upper; status ACCT_OK but for ACCT_ENOMEM */
int acct_delta_one_way(acct_workspace *w, const acct_step *step, double steps, double epsilon, int direction,
                       acct_bounds *out);

/* sets     *out to a bracket of epsilon(delta), [0, inf] where no contour certifies anything */
int acct_epsilon_one_way(acct_workspace *w, const acct_step *step, double steps, double delta, int direction,
                         acct_bounds *out);

/* Whether the add direction needs less than `epsilon` at `delta`: by Chernoff if that looks likely,
 * else by a contour; 0 says nothing */
int acct_add_is_below(acct_workspace *w, const acct_step *step, double steps, double epsilon, double delta);

#endif
