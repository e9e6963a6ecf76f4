#include "mix.h"

#include <math.h>

#include "gaussian.h"
#include "mix_work.h"
#include "rounding.h"
#include "status.h"

static void intersect(acct_bounds *a, double lower, double upper) {
    if (lower > a->lower) a->lower = lower;
    if (upper < a->upper) a->upper = upper;
}

/* where the answers of the first `count` parts want their line */
static int place_prefix(acct_mix_work *w, int count, double log_delta, double y_least, double *epsilon,
                        acct_mix_plan *plan) {
    acct_saddle s;
    acct_mix_set_kinds(w, count);
    acct_mix_set_coarse(w, log_delta, INFINITY);
    acct_coarse_mix m = {w->coarse, w->kinds, w->direction};
    acct_mix_saddle(&m, ACCT_AT_LOG_DELTA, log_delta, &s);
    *epsilon = fmax(s.epsilon, 0.0);
    return acct_mix_place(w, *epsilon, log_delta, acct_mix_tolerance(*epsilon, s.b), y_least, plan);
}

/* Reads the answers after each of the parts first .. last - 1 off one line: the last needs the longest
 * period, the first ends last */
static int read_along(acct_mix_work *w, int first, int last, double delta, acct_bounds *out) {
    const double log_delta = log(delta);
    acct_mix_plan plan, start;
    double guess, unused, y_last = 0.0;
    int status = place_prefix(w, first + 1, log_delta, 0.0, &guess, &start);
    for (int tries = 0; tries < 3 && !status; tries++) {
        status = place_prefix(w, last, log_delta, fmax(y_last, (start.count - 1) * start.dy), &unused,
                              &plan);
        if (status) break;
        acct_mix_set_kinds(w, first + 1);
        status = acct_mix_add_all(w, &plan, w->kind, w->kinds);
        if (status) break;
        y_last = acct_mix_line_stop(&w->line, 0.3 * exp(plan.log_error));
        if (!(y_last < INFINITY)) status = ACCT_EPRECISION;
        if (y_last <= (plan.count - 1) * plan.dy) break;
    }
    if (status) return status;
    acct_mix_line_start(&w->line, &plan);
    for (int i = 0; i < last && !status; i++) {
        status = acct_mix_line_add(&w->line, &w->grid, &w->work, &w->part[i]);
        if (status || i < first) continue;
        acct_bounds found;
        acct_mix_line_close(&w->line, &w->contour);
        guess = acct_invert_estimate(acct_mix_contour_at, &w->contour, guess, delta);
        if (!(guess > 0.0)) break;
        acct_invert_certify(acct_mix_contour_at, &w->contour, guess, delta, &found);
        intersect(&out[i], found.lower, found.upper);
    }
    return status;
}

static int block_end(int first, double growth, int count) {
    const int last = first + 1 + (int)(growth * first);
    return last < count ? last : count;
}

int acct_mix_odometer(const acct_part *parts, int count, double delta, int direction,
                      acct_bounds *out) {
    double steps;
    if (!acct_mix_valid(parts, count, direction, &steps) || direction == ACCT_EITHER ||
        !(delta > 0.0 && delta < 1.0))
        return ACCT_EDOMAIN;
    for (int i = 0; i < count; i++) out[i] = (acct_bounds){0.0, INFINITY};
    acct_mix_work w;
    int status = acct_mix_alloc(&w, parts, count, direction, steps);
    if (status) return status;
    w.most_work = 2.5e5;
    /* blocks that grow with the prefix; a line serves one of them */
    for (int first = 1, last; first < count; first = last) {
        last = block_end(first, first < 500 ? 0.5 : 4.0, count);
        if (read_along(&w, first, last, delta, out)) {
            last = block_end(first, 0.25, count);
            read_along(&w, first, last, delta, out);
        }
    }
    /* what no line settled: the first few, whose transforms decay slowly; more parts never cost less */
    status = acct_psg_epsilon(parts->q, parts->sigma, parts->steps, delta, direction, &out[0]);
    if (status == ACCT_ENOMEM) {
        acct_mix_free(&w);
        return status;
    }
    double least = 0.0, sum = 0.0;
    const double share = acct_down(delta / steps);
    int rough = count; /* beyond this all are settled */
    while (rough > 0 && out[rough - 1].upper - out[rough - 1].lower <= 1e-3 * out[rough - 1].upper) rough--;
    for (int i = 0; i < count; i++) {
        const acct_part *p = &parts[i];
        if (i < rough) {
            acct_bounds one;
            acct_single_epsilon(p->q, p->sigma, share, direction, &one);
            sum += p->steps * one.upper * (1.0 + 4.0 * ACCT_U);
            intersect(&out[i], 0.0, sum * (1.0 + 2.0 * ACCT_U * (2.0 + i)));
        }
        intersect(&out[i], least, INFINITY);
        least = out[i].lower;
    }
    acct_mix_free(&w);
    double most = INFINITY;
    for (int i = count - 1; i >= 0; i--) {
        if (out[i].upper > most) out[i].upper = most;
        most = out[i].upper;
    }
    return ACCT_OK;
}
