#include "renyi.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#include "gauss_legendre.h"
#include "rounding.h"
#include "bounds.h"
#include "tilted_law.h"

/* q e^u there, times |c| + 2; G is c (c - 1) / 2 y^2 below, to within this */
#define NEAR_ONE 1e-14

double acct_renyi_bulk_end(const acct_step *step, double c) {
    const double var = step->sigma * step->sigma;
    return var * (log(NEAR_ONE / (fabs(c) + 2.0)) - log(step->q)) + 0.5;
}

/* M(x) = (1 - Phi(x)) / phi(x), x >= 12, by a convergent of its continued fraction, within 20 u */
static double mills(double x) {
    double t = x;
    for (int k = 40; k > 0; k--) t = x + k / t;
    return 1.0 / t;
}

/* e^{lift} (1 - Phi(z)), lift >= 0; the relative error is below relative_error */
static double lifted_tail(double lift, double z) {
    if (z < 12.0) return 0.5 * exp(lift) * erfc(z * sqrt(0.5));
    return exp(lift - 0.5 * z * z) / ACCT_SQRT_2PI * mills(z);
}

/* of erfc or Mills' ratio, of the exponents, and of z, whose own error moves erfc by z^2 times as much */
static double relative_error(double lift, double z) {
    return ACCT_U * (512.0 + 16.0 * (lift + 0.5 * z * acct_max(z, 0.0)));
}

void acct_renyi_bulk(const acct_step *step, double c, double end, acct_bounds *out) {
    const double sigma = step->sigma, lift = 1.0 / (sigma * sigma), z = (2.0 - end) / sigma;
    const double far = lifted_tail(lift, z), doubt = relative_error(lift, z);
    /* M: all of it less a bound on the rest, or three normal masses */
    double most = expm1(lift), least = most - lifted_tail(lift, -z) * (1.0 + relative_error(lift, -z));
    if (!(least > (1.0 - 1e-14) * most)) {
        const double near = lifted_tail(0.0, -end / sigma), middle = lifted_tail(0.0, (1.0 - end) / sigma);
        const double size = near + 2.0 * middle + far;
        most = near - 2.0 * middle + far + doubt * size;
        least = acct_max(most - 2.0 * doubt * size, 0.0);
    }
    /* y^2 = q^2 (e^u - 1)^2, |y| <= NEAR_ONE / (|c| + 2): G/y^2 is within e^{1.01 NEAR_ONE} of c (c - 1) / 2; the
     * products one by one, because q^2 underflows */
    const double scale = 0.5 * fabs(c * (c - 1.0)), q = step->q, error = doubt + 2.0 * NEAR_ONE;
    out->upper = scale * q * most * q * (1.0 + error) + ACCT_UNDERFLOW * (1.0 + scale);
    out->lower = acct_max(scale * q * least * q * (1.0 - error) - ACCT_UNDERFLOW * (1.0 + scale), 0.0);
}

#define MOST_RENYI_PIECES 2000

/* One evaluation of A(c) - 1 = int N G, G = e^{cL} - 1 - c(e^L - 1) >= 0, over the whole line.
 * The integrand has its mass near 0 and, for large orders, near x = c: the line is bisected, pieces
 * that a bound proves negligible are skipped, the rest is integrated (Theorem 12). */
typedef struct {
    acct_tilted_law *law;
    acct_step step;
    double c;
    double shift; /* sums are in units of e^{shift} */
    double floor; /* log of the absolute error to aim at, same units */
    double sum, round, quadrature, skipped;
    acct_bounds bulk; /* below bulk_end, which is -inf where nothing is apart */
    double bulk_end;
    int pieces; /* looked at so far; a sum that needs MOST_RENYI_PIECES is given up */
    int status;
} mgf_sum;

/* bound on log N G over [a, b]: G <= e^{cL} + |c| (c > 1), e^{cL} + |c| e^L (c < 0), and, where
 * |L| is small, |c||c-1| L^2/2 max(1, e^{cL}, e^L); the shift is not taken off */
static double piece_bound(const acct_step *s, double c, double a, double b) {
    const double var = s->sigma * s->sigma;
    double pa, pb;
    const double la = acct_loss(s, a, &pa), lb = acct_loss(s, b, &pb);
    const double near = a > 0.0 ? a : b < 0.0 ? b : 0.0;
    const double log_n = -0.5 * near * near / var;
    const double slope = b > a ? (lb - la) / (b - a) : 0.0;
    /* sup of cL - x^2/2var by the chord (c > 0) or by the tangent at a (c < 0); L is convex */
    double x = c * (c > 0.0 ? slope : pa / var) * var;
    x = x < a ? a : x > b ? b : x;
    const double log_f = c * (la + (c > 0.0 ? slope : pa / var) * (x - a)) - 0.5 * x * x / var;
    const double big = acct_max(fabs(la), fabs(lb));
    const double first = acct_max(log_f, log(fabs(c)) + log_n + (c < 0.0 ? acct_max(lb, 0.0) : 0.0)) + 0.7;
    const double second = log(0.5 * fabs(c * (c - 1.0))) + 2.0 * log(big + 1e-300) +
                          acct_max(acct_max(log_f, log_n), log_n + acct_max(lb, 0.0));
    return acct_min(first, second) - log(s->sigma * ACCT_SQRT_2PI);
}

/* N G at a node where a factor alone would leave the range of vmath.h: exponents are added first.
 * sets *size to the sum of the moduli that round-off is relative to */
static double far_renyi_term(const acct_tilted_law *law, int j, double c, double *size) {
    const double loss = law->loss[j], x2 = law->x2[j], quad = law->quad[j];
    const double base = exp(-x2), lifted = exp(loss - x2), tilted = exp(c * loss - x2);
    const double t = c - 1.0;
    *size = quad *
            (tilted + lifted * (1.0 + fabs(t * loss)) + fabs(c) * (lifted + base * (1.0 + fabs(loss))));
    if (c > 1.0) {
        const double z = t * loss, e2 = z > 1.0 ? 0.0 : acct_e2(z);
        const double main = z > 1.0 ? tilted - (1.0 + z) * lifted : lifted * e2;
        return quad * (main + t * lifted * acct_e2(-loss));
    }
    const double z = c * loss, e2 = z > 1.0 ? 0.0 : acct_e2(z);
    const double main = z > 1.0 ? tilted - (1.0 + z) * base : base * e2;
    const double other = loss > 1.0 ? lifted - (1.0 + loss) * base : base * acct_e2(loss);
    return quad * (main - c * other);
}

/* the terms of the nodes one by one, where a factor alone or the sum leaves the range of vmath.h at some */
static void add_renyi_nodes(mgf_sum *m) {
    const acct_tilted_law *law = m->law;
    const double c = m->c, t = c > 1.0 ? c - 1.0 : c;
    for (int j = 0; j < law->count; j++) {
        const double loss = law->loss[j], z = t * loss, x2 = law->x2[j];
        double term, rate;
        if (m->shift == 0.0 && !(z < 600.0 && fabs(loss) < 690.0 && x2 < 690.0)) {
            double size;
            term = far_renyi_term(law, j, c, &size);
            m->round += size * (acct_weight_roundoff(x2) + 8.0 * (fabs(c * loss) + fabs(loss)) * ACCT_U +
                                2.0 * (1.0 + fabs(c)) * law->loss_err[j]);
        } else if (m->shift == 0.0) {
            const double em1 = expm1(z), e2 = fabs(z) > 0.5 ? em1 - z : acct_e2(z);
            double g = law->gauss[j];
            if (c > 1.0) {
                g *= law->exp_loss[j];
                term = g * (e2 + t * law->e2_minus[j]);
                rate = g * fabs(em1);
            } else {
                term = g * (e2 - t * law->e2_plus[j]);
                rate = g * (fabs(em1) + fabs(law->exp_loss[j] - 1.0));
            }
            m->round += term * acct_weight_roundoff(x2) + law->loss_err[j] * fabs(c) * rate;
        } else { /* G = e^{cL} up to parts that are below e^{-shift} of the sum */
            const double exponent = c * loss - x2 - m->shift;
            term = law->quad[j] * exp(exponent);
            m->round += term * (acct_weight_roundoff(x2) + 4.0 * fabs(c * loss) * ACCT_U +
                                4.0 * fabs(m->shift) * ACCT_U + fabs(c) * law->loss_err[j]);
        }
        m->sum += term;
    }
}

static void add_piece(mgf_sum *m, double a, double b) {
    const double c = m->c;
    const acct_window window = {.lo = a, .hi = b};
    acct_tilted_law *law = m->law;
    m->status = acct_tilted_law_set(law, &m->step, &window, c, 0.0, m->floor + m->shift - 3.0);
    if (m->status) return;
    double sum, round;
    if (m->shift == 0.0 && acct_tilted_law_excess(law, c, &sum, &round)) {
        m->sum += sum;
        m->round += round;
    } else {
        add_renyi_nodes(m);
    }
    m->round += (law->count + 8.0) * ACCT_U * m->sum;
    const acct_moments at = {.order = c, .log_mgf = m->shift};
    m->quadrature += acct_tilted_law_error(law, &at, 0.0);
    double of_one, of_exp_u;
    acct_tilted_law_plain_errors(law, &of_one, &of_exp_u);
    m->quadrature += (of_one + fabs(c) * m->step.q * (of_one + of_exp_u)) * exp(-m->shift);
}

/* bisects [a, b] into skipped and integrated pieces */
static void add_range(mgf_sum *m, double a, double b, int depth) {
    if (m->status || !(b > a)) return;
    if (++m->pieces > MOST_RENYI_PIECES) {
        m->status = ACCT_EPRECISION;
        return;
    }
    const double bound = piece_bound(&m->step, m->c, a, b) + log(b - a) - m->shift;
    if (bound < m->floor - 5.0) {
        m->skipped += exp(bound);
        return;
    }
    const double width = b - a;
    if (width > 12.0 * m->step.sigma && depth < 60) {
        const double mid = 0.5 * (a + b);
        add_range(m, a, mid, depth + 1);
        add_range(m, mid, b, depth + 1);
        return;
    }
    /* trim what is negligible off both ends before integrating */
    const double trim = 0.25 * width;
    if (depth < 60 && width > m->step.sigma &&
        (piece_bound(&m->step, m->c, a, a + trim) + log(trim) - m->shift < m->floor - 5.0 ||
         piece_bound(&m->step, m->c, b - trim, b) + log(trim) - m->shift < m->floor - 5.0)) {
        add_range(m, a, a + trim, depth + 60);
        add_range(m, a + trim, b - trim, depth + 1);
        add_range(m, b - trim, b, depth + 60);
        return;
    }
    add_piece(m, a, b);
}

/* log of int N G below lo, far enough out for Mills' ratio: |L| <= |log(1-q)|, and
 * e^{cL} <= e^{cL(lo) + |c| L'(lo) (lo-x)} */
static double below_bound(const acct_step *s, double c, double lo) {
    const double var = s->sigma * s->sigma;
    double p;
    const double loss = acct_loss(s, lo, &p);
    const double rate = -lo / var - (c < 0.0 ? -c * p / var : 0.0);
    if (!(rate > 0.0)) return INFINITY;
    const double l0 = s->q < 1.0 ? -s->log_1mq : INFINITY;
    const double factor = acct_min(log(1.0 + fabs(c)) + 0.7, log(0.5 * fabs(c * (c - 1.0))) + 2.0 * log(l0));
    return -0.5 * lo * lo / var + (c < 0.0 ? c * loss : 0.0) - log(rate) + factor;
}

/* the same above hi: e^{cL} <= e^{cL(hi) + c (x-hi)/var} for c > 0; |c| e^L for c < 0 */
static double above_bound(const acct_step *s, double c, double hi) {
    const double var = s->sigma * s->sigma, loss = acct_loss(s, hi, NULL);
    if (!(hi > 1.0 && hi > c)) return INFINITY;
    if (!(c > 0.0)) return log(1.0 - c) - 0.5 * hi * hi / var + loss - log((hi - 1.0) / var) + 0.7;
    return acct_max(-0.5 * hi * hi / var + c * loss - log((hi - c) / var),
                    log(c) - 0.5 * hi * hi / var - log(hi / var)) +
           0.7;
}

/* About the largest log of N e^{cL}, for the search: at the largest root of x = c sigma^2 L'(x), walked to
 * from above (c > 0), or at the only root, bisected (c < 0; the density ratio increases). */
static double largest_log_term(const acct_step *step, double c) {
    const double sigma = step->sigma, var = sigma * sigma;
    double top = -INFINITY, x = c, lo = c, hi = 0.0, p;
    for (int i = 0; c > 0.0 && i < 60; i++) {
        const double f = c * acct_loss(step, x, &p) - 0.5 * x * x / var;
        if (f > top) top = f;
        if (fabs(c * p - x) <= 1e-3 * sigma) break;
        x = c * p;
    }
    for (int i = 0; !(c > 0.0) && i < 80 && hi - lo > 1e-3 * sigma; i++) {
        x = 0.5 * (lo + hi);
        const double f = c * acct_loss(step, x, &p) - 0.5 * x * x / var;
        if (f > top) top = f;
        if (c * p > x)
            lo = x;
        else
            hi = x;
    }
    return top;
}

/* Sums N G over the whole line to the floor of *m; `small` is about the log of the second-order term.
 * returns  a bound on the error of the sum: round-off, quadrature, pieces skipped and what is outside */
static double sum_line(mgf_sum *m, double small) {
    const double sigma = m->step.sigma, far = acct_max(m->c, 1.0);
    const double reach =
        sqrt(2.0 * (34.0 - acct_min(acct_min(small, m->floor + 32.0), 0.0) + log(1.0 + fabs(m->c)))) + 1.0;
    const int rare = m->bulk_end > -INFINITY;
    const double front = 0.7 - log(sigma * ACCT_SQRT_2PI) - m->shift;
    double lo = rare ? m->bulk_end : -reach * sigma, hi = acct_max(far + reach * sigma, lo), out = INFINITY;
    for (int i = 0; i < 40; i++) {
        const double above = above_bound(&m->step, m->c, hi);
        out = (rare ? above : acct_max(below_bound(&m->step, m->c, lo), above)) + front;
        if (out <= m->floor) break;
        if (!rare) lo *= 1.15;
        hi = far + 1.15 * (hi - far);
    }
    add_range(m, lo, hi, 0);
    m->sum += 0.5 * (m->bulk.lower + m->bulk.upper);
    return (m->round + m->quadrature + m->skipped + exp(out) + 0.5 * (m->bulk.upper - m->bulk.lower)) *
           ACCT_SLACK;
}

/* Sets bulk and bulk_end of rare shifts, whose bulk has a closed form.  Returns about the log of what it
 * carries, or outcomes that hardly occur without a shift, G >= (c - 1)(L e^L - e^L + 1); else `small`. */
static double set_bulk(mgf_sum *m, double small) {
    const double c = m->c, loss = acct_loss(&m->step, 1.0, NULL);
    m->bulk = (acct_bounds){0.0, 0.0};
    m->bulk_end = -INFINITY;
    if (!(m->step.q < ACCT_RARE_RATE && m->step.q * (fabs(c) + 2.0) < 1e-17) || m->shift != 0.0) return small;
    m->bulk_end = acct_renyi_bulk_end(&m->step, c);
    acct_renyi_bulk(&m->step, c, m->bulk_end, &m->bulk);
    if (m->bulk.lower > 0.0) small = acct_max(small, log(m->bulk.lower));
    return loss > 1.0 ? acct_max(small, log(acct_min(fabs(c), fabs(c - 1.0)) * m->step.q)) : small;
}

/* sets     *value = log A(c), and *error
 * ensures  |*value - log A(c)| <= *error: log(1 + t) moves by at most 1.02 times the relative error of its
 *          argument while that is below 1/100, and rounds by 4 u of itself */
static int log_mgf(acct_tilted_law *law, const acct_step *step, double c, double *value, double *error) {
    const double var = step->sigma * step->sigma;
    if (step->q == 1.0) {
        *value = 0.5 * c * (c - 1.0) / var;
        *error = 8.0 * ACCT_U * *value;
        return ACCT_OK;
    }
    /* size of the answer: N e^{cL} at the larger mode, and the second-order term of the bulk */
    const double top = largest_log_term(step, c);
    const double spread = 0.5 / var < 350.0 ? expm1(1.0 / var) : INFINITY;
    mgf_sum m = {.law = law, .step = *step, .c = c, .shift = top > 300.0 ? top : 0.0};
    const double small = set_bulk(&m, log(0.5 * fabs(c * (c - 1.0))) + 2.0 * log(step->q) +
                                          log(acct_min(spread, 1e3)) - 3.0);
    m.floor = (top > 300.0 ? 0.0 : top > 1.0 ? top - 2.0 : acct_min(small, 0.0)) - 32.0;
    double err = INFINITY;
    /* a second pass where the answer turns out smaller than expected */
    for (int pass = 0; pass < 2; pass++) {
        m.sum = m.round = m.quadrature = m.skipped = 0.0;
        m.pieces = 0;
        err = sum_line(&m, small);
        if (m.status) return m.status;
        if (err - m.round <= 2e-14 * m.sum || !(m.sum > 0.0)) break;
        m.floor = log(m.sum) - 33.0;
    }
    err += ACCT_UNDERFLOW * (1.0 + ACCT_GL_ORDER * m.pieces); /* every node may have lost so much */
    if (m.shift == 0.0 && m.sum + err < ACCT_TINY) { /* it underflows, or nearly */
        *value = *error = 0.5 * (m.sum + err);
        return ACCT_OK;
    }
    if (!(err < 0.01 * m.sum)) return ACCT_EPRECISION;
    if (m.shift == 0.0) {
        *value = log1p(m.sum);
        *error = err / (1.0 + m.sum) * 1.02 + 4.0 * ACCT_U * *value;
    } else { /* what G leaves out of e^{cL}: at most 1 + |c| (e^L + 1), mean at most 1 + 2|c| */
        *value = m.shift + log(m.sum);
        *error = 1.02 * (err + (1.0 + 2.0 * fabs(c)) * exp(-m.shift)) / m.sum +
                 4.0 * ACCT_U * (fabs(m.shift) + fabs(*value));
    }
    return ACCT_OK;
}

int acct_renyi_with(acct_tilted_law *law, const acct_step *step, double order, int direction,
                    acct_bounds *out) {
    double value, error;
    *out = (acct_bounds){0.0, 0.0};
    /* the larger direction is always that of removal (Theorem 12) */
    const int status = log_mgf(law, step, direction == ACCT_ADD ? 1.0 - order : order, &value, &error);
    if (status) return status;
    const double low = (value - error) / (order - 1.0) * (1.0 - 4.0 * ACCT_U);
    const double high = (value + error) / (order - 1.0) * (1.0 + 4.0 * ACCT_U);
    if (low > out->lower) out->lower = low;
    if (high > out->upper) out->upper = high;
    return ACCT_OK;
}

int acct_psg_renyi(double q, double sigma, double order, int direction, acct_bounds *out) {
    *out = (acct_bounds){0.0, INFINITY};
    if (!acct_valid_noise(q, sigma) || !(order > 1.0 && order < INFINITY) || !acct_valid_direction(direction))
        return ACCT_EDOMAIN;
    if (q == 0.0 || sigma == INFINITY) {
        out->upper = 0.0;
        return ACCT_OK;
    }
    const double most = 0.5 * order / sigma / sigma; /* q = 1 */
    if (!(most < 1e290)) return ACCT_OK;
    double *memory = malloc(ACCT_TILTED_LAW_DOUBLES(ACCT_MAX_NODES) * sizeof(double));
    if (!memory) return ACCT_ENOMEM;
    acct_tilted_law law;
    acct_tilted_law_place(&law, memory, ACCT_MAX_NODES);
    const acct_step step = acct_step_make(acct_max(q, ACCT_LEAST_Q), sigma);
    int status = acct_renyi_with(&law, &step, order, direction, out);
    free(memory);
    if (status == ACCT_EPRECISION) { /* subsampling never costs more than q = 1 */
        *out = (acct_bounds){0.0, most * (1.0 + 16.0 * ACCT_U)};
        status = ACCT_OK;
    }
    if (q < ACCT_LEAST_Q) out->lower = 0.0;
    return status;
}
