/* The search for the point where a cost crosses a target; it ends on neighbouring points of a grid.
 *
 * The grid is the counts themselves, or the bit patterns of positive doubles, whose order is that of the
 * doubles: both are called ranks.  Interpolation only chooses where to evaluate.  The answer is a point that was
 * evaluated and met the target, beside a point that was evaluated and did not; so a cost that wiggles in
 * its last digits can cost a few evaluations, never the guarantee.
 */
#ifndef ACCT_SEARCH_H
#define ACCT_SEARCH_H

#include <stdint.h>

enum acct_grid { ACCT_COUNTS, ACCT_DOUBLES };

/* sets     *cost at a point of the grid; a NaN is too dear
 * returns  a status; any but ACCT_OK ends the search, which returns it */
typedef int acct_cost(void *context, double value, double *cost);

typedef struct {
    acct_cost *cost;
    void *context;
    double target; /* > 0 */
    enum acct_grid grid;
} acct_search;

/* where no point was found */
#define ACCT_NO_RANK (-1)

double acct_grid_value(enum acct_grid grid, int64_t rank);
int64_t acct_grid_rank(enum acct_grid grid, double value); /* rounded to even, kept between 0 and 2^63 */

/* sets     *rank to a point that costs at most the target and whose dearer neighbour costs more; ACCT_NO_RANK
 *          where even `cheap` costs more, and `dear` where it does not
 * requires a cost that grows from `cheap` to `dear`, the two ends of the grid, 0 <= both < 2^63; `power` is
 *          about d log(cost) / d log(value) at the guess, without its sign, for a cost that hardly jitters; 0
 *          where that is not known */
int acct_boundary(const acct_search *search, double guess, double power, int64_t cheap, int64_t dear,
                  int64_t *rank);

/* The same where it is not known whether the cost rises or falls between the ends; `falls` says what to
 * expect.  ACCT_NO_RANK where all points tried were on the same side of the target.  With `precision` > 0 the point
 * that costs more may be that far away, relatively. */
int acct_crossing(const acct_search *search, double guess, int64_t low, int64_t high, int falls,
                  double precision, int64_t *rank);

#endif
