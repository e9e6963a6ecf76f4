/* Working memory and lines for a composition of different parts: shared by heterogeneous.c and odometer.c. */
#ifndef ACCT_HETEROGENEOUS_WORKSPACE_H
#define ACCT_HETEROGENEOUS_WORKSPACE_H

#include "domain.h"
#include "heterogeneous_sum.h"
#include "heterogeneous_search.h"
#include "noise_table.h"

/* the least relative error of delta that a line for many parts is asked for */
#define ACCT_HETEROGENEOUS_LEAST_TOLERANCE 1e-13

/* with more steps in all, no path is tried */
#define ACCT_MOST_STEPS_OF_PATHS 5000.0

typedef struct {
    int64_t cell;
    acct_part part;
} acct_keyed_part;

typedef struct {
    const acct_part *part;
    int count, direction;
    int mixed; /* whether a part has a random shift */
    int far; /* whether a line may take longer: it did not work without */
    double steps; /* of all parts */
    double most_points; /* of a line */
    double most_work; /* points times nodes of one part */
    /* searches look at one part for each group of parts of about the same q and sigma */
    acct_keyed_part *keyed;
    acct_part *group;
    acct_coarse *coarse; /* one a group */
    double *nodes; /* theirs */
    int groups;
    acct_tilted_law law, scratch;
    acct_characteristic_sum cf;
    acct_heterogeneous_sum sums;
    acct_noise_tables tables; /* of the line that was started last */
    acct_contour contour;
    double *block;
} acct_heterogeneous_workspace;

/* whether the arguments are in their domains; sets *steps to the sum over the parts */
int acct_heterogeneous_valid(const acct_part *parts, int count, int direction, double *steps);

int acct_heterogeneous_alloc(acct_heterogeneous_workspace *w, const acct_part *parts, int count,
                             int direction, double steps);
void acct_heterogeneous_free(acct_heterogeneous_workspace *w);

/* The searches, plain floating point: any line gives valid bounds. */

/* joins the first `count` parts into groups; sets the coarse laws that searches read */
void acct_heterogeneous_set_groups(acct_heterogeneous_workspace *w, int count);
void acct_heterogeneous_set_coarse(acct_heterogeneous_workspace *w, double log_delta, double most_loss);

/* makes a placed line reach to y_least at least; ACCT_EPRECISION where that takes too many points */
int acct_heterogeneous_lengthen(const acct_heterogeneous_workspace *w, double y_least,
                                acct_heterogeneous_plan *plan);

/* places a line for the groups near epsilon, at least to y_least */
int acct_heterogeneous_place(acct_heterogeneous_workspace *w, double epsilon, double log_delta,
                             double tolerance, double y_least, acct_heterogeneous_plan *plan);

/* starts a line at the plan, and tables for many parts of one q that are to be added to it */
int acct_heterogeneous_start(acct_heterogeneous_workspace *w, const acct_heterogeneous_plan *plan,
                             const acct_part *part, int count);

/* adds a part, by a table that holds it or by nodes of its own */
int acct_heterogeneous_add(acct_heterogeneous_workspace *w, const acct_part *part);

/* starts a line at the plan and adds the parts to it */
int acct_heterogeneous_add_all(acct_heterogeneous_workspace *w, const acct_heterogeneous_plan *plan,
                               const acct_part *part, int count);

/* builds w->contour for the first `count` parts near epsilon, where the profile is about
 * e^{log_delta} */
int acct_heterogeneous_build(acct_heterogeneous_workspace *w, int count, double epsilon, double log_delta,
                             double tolerance);

#endif
