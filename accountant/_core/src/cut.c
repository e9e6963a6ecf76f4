#include "cut.h"

#include <math.h>

#include "rounding.h"
#include "vmath.h"


double acct_loss_turn(double theta, double p) {
    if (theta < 1.57) return atan2(p * sin(theta), 1.0 - p + p * cos(theta)) * (1.0 + 1e-12);
    return p <= 0.5 ? theta * p : theta < ACCT_PI ? theta : theta + 1.6;
}

int acct_cut_bounds(double low, double high, double modulus, double arg, acct_cut cut,
                    double *log_above, double *log_below) {
    const double rate = 1.0 / cut.scale, up = arg * rate;
    const double left = (low - cut.origin - modulus) * rate;
    const double right = (high - cut.origin) * rate, power = ldexp(1.0, cut.doublings);
    const double most = fmax(fabs(left), right) * (1.0 + 1e-12) + up, small = most * most;
    double log_t, least;
    if (small < 0.5) { /* |1 - e^{-z}| <= |z| e^{|z|} */
        log_t = small > 1e-18 ? log(small) + small : -41.0;
        least = -small;
    } else { /* and <= (1 - e^{-Re z})/cos arg z, |arg z| <= 2 atan(slope) */
        const double slope = up / left;
        if (!(left > 0.0 && slope < 0.68)) return 0;
        const double square = slope * slope, turn = fmin(2.0 * right * up, ACCT_PI);
        const double half = sin(0.5 * turn), near = -expm1(-right * right);
        least = left * left * (1.0 - square);
        const double t = fmin(near * (1.0 + square) / (1.0 - square),
                              sqrt(near * near + 4.0 * exp(-least) * half * half));
        log_t = log(t);
    }
    *log_above = power * log_t * (log_t > 0.0 ? 1.0 + 1e-12 : 1.0 - 1e-12);
    /* 1 - t^{2^k} = (1 - t)(1 + t)(1 + t^2)... */
    double sum = -least, t = exp(log_t) * (1.0 + 1e-12);
    for (int i = 0; i < cut.doublings; i++, t *= t) sum += log1p(t);
    *log_below = fmin(sum, *log_above > 40.0 ? *log_above + 1e-12 : log1p(exp(*log_above))) + 1e-12;
    return 1;
}

int acct_cut_panel(acct_panel *panel, const acct_window *window, double p_hi) {
    const double arg = acct_loss_turn(panel->theta, p_hi);
    double above_in, below_in;
    if (!acct_cut_bounds(panel->loss_lo, panel->loss_hi, panel->modulus, arg, window->cut,
                         &panel->above, &panel->damp))
        return 0;
    panel->middle = panel->damp;
    if (!(window->inner_cut.scale > 0.0)) return 1;
    if (!acct_cut_bounds(panel->loss_lo, panel->loss_hi, panel->modulus, arg, window->inner_cut,
                         &above_in, &below_in))
        return 0;
    panel->middle = fmin(fmax(above_in, panel->above), fmax(panel->damp, below_in)) + 0.6931471805599454;
    return 1;
}

static double put_error(const acct_panel *p, double m, double var) {
    return acct_panel_error(p, -m, 0.0, var) - p->damp + p->above;
}

void acct_cut_above_errors(const acct_grid *grid, double m, double *of_one, double *of_exp_u,
                           double *of_put) {
    const double var = grid->step.sigma * grid->step.sigma;
    *of_one = *of_exp_u = *of_put = 0.0;
    for (int i = 0; i < grid->panels; i++) {
        const acct_panel *p = &grid->panel[i];
        *of_one += exp(acct_panel_error_of_one(p, var) + p->above);
        *of_exp_u += exp(acct_panel_error_of_exp_u(p, var) + p->above);
        *of_put += exp(put_error(p, m, var));
    }
}

int acct_cut_fits(const acct_panel *p, const acct_window *window, const acct_step *step, double order,
                  double y_max, double log_error) {
    const double var = step->sigma * step->sigma;
    const double log_exp_u = step->log_q + acct_panel_error_of_exp_u(p, var);
    if (log_exp_u > log_error) return 0;
    if (!(window->inner_cut.scale > 0.0)) return 1;
    if (acct_panel_error(p, order, y_max, var) - p->damp + p->middle > log_error) return 0;
    if (!(window->put_order > 0.0)) return 1;
    return fmax(acct_panel_error_of_one(p, var), log_exp_u) + p->above <= log_error &&
           put_error(p, window->put_order, var) + window->put_log <= log_error;
}

ACCT_CLONES
void acct_cut_values(int count, const double *restrict loss, acct_cut cut, double *restrict above,
                     double *restrict share) {
    const double rate = 1.0 / cut.scale;
    for (int j = 0; j < count; j++) {
        const double r = (loss[j] - cut.origin) * rate, z = r * r;
        above[j] = -acct_vexpm1(-z);
        share[j] = 1.0;
    }
    /* 1 - t^m = (1 - t)(1 + t)(1 + t^2)(1 + t^4)... */
    for (int i = 0; i < cut.doublings; i++)
        for (int j = 0; j < count; j++) {
            share[j] *= 1.0 + above[j];
            above[j] *= above[j];
        }
}

void acct_cut_complex(double re, double im, acct_cut cut, double above[2], double below[2]) {
    const double a = (re - cut.origin) / cut.scale, b = im / cut.scale;
    const double zr = (a - b) * (a + b), zi = 2.0 * a * b;
    const double half = sin(0.5 * zi), em1 = expm1(-zr), e = exp(-zr);
    double tr = -(em1 - 2.0 * e * half * half), ti = e * sin(zi); /* 1 - e^{-z} */
    double br = e * cos(zi), bi = -e * sin(zi);
    for (int i = 0; i < cut.doublings; i++) {
        const double wr = br * (1.0 + tr) - bi * ti, wi = br * ti + bi * (1.0 + tr);
        const double sr = (tr - ti) * (tr + ti), si = 2.0 * tr * ti;
        br = wr, bi = wi;
        tr = sr, ti = si;
    }
    above[0] = tr, above[1] = ti;
    below[0] = br, below[1] = bi;
}

/* e^{cL} - 1 - c (e^L - 1) less what counts as above the cut, or what counts as below less
 * 1 + c (e^L - 1): whichever cancels less.  The same for L e^{cL} - (e^L - 1). */
ACCT_CLONES
static void cut_terms(const acct_grid *g, double t, acct_cut cut, const double *restrict above,
                      const double *restrict share, double *restrict weight, double *restrict term,
                      double *restrict slope) {
    const double *restrict loss = g->loss, *restrict gauss = g->gauss, *restrict x2 = g->x2;
    const double *restrict exp_loss = g->exp_loss, *restrict e2_plus = g->e2_plus;
    const double *restrict e2_minus = g->e2_minus, *restrict quad = g->quad;
    const double rate = 1.0 / cut.scale;
    for (int j = 0; j < g->count; j++) {
        const double l = loss[j], z = t * l, em1 = acct_vexpm1(z), e2 = acct_ve2(z, em1);
        const double ge = gauss[j] * exp_loss[j], off = ge * (1.0 + em1) * above[j];
        const double r = (l - cut.origin) * rate, far = z + l - x2[j] - r * r;
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

/* sums of the moduli of what was added, times their relative errors */
static void cut_errors(const acct_grid *g, double c, acct_cut cut, const double *above,
                       double *term_err, double *slope_err, double *weight_err) {
    *term_err = *slope_err = *weight_err = 0.0;
    for (int j = 0; j < g->count; j++) {
        const double l = g->loss[j], size = fabs(l), le = g->loss_err[j], w = g->weight[j];
        const double e = (256.0 + 32.0 * g->x2[j]) * ACCT_U + fabs(c) * (le + 4.0 * ACCT_U * size);
        const double of_above = acct_cut_above_error(l - cut.origin, cut, le);
        const double of_cut = acct_cut_below_error(l - cut.origin, cut, le);
        /* |G| <= what is taken as its computed value and cut away, or the parts */
        const double ge = g->gauss[j] * g->exp_loss[j];
        double parts, moved;
        if (above[j] < 0.5) {
            const double z = (c - 1.0) * l, em1 = expm1(z), off = ge * (1.0 + em1) * above[j];
            parts = fabs(g->term[j]) + 2.0 * off;
            moved = fabs(c) * ge * le * (fabs(em1) + above[j] * (1.0 + em1));
            *term_err += parts * (256.0 + 32.0 * g->x2[j]) * ACCT_U + moved + off * of_above;
            *slope_err += (fabs(g->slope[j]) + 2.0 * size * off) * e + size * off * of_above +
                          ge * le * (fabs(em1) + (1.0 + em1) * (above[j] + 2.0 * fabs(c) * size));
        } else {
            const double plain = g->gauss[j] * (1.0 + fabs(c * (g->e2_plus[j] + l)));
            *term_err += (w + plain) * e + w * of_cut + ge * fabs(c) * le;
            *slope_err += (size * w + g->gauss[j] * g->exp_loss[j]) * (e + of_cut) + (w + ge) * le;
        }
        *weight_err += w * (e + of_cut);
    }
}

void acct_cut_moments(acct_grid *grid, const double *above, const double *share, acct_cut cut,
                      double order, int certify, acct_moments *out) {
    const double t = order - 1.0, step_q = grid->step.q;
    cut_terms(grid, t, cut, above, share, grid->weight, grid->term, grid->slope);
    double a1 = 0.0, d1 = 0.0, size = 0.0, m2 = 0.0;
    for (int j = 0; j < grid->count; j++) {
        a1 += grid->term[j];
        d1 += grid->slope[j];
        size += fabs(grid->term[j]);
    }
    /* outside the window 1 + c (e^L - 1) is subtracted, chi e^{cL} is not there */
    const double missing = grid->q_above + order * grid->pq_above;
    const double off = a1 - missing, a = 1.0 + off;
    out->order = order;
    out->log_mgf = off > -1.0 ? log1p(off) : off <= -1.0 ? -INFINITY : INFINITY;
    out->mean = (d1 - grid->pq_above) / a;
    out->m1 = 0.0;
    out->log_mgf_err = out->mean_err = out->weight_err = 0.0;
    if (certify) {
        double term_err, slope_err, weight_err, of_one, of_exp_u, analytic = 0.0, reach = 0.0;
        cut_errors(grid, order, cut, above, &term_err, &slope_err, &weight_err);
        acct_grid_plain_errors(grid, &of_one, &of_exp_u);
        for (int i = 0; i < grid->panels; i++)
            analytic += exp(acct_grid_panel_error(grid, i, order, 0.0));
        reach = acct_grid_reach(grid, 0.0);
        const double sum_err = (grid->count + 16.0) * ACCT_U;
        const double lost = (1.0 + order * step_q) * grid->outside +
                            grid->above_err * (grid->q_above + order * grid->pq_above);
        const double linear = step_q * (of_one + of_exp_u);
        const double err = (term_err + analytic + of_one + order * linear + lost +
                            sum_err * (size + missing)) * ACCT_SLACK / a;
        out->log_mgf_err = a > 0.0 && err < 0.01 ? 1.01 * err : INFINITY;
        out->log_mgf_err += 4.0 * ACCT_U * fabs(out->log_mgf);
        double moved = 0.0;
        for (int j = 0; j < grid->count; j++) moved += fabs(grid->slope[j]);
        out->mean_err = (slope_err + sum_err * moved + lost + 1.01 * (reach * analytic + linear)) *
                            ACCT_SLACK / a +
                        fabs(out->mean) * (out->log_mgf_err + 4.0 * ACCT_U);
        out->weight_err = weight_err / a;
    }
    for (int j = 0; j < grid->count; j++) {
        const double d = grid->loss[j] - out->mean;
        grid->weight[j] /= a;
        m2 += grid->weight[j] * d * d;
    }
    out->m2 = m2;
}

double acct_cut_below(const acct_grid *grid, const double *share, acct_cut cut, double order) {
    double total = 0.0;
    for (int j = 0; j < grid->count; j++) {
        const double l = grid->loss[j], le = grid->loss_err[j], r = (l - cut.origin) / cut.scale;
        const double far = order * l - grid->x2[j] - r * r;
        const double e = (256.0 + 32.0 * grid->x2[j] + 8.0 * fabs(order * l)) * ACCT_U +
                         fabs(order) * le + acct_cut_below_error(l - cut.origin, cut, le);
        total += (far < 700.0 ? grid->quad[j] * exp(far) : INFINITY) * share[j] * (1.0 + e);
    }
    for (int i = 0; i < grid->panels; i++) total += exp(acct_grid_panel_error(grid, i, order, 0.0));
    return log((total + ACCT_TINY) * ACCT_SLACK);
}

/* where less than half is above the outer cut, what is above the inner but not above the outer one;
 * else what is below the outer but not below the inner one */
ACCT_CLONES
void acct_cut_between(int count, const double *restrict loss, const acct_cuts *cuts,
                      double *restrict middle) {
    const double rate_out = 1.0 / cuts->outer.scale, rate_in = 1.0 / cuts->inner.scale;
    const double *restrict above_out = cuts->above_out, *restrict above_in = cuts->above_in;
    const double *restrict share_out = cuts->share_out, *restrict share_in = cuts->share_in;
    for (int j = 0; j < count; j++) {
        const double e = loss[j] - cuts->outer.origin, ro = e * rate_out, ri = e * rate_in;
        const double near = above_in[j] - above_out[j];
        const double far = acct_vexp(-ro * ro) * share_out[j] - acct_vexp(-ri * ri) * share_in[j];
        middle[j] = above_out[j] < 0.5 ? near : far;
    }
}

double acct_cut_middle(const acct_grid *grid, const acct_cuts *cuts, double order, int certify) {
    double total = 0.0, analytic = 0.0;
    for (int j = 0; j < grid->count; j++) {
        const double l = grid->loss[j], le = grid->loss_err[j], far = order * l - grid->x2[j];
        if (!(cuts->middle[j] > 0.0)) continue;
        const double w = (far < 700.0 ? grid->quad[j] * exp(far) : INFINITY) * cuts->middle[j];
        const double excess = l - cuts->inner.origin;
        const double of_cut = cuts->above_out[j] < 0.5 ? acct_cut_above_error(excess, cuts->inner, le)
                                                       : acct_cut_below_error(excess, cuts->outer, le);
        const double e = (256.0 + 32.0 * grid->x2[j] + 8.0 * fabs(order * l)) * ACCT_U + order * le +
                         4.0 * of_cut;
        total += certify ? w * (1.0 + e) : w;
    }
    for (int i = 0; i < grid->panels && certify; i++)
        analytic += exp(acct_grid_panel_error(grid, i, order, 0.0) - grid->panel[i].damp +
                        grid->panel[i].middle);
    return log((total + analytic + ACCT_TINY) * ACCT_SLACK);
}
