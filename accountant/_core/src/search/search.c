#include "search.h"

#include <math.h>
#include <string.h>

#include "rounding.h"
#include "bounds.h"

/* Misses in a row after which interpolation gives way to bisection. */
#define SEARCH_PATIENCE 6
/* The share of the least |y| that a point which halves no bracket may have and be no miss. */
#define PROGRESS 0.1
/* A change of the logarithm of a cost that is no jitter: it says whether the cost rises or falls. */
#define TREND 1e-4
/* |y| of a smooth cost that may be mostly jitter: a bracket's ends are many roundings apart. */
#define JITTER 1e-13
/* ranks that such a cost may be away from the crossing: it changes by some 1e-16 from one to the next */
#define MOST_RANKS 1e6
/* the share of the estimates' spread that an end of the bracket may be away from their mean to be as good as that */
#define BESIDE 0.3
/* A cost that is dearer than the target by less than a double can say. */
#define LEAST_EXCESS 0x1p-1074

typedef struct {
    int64_t rank;
    double value;
    double y; /* log(cost / target): <= 0 exactly where the target is met; may be infinite */
} point;

/* where the search has been: the last two points, and of those with a finite y the nearest to the target */
typedef struct {
    const acct_search *search;
    int smooth; /* whether the cost hardly jitters: it is enough to aim at the crossing */
    point before, here;
    point
        near[3]; /* one for each cost, the last: a cost that is flat over a few doubles has no slope there */
    int count;
    /* of a smooth cost: the first point of those that may be mostly jitter, the slope on the way there, and the sums
     * of estimates of where the crossing is, in ranks from that point, and of their squares */
    point first;
    double slope, offsets, squares;
    int jittering;
} walk;

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t distance(int64_t a, int64_t b) { return a > b ? a - b : b - a; }
static int met(const point *p) { return p->y <= 0.0; }

double acct_grid_value(enum acct_grid grid, int64_t rank) {
    double value;
    if (grid == ACCT_COUNTS) return (double)rank;
    memcpy(&value, &rank, sizeof value);
    return value;
}

int64_t acct_grid_rank(enum acct_grid grid, double value) {
    int64_t rank;
    if (!(value > 0.0)) return 0;
    if (grid == ACCT_COUNTS) return value < 0x1p62 ? (int64_t)rint(value) : INT64_C(1) << 62;
    memcpy(&rank, &value, sizeof rank);
    return rank;
}

/* log(value / origin), accurate also for neighbours; a count of 0 is taken for 1/e */
static double log_cost_ratio(double value, double origin) {
    if (!(value > 0.0 && origin > 0.0)) {
        value = acct_max(value, exp(-1.0));
        origin = acct_max(origin, exp(-1.0));
    }
    const double ratio = (value - origin) / origin;
    return fabs(ratio) < 0.5 ? log1p(ratio) : log(value) - log(origin);
}

static int at(const walk *w, int64_t rank, point *found) {
    const acct_search *search = w->search;
    double spent = NAN;
    *found = (point){.rank = rank, .value = acct_grid_value(search->grid, rank)};
    const int status = search->cost(search->context, found->value, &spent);
    /* The difference is exact near the target, so the sign of y always is.  A NaN is too dear. */
    const double excess = (spent - search->target) / search->target;
    found->y = excess > -1.0 ? log1p(excess) : -INFINITY;
    if (!(spent <= search->target)) found->y = acct_max(found->y, LEAST_EXCESS);
    return status;
}

/* puts the point among the nearest three, in the place of one with the same cost */
static void keep_nearest(walk *w, const point *p) {
    if (!isfinite(p->y)) return;
    for (int i = 0; i < w->count; i++)
        if (w->near[i].y == p->y) {
            w->near[i] = *p;
            return;
        }
    int i = w->count;
    if (i < 3)
        w->count++;
    else if (!(fabs(p->y) < fabs(w->near[--i].y)))
        return;
    for (; i > 0 && fabs(p->y) < fabs(w->near[i - 1].y); i--) w->near[i] = w->near[i - 1];
    w->near[i] = *p;
}

static void push(walk *w, const point *p) {
    w->before = w->here;
    w->here = *p;
    keep_nearest(w, p);
}

/* by how much the grid's next point is larger, relatively */
static double spacing(const walk *w, const point *p) {
    return log_cost_ratio(acct_grid_value(w->search->grid, p->rank + 1), p->value);
}

/* Counts the last point of a smooth cost among those that may be mostly jitter, and where it puts the crossing.  The
 * target is met up to half of its last place above it, for costs are rounded. */
static void note_jitter(walk *w) {
    const point *here = &w->here, *before = &w->before;
    const double target = w->search->target, above = 0.5 * (nextafter(target, INFINITY) - target) / target;
    if (w->jittering++ == 0) {
        w->first = *here;
        w->slope = before->value > 0.0 ? (here->y - before->y) / log_cost_ratio(here->value, before->value)
                                       : NAN;
    }
    const double offset = log_cost_ratio(here->value, w->first.value) - (here->y - above) / w->slope;
    const double ranks = offset / spacing(w, &w->first);
    w->offsets += ranks;
    w->squares += ranks * ranks;
}

static int visit(walk *w, int64_t rank) {
    point p;
    const int status = at(w, rank, &p);
    push(w, &p);
    if (w->smooth && fabs(p.y) < JITTER) note_jitter(w);
    return status;
}

static void restart_walk(walk *w, const point *first, const point *second) {
    w->count = 0;
    push(w, first);
    push(w, second);
}

/* the rank of value * exp(shift) */
static int64_t moved(const walk *w, const point *p, double shift, int64_t otherwise) {
    if (fabs(shift) < 700.0) {
        const double value = p->value + p->value * expm1(shift);
        if (value > 0.0 && value < INFINITY) return acct_grid_rank(w->search->grid, value);
    }
    return otherwise;
}

/* the rank a step in the logarithm away: at least the neighbour, at most `end` */
static int64_t stepped(const walk *w, const point *p, int sign, double step, int64_t end) {
    const int64_t rank = moved(w, p, sign * step, end);
    return p->rank + sign * least(most(sign * (rank - p->rank), 1), distance(end, p->rank));
}

/* the power with which the cost changes between the last two points, within reason */
static double slope_of(const walk *w) {
    const double rise = fabs(w->here.y - w->before.y) / fabs(log_cost_ratio(w->here.value, w->before.value));
    const double most = w->smooth ? 1e3 : 10.0;
    return isfinite(rise) ? acct_min(acct_max(rise, 1.0 / most), most) : 1.0;
}

/* by what share of itself a step may be wrong that is drawn from points so far apart: the cost bends */
static double doubt_of(const walk *w, double apart) { return w->smooth ? acct_min(fabs(apart), 0.1) : 0.1; }

/* The next rank to try between the ends of the bracket: where the estimates put the crossing, or beside an end that
 * is as near to that as they are to each other, for a neighbour on the other side ends the search.  Where `repeats`
 * points before were on the side of the last one, further away, up to the middle. */
static int64_t amid_jitter(const walk *w, int64_t low, int64_t high, int repeats) {
    const int64_t middle = low + (high - low) / 2, here = w->here.rank;
    const double mean = w->offsets / w->jittering;
    const double spread = acct_max(sqrt(acct_max(w->squares / w->jittering - mean * mean, 0.0)), 1.0);
    int64_t rank = here;
    if (fabs(mean) < MOST_RANKS) {
        const double from_low = mean - (double)(low - w->first.rank), to_high = (double)(high - w->first.rank) - mean;
        rank = w->first.rank + (int64_t)floor(mean);
        if (acct_min(from_low, to_high) < BESIDE * spread) rank = from_low < to_high ? low : high;
    }
    const int64_t away = repeats < 3 ? 1 : repeats < 62 ? INT64_C(1) << (repeats - 2) : INT64_MAX;
    if (here == low) return least(most(rank, low + least(away, most(middle - low, 1))), high - 1);
    if (here == high) return most(least(rank, high - least(away, most(high - middle, 1))), low + 1);
    return least(most(rank, low + 1), high - 1);
}

/* Walks towards `end` until the cost has crossed the target; `power` is about the slope there, 0 where that is
 * not known. */
static int cross(walk *w, int64_t end, double power, int *crossed) {
    const int side = met(&w->here), sign = end > w->here.rank ? 1 : -1;
    double slope = power > 0.0 ? power : 1.0, longest = power > 0.0 ? 8.0 : 1.0;
    double doubt = w->smooth ? 0.0 : 0.1, shortest = w->smooth ? 0.0 : 1e-6;
    int repeats = 0;
    *crossed = 0;
    while (w->here.rank != end) {
        /* Assume a power law and overstep a little: it is crossing that counts.  The limits grow, so that a
         * cost which is flat, or a slope which was misjudged, is left behind soon. */
        const double y = w->here.y;
        const double step = isfinite(y) ? (1.0 + doubt) * fabs(y) / slope + shortest : longest;
        const int64_t next = w->jittering && distance(w->here.rank, end) > 1
                                 ? amid_jitter(w, least(w->here.rank, end), most(w->here.rank, end), repeats++)
                                 : stepped(w, &w->here, sign, acct_min(step, longest), end);
        const int status = visit(w, next);
        if (status) return status;
        if (met(&w->here) != side) {
            *crossed = 1;
            return ACCT_OK;
        }
        slope = slope_of(w);
        doubt = doubt_of(w, log_cost_ratio(w->here.value, w->before.value));
        if (!w->smooth || fabs(w->here.y) < JITTER) shortest = (w->smooth ? 2.0 : 8.0) * acct_max(shortest, 1e-16);
        longest *= 2.0;
    }
    return ACCT_OK;
}

/* A rank a little beyond the crossing, as seen from the point nearest to the target.  Landing on the far side
 * is what closes a bracket from both ends; every miss (a bracket that was not halved) makes the next attempt
 * bolder, up to the middle of the bracket. */
static int64_t beyond_crossing(const walk *w, int64_t middle, int misses) {
    const point *a = &w->near[0], *b = &w->near[1], *c = &w->near[2];
    if (w->count < 2) return middle;
    const double x1 = log_cost_ratio(b->value, a->value);
    double shift = -a->y * x1 / (b->y - a->y), doubt = doubt_of(w, x1) * fabs(shift);
    if (w->count == 3) {
        /* Newton's form of the inverse parabola through the three points, at y = 0 */
        const double x2 = log_cost_ratio(c->value, a->value);
        const double curvature = (x2 / (c->y - a->y) - x1 / (b->y - a->y)) / (c->y - b->y);
        const double bend = curvature * a->y * b->y;
        if (fabs(bend) < fabs(shift)) {
            shift += bend;
            doubt = doubt_of(w, x2) * fabs(bend);
        }
    }
    /* towards the far end of the bracket; an estimate that points elsewhere is noise */
    const int sign = middle > a->rank ? 1 : -1;
    const int64_t boldness = INT64_C(1) << (3 * misses);
    double ahead = (sign * shift < 0.0 ? 0.0 : sign * shift) + (double)boldness * doubt;
    int64_t beside = sign * boldness;
    if (w->smooth && misses == 0) { /* the first rank beyond, for which rounding goes half a rank on, or less */
        ahead += w->search->grid == ACCT_COUNTS ? 0.5 / a->value : 0x1p-54;
        beside = 0;
    }
    const int64_t rank = moved(w, a, sign * ahead, middle) + beside;
    return distance(rank, a->rank) < distance(middle, a->rank) ? rank : middle;
}

/* Shrinks the bracket formed by the last two points to neighbours, of which the good one is the answer. */
static int close_in(walk *w, double precision, int64_t *rank) {
    point good = met(&w->here) ? w->here : w->before, bad = met(&w->here) ? w->before : w->here;
    int misses = 0, patience = SEARCH_PATIENCE, repeats = 0;
    for (int64_t width; (width = distance(good.rank, bad.rank)) > 1;) {
        if (precision > 0.0 && fabs(log_cost_ratio(good.value, bad.value)) <= precision) break;
        const int64_t low = least(good.rank, bad.rank), high = most(good.rank, bad.rank);
        int64_t next = low + width / 2;
        if (misses < patience)
            next = w->jittering ? amid_jitter(w, low, high, repeats) : beyond_crossing(w, next, misses);
        else if (patience > 0)
            patience--; /* a step, or noise: trust interpolation less from now on */
        const double nearest = w->count > 0 ? fabs(w->near[0].y) : INFINITY;
        const int status = visit(w, least(most(next, low + 1), high - 1));
        if (status) return status;
        repeats = w->jittering > 1 && met(&w->here) == met(&w->before) ? repeats + 1 : 0;
        *(met(&w->here) ? &good : &bad) = w->here;
        /* what comes so much nearer is on its way */
        const int slow = !(w->smooth && fabs(w->here.y) < PROGRESS * nearest);
        misses = slow && distance(good.rank, bad.rank) > width / 2 ? misses + 1 : 0;
    }
    *rank = good.rank;
    return ACCT_OK;
}

int acct_boundary(const acct_search *search, double guess, double power, int64_t cheap, int64_t dear,
                  int64_t *rank) {
    walk w = {.search = search, .smooth = power > 0.0};
    const int64_t first = acct_grid_rank(search->grid, guess);
    int crossed, status = visit(&w, least(most(first, least(cheap, dear)), most(cheap, dear)));
    if (status) return status;
    *rank = met(&w.here) ? dear : ACCT_NO_RANK;
    status = cross(&w, met(&w.here) ? dear : cheap, power, &crossed);
    return status || !crossed ? status : close_in(&w, 0.0, rank);
}

/* Steps to both sides of the start in turn until the cost crosses the target, or has a slope. */
static int outwards(walk *w, const int64_t last[2], const int sign[2], int *crossed) {
    const point start = w->here;
    point front[2] = {start, start};
    *crossed = 0;
    for (double step = 0.7; front[0].rank != last[0] || front[1].rank != last[1]; step *= 2.0)
        for (int side = 0; side < 2; side++) {
            const point before = front[side];
            point *found = &front[side];
            if (before.rank == last[side]) continue;
            const int status = at(w, stepped(w, &before, sign[side], step, last[side]), found);
            if (status) return status;
            if (met(found) != met(&start)) {
                restart_walk(w, &before, found);
                *crossed = 1;
                return ACCT_OK;
            }
            const double nearer = fabs(before.y) - fabs(found->y);
            if (!(isfinite(nearer) && fabs(nearer) > TREND)) continue;
            const int way = nearer > 0.0 ? side : 1 - side;
            restart_walk(w, way == side ? &before : found, way == side ? found : &front[way]);
            return cross(w, last[way], slope_of(w), crossed);
        }
    return ACCT_OK;
}

int acct_crossing(const acct_search *search, double guess, int64_t low, int64_t high, int falls,
                  double precision, int64_t *rank) {
    walk w = {.search = search};
    int crossed;
    *rank = ACCT_NO_RANK;
    int status = visit(&w, least(most(acct_grid_rank(search->grid, guess), low), high));
    if (status) return status;
    /* the side to begin with: the larger values, where they should bring the cost nearer to the target */
    const int up_first = (falls != 0) == !met(&w.here);
    const int sign[2] = {up_first ? 1 : -1, up_first ? -1 : 1};
    const int64_t last[2] = {up_first ? high : low, up_first ? low : high};
    status = outwards(&w, last, sign, &crossed);
    return status || !crossed ? status : close_in(&w, precision, rank);
}
