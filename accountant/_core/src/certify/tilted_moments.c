#include <math.h>
#include <stddef.h>

#include "rounding.h"
#include "tilted_law.h"
#include "vmath.h"

/* A(c) - 1 = sum of N (e^{cL} - 1 - c(e^L - 1)) over I, minus the integral of N (1 + c(e^L - 1)) outside I.
 * Every summand is non-negative, so tiny A - 1 keeps its relative accuracy; likewise A'(c) is a sum
 * of N (L e^{cL} - (e^L - 1)), of one sign.  With t = c - 1 (c > 1):
 *     e^L (E2(tL) + t E2(-L))  and  e^L (E2(-L) + L expm1(tL));
 * with t = c (c < 0):  E2(tL) - t E2(L)  and  L expm1(tL) - E2(L).   One expm1 a node. */
ACCT_CLONES
static void small_terms(int count, int remove, double t, const double *restrict loss,
                        const double *restrict gauss, const double *restrict exp_loss,
                        const double *restrict e2_plus, const double *restrict e2_minus,
                        double *restrict weight, double *restrict term, double *restrict slope,
                        double *restrict rate) {
    if (remove)
        for (int j = 0; j < count; j++) {
            double em1;
            const double z = t * loss[j], tilt = acct_vexp_both(z, &em1), e2 = acct_ve2(z, em1);
            const double g = gauss[j] * exp_loss[j];
            term[j] = g * (e2 + t * e2_minus[j]);
            slope[j] = g * (e2_minus[j] + loss[j] * em1);
            rate[j] = fabs(em1);
            weight[j] = g * tilt;
        }
    else
        for (int j = 0; j < count; j++) {
            double em1;
            const double z = t * loss[j], tilt = acct_vexp_both(z, &em1), e2 = acct_ve2(z, em1);
            const double g = gauss[j];
            term[j] = g * (e2 - t * e2_plus[j]);
            slope[j] = g * (loss[j] * em1 - e2_plus[j]);
            rate[j] = fabs(em1) + fabs(exp_loss[j] - 1.0);
            weight[j] = g * tilt;
        }
}

ACCT_CLONES
static double lane_sum(int count, const double *restrict a) {
    double s[ACCT_LANES] = {0};
    for (int j = 0; j < count; j += ACCT_LANES)
        ACCT_EACH_LANE for (int i = 0; i < ACCT_LANES; i++) s[i] += a[j + i];
    return acct_lanes_total(s);
}

/* sums over the nodes: of term and of slope of small_terms, and of the weights times 1, L and L^2 */
typedef struct {
    double term, slope, weight, first, second;
} search_sums;

ACCT_CLONES
static void terms_for_search(int count, double sign, double t, const double *restrict loss,
                             const double *restrict gauss, const double *restrict exp_loss,
                             const double *restrict other, double *restrict weight, double *restrict term,
                             double *restrict slope) {
    const double side = sign * t, tilted = sign > 0.0 ? 1.0 : 0.0; /* no branch in the loop */
    for (int j = 0; j < count; j++) {
        double em1;
        const double z = t * loss[j], tilt = acct_vexp_both(z, &em1), e2 = acct_ve2(z, em1);
        const double g = gauss[j] * (tilted * exp_loss[j] + (1.0 - tilted));
        term[j] = g * (e2 + side * other[j]);
        slope[j] = g * (loss[j] * em1 + sign * other[j]);
        weight[j] = g * tilt;
    }
}

ACCT_CLONES
static void sum_for_search(const acct_tilted_law *g, search_sums *out) {
    const double *restrict loss = g->loss, *restrict weight = g->weight;
    const double *restrict term = g->term, *restrict slope = g->slope;
    double a[ACCT_LANES] = {0}, d[ACCT_LANES] = {0}, w[ACCT_LANES] = {0};
    double w1[ACCT_LANES] = {0}, w2[ACCT_LANES] = {0};
    for (int j = 0; j < g->count; j += ACCT_LANES)
        ACCT_EACH_LANE for (int i = 0; i < ACCT_LANES; i++) {
            const double l = loss[j + i], v = weight[j + i], vl = v * l;
            a[i] += term[j + i];
            d[i] += slope[j + i];
            w[i] += v;
            w1[i] += vl;
            w2[i] += vl * l;
        }
    *out = (search_sums){acct_lanes_total(a), acct_lanes_total(d), acct_lanes_total(w), acct_lanes_total(w1),
                         acct_lanes_total(w2)};
}

/* acct_tilted_law_moments for searches, in one pass; m1 and m2 are differences */
static void moments_for_search(acct_tilted_law *law, double c, acct_moments *out) {
    const int remove = c > 1.0;
    search_sums s;
    terms_for_search(law->count, remove ? 1.0 : -1.0, remove ? c - 1.0 : c, law->loss, law->gauss, law->exp_loss,
                     remove ? law->e2_minus : law->e2_plus, law->weight, law->term, law->slope);
    sum_for_search(law, &s);
    const double off = s.term - (law->q_above + c * law->pq_above), scale = 1.0 / (1.0 + off);
    out->log_mgf = log1p(off);
    const double mean = out->mean = (s.slope - law->pq_above) * scale;
    out->m1 = (s.first - mean * s.weight) * scale;
    out->m2 = acct_max((s.second - mean * (2.0 * s.first - mean * s.weight)) * scale, 0.0);
    for (int j = 0; j < law->count; j++) law->weight[j] *= scale;
}

/* bound on the mass outside the window that the sum for A does not include */
static double outside_upper(const acct_tilted_law *law, double c) {
    return (1.0 + fabs(c) * law->step.q) * law->outside +
           law->above_err * (law->q_above + fabs(c) * law->pq_above);
}

/* sets     bounds on the round-off of the sums of term, slope and weight
 * error    each summand is a product of computed factors: acct_weight_roundoff of itself, and the error of L
 *          times its derivative in L, whose size is `rate`.  For 0 < c < 1 the two parts of a summand have
 *          opposite signs, so their moduli are counted (`opposite`). */
ACCT_CLONES
static void small_errors(const acct_tilted_law *g, int remove, double c, const double *restrict term,
                         const double *restrict slope, const double *restrict rate, double *term_err,
                         double *slope_err, double *weight_err) {
    const double *restrict x2 = g->x2, *restrict loss = g->loss, *restrict le = g->loss_err;
    const double *restrict gauss = g->gauss, *restrict exp_loss = g->exp_loss;
    const double *restrict weight = g->weight, *restrict e2_plus = g->e2_plus;
    const double size = fabs(c), opposite = remove ? 0.0 : 2.0 * size;
    const double tilted = remove ? 1.0 : 0.0; /* no branch in the loop */
    double a[ACCT_LANES] = {0}, b[ACCT_LANES] = {0}, w[ACCT_LANES] = {0};
    for (int j = 0; j < g->count; j += ACCT_LANES)
        ACCT_EACH_LANE for (int i = 0; i < ACCT_LANES; i++) {
            const int k = j + i;
            const double e = acct_weight_roundoff(x2[k]), cl = size * fabs(loss[k]);
            const double loss_error = le[k] * gauss[k] * (tilted * exp_loss[k] + (1.0 - tilted));
            /* for 0 < c < 1 the two parts of the term have opposite signs */
            a[i] += (fabs(term[k]) + opposite * gauss[k] * e2_plus[k]) * e + loss_error * size * rate[k];
            b[i] += (fabs(slope[k]) + opposite * gauss[k] * e2_plus[k]) * e +
                    loss_error * (rate[k] * (1.0 + cl) + cl);
            w[i] += weight[k] * (e + le[k] * size);
        }
    *term_err = (a[0] + a[1]) + (a[2] + a[3]);
    *slope_err = (b[0] + b[1]) + (b[2] + b[3]);
    *weight_err = (w[0] + w[1]) + (w[2] + w[3]);
}

/* the sum of terms alone */
ACCT_CLONES
static double terms_only(const acct_tilted_law *g, int remove, double c) {
    const double *restrict loss = g->loss, *restrict gauss = g->gauss, *restrict exp_loss = g->exp_loss;
    const double *restrict other = remove ? g->e2_minus : g->e2_plus;
    const double t = remove ? c - 1.0 : c, side = remove ? t : -t, tilted = remove ? 1.0 : 0.0;
    double a[ACCT_LANES] = {0};
    for (int j = 0; j < g->count; j += ACCT_LANES)
        ACCT_EACH_LANE for (int i = 0; i < ACCT_LANES; i++) {
            const int k = j + i;
            const double z = t * loss[k], em1 = acct_vexpm1(z), e2 = acct_ve2(z, em1);
            a[i] += gauss[k] * (tilted * exp_loss[k] + (1.0 - tilted)) * (e2 + side * other[k]);
        }
    return acct_lanes_total(a);
}

/* the same, with its error bound as above */
ACCT_CLONES
static double terms_and_error(const acct_tilted_law *g, int remove, double c, double *error) {
    const double *restrict x2 = g->x2, *restrict loss = g->loss, *restrict le = g->loss_err;
    const double *restrict gauss = g->gauss, *restrict exp_loss = g->exp_loss;
    const double *restrict e2_plus = g->e2_plus, *restrict other = remove ? g->e2_minus : g->e2_plus;
    const double size = fabs(c), t = remove ? c - 1.0 : c, side = remove ? t : -t;
    const double tilted = remove ? 1.0 : 0.0, opposite = 2.0 * size * (1.0 - tilted);
    double a[ACCT_LANES] = {0}, b[ACCT_LANES] = {0};
    for (int j = 0; j < g->count; j += ACCT_LANES)
        ACCT_EACH_LANE for (int i = 0; i < ACCT_LANES; i++) {
            const int k = j + i;
            const double z = t * loss[k], em1 = acct_vexpm1(z), e2 = acct_ve2(z, em1);
            const double w = gauss[k] * (tilted * exp_loss[k] + (1.0 - tilted));
            const double term = w * (e2 + side * other[k]);
            const double rate = fabs(em1) + (1.0 - tilted) * fabs(exp_loss[k] - 1.0);
            a[i] += term;
            b[i] += (fabs(term) + opposite * gauss[k] * e2_plus[k]) * acct_weight_roundoff(x2[k]) +
                    le[k] * w * size * rate;
        }
    *error = acct_lanes_total(b);
    return acct_lanes_total(a);
}

/* ensures  |computed log A - log A| <= returned, quadrature not counted: round-off of the terms and of their
 *          sum, and the mass outside the window, relative to A; |log(1 + r)| <= 1.01 r for r < 1/100, and no
 *          claim beyond */
static double log_mgf_error(const acct_tilted_law *law, double c, double a1, double a, double a1_err) {
    const double sum_err = (law->count / ACCT_LANES + 16.0) * ACCT_U;
    const double missing = law->q_above + c * law->pq_above;
    const double off = (a1_err + sum_err * (fabs(a1) + fabs(missing)) + outside_upper(law, c)) / a;
    return a > 0.0 && off < 0.01 ? 1.01 * off : INFINITY;
}

static void moments_small(acct_tilted_law *law, double c, acct_moments *out) {
    const int remove = c > 1.0, n = law->count;
    double *term = law->term, *slope = law->slope, *rate = law->rate;
    small_terms(n, remove, remove ? c - 1.0 : c, law->loss, law->gauss, law->exp_loss, law->e2_plus,
                law->e2_minus, law->weight, term, slope, rate);
    const double a1 = lane_sum(n, term), d1 = lane_sum(n, slope);
    /* left of the window so little is missing that it is counted as an error */
    const double missing = law->q_above + c * law->pq_above;
    const double a = 1.0 + (a1 - missing);
    out->log_mgf = log1p(a1 - missing);
    out->mean = (d1 - law->pq_above) / a;
    double a1_err, d1_err, w_err;
    small_errors(law, remove, c, term, slope, rate, &a1_err, &d1_err, &w_err);
    const double sum_err = (n / ACCT_LANES + 16.0) * ACCT_U;
    out->weight_err = w_err / a;
    out->log_mgf_err = log_mgf_error(law, c, a1, a, a1_err);
    out->mean_err = (d1_err + sum_err * fabs(d1) + outside_upper(law, c)) / a +
                    fabs(out->mean) * out->log_mgf_err;
    const double scale = 1.0 / a;
    for (int j = 0; j < n; j++) law->weight[j] *= scale;
}

/* the same where a factor leaves the range of vmath.h at some node: log A by shifting exponents */
static void moments_large(acct_tilted_law *law, double c, int certify, acct_moments *out) {
    double top = -INFINITY, sum = 0.0, first = 0.0, w_err = 0.0, m_err = 0.0;
    for (int j = 0; j < law->count; j++) top = acct_max(top, c * law->loss[j] - law->x2[j]);
    for (int j = 0; j < law->count; j++) {
        const double w = law->quad[j] * exp(c * law->loss[j] - law->x2[j] - top);
        if (certify) {
            const double e = acct_weight_roundoff(law->x2[j]) + 4.0 * fabs(top) * ACCT_U +
                             fabs(c) * (law->loss_err[j] + 4.0 * ACCT_U * fabs(law->loss[j]));
            w_err += w * e;
            m_err += w * (2.0 * e * fabs(law->loss[j]) + law->loss_err[j]);
        }
        law->weight[j] = w;
        sum += w;
        first += w * law->loss[j];
    }
    out->log_mgf = top + log(sum);
    out->mean = first / sum;
    if (certify) {
        const double sum_err = (law->count + 16.0) * ACCT_U;
        out->weight_err = w_err / sum;
        out->log_mgf_err = out->weight_err + sum_err + 4.0 * ACCT_U * fabs(top);
        out->mean_err = m_err / sum + (sum_err + out->weight_err) * fabs(out->mean);
    }
    for (int j = 0; j < law->count; j++) law->weight[j] /= sum;
}

ACCT_CLONES
static void central_moments(const acct_tilted_law *g, acct_moments *out) {
    const double *restrict loss = g->loss, *restrict weight = g->weight;
    const double mean = out->mean;
    double m1[ACCT_LANES] = {0}, m2[ACCT_LANES] = {0};
    for (int j = 0; j < g->count; j += ACCT_LANES)
        ACCT_EACH_LANE for (int i = 0; i < ACCT_LANES; i++) {
            const double d = loss[j + i] - mean, wd = weight[j + i] * d;
            m1[i] += wd;
            m2[i] += wd * d;
        }
    out->m1 = acct_lanes_total(m1);
    out->m2 = acct_lanes_total(m2);
}

/* adds the quadrature's share to the error of log A; returns the relative error of A's sum, and sets
 * *linear to that of q N (e^u - 1), in units of A: the summands are N e^{cL}, N and c q N (e^u - 1) */
static double add_quadrature(acct_tilted_law *law, acct_moments *m, double *linear) {
    double of_one, of_exp_u;
    acct_tilted_law_plain_errors(law, &of_one, &of_exp_u);
    const double scale = exp(-acct_min(acct_max(m->log_mgf, -690.0), 600.0));
    const double relative = acct_tilted_law_error(law, m, 0.0);
    *linear = law->step.q * (of_one + of_exp_u) * scale;
    /* |A - Â| <= r A gives |log A - log Â| <= 1.01 r for r < 1/100; beyond, no claim */
    const double r = relative + of_one * scale + fabs(m->order) * *linear;
    m->log_mgf_err += r < 0.01 ? 1.01 * r : INFINITY;
    m->log_mgf_err += 4.0 * ACCT_U * fabs(m->log_mgf);
    return relative;
}

/* a variance over the square of the mean of which a difference of the two has few digits */
#define NARROW_LAW 1e-6

/* whether every factor of the moments stays in the range of vmath.h */
static int in_range(const acct_tilted_law *law, double order) {
    /* L and x are monotone: their extremes are at the ends */
    const int last = law->count - 1;
    const double ends = acct_max(order * law->loss[0], order * law->loss[last]);
    const double most =
        acct_max(acct_max(fabs(law->loss[0]), fabs(law->loss[last])), acct_max(law->x2[0], law->x2[last]));
    return ends < 600.0 && most < 690.0;
}

int acct_tilted_law_excess(const acct_tilted_law *law, double order, double *sum, double *error) {
    if (!in_range(law, order)) return 0;
    *sum = terms_and_error(law, order > 1.0, order, error);
    return 1;
}

double acct_tilted_law_log_mgf(acct_tilted_law *law, double order, double *error) {
    acct_moments m = {.order = order};
    const double missing = law->q_above + order * law->pq_above;
    if (!in_range(law, order)) {
        acct_tilted_law_moments(law, order, error != NULL, &m);
    } else if (!error) {
        return log1p(terms_only(law, order > 1.0, order) - missing);
    } else {
        double a1_err, linear;
        const double a1 = terms_and_error(law, order > 1.0, order, &a1_err);
        m.log_mgf = log1p(a1 - missing);
        m.log_mgf_err = log_mgf_error(law, order, a1, 1.0 + (a1 - missing), a1_err);
        add_quadrature(law, &m, &linear);
    }
    if (error) *error = m.log_mgf_err;
    return m.log_mgf;
}

void acct_tilted_law_moments(acct_tilted_law *law, double order, int certify, acct_moments *out) {
    out->order = order;
    out->log_mgf_err = out->mean_err = out->weight_err = 0.0;
    law->weighed = certify ? order : NAN;
    const int small = in_range(law, order);
    if (small && !certify)
        moments_for_search(law, order, out);
    else if (small)
        moments_small(law, order, out);
    else
        moments_large(law, order, certify, out);
    /* those of a search cancel where the law is narrow, as at the end of a window */
    if (!small || certify || !(out->m2 > NARROW_LAW * out->mean * out->mean)) central_moments(law, out);
    if (certify) {
        double linear;
        const double before = out->log_mgf_err, relative = add_quadrature(law, out, &linear);
        /* the mean is a quotient: what the quadrature moves A by moves it, too */
        out->mean_err += 1.01 * (acct_tilted_law_reach(law, 0.0) * relative + linear) +
                         fabs(out->mean) * (out->log_mgf_err - before) + 4.0 * ACCT_U * fabs(out->mean);
    }
}
