/* Where to put the cuts and the line of a split (split.h): searches, nothing rigorous. */
#ifndef ACCT_SPLIT_SEARCH_H
#define ACCT_SPLIT_SEARCH_H

#include <math.h>

#include "cut.h"

typedef struct {
    const acct_step *step;
    acct_grid *grid;
    double steps, epsilon, log_delta, tolerance;
    double log_wanted; /* log of the error of delta that each source may have */
    acct_cuts cuts;
    double unit;       /* how far the total loss must come: epsilon above what small ones add up to */
    double least;      /* epsilon, or unit where epsilon is not above 0 */
    double put_order;  /* for what undoes the jumps above the outer cut */
    double put_log;    /* log of what multiplies int (1 - chi) N e^{-put_order L} in its bound */
    double b_small;    /* for the outcomes below the inner one */
    double b, b_right, b_left; /* the line and its aliases' orders; b_left = 0: by the mass */
} acct_split_plan;

/* log of sup_v (1 - e^{-v}) e^{-bv} = b^b / (1+b)^{1+b} */
static inline double acct_log_chernoff(double b) {
    return b > 0.0 ? -log1p(b) - b * log1p(1.0 / b) : 0.0;
}

/* log of the transform of the outcomes with a middling loss but no large one at order 1 + b, or of an
 * upper bound if the plan's grid was set for both cuts: A^n - B^n <= n C A^{n-1} */
double acct_split_rare(acct_split_plan *s, double b, int certify);

/* the cuts at the nodes of the plan's grid */
void acct_split_cuts(acct_split_plan *s);

/* sets cuts, orders and the window, whose lower end is lo; overwrites the plan's grid
 * returns ACCT_EPRECISION where no split looks good enough */
int acct_split_search(acct_split_plan *s, double lo, acct_window *window);

#endif
