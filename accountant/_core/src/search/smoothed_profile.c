#include "plan.h"

#include <math.h>
#include <stddef.h>

#include "order.h"
#include "rounding.h"
#include "bounds.h"

/* h in units of 1/b; how far beyond epsilon, likewise, a loss is more than all other steps take back, which may
 * be all that they lose where the record is not sampled */
#define WIDTH 0.4
#define MARGIN 12.0
#define LEAST_MARGIN 5.0
/* how far, as a logarithm, delta may be below the integral's scale: doubles have no more digits; digits more for
 * the sum of the moduli, which is a little above that scale */
#define MOST_CANCELLED 24.0
#define SPARE_WIDTH 3.0
/* nodes times points: less time than a contour's */
#define SMOOTHED_MOST_WORK 4e5
/* the rate over b, or its inverse, of what cannot be the profile */
#define MOST_RATE 6.0

/* what is asked for, and where the line is */
typedef struct {
    double steps, epsilon, log_delta, digits, b;
} line;

/* where the kernel's transform ends, and the kernel itself, in units of h */
static double reach_of(double digits) { return sqrt(2.0 * (digits + 5.0)); }

static double kernel(double hy) {
    const double t = 0.5 * hy * hy;
    return exp(-t) * (1.0 + t * (1.0 + t * (0.5 + t / 6.0)));
}

/* the period at which Chernoff's bound at distance b2 on the aliases of its side is small beside delta */
static double period_at(const line *at, acct_tilted_law *law, double b2) {
    const double log_size = at->steps * acct_tilted_law_log_mgf(law, 1.0 + b2, NULL) + acct_log_chernoff(b2);
    return (log_size - b2 * at->epsilon - at->log_delta + at->digits) / fabs(b2 - at->b);
}

/* the period that both sides need, by the best of a few orders */
static double period_of(const line *at, acct_tilted_law *law) {
    double right = INFINITY, left = (at->digits - at->log_delta) / at->b; /* no delta is above 1 */
    for (double part = 0.03; part < 4.0; part *= 2.0) {
        right = acct_min(right, period_at(at, law, at->b * (1.0 + part)));
        left = acct_min(left, period_at(at, law, at->b / (1.0 + part)));
    }
    return acct_max(right, left);
}

/* Adds the terms, each times the kernel's transform, and the outcomes with a loss beyond the window, which count
 * in full. */
static int sum_terms(const acct_contour *k, const acct_tilted_law *law, const line *at, double h,
                     acct_smoothed *out) {
    double sum = 0.0, slope = 0.0;
    for (int i = 0; i < k->count; i++) {
        const double y = i * k->dy, phase = k->phase[i] + (k->drift - at->epsilon) * y;
        const double a = k->amplitude[i] * kernel(h * y), re = a * cos(phase);
        sum += re;
        slope += k->b * re - y * a * sin(phase);
    }
    const double unit = exp(k->log_scale - k->b * at->epsilon);
    const double reverse = -expm1(at->steps * log1p(-law->q_above)) * exp(at->epsilon);
    const double beyond = -expm1(at->steps * log1p(-law->q_above - law->pq_above));
    const double delta = sum * unit + beyond - reverse;
    if (!(delta > 0.0 && delta < INFINITY)) return ACCT_EPRECISION;
    out->log_delta = log(delta);
    out->rate = (slope * unit + reverse) / delta;
    return out->rate < MOST_RATE * at->b && at->b < MOST_RATE * out->rate ? ACCT_OK : ACCT_EPRECISION;
}

/* Sets the window, without the losses far above epsilon, the distance, and the log of the sum of the moduli there.
 * The distance is that of the saddle point, or between that and the rate, where it is known: it may miss it by
 * far. */
static int find_smoothed_line(acct_tilted_law *law, const acct_step *step, double rate, line *at,
                              acct_window *window, double *log_sum) {
    acct_saddle saddle = {.b = rate};
    *window = acct_plan_window(step, at->steps, ACCT_REMOVE, at->log_delta);
    int status = ACCT_OK;
    if (!(rate > 0.0))
        status = acct_saddle_at_epsilon(law, step, at->steps, ACCT_REMOVE, window, at->epsilon, &saddle);
    if (status) return status;
    const double back = acct_min(MARGIN, LEAST_MARGIN - saddle.b * at->steps * step->log_1mq);
    window->hi = acct_min(window->hi, acct_loss_inverse(step, at->epsilon + back / saddle.b));
    status = acct_saddle_at_epsilon(law, step, at->steps, ACCT_REMOVE, window, at->epsilon, &saddle);
    if (status) return status;
    at->b = acct_exact_distance(rate > 0.0 ? sqrt(rate * saddle.b) : saddle.b);
    *log_sum = at->steps * acct_tilted_law_log_mgf(law, 1.0 + at->b, NULL) - at->b * at->epsilon -
               log(at->b) - log1p(at->b);
    return ACCT_OK;
}

int acct_smoothed_profile(acct_workspace *w, const acct_step *step, double steps, double epsilon,
                          double log_delta, double digits, acct_smoothed *out) {
    line at = {.steps = steps, .epsilon = epsilon, .log_delta = log_delta, .digits = digits};
    acct_contour *k = &w->contour;
    acct_window window;
    acct_moments m;
    double log_sum;
    int status = find_smoothed_line(&w->law, step, out->rate, &at, &window, &log_sum);
    if (status) return status;
    k->b = at.b;
    const double cancelled = acct_max(log_sum - log_delta, 0.0);
    at.digits = digits + cancelled + SPARE_WIDTH;
    const double h =
        acct_min(WIDTH / at.b, epsilon / reach_of(digits - log_delta)); /* near 0 the profile is large */
    const double y_last = reach_of(at.digits) / h, period = period_of(&at, &w->law);
    if (!(at.b < ACCT_MOST_DISTANCE && cancelled < MOST_CANCELLED && period > 0.0)) return ACCT_EPRECISION;
    k->dy = acct_short_step(2.0 * ACCT_PI / period);
    const double points = floor(y_last / k->dy) + 2.0;
    if (!(points <= ACCT_MAX_POINTS)) return ACCT_EPRECISION;
    k->count = (int)points;
    status = acct_tilted_law_set(&w->law, step, &window, 1.0 + at.b, y_last, -at.digits - log(steps));
    if (status || !(points * w->law.count <= SMOOTHED_MOST_WORK)) return ACCT_EPRECISION;
    acct_tilted_law_moments(&w->law, 1.0 + at.b, 1, &m);
    acct_characteristic_sum_set(&w->cf, &w->law, &m);
    acct_characteristic_sum_step(&w->cf, k->dy);
    acct_line_values_set(&k->values, &w->cf, &w->law, &m, at.b, k->dy, k->count);
    acct_line_values_power(&k->values, k->count, steps, 1.0, k->amplitude, k->phase);
    k->log_scale = steps * m.log_mgf;
    k->drift = steps * m.mean;
    return sum_terms(k, &w->law, &at, h, out);
}
