#include "heterogeneous.h"

#include <math.h>
#include <stddef.h>

#include "gaussian.h"
#include "heterogeneous_workspace.h"
#include "rounding.h"
#include "bounds.h"
#include "subsampled_gaussian.h"

/* a block without a line is shortened to about this share of it; so many in a row end the search */
#define LEAST_SHARE 0.2
#define MOST_FAILED 3

/* where the answers of the first `count` parts want their line; brackets may be `wide` as a share of delta */
static int place_prefix(acct_heterogeneous_workspace *w, int count, double log_delta, double wide,
                        double *epsilon, acct_heterogeneous_plan *plan) {
    acct_saddle s;
    acct_heterogeneous_set_groups(w, count);
    acct_heterogeneous_set_coarse(w, log_delta, INFINITY);
    acct_coarse_composition m = {w->coarse, w->groups, w->direction};
    acct_heterogeneous_saddle(&m, ACCT_AT_LOG_DELTA, log_delta, &s);
    *epsilon = acct_max(s.epsilon, 0.0);
    const double tolerance = acct_tolerance_for(*epsilon, s.b, ACCT_HETEROGENEOUS_LEAST_TOLERANCE);
    return acct_heterogeneous_place(w, *epsilon, log_delta,
                                    acct_max(tolerance, wide), 0.0, plan);
}

/* Adds the parts to a started line and reads the answers off it.  ACCT_EPRECISION where the line ends too early for
 * bounds on the decay that are read off tables: those of the parts themselves may do. */
static int read_line(acct_heterogeneous_workspace *w, int first, int last, double delta, double guess,
                     double most_truncated, acct_bounds *out) {
    int status = ACCT_OK;
    for (int i = 0; i < last && !status; i++) {
        status = acct_heterogeneous_add(w, &w->part[i]);
        if (status || i < first) continue;
        acct_bounds found;
        acct_heterogeneous_sum_close(&w->sums, &w->contour);
        if (i == first && w->tables.count && !(w->contour.truncated <= most_truncated))
            return ACCT_EPRECISION;
        guess = acct_invert_estimate(acct_contour_at, &w->contour, guess, delta);
        if (!(guess > 0.0)) break;
        acct_invert_certify(acct_contour_at, &w->contour, guess, delta, &found);
        acct_bounds_intersect(&out[i], found.lower, found.upper);
    }
    return status;
}

/* Reads the answers after each of the parts first .. last - 1 off one line: the last needs the longest
 * period, the first ends last */
static int read_along(acct_heterogeneous_workspace *w, int first, int last, double delta, double wide,
                      acct_bounds *out) {
    const double log_delta = log(delta);
    acct_heterogeneous_plan plan, start;
    double guess, unused;
    int status = place_prefix(w, last, log_delta, wide, &unused, &plan);
    if (!status) status = place_prefix(w, first + 1, log_delta, wide, &guess, &start);
    if (status) return status;
    double y_last = (start.count - 1) * start.dy;
    for (int tries = 0; tries < 3 && !status; tries++) {
        status = acct_heterogeneous_lengthen(w, y_last, &plan);
        if (status) break;
        status = acct_heterogeneous_add_all(w, &plan, w->group, w->groups);
        if (status) break;
        y_last = acct_heterogeneous_sum_stop(&w->sums, 0.3 * exp(plan.log_error));
        if (!(y_last < INFINITY)) status = ACCT_EPRECISION;
        if (y_last <= (plan.count - 1) * plan.dy) break;
    }
    if (status) return status;
    status = acct_heterogeneous_start(w, &plan, w->part, last);
    const double most = 10.0 * exp(plan.log_error);
    if (!status) status = read_line(w, first, last, delta, guess, most, out);
    if (status != ACCT_EPRECISION || !w->tables.count) return status;
    acct_noise_tables_free(&w->tables);
    acct_heterogeneous_sum_start(&w->sums, &plan);
    return read_line(w, first, last, delta, guess, most, out);
}

/* where the block that ends before `last` begins, so that one line serves all of it; never less than half as many
 * early on, where the transform changes most */
static int block_start(int last, double share) {
    const double wish = last > 2500 ? 0.2 * last : last > 750 ? 500.0 : last / 1.5;
    const int first = (int)(last - share * (last - wish));
    return first < last ? (first > 1 ? first : 1) : last - 1;
}

/* Blocks of the parts from .. to - 1, the last first: of shorter prefixes the transform decays more slowly, so that few
 * are tried beyond those that have no line. */
static void read_all(acct_heterogeneous_workspace *w, int from, int to, double delta, double wide,
                     acct_bounds *out) {
    double share = 1.0;
    for (int last = to, failed = 0; last > 1 && last > from && failed < MOST_FAILED;) {
        const int start = block_start(last, share), first = start > from ? start : from;
        const int status = read_along(w, first, last, delta, wide, out);
        if (!status) failed = 0;
        if (status && share > LEAST_SHARE) {
            share *= 0.4;
            continue;
        }
        if (status) failed++;
        last = first;
        share = acct_min(2.0 * share, 1.0);
    }
}

int acct_heterogeneous_odometer(const acct_part *parts, int count, double delta, int direction, double wide,
                                int from, int to, acct_bounds *out) {
    double steps;
    if (!acct_heterogeneous_valid(parts, count, direction, &steps) || direction == ACCT_EITHER ||
        !acct_valid_delta(delta) || !(from >= 0 && from < to && to <= count))
        return ACCT_EDOMAIN;
    for (int i = 0; i < count; i++) {
        if (parts[i].mixture) return ACCT_EDOMAIN;
        out[i] = (acct_bounds){0.0, INFINITY};
    }
    acct_heterogeneous_workspace w;
    int status = acct_heterogeneous_alloc(&w, parts, count, direction, steps);
    if (status) return status;
    w.most_work = 4e5;
    read_all(&w, from, to, delta, wide, out);
    /* The brackets that are still wide are those of the first few parts, whose transforms decay slowly.  More
     * parts never cost less. */
    if (from == 0) status = acct_psg_epsilon(parts->q, parts->sigma, parts->steps, delta, direction, &out[0]);
    if (status == ACCT_ENOMEM) {
        acct_heterogeneous_free(&w);
        return status;
    }
    double least = 0.0, sum = 0.0;
    const double share = acct_down(delta / steps);
    int rough = to; /* beyond this all are settled */
    while (rough > from && out[rough - 1].upper - out[rough - 1].lower <= 1e-3 * out[rough - 1].upper) rough--;
    if (rough == from) rough = 0; /* those before are not asked about */
    for (int i = 0; i < count; i++) {
        const acct_part *p = &parts[i];
        if (i < rough) {
            acct_bounds one;
            acct_single_epsilon(p->q, p->sigma, share, direction, &one);
            sum += p->steps * one.upper * (1.0 + 4.0 * ACCT_U);
            acct_bounds_intersect(&out[i], 0.0, sum * (1.0 + 2.0 * ACCT_U * (2.0 + i)));
        }
        acct_bounds_intersect(&out[i], least, INFINITY);
        least = out[i].lower;
    }
    acct_heterogeneous_free(&w);
    double most = INFINITY;
    for (int i = count - 1; i >= 0; i--) {
        if (out[i].upper > most) out[i].upper = most;
        most = out[i].upper;
    }
    return ACCT_OK;
}
