/* The part of A(c) - 1 below a point where so rare a shift is still far from likely (Theorem 12, rare shifts). */
#ifndef ACCT_RENYI_BULK_H
#define ACCT_RENYI_BULK_H

#include "bounds.h"
#include "loss.h"

/* Sampling probabilities below it have a bulk of their own: there the panels of a law, whose errors are relative
 * to N, would have to be relative to q^2 N. */
#define ACCT_RARE_RATE 1e-20

/* the point up to which q e^u <= 1e-14 / (|c| + 2) */
double acct_renyi_bulk_end(const acct_step *step, double c);

/* sets *out to a bracket of int N G over x <= end, end that of acct_renyi_bulk_end · requires q (|c| + 2) < 1e-17 */
void acct_renyi_bulk(const acct_step *step, double c, double end, acct_bounds *out);

#endif
