/* Many questions about one kind of step: numbers of steps and delta near each other share a line.
 *
 * Every line gives a valid bracket for every epsilon and every number of steps (Theorems 2 and 18); how
 * narrow it is decides whether it answers a question, or the question gets a line of its own. */
#ifndef ACCT_SHARED_LINE_H
#define ACCT_SHARED_LINE_H

#include "chernoff.h"

typedef struct {
    acct_workspace remove, add; /* a line in each direction */
    acct_step step;
    int removes, adds;   /* whether the lines are built, for this step */
    acct_chernoff bound; /* on the add direction; infinite where there is none */
    int failures;        /* in a row: lines that answered nothing */
    int waiting;         /* questions until the next line is tried */
    double reach;        /* deviations of the loss: how far ahead lines were put with success */
    double log_delta, epsilon, slope; /* the last answer, and d log(delta)/d epsilon there */
    double steps;                     /* and of how many steps it was */
} acct_shared_line;

/* NULL without memory */
acct_shared_line *acct_shared_line_open(void);
void acct_shared_line_close(acct_shared_line *shared);

/* sets     *out to the bracket of epsilon(delta[0]) of the first of `count` questions, the larger of both
 *          directions, as acct_psg_epsilon does; the questions after it decide only where to put a line,
 *          and how long the answers take: fast where they are in order, by numbers of steps and then by
 *          delta, and near each other
 * returns  as acct_psg_epsilon */
int acct_shared_epsilon(acct_shared_line *shared, long count, const double *q, const double *sigma,
                        const double *steps, const double *delta, acct_bounds *out);

#endif
