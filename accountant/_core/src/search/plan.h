/* Searches for the window and the line of one question.  They are not rigorous. */
#ifndef ACCT_PLAN_H
#define ACCT_PLAN_H

#include <stddef.h>

#include "contour.h"
#include "saddle_point.h"

typedef struct {
    acct_tilted_law law, scratch;
    acct_characteristic_sum cf;
    acct_contour contour;
    double least_steps;   /* a line is to be read for as few steps as this; 0: only for its own number */
    double *rare_memory; /* cf's arrays; a rare-event contour uses them for its own sums */
    double *block;        /* all of the above in one allocation */
} acct_workspace;

/* room for so many nodes, at least ACCT_MAX_NODES; for more, and for more points, if a shift is random */
int acct_workspace_alloc(acct_workspace *w, int nodes);

/* the same in the caller's memory of so many doubles; sets no block */
size_t acct_workspace_doubles(int nodes);
void acct_workspace_place(acct_workspace *w, double *memory, int nodes);
void acct_workspace_free(acct_workspace *w);

/* the window of the noise that matters where delta is about e^{log_delta} */
acct_window acct_plan_window(const acct_step *step, double steps, int direction, double log_delta);

/* builds w->contour for the profile near epsilon, where it is about e^{log_delta};
 * tolerance: wanted relative error of delta; hint: the saddle point at epsilon if w->grid still holds
 * the coarse nodes on acct_plan_window with the weights of that saddle point, or NULL */
int acct_plan(acct_workspace *w, const acct_step *step, double steps, int direction, double epsilon,
              double log_delta, double tolerance, const acct_saddle *hint);

#endif
