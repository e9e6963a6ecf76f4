/* Cumulants of many parts in plain floating point, to place lines: nothing here is rigorous. */
#ifndef ACCT_HETEROGENEOUS_SEARCH_H
#define ACCT_HETEROGENEOUS_SEARCH_H

#include <stdint.h>

#include "gauss_legendre.h"
#include "domain.h"
#include "saddle_point.h"

#define ACCT_COARSE_PANELS 4
#define ACCT_MOST_COARSE_PANELS 32
#define ACCT_MOST_COARSE_NODES (ACCT_MOST_COARSE_PANELS * ACCT_GL_ORDER)

/* one part on a few panels of its window */
typedef struct {
    double steps;
    double lo, hi, q_above, pq_above; /* the window; Q and P - Q beyond it */
    double loss_hi;
    double plain; /* a plain Gaussian: steps / sigma^2, and no nodes */
    int lowered; /* whether outcomes above the window belong to the tail event */
    int nodes;
    double *loss, *gauss, *log_gauss, *exp_loss, *e2_plus, *e2_minus; /* in the caller's memory */
} acct_coarse;

#define ACCT_COARSE_ARRAYS 6

/* nodes that the part takes: more where its shifts are far apart */
int acct_coarse_nodes(const acct_part *part);

/* arrays in the caller's memory, ACCT_COARSE_ARRAYS * nodes doubles */
void acct_coarse_place(acct_coarse *coarse, double *memory, int nodes);

/* parts [0, count) in one direction */
typedef struct {
    const acct_coarse *part;
    int count, direction;
} acct_coarse_composition;

/* the window of a part: `deviations` of its noise on either side, and no losses above `most_loss` (remove) */
acct_window acct_part_window(const acct_part *part, int direction, double deviations, double most_loss);

/* which cell of relative size 1/12 in q and sigma a part is in, and in the first two moments of a random
 * shift; all plain Gaussians are in one cell */
int64_t acct_part_cell(const acct_part *part);

/* requires acct_coarse_place with acct_coarse_nodes(part) */
void acct_coarse_set(acct_coarse *coarse, const acct_part *part, const acct_window *window);

/* an acct_cumulants_fn; par is an acct_coarse_composition */
void acct_coarse_cumulants(void *par, double b, acct_cumulants *out);

/* log of Chernoff's bound on the reverse term at order -m, e^{(m+1) eps} left out (heterogeneous_sum.h) */
double acct_coarse_reverse(const acct_coarse_composition *composition, double m);

/* variance of the losses below `most` under Q */
double acct_coarse_variance(const acct_coarse_composition *composition, double most);

/* sets weight[0 .. coarse->nodes) to the law tilted to order c; sum 1 */
void acct_coarse_weights(const acct_coarse *coarse, double c, double *weight);

/* deviation of the bulk of one step's tilted loss, in the mean over steps; 0 if all parts are plain */
double acct_coarse_bulk(const acct_coarse_composition *composition, double b);

/* whether some part's law, tilted to b, reaches the upper end of its window: share of the last node */
double acct_coarse_reach(const acct_coarse_composition *composition, double b);

void acct_heterogeneous_saddle(acct_coarse_composition *composition, enum acct_target kind, double target,
                               acct_saddle *out);

#endif
