/* A bracket of an unknown number, and the operations on brackets. */
#ifndef ACCT_BOUNDS_H
#define ACCT_BOUNDS_H

#include "rounding.h"

/* Status codes shared by every entry point of the native core. */
enum acct_status {
    ACCT_OK = 0,
    ACCT_EDOMAIN = -1,    /* an argument outside its stated domain (callers check first) */
    ACCT_ENOMEM = -2,     /* no memory for the workspace */
    ACCT_EPRECISION = -3, /* no certified answer at any width was reached */
    ACCT_EUNBOUNDED = -4, /* no least, or no largest, answer exists: every one meets the target */
    ACCT_ESTOPPED = -5    /* a function of the caller's asked for the end of a search */
};

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
