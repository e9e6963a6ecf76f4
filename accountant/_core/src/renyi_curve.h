/* One step's Rényi divergence in the caller's memory: shared by renyi.c and renyi_conversion.c. */
#ifndef ACCT_RENYI_CURVE_H
#define ACCT_RENYI_CURVE_H

#include "bounds.h"
#include "tilted_law.h"

/* sets     *out to a bracket of the divergence of one step at order > 1, in either direction or the larger
 * returns  ACCT_EPRECISION where the sum cannot be certified (too many pieces); overwrites the law */
int acct_renyi_with(acct_tilted_law *law, const acct_step *step, double order, int direction,
                    acct_bounds *out);

#endif
