/* What the nodes of a rare-event contour's path add to its two transforms (Theorem 15). */
#ifndef ACCT_RARE_EVENT_NODES_H
#define ACCT_RARE_EVENT_NODES_H

#include "soft_threshold.h"
#include "tilted_law.h"

/* Arrays over nodes x + i eta.  Some describe a node before acct_rare_event_nodes_weigh and hold something else after
 * it, for which both are named. */
typedef struct {
    double *l_re, *l_im;   /* L there; then L less the mean */
    double *w_re, *w_im;   /* log |N| but for its constant, (eta^2 - x^2) / (2 sigma^2), and arg of N, -x eta / sigma^2,
                            * and of the path's direction; then the tilted weights times the chance of being below the
                            * outer threshold */
    double *c_re, *c_im;   /* L(x), and nothing; then the weights of being between the thresholds */
    double *size, *large;  /* the quadrature weight over sigma sqrt(2 pi), and nothing; then bounds on both moduli
                            * that do not cancel */
    double *rest;          /* then a bound on |w - c|, of being below the inner threshold */
    double *w_err, *c_err; /* nothing, and x^2 / (2 sigma^2); then absolute errors of both weights */
    double *moved;         /* what bounds the error of L(x) and half of that of L; then absolute error of L */
    double *spare[2];      /* overwritten */
} acct_rare_event_nodes;

/* Weighs so many nodes: tilted weights over A(c), c = m->order, times the chances.
 * requires the doublings ACCT_OUTER_DOUBLINGS and ACCT_INNER_DOUBLINGS
 * error    beyond the ranges of vmath.h a weight is its own error, or a NaN or infinite */
void acct_rare_event_nodes_weigh(const acct_rare_event_nodes *nodes, int count, const acct_moments *m,
                                 const acct_thresholds *thresholds);

#endif
