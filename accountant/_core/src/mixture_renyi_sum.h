/* The trapezoid sum of N e^{cL}, or of its part of second order, over the whole line (Theorem D20). */
#ifndef ACCT_MIXTURE_RENYI_SUM_H
#define ACCT_MIXTURE_RENYI_SUM_H

#include "shift_law.h"

typedef struct {
    const acct_shift_law *law;
    double c; /* order of the transform, outside [0, 1] */
    double t; /* its distance from [0, 1]; relative error u */
    int plain; /* the sum is of N e^{cL}, else of N (e^{cL} - 1 - c (e^L - 1)) */
    double shift; /* sums are in units of e^{shift}; 0 unless plain */
    double floor; /* log of the absolute error to aim at, in those units */
    double h;     /* spacing of the nodes k h, which are exact */
    double sum;
    double round;     /* bound on the round-off of the sum */
    double most;      /* the largest relative error of a term */
    double left_out;  /* bound on the terms that are not in the sum */
    double nodes;     /* how many terms are in it */
    double work, most_work; /* exponentials so far, and how many there may be */
} acct_renyi_sum;

/* sets     sum, round, most, left_out, nodes, work
 * requires the other members; mode: where N e^{cL} is largest, roughly
 * returns  0 where the work, or the nodes' size, is beyond bounds */
int acct_renyi_sum_run(acct_renyi_sum *s, double mode);

#endif
