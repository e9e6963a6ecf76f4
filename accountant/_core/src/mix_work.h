/* Working memory and lines for a composition of different parts: shared by mix.c and odometer.c. */
#ifndef ACCT_MIX_WORK_H
#define ACCT_MIX_WORK_H

#include "mix.h"
#include "mix_line.h"
#include "mix_search.h"

typedef struct {
    long cell;
    acct_part part;
} acct_located;

typedef struct {
    const acct_part *part;
    int count, direction;
    double steps;        /* of all parts */
    double most_points;  /* of a line */
    double most_work;    /* points times nodes of one part */
    /* searches look at one part for all that are alike */
    acct_located *located;
    acct_part *kind;
    acct_coarse *coarse; /* one a kind */
    int kinds;
    acct_grid grid;
    acct_line work;
    acct_mix_line line;
    acct_contour contour;
    double *block;
} acct_mix_work;


/* whether the arguments are in their domains; sets *steps to the sum over the parts */
int acct_mix_valid(const acct_part *parts, int count, int direction, double *steps);

int acct_mix_alloc(acct_mix_work *w, const acct_part *parts, int count, int direction, double steps);
void acct_mix_free(acct_mix_work *w);

/* The searches, plain floating point: any line gives valid bounds. */

/* beyond so many deviations of the noise steps * P(outside) is below 1e-14 of delta */
double acct_mix_deviations(double steps, double log_delta);

/* joins the first `count` parts that are alike, and sets what searches read */
void acct_mix_set_kinds(acct_mix_work *w, int count);
void acct_mix_set_coarse(acct_mix_work *w, double log_delta, double cut);

/* relative error of delta that leaves epsilon 1e-10 relative */
double acct_mix_tolerance(double epsilon, double b);

/* places a line for the kinds near epsilon, at least to y_least */
int acct_mix_place(acct_mix_work *w, double epsilon, double log_delta, double tolerance,
                   double y_least, acct_mix_plan *plan);

/* starts w->line at the plan and adds the parts to it */
int acct_mix_add_all(acct_mix_work *w, const acct_mix_plan *plan, const acct_part *part, int count);

/* builds w->contour for the first `count` parts near epsilon, where the profile is about
 * e^{log_delta} */
int acct_mix_build(acct_mix_work *w, int count, double epsilon, double log_delta, double tolerance);

/* the profile of a contour, as the root searches call it */
void acct_mix_contour_at(const void *contour, double epsilon, acct_profile_point *point);

#endif
