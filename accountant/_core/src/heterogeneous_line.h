/* The subsampled Gaussians of a smoothed line (smoothed_line.h): the product of their transforms at its nodes. */
#ifndef ACCT_HETEROGENEOUS_LINE_H
#define ACCT_HETEROGENEOUS_LINE_H

#include "domain.h"
#include "smoothed_line.h"

typedef struct {
    int direction;            /* of all parts */
    int direct;               /* whether sums without windows are made, of which the terms do for every node */
    double log_delta;         /* windows leave out outcomes that are rare beside it */
    double b, right_b, left_b; /* distances of the line, and of the bounds on its aliases */
    double dy;                /* between nodes, of 24 significant bits */
    double log_error;         /* log of the error wanted, where the product is 1 at c; only the width depends on it */
} acct_sampled_line;

/* Logarithms of the product at real orders, each within its error, and the outcomes that windows leave out, in full */
typedef struct {
    double log_mgf, log_mgf_err, right_log, right_err, left_log, left_err, outside;
} acct_sampled_orders;

/* sets      nodes->re, im, err, most for k = 0 .. kept - 1, kept <= room, and *orders; nodes->y and pruned are not set
 * ensures   beyond nodes that were not asked for the modulus is below ACCT_LINE_CUT where *decays
 * returns   a status: ACCT_EPRECISION where the transforms are not resolved */
int acct_heterogeneous_line(const acct_part *parts, int count, const acct_sampled_line *line, acct_line_nodes *nodes,
                            acct_sampled_orders *orders, int *decays);

/* sets  value[i] to about the logarithm of the product at the distance b[i], to place lines */
int acct_heterogeneous_line_logs(const acct_part *parts, int count, int direction, double log_delta, int64_t size,
                                 const double *b, double *value);

#endif
