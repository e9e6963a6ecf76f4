/* One vertical line for many parts: sums over the parts of logarithms, errors and bounds, and the contour
 * that they make up. */
#ifndef ACCT_HETEROGENEOUS_SUM_H
#define ACCT_HETEROGENEOUS_SUM_H

#include "contour.h"
#include "domain.h"
#include "heterogeneous_search.h"
#include "rounding.h"

#define ACCT_HETEROGENEOUS_POINTS 40008 /* no multiple of a page, as ACCT_MAX_NODES */
#define ACCT_DECAY_LEVELS 64

/* Where the line is and how exact each part is to be.  All of it comes from a plain search: it decides how
 * narrow the bracket is, not whether it holds. */
typedef struct {
    int direction;
    double steps;       /* of the whole composition: shares of the tolerance are per step */
    double deviations, most_loss; /* of the windows (acct_part_window) */
    double reverse_order;   /* m > 0 where windows were lowered to most_loss, else 0 */
    int apart; /* whether outcomes above windows that most_loss left as they are count in full */
    double b, right_b, left_b; /* distances from [0, 1] of the line and of the aliases' Chernoff bounds */
    double dy;
    int count; /* points */
    double y_near, period, spread; /* what the line needs at least, and the deviation of the tilted total loss */
    double most_work; /* points times nodes of one part */
    /* uniform minorants are tried beyond y = flat, as far as a few times 1/bulk and at least as `far` */
    double flat, bulk, far;
    int paths; /* whether the paths of Theorem 9 are tried, too */
    double log_error; /* log of the error wanted in units of the sum's scale */
} acct_heterogeneous_plan;

typedef struct {
    acct_heterogeneous_plan plan;
    acct_tilted_law *scratch; /* for paths */
    double *coarse;           /* weights and arrays of one part, to search for its panels */
    double order, parts;
    /* per point: sums over parts of n log|1+V| and n arg(1+V), of the relative error of (1+V)^n, of
     * n log(|1+V| + error), and of the sizes that round-off is relative to */
    acct_sum *log_mod, *arg;
    double *relative, *high, *size;
    double *factor, *poles; /* of the line's points: acct_trapezoid_factor, and the argument of s (s - 1) */
    acct_sum log_mgf, drift;
    double log_mgf_err;
    double right_log, right_err, left_log, left_err; /* sums of n K at the aliases' orders */
    double outside; /* mass of all outcomes with a step below its window (uncut: or above), either law */
    /* the tail event (tail_event.h, Theorem 16): sums of n log(1 - Q), of n log(1 - (P-Q)/(1-Q)), of
     * n log A(-m), and of the shares n Q e^{-mL}/A(-m); of the masses with a step below (acct_below_share) and
     * of what underflow moves them by (acct_tail_event_lost) */
    double log_stay, log_stay_ratio, stay_err, reverse_log, below, lost;
    double reverse_events; /* the logarithm of a sum */
    int levels; /* decay[j] bounds sum n log|phi| for y in [level[j], level[j+1]]; */
    double level[ACCT_DECAY_LEVELS + 1], decay[ACCT_DECAY_LEVELS + 1]; /* the last holds for all y beyond */
    double weight[ACCT_DECAY_LEVELS + 1]; /* of the points between two levels, and of all beyond the last */
} acct_heterogeneous_sum;

/* arrays in the caller's memory, ACCT_HETEROGENEOUS_SUM_DOUBLES doubles; sums->scratch is the caller's, too */
#define ACCT_HETEROGENEOUS_SUM_DOUBLES \
    (9 * (size_t)ACCT_HETEROGENEOUS_POINTS + (1 + ACCT_COARSE_ARRAYS) * (size_t)ACCT_MOST_COARSE_NODES)
void acct_heterogeneous_sum_place(acct_heterogeneous_sum *sums, double *memory);

/* starts an empty sum; requires plan->count <= ACCT_HETEROGENEOUS_POINTS, plan->dy of 24 significant bits */
void acct_heterogeneous_sum_start(acct_heterogeneous_sum *sums, const acct_heterogeneous_plan *plan);

/* adds a part; returns ACCT_EPRECISION where no set of nodes resolves it */
int acct_heterogeneous_sum_add(acct_heterogeneous_sum *sums, acct_tilted_law *law,
                               acct_characteristic_sum *cf, const acct_part *part);

/* What a part is added by, for those who add many alike (noise_table.h). */

/* adds     n times the values of a block over e^{log_scale}, whose phases leave out y * mean
 * ensures  relative[k] and high[k] bound, over all parts, what contour.c bounds for one part: the relative error of the
 *          product of the powers, and the log of an upper bound on it */
void acct_heterogeneous_add_block(acct_heterogeneous_sum *sums, int first, double n, double log_scale, double mean,
                                  const acct_characteristic_polar *block);

/* sets  nodes of a part that are fine enough for the line, and by a factor e^{finer} more */
int acct_heterogeneous_grid(acct_heterogeneous_sum *sums, acct_tilted_law *law, const acct_step *step,
                            const acct_part *part, const acct_window *window, double finer);

/* sets  bound[0 .. levels] to bounds on log |phi| of one step on the levels, 0 where `known`, unless NULL, is so
 *       low that no more is asked */
void acct_heterogeneous_decay(const acct_heterogeneous_sum *sums, const acct_tilted_law *law,
                              const acct_moments *m, const double *known, double *bound);

/* Adds a part to the tail event: the masses, and Chernoff's bound on the reverse term at order -m, rounded up;
 * only to the transform in that bound where its window was not lowered, which it returns.  low: log A_I(-m), known
 * to low_err; of the law, only what acct_tilted_law_start sets is read */
int acct_heterogeneous_add_tail(acct_heterogeneous_sum *sums, const acct_tilted_law *law,
                                const acct_part *part, double low, double low_err);

/* adds the mass of outcomes outside the window that count in full; reads the same of the law */
void acct_heterogeneous_add_outside(acct_heterogeneous_sum *sums, const acct_tilted_law *law,
                                    const acct_part *part, int lowered);

/* the y beyond which the terms of the parts added so far are below `share` in all; inf if none */
double acct_heterogeneous_sum_stop(const acct_heterogeneous_sum *sums, double share);

/* sets  *contour to the parts added so far; its terms must have room for plan.count and ACCT_LINE_SPARE */
void acct_heterogeneous_sum_close(const acct_heterogeneous_sum *sums, acct_contour *contour);

#endif
