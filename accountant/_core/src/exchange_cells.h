/* Upper sums over the real noise of a replace-one step (docs/theorems_mixtures.md, Theorem D27).
 *
 * The noise is cut into many small cells.  In each, L and U are at most their values at the right end, W and the
 * chance of not being large at most theirs at the left end, so that sums over the cells are above the integrals, by a
 * factor that matters nowhere these are used: in bounds on aliases and on the reverse term.
 */
#ifndef ACCT_EXCHANGE_CELLS_H
#define ACCT_EXCHANGE_CELLS_H

#include "exchange_split.h"

#define ACCT_EXCHANGE_CELLS 6144
#define ACCT_EXCHANGE_CELL_ARRAYS 11
#define ACCT_EXCHANGE_CELL_DOUBLES (ACCT_EXCHANGE_CELL_ARRAYS * (ACCT_EXCHANGE_CELLS + 1))

typedef struct {
    const acct_exchange_law *law; /* mu, q */
    int count, lowest;            /* cells; the first one that is not below the window */
    double *x, *loss, *up, *down; /* at the edges */
    double *mass;                 /* upper bound on N of a cell */
    double *log_large,
        *log_stay; /* at the edges: logs of the chance of being large, and of that of not being */
    double *theta;                /* mean place of N in a cell, 0 to 1; -1 where it is not known */
    double *loss_bend, *down_bend; /* how far L and W may be off their chords */
    double *log_small;            /* at the edges: the log of the chance of being small */
    double outer, inner;          /* scales of the thresholds */
} acct_exchange_cells;

/* sets  edges from -(mu + 14) to where the noise is negligible and beyond */
void acct_exchange_cells_set(acct_exchange_cells *cells, double *memory, const acct_exchange_law *law);

/* sets  the chances, for an outer threshold, and the window's lower end such that n Q{x < lo} < least */
void acct_exchange_cells_threshold(acct_exchange_cells *cells, acct_threshold outer, double steps,
                                   double least);

/* ensures  A(c) - 1 <= returned, c >= 1, without large steps */
double acct_exchange_cells_excess(const acct_exchange_cells *cells, double c);

/* sets  the chances of being small, for an inner threshold of the loss
 * then  B(c) - 1 <= returned, c >= 1: the transform of the small steps */
void acct_exchange_cells_inner(acct_exchange_cells *cells, acct_threshold inner);
double acct_exchange_cells_small(const acct_exchange_cells *cells, double c);

/* ensures  log C(c) <= returned, c >= 1, without large steps; inner: of the loss */
double acct_exchange_cells_middling(const acct_exchange_cells *cells, acct_threshold inner, double c);

/* Log of Chernoff's bound on the reverse term at the order -m, n steps, without its dependence e^{(m+1) eps}: some
 * step is large, none below the window. */
double acct_exchange_cells_reverse(const acct_exchange_cells *cells, double steps, double m);

/* about the profile of one step; for searches */
double acct_exchange_cells_single(const acct_exchange_cells *cells, double epsilon);

/* the mean of the loss and the most likely noise at the order c without large steps; for searches */
void acct_exchange_cells_mean(const acct_exchange_cells *cells, double c, double *mean, double *mode);

#endif
