#include "quadrature_panel.h"

#include <math.h>

#include "gauss_legendre.h"
#include "rounding.h"

/* sup over [x0, x1] of c (loss0 + slope (x - x0)) - x^2/(2 var): a concave quadratic */
static double line_sup(double c, double x0, double x1, double loss0, double slope, double var) {
    double x = c * slope * var;
    if (!(x > x0)) x = x0;
    if (!(x < x1)) x = x1;
    return c * (loss0 + slope * (x - x0)) - 0.5 * x * x / var;
}

/* log of the quadrature error of N on a panel */
double acct_panel_error_of_one(const acct_panel *p, double var) {
    return p->log_factor + line_sup(0.0, p->lo, p->hi, 0.0, 0.0, var);
}

/* Sets the bounds on the chances of being below, above and between the window's thresholds; returns 0 where
 * the ellipse admits none. */
static int set_thresholds(acct_panel *panel, const acct_window *window, double arg) {
    double above_in, below_in;
    if (!acct_threshold_bounds(panel->loss_lo, panel->loss_hi, panel->modulus, arg, window->threshold,
                               &panel->above, &panel->damp))
        return 0;
    panel->middle = panel->damp;
    if (!(window->inner_threshold.scale > 0.0)) return 1;
    if (!acct_threshold_bounds(panel->loss_lo, panel->loss_hi, panel->modulus, arg, window->inner_threshold,
                               &above_in, &below_in))
        return 0;
    panel->middle = fmin(fmax(above_in, panel->above), fmax(panel->damp, below_in)) + ACCT_LOG_2_UP;
    return 1;
}

/* the loss on a panel's ellipse where the shift is random */
static int set_mixture(acct_panel *panel, const acct_step *step, const acct_window *window) {
    acct_mixture_region region;
    if (!acct_mixture_region_set(step->mixture, panel->lo, panel->mid, panel->hi, panel->theta, &region))
        return 0;
    if (window->shift > 0.0 && !region.turns) return 0;
    panel->loss_lo = region.lo.loss;
    panel->loss_mid = region.mid.loss;
    panel->loss_hi = region.hi.loss;
    panel->slope_mid = region.mid.slope / (step->sigma * step->sigma);
    panel->arg = window->shift > 0.0 ? 0.0 : region.arg;
    panel->turn = region.arg;
    panel->modulus = region.modulus;
    panel->log_share = log(region.hi.present) - step->log_q;
    panel->damp = 0.0;
    return window->threshold.scale > 0.0 ? set_thresholds(panel, window, region.arg) : 1;
}

static double plain_error(const acct_window *window, double log_error) {
    return window->log_plain < 0.0 ? fmax(window->log_plain, log_error) : log_error;
}

/* The ellipse with foci mid -+ half and sum of semi-axes half * rho.  With r = e^{w}/odds the odds
 * of having been sampled at x, e^L is (1-q)(1 + r e^{it}):
 *   zero-free if t < pi, or r < 1, or r > 1 on the whole ellipse;
 *   arg <= p t, p = r/(1+r), where r <= 1 (concave in t up to pi, smaller beyond);
 *   arg <= t for t <= pi and <= t + pi/2 beyond where r > 1 (take r e^{it} out);
 *   |1 + r e^{it}|^2 = (1+r)^2 (1 - 4 p(1-p) sin^2(t/2)). */
static int set(acct_panel *panel, const acct_step *step, double mid, double half, double rho,
               const acct_window *window, double log_error) {
    const double shift = window->shift;
    const double var = step->sigma * step->sigma;
    const double a = 0.5 * half * (rho + 1.0 / rho), axis = 0.5 * half * (rho - 1.0 / rho);
    if (shift > 0.0 && axis > shift) return 0;
    const double b = axis + shift, theta = b / var;
    panel->rho = rho;
    panel->lo = mid - a;
    panel->mid = mid;
    panel->hi = mid + a;
    /* |sum - integral| <= 8 half M rho^{-(2N-1)} / (rho - 1), M the maximum on the ellipse; that of N
     * alone must be small, too (moments_small subtracts it), which costs no loss to find out */
    panel->log_factor = log(8.0 * half / ((rho - 1.0) * step->sigma * ACCT_SQRT_2PI)) -
                        acct_gl_log_rate(rho) + 0.5 * b * b / var + 1e-6;
    if (acct_panel_error_of_one(panel, var) > plain_error(window, log_error)) return 0;
    panel->theta = theta;
    if (step->mixture) return set_mixture(panel, step, window);
    panel->log_share = NAN;
    const double at[4] = {panel->lo, mid, panel->hi, mid};
    double loss[4], p[4];
    acct_loss_four(step, at, loss, p);
    const double p_lo = p[0], p_mid = p[1], p_hi = p[2];
    panel->loss_lo = loss[0];
    panel->loss_mid = loss[1];
    panel->loss_hi = loss[2];
    panel->slope_mid = p_mid / var;
    if (theta > 3.0 && p_hi > 0.48 && p_lo < 0.52 && step->q < 1.0) return 0;
    panel->turn = acct_loss_arg_chord(theta, p_hi);
    panel->arg = shift > 0.0 ? 0.0 : panel->turn;
    double spread = p_lo > 0.5 ? p_lo * (1.0 - p_lo) : p_hi < 0.5 ? p_hi * (1.0 - p_hi) : 0.25;
    const double half_angle = theta < ACCT_PI ? sin(0.5 * theta) : 1.0;
    spread *= 4.0 * half_angle * half_angle;
    panel->modulus = step->q < 1.0 ? acct_loss_modulus_upper(spread) : 0.0;
    panel->damp = 0.0;
    return window->threshold.scale > 0.0 ? set_thresholds(panel, window, acct_loss_arg_upper(theta, p_hi)) : 1;
}

/* bound on the log of |N e^{(c+iy)L}|'s quadrature error on a panel; L is convex, so chords bound
 * cL for c > 0 and the tangent for c < 0 */
double acct_panel_error(const acct_panel *p, double c, double y, double var) {
    double sup;
    if (c >= 0.0) {
        const double s1 = (p->loss_mid - p->loss_lo) / (p->mid - p->lo);
        const double s2 = (p->loss_hi - p->loss_mid) / (p->hi - p->mid);
        const double a = line_sup(c, p->lo, p->mid, p->loss_lo, s1, var);
        const double b = line_sup(c, p->mid, p->hi, p->loss_mid, s2, var);
        sup = a > b ? a : b;
    } else {
        const double at_lo = p->loss_mid - p->slope_mid * (p->mid - p->lo);
        sup = line_sup(c, p->lo, p->hi, at_lo, p->slope_mid, var) - c * p->modulus;
    }
    return p->log_factor + y * p->arg + sup + p->damp;
}

/* the same for N e^u; where the shift is random for N (e^L - w_0)/q, whose modulus is at most
 * e^L P(any shift | x)/q on the real line, and L is at most its chords */
double acct_panel_error_of_exp_u(const acct_panel *p, double var) {
    if (p->log_share == p->log_share) return acct_panel_error(p, 1.0, 0.0, var) - p->damp + p->log_share;
    return p->log_factor + line_sup(1.0, p->lo, p->hi, (p->lo - 0.5) / var, 1.0 / var, var);
}

double acct_panel_error_of_reverse(const acct_panel *p, double m, double var) {
    return acct_panel_error(p, -m, 0.0, var) - p->damp + p->above;
}

/* whether the errors of a panel of a window with thresholds are within e^{log_error} (acct_window) */
static int fits_thresholds(const acct_panel *p, const acct_window *window, const acct_step *step,
                           double order, double y_max, double log_error) {
    const double var = step->sigma * step->sigma;
    const double log_exp_u = step->log_q + acct_panel_error_of_exp_u(p, var);
    if (log_exp_u > plain_error(window, log_error)) return 0;
    if (!(window->inner_threshold.scale > 0.0)) return 1;
    const double moved = p->middle - p->damp;
    if (!(window->middle_order[0] > 0.0)) {
        if (acct_panel_error(p, order, y_max, var) + moved > log_error) return 0;
    } else {
        for (int i = 0; i < 2; i++)
            if (acct_panel_error(p, window->middle_order[i], 0.0, var) + moved > window->log_middle[i]) return 0;
    }
    if (!(window->reverse_order > 0.0)) return 1;
    return fmax(acct_panel_error_of_one(p, var), log_exp_u) + p->above <= log_error &&
           acct_panel_error_of_reverse(p, window->reverse_order, var) + window->reverse_log <= log_error;
}

int acct_panel_fits(acct_panel *panel, const acct_step *step, double x, double width, double rho,
                    const acct_window *window, double order, double y_max, double log_error) {
    const double half = 0.5 * width, var = step->sigma * step->sigma;
    if (!set(panel, step, x + half, half, rho, window, log_error)) return 0;
    if (acct_panel_error(panel, order, y_max, var) > plain_error(window, log_error)) return 0;
    /* the subtracted c q N e^u of moments_small, where e^{cL} does not cover it */
    if (order < 0.0 && log(-order * step->q) + acct_panel_error_of_exp_u(panel, var) > log_error) return 0;
    return !(window->threshold.scale > 0.0) || fits_thresholds(panel, window, step, order, y_max, log_error);
}

/* Without other limits the best ellipse has rho near 12 sigma/half; branch points (width of the strip)
 * and oscillation (y_max) ask for smaller ones. */
double acct_panel_widest(acct_panel *panel, const acct_step *step, double x, double width,
                         const acct_window *window, double order, double y_max, double log_error) {
    const double shift = window->shift;
    const double sigma = step->sigma, var = sigma * sigma;
    for (int tries = 0; tries < 60; tries++) {
        const double half = 0.5 * width;
        const double strip = (shift > 0.0 ? shift : 2.9 * var) / half;
        const double free_rho = fmin(12.0 * sigma / half, 40.0);
        const double bound_rho = 0.999 * (strip + sqrt(strip * strip + 1.0)); /* axis = strip */
        const double next = window->threshold.scale > 0.0 ? 0.75 : 0.55;
        double rho = shift > 0.0 ? fmin(free_rho, bound_rho) : free_rho;
        for (int i = 0; rho > 1.4; i++, rho = i == 1 ? fmin(0.6 * rho, bound_rho) : next * rho) {
            if (acct_panel_fits(panel, step, x, width, rho, window, order, y_max, log_error)) return width;
        }
        width *= 0.8;
    }
    return 0.0;
}
