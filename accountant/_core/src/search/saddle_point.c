#include "saddle_point.h"

#include <math.h>

#include "order.h"
#include "rounding.h"
#include "bounds.h"

/* epsilon and log delta of the saddle-point approximation on the line at distance b */
static void evaluate(acct_cumulants_fn cumulants, void *par, double b, acct_saddle *out, double *curvature) {
    acct_cumulants k;
    cumulants(par, b, &k);
    *curvature = k.variance + 1.0 / (b * b) + 1.0 / ((b + 1.0) * (b + 1.0));
    out->b = b;
    out->log_scale = k.log_mgf;
    out->spread = sqrt(k.variance);
    out->epsilon = k.mean - 1.0 / b - 1.0 / (b + 1.0);
    out->log_delta = k.log_mgf - b * out->epsilon - log(b) - log1p(b) - 0.5 * log(2.0 * ACCT_PI * *curvature);
}

/* Newton in t = log b on a monotone function: epsilon(b) increases, log delta(b) decreases */
void acct_saddle_solve(acct_cumulants_fn cumulants, void *par, enum acct_target kind, double target, double b,
                       acct_saddle *out) {
    double lo = -INFINITY, hi = INFINITY, t = log(b), curvature;
    for (int i = 0; i < 80; i++) {
        evaluate(cumulants, par, exp(t), out, &curvature);
        double f, slope;
        if (kind == ACCT_AT_EPSILON) {
            f = out->epsilon - target;
            slope = out->b * curvature;
        } else {
            f = target - out->log_delta;
            slope = out->b * out->b * curvature;
        }
        if (!(f == f)) f = INFINITY;
        if (f > 0.0)
            hi = t;
        else
            lo = t;
        double next = t - f / slope;
        const double limit = 1.5;
        if (!(next > t - limit)) next = t - limit;
        if (next > t + limit) next = t + limit;
        if (next <= lo || next >= hi) next = 0.5 * (lo + hi);
        if (fabs(next - t) < 3e-3 || (hi - lo) < 1e-4) break; /* any line near it will do */
        t = next;
        if (t > 80.0 || t < -80.0) break;
    }
}

/* one step, repeated, on the nodes of a law */
typedef struct {
    acct_tilted_law *law;
    double steps;
    int direction;
} repeated;

static void repeated_cumulants(void *par, double b, acct_cumulants *out) {
    const repeated *r = par;
    acct_moments m;
    acct_tilted_law_moments(r->law, acct_order_at(r->direction, b), 0, &m);
    out->log_mgf = r->steps * m.log_mgf;
    out->mean = r->steps * (r->direction == ACCT_REMOVE ? m.mean : -m.mean);
    out->variance = r->steps * m.m2;
}

int acct_saddle_at_epsilon(acct_tilted_law *law, const acct_step *step, double steps, int direction,
                           const acct_window *window, double epsilon, acct_saddle *out) {
    const int status =
        acct_tilted_law_set(law, step, window, direction == ACCT_REMOVE ? 1.0 : 0.0, 0.0, -log(steps) - 7.0);
    if (!status) acct_saddle_on_nodes(law, steps, direction, epsilon, out);
    return status;
}

void acct_saddle_on_nodes(acct_tilted_law *law, double steps, int direction, double epsilon,
                          acct_saddle *out) {
    acct_moments m;
    acct_tilted_law_moments(law, direction == ACCT_REMOVE ? 1.0 : 0.0, 0, &m);
    const double mean = steps * (direction == ACCT_REMOVE ? m.mean : -m.mean);
    const double var = steps * m.m2 + 1e-300;
    const double gap = (epsilon - mean) / var;
    const double b = gap > 0.0 ? gap + 1.0 / sqrt(var) : 1.0 / (mean - epsilon + sqrt(var));
    repeated r = {law, steps, direction};
    acct_saddle_solve(repeated_cumulants, &r, ACCT_AT_EPSILON, epsilon, b, out);
}

int acct_saddle_at_delta(acct_tilted_law *law, const acct_step *step, double steps, int direction,
                         const acct_window *window, double log_delta, acct_saddle *out) {
    int status =
        acct_tilted_law_set(law, step, window, direction == ACCT_REMOVE ? 1.0 : 0.0, 0.0, -log(steps) - 7.0);
    if (status) return status;
    acct_moments m;
    acct_tilted_law_moments(law, direction == ACCT_REMOVE ? 1.0 : 0.0, 0, &m);
    const double b = sqrt(2.0 * (0.1 - log_delta) / (steps * m.m2 + 1e-300));
    repeated r = {law, steps, direction};
    acct_saddle_solve(repeated_cumulants, &r, ACCT_AT_LOG_DELTA, log_delta, b, out);
    return ACCT_OK;
}

double acct_bulk(int count, const double *loss, const double *weight, double *mean) {
    double var = 0.0, clip = INFINITY;
    *mean = 0.0;
    for (int i = 0; i < 12; i++) {
        double m0 = 0.0, m1 = 0.0, m2 = 0.0;
        for (int j = 0; j < count; j++)
            if (fabs(loss[j] - *mean) <= clip) {
                const double w = weight[j], l = loss[j];
                m0 += w;
                m1 += w * l;
                m2 += w * l * l;
            }
        if (!(m0 > 0.0)) return 0.0;
        *mean = m1 / m0;
        var = m2 / m0 - *mean * *mean;
        if (!(var > 0.0)) return 0.0;
        const double next = 3.5 * sqrt(var);
        if (next > 0.9 * clip) break;
        clip = next;
    }
    return sqrt(var);
}

/* deviation of the whole law given by weights */
static double spread_of(int count, const double *loss, const double *weight) {
    double m0 = 0.0, m1 = 0.0, m2 = 0.0;
    for (int j = 0; j < count; j++) {
        m0 += weight[j];
        m1 += weight[j] * loss[j];
        m2 += weight[j] * loss[j] * loss[j];
    }
    return sqrt(acct_max(m2 / m0 - m1 / m0 * (m1 / m0), 0.0));
}

/* ends in deviations of the bulk; the last ones where the whole law is spread as far: there the transform decays
 * by small losses long before that of a larger end says so */
static const double BREAKS[ACCT_MAX_BREAKS] = {2.5, 6.0, 14.0, 35.0, 90.0, 220.0, 550.0, 1400.0};
#define ALWAYS 3
#define BEYOND 1.5

void acct_place_breaks(const acct_step *step, int count, const double *loss, const double *weight,
                       acct_window *window) {
    double mean, last = window->lo;
    const double spread = acct_bulk(count, loss, weight, &mean);
    const double far = BEYOND * spread_of(count, loss, weight);
    window->breaks = 0;
    for (int i = 0; i < ACCT_MAX_BREAKS && spread > 0.0; i++) {
        if (i >= ALWAYS && !(BREAKS[i] * spread < far)) break;
        const double x = acct_loss_inverse(step, mean + BREAKS[i] * spread);
        if (x > last + 0.3 * step->sigma && x < window->hi - 0.3 * step->sigma)
            window->at[window->breaks++] = last = x;
    }
}
