/* Lines for replace-one steps whose largest losses are apart (docs/theorems_mixtures.md, Theorem D27).
 *
 * A step counts as large with a chance that is next to nothing up to about the epsilon asked for.  Outcomes with a
 * large step are counted by their masses, the others by a line, on which orders may be as high as they please.
 */
#ifndef ACCT_EXCHANGE_RARE_H
#define ACCT_EXCHANGE_RARE_H

#include "contour.h"
#include "exchange_cells.h"
#include "exchange_decay.h"
#include "exchange_path.h"

typedef struct {
    double steps;
    double epsilon, log_delta; /* where a line is wanted, and about the answer there */
    double fine;               /* log of the relative error of delta aimed at */
    acct_exchange_law bare;    /* mu and q alone */
    acct_exchange_cells cells;
    acct_exchange_split split;
    acct_exchange_path path;
    acct_exchange_large large;
    acct_exchange_decay decay;
    acct_contour *contour; /* the caller's; amplitude and phase hold ACCT_MIXTURE_POINTS */
    double *path_memory;
    double reverse_order;
} acct_exchange_rare;

/* sets  *rare; path_memory, ACCT_EXCHANGE_PATH_DOUBLES, cell_memory, ACCT_EXCHANGE_CELL_DOUBLES, and contour are the
 *       caller's */
void acct_exchange_rare_set(acct_exchange_rare *rare, double mu, double q, double steps, double *path_memory,
                            double *cell_memory, acct_contour *contour);

/* about the epsilon of delta, by Chernoff's bound */
double acct_exchange_rare_guess(acct_exchange_rare *rare, double delta);

/* the line for epsilon and log_delta; with_small: all steps small add next to nothing, and are left out
 * returns 0 where there is none */
int acct_exchange_rare_line(acct_exchange_rare *rare, int with_small);

#endif
