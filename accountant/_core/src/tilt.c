#include "tilt.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "gauss_legendre.h"
#include "loss_inline.h"
#include "rounding.h"
#include "status.h"
#include "vmath.h"

void acct_grid_place(acct_grid *grid, double *memory, int capacity) {
    memset(grid, 0, sizeof *grid);
    double **slots[ACCT_GRID_ARRAYS] = {
        &grid->node,    &grid->x2,       &grid->loss,     &grid->quad,   &grid->gauss,
        &grid->exp_loss, &grid->e2_plus, &grid->e2_minus, &grid->loss_err, &grid->weight,
        &grid->term,    &grid->slope,    &grid->bend};
    for (int i = 0; i < ACCT_GRID_ARRAYS; i++) *slots[i] = memory + (size_t)i * (size_t)capacity;
    grid->capacity = capacity;
}

void acct_grid_plain_errors(const acct_grid *grid, double *of_one, double *of_exp_u) {
    const double var = grid->step.sigma * grid->step.sigma;
    *of_one = *of_exp_u = 0.0;
    for (int i = 0; i < grid->panels; i++) {
        const acct_panel *p = &grid->panel[i];
        *of_one += exp(acct_panel_error_of_one(p, var));
        *of_exp_u += exp(acct_panel_error_of_exp_u(p, var));
    }
    *of_one *= 1.0 + 1e-6;
    *of_exp_u *= 1.0 + 1e-6;
}

double acct_grid_error(const acct_grid *grid, const acct_moments *m, double y) {
    const double var = grid->step.sigma * grid->step.sigma;
    double total = 0.0;
    for (int i = 0; i < grid->panels; i++)
        total += exp(acct_panel_error(&grid->panel[i], m->order, y, var) - m->log_mgf);
    return total * (1.0 + 1e-6);
}

double acct_grid_reach(const acct_grid *grid, double mean) {
    double reach = 0.0, arg = 0.0, modulus = 0.0;
    for (int i = 0; i < grid->panels; i++) {
        const acct_panel *p = &grid->panel[i];
        reach = fmax(reach, fmax(fabs(p->loss_lo - mean), fabs(p->loss_hi - mean)));
        arg = fmax(arg, p->arg);
        modulus = fmax(modulus, p->modulus);
    }
    return (reach + arg + modulus + grid->lift) * ACCT_SLACK;
}

/* the nodes of one panel */
ACCT_CLONES
static void fill_nodes(const acct_step *step, double mid, double half, double *restrict node,
                       double *restrict x2, double *restrict quad, double *restrict gauss,
                       double *restrict loss, double *restrict loss_err,
                       double *restrict exp_loss, double *restrict e2_plus,
                       double *restrict e2_minus) {
    const double sigma = step->sigma, var2 = 2.0 * sigma * sigma, q = step->q;
    const double norm = half / (sigma * 2.5066282746310002), log_q = step->log_q;
    const double log_1mq = q < 1.0 ? step->log_1mq : 0.0, odds = step->odds;
    const double node_err = 8.0 * ACCT_U * (fabs(mid) + half) / var2;
    for (int i = 0; i < ACCT_GL_ORDER; i++) {
        const double x = mid + half * ACCT_GL_NODE[i], u = (2.0 * x - 1.0) / var2;
        const double z = x / sigma;
        node[i] = x;
        x2[i] = 0.5 * z * z;
        quad[i] = norm * ACCT_GL_WEIGHT[i];
        gauss[i] = quad[i] * acct_vexp(-x2[i]);
        double p;
        const double inner = acct_loss_at(u, q, log_q, log_1mq, odds, &p);
        const double l = q == 1.0 ? u : inner;
        loss[i] = l;
        loss_err[i] = ACCT_U * (24.0 * fabs(l) + 12.0 * p * fabs(u)) + node_err * p;
        double lm1;
        exp_loss[i] = acct_vexp_both(l, &lm1); /* relative, also where l is far below 0 */
        e2_plus[i] = acct_ve2(l, lm1);
        e2_minus[i] = acct_ve2(-l, acct_vexpm1(-l));
    }
}

/* log of the panel's share of acct_grid_error, for those who multiply the integrand */
double acct_grid_panel_error(const acct_grid *grid, int panel, double order, double y) {
    return acct_panel_error(&grid->panel[panel], order, y, grid->step.sigma * grid->step.sigma);
}

static void add_nodes(acct_grid *g, double mid, double half) {
    const int j = g->count;
    fill_nodes(&g->step, mid, half, g->node + j, g->x2 + j, g->quad + j, g->gauss + j, g->loss + j,
               g->loss_err + j, g->exp_loss + j, g->e2_plus + j, g->e2_minus + j);
    g->count += ACCT_GL_ORDER;
}

/* Q and P - Q of {x > hi}: the difference of two tails by quadrature where they are close */
static void set_above(acct_grid *grid, double root) {
    const double far = grid->hi * root, near = (grid->hi - 1.0) * root;
    double between = 0.0;
    grid->q_above = 0.5 * erfc(far);
    if (root * (far + fabs(near)) < 8.0)
        for (int i = 0; i < ACCT_GL_ORDER; i++) {
            const double t = far - 0.5 * root * (1.0 + ACCT_GL_NODE[i]);
            between += ACCT_GL_WEIGHT[i] * exp(-t * t);
        }
    const double close = 0.5 * root * 1.1283791670955126 * between; /* 2/sqrt(pi) */
    grid->pq_above = grid->step.q * 0.5 * (between > 0.0 ? close : erfc(near) - erfc(far));
    grid->above_err = (64.0 + 32.0 * far * far) * ACCT_U;
}

/* what does not depend on the panels; 0 if there is no window */
static int start(acct_grid *grid, const acct_step *step, const acct_window *window) {
    const double sigma = step->sigma, lo = window->lo, hi = window->hi;
    grid->step = *step;
    grid->lo = lo;
    grid->hi = hi;
    grid->count = grid->panels = 0;
    grid->lift = window->shift > 0.0 ? 2.0 * window->shift / (sigma * sigma) : 0.0;
    if (!(lo < hi && lo > -INFINITY && hi < INFINITY)) return 0;
    const double root = 1.0 / (sigma * sqrt(2.0));
    grid->outside = 0.5 * erfc(-lo * root) * (1.0 + 1e-9);
    set_above(grid, root);
    return 1;
}

int acct_grid_set(acct_grid *grid, const acct_step *step, const acct_window *window, double order,
                  double y_max, double log_error) {
    const double lo = window->lo, hi = window->hi;
    if (!start(grid, step, window)) return ACCT_EPRECISION;
    double width = 0.25 * fmin(hi - lo, 24.0 * step->sigma), x = lo;
    for (int part = 0; part <= window->breaks; part++) {
        const double end = part < window->breaks ? window->at[part] : hi;
        while (x < end) {
            if (grid->panels == ACCT_MAX_PANELS || grid->count + ACCT_GL_ORDER > grid->capacity)
                return ACCT_EPRECISION;
            double wish = fmin(1.5 * width, end - x);
            if (end - x < 1.3 * wish) wish = end - x;
            const double got = acct_panel_widest(&grid->panel[grid->panels], step, x, wish, window,
                                                 order, y_max, log_error);
            if (!(got > 0.0)) return ACCT_EPRECISION;
            add_nodes(grid, x + 0.5 * got, 0.5 * got);
            grid->panels++;
            if (got < wish || wish > width) width = got;
            x = got < end - x ? x + got : end;
        }
    }
    return ACCT_OK;
}

void acct_grid_layout(const acct_grid *grid, acct_layout *layout) {
    const double width = grid->hi - grid->lo;
    layout->panels = grid->panels <= ACCT_MAX_LAYOUT ? grid->panels : 0;
    for (int i = 0; i < layout->panels; i++) {
        /* the panel's own right end, from its ellipse: mid + half, a = half (rho + 1/rho) / 2 */
        const acct_panel *p = &grid->panel[i];
        const double half = (p->hi - p->mid) / (0.5 * (p->rho + 1.0 / p->rho));
        layout->end[i] = (p->mid + half - grid->lo) / width;
        layout->rho[i] = p->rho;
    }
}

int acct_grid_set_along(acct_grid *grid, const acct_step *step, const acct_window *window, double order,
                        double y_max, double log_error, const acct_layout *layout) {
    if (!start(grid, step, window) || layout->panels * ACCT_GL_ORDER > grid->capacity)
        return ACCT_EPRECISION;
    double x = window->lo;
    for (int i = 0; i < layout->panels; i++) {
        const double end = i + 1 < layout->panels
                               ? window->lo + layout->end[i] * (window->hi - window->lo)
                               : window->hi;
        if (!(x < end) || !acct_panel_fits(&grid->panel[i], step, x, end - x, layout->rho[i], window,
                                           order, y_max, log_error))
            return ACCT_EPRECISION;
        add_nodes(grid, x + 0.5 * (end - x), 0.5 * (end - x));
        grid->panels++;
        x = end;
    }
    return layout->panels ? ACCT_OK : ACCT_EPRECISION;
}

/* A(c) - 1 = sum of N (e^{cL} - 1 - c(e^L - 1)) over I, minus what 1 and c(e^L - 1) have outside I.
 * Every summand is non-negative, so tiny A - 1 keeps its relative accuracy; likewise A'(c) is a sum
 * of N (L e^{cL} - (e^L - 1)), of one sign.  With t = c - 1 (c > 1):
 *     e^L (E2(tL) + t E2(-L))  and  e^L (E2(-L) + L expm1(tL));
 * with t = c (c < 0):  E2(tL) - t E2(L)  and  L expm1(tL) - E2(L).   One expm1 a node. */
ACCT_CLONES
static void small_terms(int count, int remove, double t, const double *restrict loss,
                        const double *restrict gauss, const double *restrict exp_loss,
                        const double *restrict e2_plus, const double *restrict e2_minus,
                        double *restrict weight, double *restrict term, double *restrict slope,
                        double *restrict bend) {
    if (remove)
        for (int j = 0; j < count; j++) {
            double em1;
            const double z = t * loss[j], tilt = acct_vexp_both(z, &em1), e2 = acct_ve2(z, em1);
            const double g = gauss[j] * exp_loss[j];
            term[j] = g * (e2 + t * e2_minus[j]);
            slope[j] = g * (e2_minus[j] + loss[j] * em1);
            bend[j] = fabs(em1);
            weight[j] = g * tilt;
        }
    else
        for (int j = 0; j < count; j++) {
            double em1;
            const double z = t * loss[j], tilt = acct_vexp_both(z, &em1), e2 = acct_ve2(z, em1);
            const double g = gauss[j];
            term[j] = g * (e2 - t * e2_plus[j]);
            slope[j] = g * (loss[j] * em1 - e2_plus[j]);
            bend[j] = fabs(em1) + fabs(exp_loss[j] - 1.0);
            weight[j] = g * tilt;
        }
}

#define LANES 4 /* divides every node count: sums run in this many strands */

ACCT_CLONES
static double strand_sum(int count, const double *restrict a) {
    double s[LANES] = {0};
    for (int j = 0; j < count; j += LANES)
        for (int i = 0; i < LANES; i++) s[i] += a[j + i];
    return (s[0] + s[1]) + (s[2] + s[3]);
}

/* what lies outside the window, as far as the sum leaves it open */
static double lost(const acct_grid *grid, double c) {
    return (1.0 + fabs(c) * grid->step.q) * grid->outside +
           grid->above_err * (grid->q_above + fabs(c) * grid->pq_above);
}

/* sums of the error bounds of term, slope and weight */
ACCT_CLONES
static void small_errors(const acct_grid *g, int remove, double c, const double *restrict term,
                         const double *restrict slope, const double *restrict bend, double *term_err,
                         double *slope_err, double *weight_err) {
    const double *restrict x2 = g->x2, *restrict loss = g->loss, *restrict le = g->loss_err;
    const double *restrict gauss = g->gauss, *restrict exp_loss = g->exp_loss;
    const double *restrict weight = g->weight, *restrict e2_plus = g->e2_plus;
    const double size = fabs(c), apart = remove ? 0.0 : 2.0 * size;
    double a[LANES] = {0}, b[LANES] = {0}, w[LANES] = {0};
    for (int j = 0; j < g->count; j += LANES)
        for (int i = 0; i < LANES; i++) {
            const int k = j + i;
            const double e = (128.0 + 12.0 * x2[k]) * ACCT_U, cl = size * fabs(loss[k]);
            const double moved = le[k] * gauss[k] * (remove ? exp_loss[k] : 1.0);
            /* for 0 < c < 1 the two parts of the term have opposite signs */
            a[i] += (fabs(term[k]) + apart * gauss[k] * e2_plus[k]) * e + moved * size * bend[k];
            b[i] += (fabs(slope[k]) + apart * gauss[k] * e2_plus[k]) * e + moved * (bend[k] * (1.0 + cl) + cl);
            w[i] += weight[k] * (e + le[k] * size);
        }
    *term_err = (a[0] + a[1]) + (a[2] + a[3]);
    *slope_err = (b[0] + b[1]) + (b[2] + b[3]);
    *weight_err = (w[0] + w[1]) + (w[2] + w[3]);
}

/* the sum of terms alone, with its error bound as above */
ACCT_CLONES
static double terms_only(const acct_grid *g, int remove, double c, double *error) {
    const double *restrict x2 = g->x2, *restrict loss = g->loss, *restrict le = g->loss_err;
    const double *restrict gauss = g->gauss, *restrict exp_loss = g->exp_loss;
    const double *restrict e2_plus = g->e2_plus, *restrict e2_minus = g->e2_minus;
    const double size = fabs(c), t = remove ? c - 1.0 : c, apart = remove ? 0.0 : 2.0 * size;
    double a[LANES] = {0}, b[LANES] = {0};
    for (int j = 0; j < g->count; j += LANES)
        for (int i = 0; i < LANES; i++) {
            const int k = j + i;
            const double z = t * loss[k], em1 = acct_vexpm1(z), e2 = acct_ve2(z, em1);
            const double scale = remove ? exp_loss[k] : 1.0, w = gauss[k] * scale;
            const double term = w * (e2 + (remove ? t * e2_minus[k] : -t * e2_plus[k]));
            const double bend = fabs(em1) + (remove ? 0.0 : fabs(exp_loss[k] - 1.0));
            a[i] += term;
            b[i] += (fabs(term) + apart * gauss[k] * e2_plus[k]) * (128.0 + 12.0 * x2[k]) * ACCT_U +
                    le[k] * w * size * bend;
        }
    *error = (b[0] + b[1]) + (b[2] + b[3]);
    return (a[0] + a[1]) + (a[2] + a[3]);
}

/* bound on the round-off of log A, given that of the sum of terms */
static double log_mgf_error(const acct_grid *grid, double c, double a1, double a, double a1_err) {
    const double sum_err = (grid->count / LANES + 16.0) * ACCT_U;
    const double missing = grid->q_above + c * grid->pq_above;
    const double off = (a1_err + sum_err * (fabs(a1) + fabs(missing)) + lost(grid, c)) / a;
    return a > 0.0 && off < 0.01 ? 1.01 * off : INFINITY;
}

static void moments_small(acct_grid *grid, double c, int certify, acct_moments *out) {
    const int remove = c > 1.0, n = grid->count;
    double *term = grid->term, *slope = grid->slope, *bend = grid->bend;
    small_terms(n, remove, remove ? c - 1.0 : c, grid->loss, grid->gauss, grid->exp_loss,
                grid->e2_plus, grid->e2_minus, grid->weight, term, slope, bend);
    const double a1 = strand_sum(n, term), d1 = strand_sum(n, slope);
    /* the left end is so far out that what is missing there is only ever an error term */
    const double missing = grid->q_above + c * grid->pq_above;
    const double a = 1.0 + (a1 - missing);
    out->log_mgf = log1p(a1 - missing);
    out->mean = (d1 - grid->pq_above) / a;
    if (certify) {
        double a1_err, d1_err, w_err;
        small_errors(grid, remove, c, term, slope, bend, &a1_err, &d1_err, &w_err);
        const double sum_err = (n / LANES + 16.0) * ACCT_U;
        out->weight_err = w_err / a;
        out->log_mgf_err = log_mgf_error(grid, c, a1, a, a1_err);
        out->mean_err = (d1_err + sum_err * fabs(d1) + lost(grid, c)) / a +
                        fabs(out->mean) * out->log_mgf_err;
    }
    const double scale = 1.0 / a;
    for (int j = 0; j < n; j++) grid->weight[j] *= scale;
}

/* the same where a factor leaves the range of vmath.h on the grid: log A by shifting exponents */
static void moments_large(acct_grid *grid, double c, int certify, acct_moments *out) {
    double top = -INFINITY, sum = 0.0, first = 0.0, w_err = 0.0, m_err = 0.0;
    for (int j = 0; j < grid->count; j++)
        top = fmax(top, c * grid->loss[j] - grid->x2[j]);
    for (int j = 0; j < grid->count; j++) {
        const double w = grid->quad[j] * exp(c * grid->loss[j] - grid->x2[j] - top);
        if (certify) {
            const double e = (128.0 + 12.0 * grid->x2[j] + 4.0 * fabs(top)) * ACCT_U +
                             fabs(c) * (grid->loss_err[j] + 4.0 * ACCT_U * fabs(grid->loss[j]));
            w_err += w * e;
            m_err += w * (2.0 * e * fabs(grid->loss[j]) + grid->loss_err[j]);
        }
        grid->weight[j] = w;
        sum += w;
        first += w * grid->loss[j];
    }
    out->log_mgf = top + log(sum);
    out->mean = first / sum;
    if (certify) {
        const double sum_err = (grid->count + 16.0) * ACCT_U;
        out->weight_err = w_err / sum;
        out->log_mgf_err = out->weight_err + sum_err + 4.0 * ACCT_U * fabs(top);
        out->mean_err = m_err / sum + (sum_err + out->weight_err) * fabs(out->mean);
    }
    for (int j = 0; j < grid->count; j++) grid->weight[j] /= sum;
}

ACCT_CLONES
static void central_moments(const acct_grid *g, acct_moments *out) {
    const double *restrict loss = g->loss, *restrict weight = g->weight;
    const double mean = out->mean;
    double m1[LANES] = {0}, m2[LANES] = {0};
    for (int j = 0; j < g->count; j += LANES)
        for (int i = 0; i < LANES; i++) {
            const double d = loss[j + i] - mean, wd = weight[j + i] * d;
            m1[i] += wd;
            m2[i] += wd * d;
        }
    out->m1 = (m1[0] + m1[1]) + (m1[2] + m1[3]);
    out->m2 = (m2[0] + m2[1]) + (m2[2] + m2[3]);
}

/* adds the quadrature's share to the error of log A; returns the relative error of A's sum, and sets
 * *linear to that of q N (e^u - 1), in units of A: the summands are N e^{cL}, N and c q N (e^u - 1) */
static double add_quadrature(const acct_grid *grid, acct_moments *m, double *linear) {
    double of_one, of_exp_u;
    acct_grid_plain_errors(grid, &of_one, &of_exp_u);
    const double scale = exp(-fmin(fmax(m->log_mgf, -690.0), 600.0));
    const double relative = acct_grid_error(grid, m, 0.0);
    *linear = grid->step.q * (of_one + of_exp_u) * scale;
    /* |A - Â| <= r A gives |log A - log Â| <= 1.01 r for r < 1/100; beyond, no claim */
    const double r = relative + of_one * scale + fabs(m->order) * *linear;
    m->log_mgf_err += r < 0.01 ? 1.01 * r : INFINITY;
    m->log_mgf_err += 4.0 * ACCT_U * fabs(m->log_mgf);
    return relative;
}

/* whether every factor of the moments stays in the range of vmath.h */
static int in_range(const acct_grid *grid, double order) {
    /* L and x are monotone: their extremes are at the ends */
    const int last = grid->count - 1;
    const double ends = fmax(order * grid->loss[0], order * grid->loss[last]);
    const double most = fmax(fmax(fabs(grid->loss[0]), fabs(grid->loss[last])),
                             fmax(grid->x2[0], grid->x2[last]));
    return ends < 600.0 && most < 690.0;
}

double acct_grid_log_mgf(acct_grid *grid, double order, double *error) {
    acct_moments m = {.order = order};
    if (!in_range(grid, order)) {
        acct_grid_moments(grid, order, 1, &m);
    } else {
        double a1_err;
        const double a1 = terms_only(grid, order > 1.0, order, &a1_err);
        const double missing = grid->q_above + order * grid->pq_above;
        m.log_mgf = log1p(a1 - missing);
        m.log_mgf_err = log_mgf_error(grid, order, a1, 1.0 + (a1 - missing), a1_err);
        double linear;
        add_quadrature(grid, &m, &linear);
    }
    *error = m.log_mgf_err;
    return m.log_mgf;
}

void acct_grid_moments(acct_grid *grid, double order, int certify, acct_moments *out) {
    out->order = order;
    out->log_mgf_err = out->mean_err = out->weight_err = 0.0;
    if (in_range(grid, order))
        moments_small(grid, order, certify, out);
    else
        moments_large(grid, order, certify, out);
    central_moments(grid, out);
    if (certify) {
        double linear;
        const double relative = add_quadrature(grid, out, &linear);
        out->mean_err += 1.01 * (acct_grid_reach(grid, 0.0) * relative + linear) +
                         4.0 * ACCT_U * fabs(out->mean);
    }
}
