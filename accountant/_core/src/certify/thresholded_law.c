#include <math.h>

#include "order.h"
#include "rare_event.h"
#include "rounding.h"
#include "vmath.h"

int acct_threshold_bounds(double low, double high, double modulus, double arg, acct_threshold threshold,
                          double *log_above, double *log_below) {
    const double rate = 1.0 / threshold.scale, up = arg * rate;
    const double left = (low - threshold.origin - modulus) * rate;
    const double right = (high - threshold.origin) * rate, power = ldexp(1.0, threshold.doublings);
    const double most = acct_max(fabs(left), right) * (1.0 + 1e-12) + up, small = most * most;
    double log_t, least;
    if (small < 0.5) { /* |1 - e^{-z}| <= |z| e^{|z|} */
        log_t = small > 1e-18 ? log(small) + small : -41.0;
        least = -small;
    } else { /* and <= (1 - e^{-Re z})/cos arg z, |arg z| <= 2 atan(slope) */
        const double slope = up / left;
        if (!(left > 0.0 && slope < 0.68)) return 0;
        const double square = slope * slope, turn = acct_min(2.0 * right * up, ACCT_PI);
        const double half = sin(0.5 * turn), near = -expm1(-right * right);
        least = left * left * (1.0 - square);
        const double t =
            acct_min(near * (1.0 + square) / (1.0 - square), sqrt(near * near + 4.0 * exp(-least) * half * half));
        log_t = log(t);
    }
    *log_above = power * log_t * (log_t > 0.0 ? 1.0 + 1e-12 : 1.0 - 1e-12);
    /* 1 - t^{2^k} = (1 - t)(1 + t)(1 + t^2)... */
    double sum = -least, t = exp(log_t) * (1.0 + 1e-12);
    for (int i = 0; i < threshold.doublings; i++, t *= t) sum += log1p(t);
    *log_below = acct_min(sum, *log_above > 40.0 ? *log_above + 1e-12 : log1p(exp(*log_above))) + 1e-12;
    return 1;
}

ACCT_CLONES
void acct_threshold_values(int count, const double *restrict loss, acct_threshold threshold,
                           double *restrict above, double *restrict share) {
    const double rate = 1.0 / threshold.scale;
    for (int j = 0; j < count; j++) {
        const double r = (loss[j] - threshold.origin) * rate, z = r * r;
        above[j] = -acct_vexpm1(-z);
        share[j] = 1.0;
    }
    /* 1 - t^m = (1 - t)(1 + t)(1 + t^2)(1 + t^4)... */
    for (int i = 0; i < threshold.doublings; i++)
        for (int j = 0; j < count; j++) {
            share[j] *= 1.0 + above[j];
            above[j] *= above[j];
        }
}

/* The chance of being between is a difference of two chances; it is taken in the form that cancels less: of
 * being above where less than half is above the outer threshold, else of being below. */
ACCT_CLONES
void acct_thresholds_between(int count, const double *restrict loss, const acct_thresholds *thresholds,
                             double *restrict middle) {
    const double rate_out = 1.0 / thresholds->outer.scale, rate_in = 1.0 / thresholds->inner.scale;
    const double *restrict above_out = thresholds->above_out, *restrict above_in = thresholds->above_in;
    const double *restrict share_out = thresholds->share_out, *restrict share_in = thresholds->share_in;
    for (int j = 0; j < count; j++) {
        const double e = loss[j] - thresholds->outer.origin, ro = e * rate_out, ri = e * rate_in;
        const double near = above_in[j] - above_out[j];
        const double far = acct_vexp(-ro * ro) * share_out[j] - acct_vexp(-ri * ri) * share_in[j];
        middle[j] = above_out[j] < 0.5 ? near : far;
    }
}

void acct_thresholds_set(const acct_tilted_law *g, acct_thresholds *t) {
    acct_threshold_values(g->count, g->loss, t->outer, t->above_out,
                          t->share_out);
    acct_threshold_values(g->count, g->loss, t->inner, t->above_in,
                          t->share_in);
    acct_thresholds_between(g->count, g->loss, t, t->middle);
}

void acct_above_errors(const acct_tilted_law *law, double m, double *of_one, double *of_exp_u,
                       double *of_reverse) {
    const double var = law->step.sigma * law->step.sigma;
    *of_one = *of_exp_u = *of_reverse = 0.0;
    for (int i = 0; i < law->panels; i++) {
        const acct_panel *p = &law->panel[i];
        *of_one += exp(acct_panel_error_of_one(p, var) + p->above);
        *of_exp_u += exp(acct_panel_error_of_exp_u(p, var) + p->above);
        *of_reverse += exp(acct_panel_error_of_reverse(p, m, var));
    }
}

/* e^{cL} - 1 - c (e^L - 1) less the share above the threshold, or the share below it less
 * 1 + c (e^L - 1): whichever cancels less.  The same for L e^{cL} - (e^L - 1). */
ACCT_CLONES
static void thresholded_terms(const acct_tilted_law *g, double t, acct_threshold threshold,
                              const double *restrict above, const double *restrict share,
                              double *restrict weight, double *restrict term, double *restrict slope) {
    const double *restrict loss = g->loss, *restrict gauss = g->gauss, *restrict x2 = g->x2;
    const double *restrict exp_loss = g->exp_loss, *restrict e2_plus = g->e2_plus;
    const double *restrict e2_minus = g->e2_minus, *restrict quad = g->quad;
    const double rate = 1.0 / threshold.scale;
    for (int j = 0; j < g->count; j++) {
        const double l = loss[j], z = t * l, em1 = acct_vexpm1(z), e2 = acct_ve2(z, em1);
        const double ge = gauss[j] * exp_loss[j], off = ge * (1.0 + em1) * above[j];
        const double r = (l - threshold.origin) * rate, far = z + l - x2[j] - r * r;
        const double kept = (far < 690.0 ? quad[j] * acct_vexp(far) : INFINITY) * share[j];
        const double excess = gauss[j] * (e2_plus[j] + l), plain = gauss[j] + (1.0 + t) * excess;
        const double near_term = ge * (e2 + t * e2_minus[j]) - off;
        const double near_slope = ge * (e2_minus[j] + l * em1) - l * off;
        const int near = above[j] < 0.5;
        weight[j] = kept;
        term[j] = near ? near_term : kept - plain;
        slope[j] = near ? near_slope : l * kept - excess;
    }
}

/* Term and slope of one node where N nearly underflows while N e^L need not: by one exponent. */
static double far_term(const acct_tilted_law *g, int j, double t, double above, double kept, double *slope) {
    const double l = g->loss[j], z = t * l, em1 = expm1(z), e2 = acct_ve2(z, em1);
    const double ge = acct_weight_with_loss(g, j, 1.0), off = ge * (1.0 + em1) * above;
    const double noise = acct_weight_with_loss(g, j, 0.0), excess = ge - noise;
    *slope = above < 0.5 ? ge * (g->e2_minus[j] + l * em1) - l * off : l * kept - excess;
    return above < 0.5 ? ge * (e2 + t * g->e2_minus[j]) - off : kept - noise - (1.0 + t) * excess;
}

/* the nodes above */
static void far_terms(const acct_tilted_law *g, double t, const double *above) {
    for (int j = g->count - 1; j >= 0 && !(g->x2[j] < ACCT_FAR_NOISE); j--)
        g->term[j] = far_term(g, j, t, above[j], g->weight[j], &g->slope[j]);
}

/* e^x of larger ones is clipped */
#define LAW_MOST_EXPONENT 709.0

/* sums of the moduli of what was added, times their relative errors */
typedef struct {
    double term, slope, weight;
} threshold_errors;

/* The same in vector code: what a node's branch does not use may overflow, and is not read. */
ACCT_CLONES
static threshold_errors thresholded_errors(const acct_tilted_law *g, double c, acct_threshold threshold,
                                           const double *restrict above) {
    const double *restrict loss = g->loss, *restrict loss_err = g->loss_err, *restrict x2 = g->x2;
    const double *restrict gauss = g->gauss, *restrict quad = g->quad, *restrict exp_loss = g->exp_loss;
    const double *restrict weight = g->weight, *restrict term = g->term, *restrict slope = g->slope;
    const double order = fabs(c);
    double of_term[ACCT_LANES] = {0}, of_slope[ACCT_LANES] = {0}, of_weight[ACCT_LANES] = {0};
    for (int j = 0; j < g->count; j += ACCT_LANES)
        ACCT_EACH_LANE for (int i = 0; i < ACCT_LANES; i++) {
            const int k = j + i, far = !(x2[k] < ACCT_FAR_NOISE);
            const double l = loss[k], size = fabs(l), le = loss_err[k], w = weight[k];
            const double plain = (256.0 + 32.0 * x2[k]) * ACCT_U, e = plain + order * (le + 4.0 * ACCT_U * size);
            const double of_above = acct_threshold_above_error(l - threshold.origin, threshold, le);
            const double of_below = acct_threshold_below_error(l - threshold.origin, threshold, le);
            const double ge = far ? quad[k] * acct_vexp(l - x2[k]) : gauss[k] * exp_loss[k];
            const double noise = far ? quad[k] * acct_vexp(-x2[k]) : gauss[k];
            /* |G| is at most its computed value plus the share taken off, or the sum of its parts */
            const double z = (c - 1.0) * l,
                         em1 = z < LAW_MOST_EXPONENT ? acct_vexpm1(z) : INFINITY; /* no bound */
            const double rise = fabs(em1), off = ge * (1.0 + em1) * above[k];
            const double near_term = (fabs(term[k]) + 2.0 * off) * plain + off * of_above +
                                     order * ge * le * (rise + above[k] * (1.0 + em1));
            const double near_slope = (fabs(slope[k]) + 2.0 * size * off) * e + size * off * of_above +
                                      ge * le * (rise + (1.0 + em1) * (above[k] + 2.0 * order * size));
            const double parts = w + noise + order * fabs(ge - noise);
            const double far_term = parts * e + w * of_below + ge * order * le;
            const double far_slope = (size * w + ge) * (e + of_below) + (w + ge) * le;
            const int near = above[k] < 0.5;
            of_term[i] += near ? near_term : far_term;
            of_slope[i] += near ? near_slope : far_slope;
            of_weight[i] += w * (e + of_below);
        }
    return (threshold_errors){acct_lanes_total(of_term), acct_lanes_total(of_slope), acct_lanes_total(of_weight)};
}

void acct_thresholded_moments(acct_tilted_law *law, const double *above, const double *share,
                              acct_threshold threshold, double order, int certify, acct_moments *out) {
    const double t = order - 1.0, step_q = law->step.q;
    law->weighed = NAN;
    thresholded_terms(law, t, threshold, above, share, law->weight, law->term, law->slope);
    far_terms(law, t, above);
    double a1 = 0.0, d1 = 0.0, size = 0.0, moved = 0.0;
    for (int j = 0; j < law->count; j++) {
        a1 += law->term[j];
        d1 += law->slope[j];
        size += fabs(law->term[j]);
        moved += fabs(law->slope[j]);
    }
    /* outside the window 1 + c (e^L - 1) is subtracted, chi e^{cL} is not there */
    const double missing = law->q_above + order * law->pq_above;
    const double off = a1 - missing, a = 1.0 + off;
    out->order = order;
    out->log_mgf = off > -1.0 ? log1p(off) : off <= -1.0 ? -INFINITY : INFINITY;
    out->mean = (d1 - law->pq_above) / a;
    out->m1 = 0.0;
    out->log_mgf_err = out->mean_err = out->weight_err = 0.0;
    if (certify) {
        const threshold_errors round = thresholded_errors(law, order, threshold, above);
        double of_one, of_exp_u, analytic = 0.0, reach = 0.0;
        acct_tilted_law_plain_errors(law, &of_one, &of_exp_u);
        for (int i = 0; i < law->panels; i++)
            analytic += exp(acct_tilted_law_panel_error(law, i, order, 0.0));
        reach = acct_tilted_law_reach(law, 0.0);
        const double sum_err = (law->count + 16.0) * ACCT_U;
        const double lost = (1.0 + order * step_q) * law->outside +
                            law->above_err * (law->q_above + order * law->pq_above);
        const double linear = step_q * (of_one + of_exp_u);
        const double err =
            (round.term + analytic + of_one + order * linear + lost + sum_err * (size + missing)) * ACCT_SLACK /
            a;
        out->log_mgf_err = a > 0.0 && err < 0.01 ? 1.01 * err : INFINITY;
        out->log_mgf_err += 4.0 * ACCT_U * fabs(out->log_mgf);
        out->mean_err = (round.slope + sum_err * moved + lost + 1.01 * (reach * analytic + linear)) *
                            ACCT_SLACK / a +
                        fabs(out->mean) * (out->log_mgf_err + 4.0 * ACCT_U);
        out->weight_err = round.weight / a;
    }
    for (int j = 0; j < law->count; j++) law->weight[j] /= a;
    out->m2 = 0.0;
    for (int j = 0; j < law->count; j++) {
        const double d = law->loss[j] - out->mean;
        out->m2 += law->weight[j] * d * d;
    }
}

/* the log of A(c) itself, about: nothing cancels where it is far below 1 */
ACCT_CLONES
static double log_of_kept(const acct_tilted_law *g, acct_threshold threshold, const double *restrict share,
                          double order) {
    const double *restrict loss = g->loss, *restrict x2 = g->x2, *restrict quad = g->quad;
    const double rate = 1.0 / threshold.scale;
    double sum[ACCT_LANES] = {0};
    for (int j = 0; j < g->count; j += ACCT_LANES)
        ACCT_EACH_LANE for (int i = 0; i < ACCT_LANES; i++) {
            const int k = j + i;
            const double r = (loss[k] - threshold.origin) * rate, far = order * loss[k] - x2[k] - r * r;
            sum[i] += quad[k] * acct_vexp(far) * share[k];
        }
    return log(acct_lanes_total(sum) + ACCT_TINY);
}

/* below it 1 + the sum of the differences has few digits */
#define CANCELLED 1e-3

double acct_thresholded_log_mgf(acct_tilted_law *law, const double *above, const double *share,
                                acct_threshold threshold, double order) {
    acct_moments m;
    acct_thresholded_moments(law, above, share, threshold, order, 0, &m);
    return exp(m.log_mgf) < CANCELLED ? log_of_kept(law, threshold, share, order) : m.log_mgf;
}

double acct_thresholded_log_mgf_upper(const acct_tilted_law *law, const double *share,
                                      acct_threshold threshold, double order) {
    double total = 0.0;
    for (int j = 0; j < law->count; j++) {
        const double l = law->loss[j], le = law->loss_err[j], r = (l - threshold.origin) / threshold.scale;
        const double far = order * l - law->x2[j] - r * r;
        const double e = (256.0 + 32.0 * law->x2[j] + 8.0 * fabs(order * l)) * ACCT_U + fabs(order) * le +
                         acct_threshold_below_error(l - threshold.origin, threshold, le);
        total += (far < 700.0 ? law->quad[j] * exp(far) : INFINITY) * share[j] * (1.0 + e);
    }
    for (int i = 0; i < law->panels; i++) total += exp(acct_tilted_law_panel_error(law, i, order, 0.0));
    return log((total + ACCT_TINY) * ACCT_SLACK);
}

ACCT_CLONES
double acct_between_log_mgf(const acct_tilted_law *law, const double *middle, double order) {
    const double *restrict loss = law->loss, *restrict x2 = law->x2, *restrict quad = law->quad;
    const double *restrict chance = middle;
    double sum[ACCT_LANES] = {0};
    for (int j = 0; j < law->count; j += ACCT_LANES)
        ACCT_EACH_LANE for (int i = 0; i < ACCT_LANES; i++) {
            const int k = j + i;
            const double far = order * loss[k] - x2[k], w = quad[k] * acct_vexp(far) * chance[k];
            const double most = far < 700.0 ? w : INFINITY;
            sum[i] += chance[k] > 0.0 ? most : 0.0;
        }
    return log(acct_lanes_total(sum) + ACCT_TINY);
}

/* the sum of the terms of acct_between_log_mgf, each with its error */
ACCT_CLONES
static double between_sum_upper(const acct_tilted_law *law, const acct_thresholds *thresholds, double order) {
    const double *restrict loss = law->loss, *restrict loss_err = law->loss_err, *restrict x2 = law->x2;
    const double *restrict quad = law->quad, *restrict middle = thresholds->middle;
    const double *restrict above = thresholds->above_out;
    const acct_threshold inner = thresholds->inner, outer = thresholds->outer;
    double sum[ACCT_LANES] = {0};
    for (int j = 0; j < law->count; j += ACCT_LANES)
        ACCT_EACH_LANE for (int i = 0; i < ACCT_LANES; i++) {
            const int k = j + i;
            const double l = loss[k], le = loss_err[k], far = order * l - x2[k], excess = l - inner.origin;
            const double w = (far < 700.0 ? quad[k] * acct_vexp(far) : INFINITY) * middle[k];
            const double of_above = acct_threshold_above_error(excess, inner, le);
            const double of_below = acct_threshold_below_error(excess, outer, le);
            const double e = (256.0 + 32.0 * x2[k] + 8.0 * fabs(order * l)) * ACCT_U + order * le +
                             4.0 * (above[k] < 0.5 ? of_above : of_below);
            sum[i] += middle[k] > 0.0 ? w * (1.0 + e) : 0.0;
        }
    return acct_lanes_total(sum);
}

double acct_between_log_mgf_upper(const acct_tilted_law *law, const acct_thresholds *thresholds,
                                  double order) {
    const double total = between_sum_upper(law, thresholds, order);
    double analytic = 0.0;
    for (int i = 0; i < law->panels; i++)
        analytic +=
            exp(acct_tilted_law_panel_error(law, i, order, 0.0) - law->panel[i].damp + law->panel[i].middle);
    return log((total + analytic + ACCT_TINY) * ACCT_SLACK);
}

/* log of an upper bound on the transform of the outcomes with a middling loss but no large one at order 1 + b, if
 * the plan's law was set for both thresholds */
static double rare_log_mgf_upper(acct_rare_event_plan *s, double b) {
    acct_moments m;
    acct_thresholded_moments(s->law, s->thresholds.above_out, s->thresholds.share_out, s->thresholds.outer,
                             1.0 + b, 1, &m);
    return acct_rare_event_of_either(s->steps, m.log_mgf + m.log_mgf_err,
                     acct_between_log_mgf_upper(s->law, &s->thresholds, 1.0 + b));
}

/* Chernoff, rounded up */
int acct_rare_event_certify_small(acct_contour *k, acct_rare_event_plan *s, const acct_window *window) {
    const double n = s->steps, b = acct_exact_distance(s->b_small);
    acct_window limited = *window;
    acct_moments m;
    limited.threshold = s->thresholds.inner;
    const double log_size = acct_min((s->log_wanted + b * s->epsilon) / n, 0.0); /* of B */
    const int status = acct_tilted_law_set(s->law, s->step, &limited, 1.0 + b, 0.0, log_size - log(n) - 8.0);
    if (status) return status;
    acct_thresholds_set(s->law, &s->thresholds);
    acct_thresholded_moments(s->law, s->thresholds.above_in, s->thresholds.share_in, s->thresholds.inner,
                             1.0 + b, 1, &m);
    const double near = m.log_mgf_err < INFINITY ? m.log_mgf + m.log_mgf_err : INFINITY;
    const double log_b = acct_min(
        near, acct_thresholded_log_mgf_upper(s->law, s->thresholds.share_in, s->thresholds.inner, 1.0 + b));
    k->small_losses_log = acct_log_chernoff(b) + n * log_b + 1e-9 + 1e-12 * n * fabs(log_b);
    k->small_losses_slope = b;
    if (!(k->small_losses_log < INFINITY)) k->small_losses_log = k->small_losses_slope = 0.0;
    return ACCT_OK;
}

int acct_rare_event_certify(acct_contour *k, acct_rare_event_plan *s, acct_tilted_law *scratch,
                            const acct_window *window, acct_moments *m) {
    const double n = s->steps;
    int status = acct_tilted_law_set(scratch, s->step, window, -s->reverse_order, 0.0, -log(n) - 8.0);
    if (status) return status;
    acct_window limited = *window;
    limited.threshold = s->thresholds.outer;
    limited.inner_threshold = s->thresholds.inner;
    limited.reverse_order = s->reverse_order;
    limited.reverse_log = s->reverse_log - log(n);
    limited.log_plain = -38.0 - log(n); /* relative to transforms next to 1 */
    s->b = acct_exact_distance(s->b);
    s->b_right = acct_exact_distance(s->b_right);
    if (s->b_left > 0.0) s->b_left = acct_exact_distance(s->b_left);
    /* the aliases' bounds need a few digits of C, however small it is, unless they are negligible */
    limited.middle_order[0] = 1.0 + s->b_right;
    limited.middle_order[1] = 1.0 + s->b_left;
    limited.log_middle[0] = acct_max(s->log_right - 5.0, s->log_wanted + s->b_right * s->epsilon - log(n) - 3.0);
    limited.log_middle[1] = acct_max(s->log_left - 5.0, s->log_wanted + s->b_left * s->epsilon - log(n) - 3.0);
    status = acct_tilted_law_set(s->law, s->step, &limited, 1.0 + s->b, 0.0,
                                 acct_min(s->log_wanted, -30.0) - log(n) - 3.0);
    if (status) return status;
    acct_thresholds_set(s->law, &s->thresholds);
    acct_tail_event_set_thresholded(&k->tail, s->law, scratch, &s->thresholds, n, s->reverse_order);
    const double right = rare_log_mgf_upper(s, s->b_right),
                 left = rare_log_mgf_upper(s, s->b_left);
    acct_thresholded_moments(s->law, s->thresholds.above_out, s->thresholds.share_out, s->thresholds.outer,
                             1.0 + s->b, 1, m);
    k->direction = ACCT_REMOVE;
    k->answers_add = 0;
    k->least = 0.0;
    k->steps = n;
    k->b = s->b;
    k->log_scale = n * m->log_mgf;
    k->log_scale_err = n * m->log_mgf_err + 4.0 * ACCT_U * fabs(k->log_scale);
    k->drift = n * m->mean;
    const double unit = k->log_scale - k->log_scale_err - 1e-9;
    k->right = (acct_alias){.log_size = acct_log_chernoff(s->b_right) + right - unit,
                             .slope = s->b_right - s->b};
    k->left = (acct_alias){.log_size = acct_log_chernoff(s->b_left) + left - unit,
                             .slope = s->b_left - s->b};
    const double digits = k->log_scale - s->b * s->epsilon - s->log_wanted;
    const double to_right = k->right.log_size / k->right.slope - s->epsilon + digits / k->right.slope;
    const double to_left = -k->left.log_size / k->left.slope + s->epsilon - digits / k->left.slope;
    if (!(to_right < INFINITY && to_left < INFINITY)) return ACCT_EPRECISION;
    const double period = acct_max(acct_max(to_right, to_left), s->unit);
    k->dy = acct_short_step(2.0 * ACCT_PI / period * (1.0 - 1e-12));
    return ACCT_OK;
}
