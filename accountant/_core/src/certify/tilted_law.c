#include "tilted_law.h"

#include <math.h>
#include <string.h>

#include "gauss_legendre.h"
#include "loss.h"
#include "rounding.h"
#include "bounds.h"
#include "vmath.h"

void acct_tilted_law_place(acct_tilted_law *law, double *memory, int capacity) {
    memset(law, 0, sizeof *law);
    double **slots[ACCT_TILTED_LAW_ARRAYS] = {
        &law->node,     &law->x2,       &law->loss,   &law->quad, &law->gauss, &law->exp_loss, &law->e2_plus,
        &law->e2_minus, &law->loss_err, &law->weight, &law->term, &law->slope, &law->rate};
    for (int i = 0; i < ACCT_TILTED_LAW_ARRAYS; i++) *slots[i] = memory + (size_t)i * (size_t)capacity;
    law->panel = (acct_panel *)(memory + ACCT_TILTED_LAW_ARRAYS * (size_t)capacity);
    law->window = (acct_cf_decay_window *)(law->panel + capacity / ACCT_GL_ORDER);
    law->capacity = capacity;
}

/* so many errors at a time: one register of AVX-512 */
#define PANELS_AT_ONCE 8

/* each e by its exponential, at least e^{-700}; an exponent above 709 is one of 709 */
ACCT_CLONES
static void exponentials(double e[PANELS_AT_ONCE]) {
    for (int i = 0; i < PANELS_AT_ONCE; i++) e[i] = acct_vexp(e[i]);
}

/* the errors of so many panels from `first` on; of those that are not there e^{-700} */
static void errors_from(const acct_tilted_law *law, int first, const acct_moments *m, double y,
                        double error[PANELS_AT_ONCE]) {
    const double var = law->step.sigma * law->step.sigma;
    for (int i = 0; i < PANELS_AT_ONCE; i++) {
        const int panel = first + i;
        error[i] =
            panel < law->panels ? acct_panel_error(&law->panel[panel], m->order, y, var) - m->log_mgf : -700.0;
    }
    exponentials(error);
}

void acct_tilted_law_plain_errors(acct_tilted_law *law, double *of_one, double *of_exp_u) {
    const double var = law->step.sigma * law->step.sigma;
    if (!(law->of_one >= 0.0)) {
        law->of_one = law->of_exp_u = 0.0;
        for (int i = 0; i < law->panels; i++) {
            const acct_panel *p = &law->panel[i];
            law->of_one += exp(acct_panel_error_of_one(p, var));
            law->of_exp_u += exp(acct_panel_error_of_exp_u(p, var));
        }
    }
    *of_one = law->of_one * (1.0 + 1e-6);
    *of_exp_u = law->of_exp_u * (1.0 + 1e-6);
}

double acct_tilted_law_error(const acct_tilted_law *law, const acct_moments *m, double y) {
    double total = 0.0, error[PANELS_AT_ONCE];
    for (int first = 0; first < law->panels; first += PANELS_AT_ONCE) {
        double sum = 0.0;
        errors_from(law, first, m, y, error);
        for (int i = 0; i < PANELS_AT_ONCE; i++) sum += error[i];
        total += sum;
    }
    return total < 1e300 ? total * (1.0 + 1e-6) : INFINITY;
}

void acct_tilted_law_errors(const acct_tilted_law *law, const acct_moments *m, double y, double *each) {
    double error[PANELS_AT_ONCE];
    for (int first = 0; first < law->panels; first += PANELS_AT_ONCE) {
        errors_from(law, first, m, y, error);
        for (int i = 0; i < PANELS_AT_ONCE && first + i < law->panels; i++)
            each[first + i] = error[i] < 1e300 ? error[i] * (1.0 + 1e-6) : INFINITY;
    }
}

double acct_tilted_law_reach(const acct_tilted_law *law, double mean) {
    double reach = 0.0, arg = 0.0, modulus = 0.0;
    for (int i = 0; i < law->panels; i++) {
        const acct_panel *p = &law->panel[i];
        reach = acct_max(reach, acct_max(fabs(p->loss_lo - mean), fabs(p->loss_hi - mean)));
        arg = acct_max(arg, p->turn);
        modulus = acct_max(modulus, p->modulus);
    }
    return (reach + arg + modulus) * ACCT_SLACK;
}

/* Nodes that were placed: all panels' in one loop, as those of one are no whole number of the widest registers.
 * `node_err`: of u, from the node's own. */
ACCT_CLONES
static void fill_law_nodes(const acct_step *step, int count, const double *restrict node,
                       const double *restrict node_err, double *restrict x2, const double *restrict quad,
                       double *restrict gauss, double *restrict loss, double *restrict loss_err,
                       double *restrict exp_loss, double *restrict e2_plus, double *restrict e2_minus) {
    const double sigma = step->sigma, var2 = 2.0 * sigma * sigma, q = step->q, log_q = step->log_q;
    const double log_1mq = q < 1.0 ? step->log_1mq : 0.0, odds = step->odds;
    /* loops of their own: what waits for the loss in one iteration is behind what could go ahead in the next */
    for (int i = 0; i < count; i++) {
        const double z = node[i] / sigma;
        x2[i] = 0.5 * z * z;
        gauss[i] = quad[i] * acct_vexp(-x2[i]);
    }
    for (int i = 0; i < count; i++) {
        const double u = (2.0 * node[i] - 1.0) / var2;
        double p;
        const double inner = acct_loss_at(u, q, log_q, log_1mq, odds, &p);
        const double l = q == 1.0 ? u : inner;
        loss[i] = l;
        loss_err[i] = acct_loss_error(l, p, u) + node_err[i] * p;
    }
    for (int i = 0; i < count; i++) {
        const double l = loss[i];
        double lm1;
        exp_loss[i] = acct_vexp_both(l, &lm1); /* relative, also where l is far below 0 */
        e2_plus[i] = acct_ve2(l, lm1);
    }
    for (int i = 0; i < count; i++) e2_minus[i] = acct_ve2(-loss[i], acct_vexpm1(-loss[i]));
}

/* log of the panel's share of acct_tilted_law_error, for those who multiply the integrand */
double acct_tilted_law_panel_error(const acct_tilted_law *law, int panel, double order, double y) {
    return acct_panel_error(&law->panel[panel], order, y, law->step.sigma * law->step.sigma);
}

/* the same where the shift is random */
static void fill_mixture_nodes(acct_tilted_law *g, double mid, double half) {
    const double sigma = g->step.sigma, norm = half / (sigma * ACCT_SQRT_2PI);
    const double node_err = 4.0 * ACCT_U * (fabs(mid) + half) / (sigma * sigma);
    for (int i = 0, j = g->count; i < ACCT_GL_ORDER; i++, j++) {
        const double x = mid + half * ACCT_GL_NODE[i], z = x / sigma;
        acct_mixture_point point;
        acct_mixture_at(g->step.mixture, x, NULL, &point);
        g->node[j] = x;
        g->x2[j] = 0.5 * z * z;
        g->quad[j] = norm * ACCT_GL_WEIGHT[i];
        g->gauss[j] = g->quad[j] * acct_vexp(-g->x2[j]);
        g->loss[j] = point.loss;
        g->loss_err[j] = point.error + node_err * point.slope;
        double lm1;
        g->exp_loss[j] = acct_vexp_both(point.loss, &lm1);
        g->e2_plus[j] = acct_ve2(point.loss, lm1);
        g->e2_minus[j] = acct_ve2(-point.loss, acct_vexpm1(-point.loss));
    }
}

static void add_nodes(acct_tilted_law *g, double mid, double half) {
    if (g->step.mixture) {
        fill_mixture_nodes(g, mid, half);
        g->count += ACCT_GL_ORDER;
        return;
    }
    const double sigma = g->step.sigma, norm = half / (sigma * ACCT_SQRT_2PI);
    const double node_err = 8.0 * ACCT_U * (fabs(mid) + half) / (2.0 * sigma * sigma);
    double *node = g->node + g->count, *quad = g->quad + g->count, *err = g->term + g->count;
    for (int i = 0; i < ACCT_GL_ORDER; i++) {
        node[i] = mid + half * ACCT_GL_NODE[i];
        quad[i] = norm * ACCT_GL_WEIGHT[i];
        err[i] = node_err;
    }
    g->count += ACCT_GL_ORDER;
}

/* erfc(far - apart) - erfc(far): by quadrature where the two are close */
static double tail_between(double far, double near, double apart) {
    double between = 0.0;
    for (int i = 0; i < ACCT_GL_ORDER && apart * (far + fabs(near)) < 8.0; i++) {
        const double t = far - 0.5 * apart * (1.0 + ACCT_GL_NODE[i]);
        between += ACCT_GL_WEIGHT[i] * exp(-t * t);
    }
    const double close = 0.5 * apart * 1.1283791670955126 * between; /* 2/sqrt(pi) */
    return between > 0.0 ? close : erfc(near) - erfc(far);
}

/* Q and P - Q of {x > hi} */
static void set_above(acct_tilted_law *law, double root) {
    const double far = law->hi * root;
    const acct_mixture *m = law->step.mixture;
    law->q_above = 0.5 * erfc(far);
    law->pq_above = m ? 0.0 : law->step.q * 0.5 * tail_between(far, (law->hi - 1.0) * root, root);
    for (int j = 0; m && j < m->count; j++)
        if (m->weight[j] > 0.0)
            law->pq_above += m->weight[j] * 0.5 *
                             tail_between(far, (law->hi - m->shift[j]) * root, m->shift[j] * root);
    law->above_err = (64.0 + 32.0 * far * far) * ACCT_U + (m ? m->weight_err : 0.0);
}

int acct_tilted_law_start(acct_tilted_law *law, const acct_step *step, const acct_window *window) {
    const double sigma = step->sigma, lo = window->lo, hi = window->hi;
    law->step = *step;
    law->lo = lo;
    law->hi = hi;
    law->count = law->panels = law->whole = 0;
    law->of_one = law->weighed = NAN;
    if (!(lo < hi && lo > -INFINITY && hi < INFINITY)) return 0;
    const double root = 1.0 / (sigma * sqrt(2.0));
    law->outside = 0.5 * erfc(-lo * root) * (1.0 + 1e-9) + ACCT_UNDERFLOW;
    set_above(law, root);
    return 1;
}

/* the last panel may be this much wider than what should fit; a panel, than the one before */
#define MOST_STRETCH 1.1
#define MOST_GROWTH 2.0
/* in deviations of the noise: even the last panel is below 12 then, for which the round-off of nodes is counted */
#define MOST_WIDTH 10.0

/* panels side by side over the window; ACCT_EPRECISION where none fits, or there are too many */
static int set_panels(acct_tilted_law *law, const acct_step *step, const acct_window *window, double order,
                      double y_max, double log_error) {
    const double lo = window->lo, hi = window->hi;
    acct_panel_search search = ACCT_PANEL_SEARCH;
    double wish = 0.25 * acct_min(hi - lo, 24.0 * step->sigma), x = lo;
    for (int part = 0; part <= window->breaks; part++) {
        const double end = part < window->breaks ? window->at[part] : hi;
        while (x < end) {
            if (law->panels == ACCT_MAX_PANELS || law->count + ACCT_GL_ORDER > law->capacity) return ACCT_EPRECISION;
            const double rest = end - x;
            const double width = rest < MOST_STRETCH * wish ? rest : rest < 2.0 * wish ? 0.5 * rest : wish;
            const double got = acct_panel_widest(&law->panel[law->panels], step, x, width, window, order, y_max,
                                                 log_error, &search);
            if (!(got > 0.0)) return ACCT_EPRECISION;
            /* the nodes are those of the panel between its ends as they are rounded: side by side */
            const double next = got < rest ? x + got : end, half = 0.5 * (next - x);
            add_nodes(law, x + half, half);
            law->panels++;
            wish = acct_min(acct_min(search.wish, MOST_GROWTH * got), MOST_WIDTH * step->sigma);
            x = next;
        }
    }
    return ACCT_OK;
}

int acct_tilted_law_set(acct_tilted_law *law, const acct_step *step, const acct_window *window, double order,
                        double y_max, double log_error) {
    if (!acct_tilted_law_start(law, step, window)) return ACCT_EPRECISION;
    const int status = set_panels(law, step, window, order, y_max, log_error);
    law->whole = !status && !(window->threshold.scale > 0.0) && window->shift == 0.0;
    /* what was placed is filled whatever the status is */
    if (!step->mixture)
        fill_law_nodes(step, law->count, law->node, law->term, law->x2, law->quad, law->gauss, law->loss, law->loss_err,
                   law->exp_loss, law->e2_plus, law->e2_minus);
    return status;
}
