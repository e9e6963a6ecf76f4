/* Where the sums over a path need nodes when some steps count as large (docs/theorems_mixtures.md, Theorem D27).
 *
 * With E = U - log(1 - q) > 0 and t = 1 - e^{-(E/scale)^2} a step counts as large with the chance t^m, m = 128, of the
 * split's outer threshold.  It is next to nothing for x < 0, whatever the loss is there.
 */
#ifndef ACCT_EXCHANGE_LARGE_H
#define ACCT_EXCHANGE_LARGE_H

#include "exchange_path.h"

#define ACCT_EXCHANGE_LARGE_DOUBLINGS 7

/* turns of the whole strip, at most; the moduli of W then fall by less than it is above log(1 - q) */
#define ACCT_EXCHANGE_MOST_TURN 1.2

/* sets     *nodes for the order c > 1 and a strip of the given turn: what is left out of A(c), of about e^{log_mgf}, is
 *          below e^{-digits} of it, and of the large steps' masses below e^{log_mass}
 * requires memory for ACCT_EXCHANGE_LARGE_DOUBLES, overwritten
 * returns  0 where there is no bound */
#define ACCT_EXCHANGE_LARGE_CELLS 4000
#define ACCT_EXCHANGE_LARGE_DOUBLES (2 * ACCT_EXCHANGE_LARGE_CELLS)
int acct_exchange_nodes_set(acct_exchange_nodes *nodes, double *memory, const acct_exchange_law *law,
                            const acct_exchange_split *split, double c, double turn, double log_mgf,
                            double log_mass, double digits);

#endif
