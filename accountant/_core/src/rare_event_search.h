/* Searches for the thresholds and the line of a rare-event contour.  They are not rigorous. */
#ifndef ACCT_RARE_EVENT_SEARCH_H
#define ACCT_RARE_EVENT_SEARCH_H

#include "thresholded_law.h"

typedef struct {
    const acct_step *step;
    acct_tilted_law *law;
    double *spare;     /* eight arrays of ACCT_MAX_NODES for the search */
    double steps, epsilon, log_delta, tolerance;
    double log_wanted; /* log of the error of delta that each source may have */
    acct_thresholds thresholds;
    double unit;       /* distance to be covered by large losses: epsilon less the mean of the small */
    double least;      /* epsilon, or unit where epsilon is not above 0 */
    double reverse_order;  /* order of the reverse term's Chernoff bound */
    double reverse_log;    /* log of what multiplies int (1 - chi) N e^{-reverse_order L} in its bound */
    double b_small;    /* for the outcomes below the inner one */
    double b, b_right, b_left; /* the line and its aliases' orders; b_left = 0: by the mass */
    double log_right, log_left; /* about log C at both */
} acct_rare_event_plan;

/* log of an upper bound on the transform of the outcomes with a middling loss but no large one at order 1 + b, if
 * the plan's law was set for both thresholds: A^n - B^n <= n C A^{n-1} */
double acct_rare_event_log_mgf_upper(acct_rare_event_plan *s, double b);

/* both thresholds' chances at the nodes of the plan's law */
void acct_rare_event_set_thresholds(acct_rare_event_plan *s);

/* sets thresholds, orders and the window, whose lower end is lo; overwrites the plan's law
 * returns ACCT_EPRECISION where no pair of thresholds looks good enough */
int acct_rare_event_search(acct_rare_event_plan *s, double lo, acct_window *window);

#endif
