/* The terms of a line for replace-one steps with some middling loss (Theorem D24). */
#ifndef ACCT_EXCHANGE_TERMS_H
#define ACCT_EXCHANGE_TERMS_H

#include "contour.h"
#include "exchange_path.h"

/* sets     amplitudes, phases and the bound on their errors of a contour whose points and steps are set
 * requires a path with a split */
void acct_exchange_split_terms(acct_contour *contour, const acct_exchange_path *path);

#endif
