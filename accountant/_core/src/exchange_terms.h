/* The terms of a line for replace-one steps with some middling loss (Theorem D24). */
#ifndef ACCT_EXCHANGE_TERMS_H
#define ACCT_EXCHANGE_TERMS_H

#include "contour.h"
#include "exchange_path.h"

/* (re, im) = E[e^{iy(L - mean)}] - 1 of one step; returns a bound on the modulus of its error */
typedef double (*acct_exchange_transform)(const void *par, double y, double *re, double *im);

/* sets     amplitudes, phases and the bound on their errors of a contour whose points and steps are set; the terms
 *          are of the n-th power of the transform */
void acct_exchange_terms(acct_contour *contour, acct_exchange_transform transform, const void *par);

/* the same with middling losses
 * requires a path with a split */
void acct_exchange_split_terms(acct_contour *contour, const acct_exchange_path *path);

#endif
