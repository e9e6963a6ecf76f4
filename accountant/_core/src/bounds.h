/* A bracket of an unknown number, and the operations on brackets. */
#ifndef ACCT_BOUNDS_H
#define ACCT_BOUNDS_H

#include "rounding.h"

/* lower <= truth <= upper; upper may be +inf */
typedef struct {
    double lower;
    double upper;
} acct_bounds;

/* ensures the truth stays inside *a if it is at least `lower` and at most `upper`; exact */
static inline void acct_bounds_intersect(acct_bounds *a, double lower, double upper) {
    if (lower > a->lower) a->lower = lower;
    if (upper < a->upper) a->upper = upper;
}

/* the bracket of the larger of two quantities; exact */
static inline acct_bounds acct_bounds_larger(acct_bounds a, acct_bounds b) {
    return (acct_bounds){acct_max(a.lower, b.lower), acct_max(a.upper, b.upper)};
}

/* whether the bracket is finite and no wider than `relative` times its upper end; for searches */
static inline int acct_bounds_are_narrow(const acct_bounds *b, double relative) {
    return b->upper < INFINITY && b->upper - b->lower <= relative * b->upper;
}

#endif
