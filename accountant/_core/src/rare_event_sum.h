/* The transforms A and C of a rare-event contour (rare_event_contour.h) on its line of complex orders, summed over the
 * nodes of a path (rare_event_path.h). */
#ifndef ACCT_RARE_EVENT_SUM_H
#define ACCT_RARE_EVENT_SUM_H

#include "rare_event_nodes.h"

#define ACCT_RARE_EVENT_ARRAYS 20 /* times ACCT_MAX_NODES doubles */

#define ACCT_RARE_EVENT_MOMENTS 12
#define ACCT_RARE_EVENT_BLOCK 16

typedef struct {
    int count;
    double origin;           /* log(1 - q) - mean: the least L - mean */
    double *l_re, *l_im;     /* L - mean */
    double *w_re, *w_im;     /* tilted weights times the chance of being below the outer threshold */
    double *c_re, *c_im;     /* of being between the thresholds */
    double *size, *large;    /* bounds on the moduli of both that do not cancel */
    double *rest;            /* of the chance of being below the inner threshold */
    double *w_err, *c_err;   /* absolute errors of the weights */
    double *moved;           /* absolute error of L */
    double *z1_re, *z1_im;   /* e^{i dy l} */
    double *zb_re, *zb_im;   /* e^{i dy l} for as many steps as a block has */
    double *from_re, *from_im; /* e^{iyl} at the first point of the last block */
    double *z_re, *z_im;     /* at the current y */
    double dy;
    /* nodes below `low` by their moments about the origin, from `dead` on where e^{iyL} is gone */
    int low, dead, fresh;
    double m_re[ACCT_RARE_EVENT_MOMENTS], m_im[ACCT_RARE_EVENT_MOMENTS];
    double m_size[3];
    double dead_size, dead_large;
    /* the nodes below `small` have next to no weight in C, those from `equal` on the same in both; what that leaves
     * out */
    int small, equal;
    double left_out;
    /* the last block: its first point, its `low`, and how many blocks since e^{iyl} was computed anew */
    long block;
    int block_low, chained;
    double rest_re, rest_im, rest_l_re, rest_l_im; /* sums of w and of wl, all but the low ones */
} acct_rare_event_sum;

/* z1 and all that goes from one point to the next, dy further */
void acct_rare_event_sum_step(acct_rare_event_sum *rare, double dy);

/* at the points of a block: A e^{-iy mean}/A(c) - 1, and C likewise */
typedef struct {
    double ar[ACCT_RARE_EVENT_BLOCK], ai[ACCT_RARE_EVENT_BLOCK];
    double cr[ACCT_RARE_EVENT_BLOCK], ci[ACCT_RARE_EVENT_BLOCK];
} acct_rare_event_sums;

/* sets the sums at y = (first + i) dy, i < n; first increases from call to call; of_a, of_c: upper bounds on what is
 * left out */
void acct_rare_event_sum_block(acct_rare_event_sum *rare, long first, int n, acct_rare_event_sums *out,
                               double *of_a, double *of_c);

/* sum of the bounds on |C|'s terms times e^{-y Im L}: falls with y */
double acct_rare_event_sum_large(const acct_rare_event_sum *rare, double y);

/* round-off of both sums up to y (Theorems 8 and 15) */
void acct_rare_event_sum_roundoff(const acct_rare_event_sum *rare, double y, double *of_a, double *of_c);

#endif
