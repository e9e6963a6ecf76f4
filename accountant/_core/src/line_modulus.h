/* A bound on the profile by the moduli along one vertical line (Theorem 20): no phases, no points, no aliases.
 *
 * At the saddle point phases only set in with the third power of y, so that little is lost; Chernoff's bound, the
 * maximum of the modulus, loses a factor.
 */
#ifndef ACCT_LINE_MODULUS_H
#define ACCT_LINE_MODULUS_H

#include "cf_decay.h"

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
