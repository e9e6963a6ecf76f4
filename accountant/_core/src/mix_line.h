/* One vertical line for many parts: what adds up, part by part, and its closing into a contour. */
#ifndef ACCT_MIX_LINE_H
#define ACCT_MIX_LINE_H

#include "contour.h"
#include "mix.h"
#include "mix_search.h"

#define ACCT_MIX_POINTS 4136 /* no multiple of a page, as ACCT_MAX_NODES */
#define ACCT_MIX_LEVELS 64

/* a sum that keeps what rounding loses (Neumaier): its error is 2u of the sum of the moduli */
typedef struct {
    double sum, lost;
} acct_sum;

/* where the line is and what each part may spend: wishes, from a plain search */
typedef struct {
    int direction;
    double steps;       /* of the whole composition: shares of the tolerance are per step */
    double deviations, cut; /* of the windows (acct_part_window) */
    double put_order;   /* m > 0 where jumps above the cut are counted apart, else 0 */
    double b, right_b, left_b; /* distances from [0, 1] of the line and of the aliases' Chernoff bounds */
    double dy;
    int count;          /* points */
    double most_work;   /* points times nodes of one part */
    double flat, bulk;  /* uniform minorants are tried beyond y = flat, as far as a few times 1/bulk */
    double log_error;   /* log of the error wanted in units of the sum's scale */
} acct_mix_plan;

/* panels found for one part, for others within about two per cent of it */
#define ACCT_MIX_ALIKE 256
typedef struct {
    long cell;
    acct_layout layout;
} acct_alike;

typedef struct {
    acct_mix_plan plan;
    acct_alike *alike; /* ACCT_MIX_ALIKE seats, by cell */
    double order, parts;
    /* per point: sums over parts of n log|1+V| and n arg(1+V), of the relative error of (1+V)^n, of
     * n log(|1+V| + error), and of the sizes that round-off is relative to */
    acct_sum *log_mod, *arg;
    double *relative, *high, *size;
    acct_sum log_mgf, drift;
    double log_mgf_err;
    double right_log, right_err, left_log, left_err; /* sums of n K at the aliases' orders */
    double outside; /* mass of all outcomes with a step below its window (uncut: or above), either law */
    /* jumps above the cut (jump.h, Theorem 16): sums of n log(1 - Q), of n log(1 - (P-Q)/(1-Q)), of
     * n log A(-m), and of the jumps' shares n Q e^{-mL}/A(-m) */
    double log_stay, log_stay_ratio, stay_err, put_log, put_jumps;
    int levels;     /* decay[j] bounds sum n log|phi| for y in [level[j], level[j+1]]; */
    double level[ACCT_MIX_LEVELS + 1], decay[ACCT_MIX_LEVELS + 1]; /* the last holds for all y beyond */
} acct_mix_line;

/* arrays in the caller's memory, ACCT_MIX_LINE_DOUBLES doubles; line->alike is the caller's, too */
#define ACCT_MIX_LINE_DOUBLES (7 * (size_t)ACCT_MIX_POINTS)
void acct_mix_line_place(acct_mix_line *line, double *memory);

/* starts an empty sum; requires plan->count <= ACCT_MIX_POINTS, plan->dy of 24 significant bits */
void acct_mix_line_start(acct_mix_line *line, const acct_mix_plan *plan);

/* adds a part; returns ACCT_EPRECISION where no grid resolves it */
int acct_mix_line_add(acct_mix_line *line, acct_grid *grid, acct_line *work, const acct_part *part);

/* the y beyond which the terms of the parts added so far are below `share` in all; inf if none */
double acct_mix_line_stop(const acct_mix_line *line, double share);

/* sets  *contour to the parts added so far; amplitude and phase must point to plan.count doubles */
void acct_mix_line_close(const acct_mix_line *line, acct_contour *contour);

#endif
