#include "rare_event.h"

#include <math.h>
#include <stddef.h>

#include "order.h"
#include "rounding.h"
#include "bounds.h"
#include "vmath.h"

#define ORDERS 22

/* log of the transform of the outcomes with a middling loss but no large one, at a real order */
static double middling(acct_rare_event_plan *s, double b) {
    const double log_a = acct_thresholded_log_mgf(s->law, s->thresholds.above_out, s->thresholds.share_out,
                                                  s->thresholds.outer, 1.0 + b);
    return acct_rare_event_of_either(s->steps, log_a, acct_between_log_mgf(s->law, s->thresholds.middle, 1.0 + b));
}

#define REVERSE_ORDERS 8

/* orders -m of the reverse term, Chernoff's bound without what lies above the threshold, and N e^{-m(L - from)}
 * at the nodes */
typedef struct {
    double m[REVERSE_ORDERS], base[REVERSE_ORDERS], *fall[REVERSE_ORDERS];
    double from;
} reverse_orders;

ACCT_CLONES
static void set_fall(const acct_tilted_law *g, double m, double from, double *restrict fall) {
    const double *restrict gauss = g->gauss, *restrict loss = g->loss;
    for (int j = 0; j < g->count; j++) fall[j] = gauss[j] * acct_vexp(m * (from - loss[j]));
}

ACCT_CLONES
static double dot(int count, const double *restrict a, const double *restrict b) {
    double sum[ACCT_LANES] = {0};
    for (int j = 0; j < count; j += ACCT_LANES)
        ACCT_EACH_LANE for (int i = 0; i < ACCT_LANES; i++) sum[i] += a[j + i] * b[j + i];
    return acct_lanes_total(sum);
}

static void set_reverse_orders(acct_rare_event_plan *s, reverse_orders *r) {
    acct_tilted_law *g = s->law;
    const double ratio = pow(60.0 * s->unit / s->least, 1.0 / 7.0);
    r->from = 0.2 * s->least + s->thresholds.outer.origin;
    for (int i = 0; i < REVERSE_ORDERS; i++) {
        const double m = r->m[i] = 3.0 / s->unit * pow(ratio, i);
        r->base[i] = acct_log_chernoff(m) + (s->steps - 1.0) * acct_tilted_law_log_mgf(g, -m, NULL) +
                     log(s->steps) + (m + 1.0) * s->epsilon;
        r->fall[i] = s->spare + (size_t)i * ACCT_MAX_NODES;
        set_fall(g, m, r->from, r->fall[i]);
    }
}

/* log of the best of the Chernoff bounds on the reverse term, and the index of its order */
static double best_reverse_order(const acct_rare_event_plan *s, const reverse_orders *r, int *order) {
    const acct_tilted_law *g = s->law;
    const double beyond = acct_loss(&g->step, g->hi, NULL);
    double best = INFINITY;
    for (int i = 0; i < REVERSE_ORDERS; i++) {
        const double sum = g->q_above * exp(r->m[i] * (r->from - beyond)) +
                           dot(g->count, r->fall[i], s->thresholds.above_out) + ACCT_TINY;
        const double v = r->base[i] + log(sum) - r->m[i] * r->from;
        if (v < best) {
            best = v;
            *order = i;
        }
    }
    return best;
}

/* the least outer threshold at which the reverse term is negligible */
static int find_outer(acct_rare_event_plan *s) {
    acct_tilted_law *g = s->law;
    reverse_orders reverse;
    set_reverse_orders(s, &reverse);
    const double most = 8.0 * s->unit;
    double lo = 0.4 * s->least, hi = most;
    for (int i = 0; i < 10 && hi > 1.03 * lo; i++) {
        const double mid = sqrt(lo * hi);
        s->thresholds.outer.scale = mid;
        acct_threshold_values(g->count, g->loss, s->thresholds.outer, s->thresholds.above_out,
                              s->thresholds.share_out);
        int order = 0;
        if (best_reverse_order(s, &reverse, &order) < s->log_wanted) {
            hi = mid;
            s->reverse_order = reverse.m[order];
            s->reverse_log = reverse.base[order];
        } else {
            lo = mid;
        }
    }
    s->thresholds.outer.scale = hi;
    return hi < most;
}

/* log of the Chernoff bound on the outcomes below the inner threshold: convex in b2, which walks from where
 * it starts until the bound is as small as wanted or rises */
static double small_search(acct_rare_event_plan *s, double start, double *b_best) {
    double best = INFINITY, factor = 1.22;
    for (double b2 = start; b2 > 1e-3 * start && b2 < 1e3 * start && !(best < s->log_wanted);) {
        const double log_mgf = acct_thresholded_log_mgf(
            s->law, s->thresholds.above_in, s->thresholds.share_in, s->thresholds.inner, 1.0 + b2);
        const double v = acct_log_chernoff(b2) + s->steps * log_mgf - b2 * s->epsilon;
        if (v < best) {
            best = v;
            *b_best = b2;
        } else if (*b_best == start && factor > 1.0) {
            factor = 1.0 / factor;
            b2 = start;
        } else {
            break;
        }
        b2 *= factor;
    }
    return best;
}

/* the largest inner threshold below which the outcomes are negligible */
static int find_inner(acct_rare_event_plan *s) {
    double hi = s->thresholds.outer.scale / 2.0, lo = 1e-5 * hi, start = -0.5 * s->log_wanted / s->unit;
    int found = 0;
    for (int i = 0; i < 9; i++) {
        const double mid = i == 0 ? acct_min(0.1 * s->unit, 0.5 * hi) : sqrt(lo * hi);
        double b2 = 0.0;
        s->thresholds.inner.scale = mid;
        acct_threshold_values(s->law->count, s->law->loss, s->thresholds.inner, s->thresholds.above_in,
                              s->thresholds.share_in);
        if (small_search(s, start, &b2) < s->log_wanted) {
            lo = mid;
            s->b_small = start = b2;
            found = 1;
        } else {
            hi = mid;
        }
        if (hi < 1.1 * lo) break;
    }
    s->thresholds.inner.scale = lo;
    return found;
}

/* orders nearer to the line's, for the aliases on the right: with many steps the transform soon grows */
static double refine_right(acct_rare_event_plan *s, double period) {
    const double far = s->b_right - s->b;
    double size = middling(s, s->b_left) - s->b_left * s->epsilon +
                  acct_log_chernoff(s->b_left);
    const double left = (size - s->log_wanted) / (s->b - s->b_left);
    double right = INFINITY;
    for (double move = far; move > 0.01 * far && right > left; move *= 0.6) {
        const double b2 = s->b + move;
        size = middling(s, b2) - b2 * s->epsilon + acct_log_chernoff(b2);
        const double now = (size - s->log_wanted) / move;
        if (now < right) {
            right = now;
            s->b_right = b2;
        } else if (right <= period) {
            break;
        }
    }
    return acct_max(left, right);
}

/* the line whose aliases need the shortest period, of those where not too much cancels */
static double find_line(acct_rare_event_plan *s) {
    double b[ORDERS], size[ORDERS], best = INFINITY, least = INFINITY;
    const double ratio = pow((500.0 - 20.0 * s->log_delta) * s->unit / s->least, 1.0 / ORDERS);
    for (int i = 0; i < ORDERS; i++) {
        b[i] = i == 0 ? 0.0 : 0.1 / s->unit * pow(ratio, i);
        size[i] = middling(s, b[i]) - b[i] * s->epsilon;
        if (!(size[i] == size[i])) size[i] = INFINITY;
        size[i] += acct_log_chernoff(b[i]);
        if (i > 0) least = acct_min(least, size[i]);
    }
    const double most = acct_max(least + 1.0, s->log_delta + log(s->tolerance) + 29.0);
    for (int i = 1; i < ORDERS; i++) {
        if (!(size[i] <= most)) continue;
        double left = INFINITY, right = INFINITY, b_left = 0.0, b_right = 0.0;
        for (int j = 0; j < ORDERS; j++) {
            const double period = (size[j] - s->log_wanted) / fabs(b[j] - b[i]);
            if (j < i && period < left) left = period, b_left = b[j];
            if (j > i && period < right) right = period, b_right = b[j];
        }
        if (acct_max(left, right) < best) {
            best = acct_max(left, right);
            s->b = b[i];
            s->b_left = b_left;
            s->b_right = b_right;
        }
    }
    return best < INFINITY ? refine_right(s, best) : best;
}

/* whether the factor of the outer threshold makes the integrands negligible at such noise */
static int is_negligible(const acct_rare_event_plan *s, double loss, double x2) {
    const double e = (loss - s->thresholds.outer.origin) / s->thresholds.outer.scale;
    const double rest = log(s->steps) - x2 - e * e + 5.0;
    return !(e < 4.0 || rest + (1.0 + s->b) * loss - s->b * s->epsilon > s->log_wanted ||
             rest + (1.0 + s->b_right) * loss - s->b_right * s->epsilon > s->log_wanted);
}

/* the noise beyond which it does: between two nodes to a sixteenth of their distance, for further out integrands of
 * the right alias may overflow */
static double find_end(const acct_rare_event_plan *s) {
    const acct_tilted_law *g = s->law;
    int j = g->count - 1;
    while (j > 0 && is_negligible(s, g->loss[j], g->x2[j])) j--;
    double near = g->node[j], far = j + 1 < g->count ? g->node[j + 1] : g->hi;
    for (int i = 0; i < 4 && j + 1 < g->count; i++) {
        const double x = 0.5 * (near + far), z = x / s->step->sigma;
        *(is_negligible(s, acct_loss(s->step, x, NULL), 0.5 * z * z) ? &far : &near) = x;
    }
    return far;
}

/* log C at the aliases' orders, of the nodes up to hi: further out N e^{cL} may overflow */
static void set_sizes(acct_rare_event_plan *s, double hi) {
    const int all = s->law->count;
    while (s->law->count > ACCT_LANES && s->law->node[s->law->count - ACCT_LANES] > hi)
        s->law->count -= ACCT_LANES;
    s->log_right = acct_between_log_mgf(s->law, s->thresholds.middle, 1.0 + s->b_right);
    s->log_left = acct_between_log_mgf(s->law, s->thresholds.middle, 1.0 + s->b_left);
    s->law->count = all;
}

/* sets the distance to be covered by losses above the threshold: epsilon less the mean of the small ones */
static int set_unit(acct_rare_event_plan *s, double lo) {
    const double most = s->epsilon - s->steps * s->step->log_1mq;
    s->unit = s->least = most;
    if (!(s->epsilon > 0.0)) return most > 0.0;
    const acct_window window = {.lo = lo, .hi = acct_loss_inverse(s->step, 0.5 * s->epsilon)};
    if (acct_tilted_law_set(s->law, s->step, &window, 1.0, 0.0, -log(s->steps) - 7.0)) return 0;
    double mean = 0.0;
    for (int j = 0; j < s->law->count; j++) mean += s->law->gauss[j] * s->law->loss[j];
    s->least = s->epsilon;
    s->unit = acct_min(acct_max(s->epsilon - s->steps * mean, s->epsilon), most);
    return 1;
}

int acct_rare_event_search(acct_rare_event_plan *s, double lo, acct_window *window) {
    if (!set_unit(s, lo)) return ACCT_EPRECISION;
    const double reach = acct_min(40.0 * s->unit, 620.0 + s->step->log_1mq); /* e^{(1+b)L} must not overflow */
    window->lo = lo;
    const double most = acct_step_largest(s->step) + 38.0 * s->step->sigma; /* beyond, the noise's density underflows */
    window->hi = acct_min(most, acct_loss_inverse(s->step, reach));
    if (!(window->hi > window->lo)) return ACCT_EPRECISION;
    acct_window resolved = *window;
    resolved.threshold = (acct_threshold){s->step->log_1mq, 0.2 * s->least, 4};
    int status = acct_tilted_law_set(s->law, s->step, &resolved, 1.0, 0.0, -log(s->steps) - 14.0);
    if (status) return status;
    if (!find_outer(s)) return ACCT_EPRECISION;
    if (!find_inner(s)) return ACCT_EPRECISION;
    acct_thresholds_set(s->law, &s->thresholds);
    const double period = find_line(s);
    window->hi = acct_min(window->hi, find_end(s));
    set_sizes(s, window->hi);
    return period < INFINITY ? ACCT_OK : ACCT_EPRECISION;
}

#define STRIP_TESTS 24

/* the height of the path over sigma^2 where the shift is random, as of find_angle from e on; the ellipses must show
 * everywhere up to hi that arg e^L >= 0 */
static double find_mixture_angle(const acct_step *step, double e, double hi) {
    const acct_mixture *m = step->mixture;
    const double x = acct_mixture_inverse(m, e + step->log_1mq);
    double theta = 0.17 / m->largest;
    for (; theta < 1.3; theta *= 1.15) {
        acct_mixture_region region;
        if (!acct_mixture_region_set(m, x, x, x, 2.42 * theta, &region) || !(region.arg < 0.45 * e)) break;
        int i = 0;
        for (; i <= STRIP_TESTS; i++) {
            const double at = x + (hi - x) * i / STRIP_TESTS;
            if (!acct_mixture_region_set(m, at, at, at, 2.42 * theta, &region) || !region.turns) break;
        }
        if (i <= STRIP_TESTS) break;
    }
    return theta;
}

/* the height of the path over sigma^2, looked for from one that is known to do: twice it is the top of the ellipses,
 * where the argument of L - log(1-q) should stay below .45 times itself from .7 of the scale on */
static double find_angle(double scale, double from) {
    const double e = 0.7 * scale, p = -expm1(-e);
    double theta = from;
    while (theta < 1.3 && acct_loss_arg_upper(2.2 * theta, p) < 0.45 * e) theta *= 1.1;
    return theta;
}

/* where the path first rises, in units of the inner threshold: times the angle, for that is how e^{iyL} turns there;
 * and where the shift is random */
#define FIRST_RISE 0.0075
#define FIRST_RISE_OF_MIXTURE 0.005
#define LEAST_ANGLE 0.17
/* the factor from one scale that is looked at to the next, and the least one from one height to the next */
#define NEXT_SCALE 1.3
#define HIGHER 1.5
/* how far from the window's end the last rise is at least, in deviations */
#define LEFT_OVER 0.5

/* The path's heights: below the first rise e^{iyL} hardly turns, and nothing counts as middling.  Larger losses may
 * turn further; not where the shift is random, for where one shift takes over from another no panel at a greater height
 * has a bound. */
void acct_rare_event_find_path(const acct_rare_event_plan *s, const acct_window *window, acct_rare_event_path *path) {
    const acct_step *step = s->step;
    const double sigma = step->sigma, inner = s->thresholds.inner.scale, origin = step->log_1mq;
    double angle = step->mixture ? find_mixture_angle(step, 0.7 * inner, window->hi) : find_angle(inner, LEAST_ANGLE);
    const double share = step->mixture ? FIRST_RISE_OF_MIXTURE : FIRST_RISE / angle;
    path->rises = 1;
    path->height[0] = acct_min(angle * sigma * sigma, sigma);
    path->at[0] = acct_max(acct_loss_inverse(step, share * inner + origin), window->lo + 0.25 * sigma);
    if (step->mixture) return;
    for (double scale = NEXT_SCALE * inner; path->rises < ACCT_RARE_EVENT_RISES; scale *= NEXT_SCALE) {
        const double at = acct_loss_inverse(step, scale + origin), last = path->height[path->rises - 1];
        if (!(at < window->hi - LEFT_OVER * sigma && last < sigma)) break;
        angle = find_angle(scale, angle);
        const double height = acct_min(angle * sigma * sigma, sigma);
        if (!(height > HIGHER * last && at > path->at[path->rises - 1])) continue;
        path->at[path->rises] = at;
        path->height[path->rises++] = height;
    }
}
