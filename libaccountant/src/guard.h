/* What stands around every public function: the floating-point environment, and a last look at the answer. */
#ifndef ACCOUNTANT_GUARD_H
#define ACCOUNTANT_GUARD_H

#include <math.h>

#include "accountant.h"
#include "bounds.h"
#include "environment.h"

/* the numbers that a caller gets where there is no answer */
#define NO_EPSILON ((acct_bounds){0.0, INFINITY})
#define NO_DELTA ((acct_bounds){0.0, 1.0})

/* A crossed bracket, or a NaN, is a defect of the core. It never leaves as an answer. */
static inline int guard_bracket(int status, acct_bounds found, acct_bounds nothing, accountant_bounds *out) {
    if (status == ACCT_OK && !(found.lower <= found.upper)) status = ACCT_EPRECISION;
    if (status != ACCT_OK) found = nothing;
    *out = (accountant_bounds){found.lower, found.upper};
    return status;
}

#endif
