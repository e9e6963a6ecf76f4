/* The transform of the tilted loss at equally spaced points of a vertical line.
 *
 * With the tilted law T of order c, its computed mean m and l = L - m:
 *     A(c+iy)/A(c) = e^{iym} (1 + V(y)),   V(y) = iy E_T[l] + E_T[v(y l)],   v(t) = e^{it} - 1 - it.
 * v is second order, so V keeps its relative accuracy when the loss of one step is tiny and the
 * steps are many.  On y_k = k dy it obeys a recurrence (d_k = e^{ikt} - 1):
 *     d_{k+1} = d_k + d_1 + d_k d_1,        v_{k+1} = v_k + v_1 + d_k d_1,
 * restarted from sin and cos every ACCT_BLOCK steps.
 */
#ifndef ACCT_LINE_H
#define ACCT_LINE_H

#include "tilt.h"

#define ACCT_BLOCK 16

typedef struct {
    int count;      /* nodes */
    double dy;      /* at most 24 significant bits, so that k dy is exact */
    double *loss;   /* l_j */
    double *weight; /* tilted weights */
    double *weight_err, *loss_err; /* relative error of the weight; absolute error of l */
    double *d1_re, *d1_im;                   /* e^{i dy l} - 1 */
    double *wd1_re, *wd1_im, *wv1_im; /* weight times d_1, and the imaginary part of v_1 */
    double *wd_re, *wd_im, *wv_im;    /* weight times the current d_k, v_k */
} acct_line;

/* arrays in the caller's memory, ACCT_LINE_ARRAYS * capacity doubles */
#define ACCT_LINE_ARRAYS 12
void acct_line_place(acct_line *line, double *memory, int capacity);

/* copies weights and losses of the grid's last moments into the line */
void acct_line_set(acct_line *line, const acct_grid *grid, const acct_moments *m);

/* fixes the step; requires acct_line_set */
void acct_line_step(acct_line *line, double dy);

/* sets re[i] + i im[i] = sum of weight * v(y_k l), k = first + i, for i < n <= ACCT_BLOCK;
 * ensures the round-off of each (weights, losses and recurrence) is at most the returned value */
double acct_line_block(acct_line *line, long first, int n, double *re, double *im);

#endif
