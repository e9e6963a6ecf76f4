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
    panel->middle = acct_min(acct_max(above_in, panel->above), acct_max(panel->damp, below_in)) + ACCT_LOG_2_UP;
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
    return window->log_plain < 0.0 ? acct_max(window->log_plain, log_error) : log_error;
}

/* The ellipse with foci mid -+ half and sum of semi-axes half * rho.  With r = e^{w}/odds the odds
 * of having been sampled at x, e^L is (1-q)(1 + r e^{it}):
 *   zero-free if t < pi, or r < 1, or r > 1 on the whole ellipse;
 *   arg >= 0 if 0 <= t <= pi, which a shifted window counts on (Theorem 4(c));
 *   arg <= p t, p = r/(1+r), where r <= 1 (concave in t up to pi, smaller beyond);
 *   arg <= t for t <= pi and <= t + pi/2 beyond where r > 1 (take r e^{it} out);
 *   |1 + r e^{it}|^2 = (1+r)^2 (1 - 4 p(1-p) sin^2(t/2)).
 * returns by how much the error of N alone exceeds what is wanted, inf where the ellipse has no bound */
static double set_panel(acct_panel *panel, const acct_step *step, double mid, double half, double rho,
               const acct_window *window, double log_error) {
    const double shift = window->shift;
    const double var = step->sigma * step->sigma;
    const double a = 0.5 * half * (rho + 1.0 / rho), axis = 0.5 * half * (rho - 1.0 / rho);
    if (shift > 0.0 && axis > shift) return INFINITY;
    const double b = axis + shift, theta = b / var;
    panel->rho = rho;
    panel->lo = mid - a;
    panel->mid = mid;
    panel->hi = mid + a;
    /* |sum - integral| <= 8 half M rho^{-(2N-1)} / (rho - 1), M the maximum on the ellipse; that of N
     * alone must be small, too (moments_small subtracts it), which costs no loss to find out */
    panel->log_factor = log(8.0 * half / ((rho - 1.0) * step->sigma * ACCT_SQRT_2PI)) -
                        acct_gl_log_rate(rho) + 0.5 * b * b / var + 1e-6;
    const double excess = acct_panel_error_of_one(panel, var) - plain_error(window, log_error);
    if (excess > 0.0) return excess;
    panel->theta = theta;
    if (step->mixture) return set_mixture(panel, step, window) ? excess : INFINITY;
    panel->log_share = NAN;
    const double at[4] = {panel->lo, mid, panel->hi, mid};
    double loss[4], p[4];
    acct_loss_four(step, at, loss, p);
    const double p_lo = p[0], p_mid = p[1], p_hi = p[2];
    panel->loss_lo = loss[0];
    panel->loss_mid = loss[1];
    panel->loss_hi = loss[2];
    panel->slope_mid = p_mid / var;
    if (theta > 3.0 && step->q < 1.0 && (shift > 0.0 || (p_hi > 0.48 && p_lo < 0.52))) return INFINITY;
    panel->turn = acct_loss_arg_chord(theta, p_hi);
    panel->arg = shift > 0.0 ? 0.0 : panel->turn;
    double spread = p_lo > 0.5 ? p_lo * (1.0 - p_lo) : p_hi < 0.5 ? p_hi * (1.0 - p_hi) : 0.25;
    const double half_angle = theta < ACCT_PI ? sin(0.5 * theta) : 1.0;
    spread *= 4.0 * half_angle * half_angle;
    panel->modulus = step->q < 1.0 ? acct_loss_modulus_upper(spread) : 0.0;
    panel->damp = 0.0;
    const int bounded =
        !(window->threshold.scale > 0.0) || set_thresholds(panel, window, acct_loss_arg_upper(theta, p_hi));
    return bounded ? excess : INFINITY;
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

/* the largest of two excesses, that of a NaN being unknown: the bounds on the law's integrals are NaN then, too */
static double larger(double a, double b) { return b > a ? b : a; }

/* the same where a NaN is too much */
static double larger_or_nan(double a, double b) { return b == b ? larger(a, b) : INFINITY; }

/* by how much the errors of a panel of a window with thresholds exceed what is wanted (acct_window) */
static double excess_of_thresholds(const acct_panel *p, const acct_window *window, const acct_step *step,
                                   double order, double y_max, double log_error) {
    const double var = step->sigma * step->sigma;
    const double log_exp_u = step->log_q + acct_panel_error_of_exp_u(p, var);
    double excess = log_exp_u - plain_error(window, log_error);
    if (!(window->inner_threshold.scale > 0.0)) return excess;
    const double moved = p->middle - p->damp;
    if (!(window->middle_order[0] > 0.0)) {
        excess = larger(excess, acct_panel_error(p, order, y_max, var) + moved - log_error);
    } else {
        for (int i = 0; i < 2; i++)
            excess = larger(excess, acct_panel_error(p, window->middle_order[i], 0.0, var) + moved -
                                        window->log_middle[i]);
    }
    if (!(window->reverse_order > 0.0)) return excess;
    excess = larger_or_nan(excess, acct_max(acct_panel_error_of_one(p, var), log_exp_u) + p->above - log_error);
    return larger_or_nan(
        excess, acct_panel_error_of_reverse(p, window->reverse_order, var) + window->reverse_log - log_error);
}

double acct_panel_excess(acct_panel *panel, const acct_step *step, double x, double width, double rho,
                         const acct_window *window, double order, double y_max, double log_error) {
    const double half = 0.5 * width, var = step->sigma * step->sigma;
    double excess = set_panel(panel, step, x + half, half, rho, window, log_error);
    if (excess > 0.0) return excess;
    excess = larger(excess, acct_panel_error(panel, order, y_max, var) - plain_error(window, log_error));
    /* the subtracted c q N e^u of moments_small, where e^{cL} does not cover it */
    if (order < 0.0)
        excess = larger(excess, log(-order * step->q) + acct_panel_error_of_exp_u(panel, var) - log_error);
    if (excess > 0.0 || !(window->threshold.scale > 0.0)) return excess;
    return larger(excess, excess_of_thresholds(panel, window, step, order, y_max, log_error));
}

/* the least and the largest sum of semi-axes in units of half a panel, and those of neighbouring trials */
#define LEAST_RHO 1.4
#define MOST_RHO 40.0
#define PANELS_APART 1.35
/* where no ellipse has a bound, what the width and their sizes are multiplied with, and the least rho to go on with */
#define NARROWER 0.8
#define SMALLER 0.6
#define USUAL_RHO 2.0
/* the least rho to begin with: a larger ellipse than the last panel's may do */
#define SMALL_RHO 1.6
/* the log of the share of the error that is wanted which widths aim at: the sum over many panels stays below it */
#define PANEL_AIM (-3.0)
/* widths after which all sizes are tried, and not those about the last panel's */
#define PANEL_PATIENCE 4

/* rhos tried at one width */
#define MOST_TRIALS 16

/* by what factor a width should change so that the excess is that */
static double stretch(double excess) { return exp((PANEL_AIM - excess) / (2.0 * ACCT_GL_ORDER - 1.0)); }

/* a little less than the rho of the ellipse that reaches so far from the real line */
static double rho_at(double height, double half) {
    const double strip = height / half;
    return 0.999 * (strip + sqrt(strip * strip + 1.0));
}

/* the largest rho worth trying: without other limits the best ellipse's axes are near 12 sigma */
static double most_rho(const acct_step *step, const acct_window *window, double half) {
    const double free_rho = acct_min(12.0 * step->sigma / half, MOST_RHO);
    return window->shift > 0.0 ? acct_min(free_rho, rho_at(window->shift, half)) : free_rho;
}

/* Sets the rhos to try, from the first on, and returns how many: about the last panel's, or all from the largest
 * down; and the largest whose ellipse has no branch point on it, if that is between. */
static int set_trials(double rho[MOST_TRIALS], double most, double about, double within) {
    int count = 0;
    if (about > 0.0) {
        const double near[3] = {about, PANELS_APART * about, about / PANELS_APART};
        for (int i = 0; i < 3; i++)
            if (near[i] > LEAST_RHO && !(count > 0 && rho[count - 1] == most && near[i] >= most))
                rho[count++] = acct_min(near[i], most);
        if (within > about / PANELS_APART && within < acct_min(PANELS_APART * about, most))
            rho[count++] = within;
        return count;
    }
    for (double next = most; next > LEAST_RHO && count < MOST_TRIALS - 1; next /= PANELS_APART) {
        if (count > 0 && within < rho[count - 1] && within > next) rho[count++] = within;
        rho[count++] = next;
    }
    return count;
}

/* With the ellipse's size kept, errors fall like a power of the width: a few sizes about that of the last panel, or
 * any where there was none; then the width at which the best of them should do. */
double acct_panel_widest(acct_panel *panel, const acct_step *step, double x, double width,
                         const acct_window *window, double order, double y_max, double log_error,
                         acct_panel_search *search) {
    double trend = search->trend;
    for (int tries = 0; tries < 60; tries++, trend = 1.0) {
        const double half = 0.5 * width, strip = 2.9 * step->sigma * step->sigma;
        const double about = tries < PANEL_PATIENCE && search->reach > 0.0
                                 ? acct_max(search->reach / half * trend, SMALL_RHO)
                                 : 0.0;
        double rho[MOST_TRIALS], best = INFINITY, reach = search->reach;
        const int count = set_trials(rho, most_rho(step, window, half), about,
                                     window->shift > 0.0 ? INFINITY : rho_at(strip, half));
        for (int i = 0; i < count; i++) {
            const double excess =
                acct_panel_excess(panel, step, x, width, rho[i], window, order, y_max, log_error);
            if (excess < best) {
                best = excess;
                reach = rho[i] * half;
            }
            if (!(excess <= 0.0)) continue;
            const double wish = width * stretch(excess);
            if (!(wish > search->wish)) search->trend = 1.0 / search->trend;
            search->reach = reach;
            search->wish = wish;
            return width;
        }
        if (best < INFINITY) {
            search->reach = reach;
            width *= acct_max(acct_min(stretch(best), 0.9), 0.5);
        } else {
            search->reach *= SMALLER;
            width = acct_min(NARROWER * width, search->reach > 0.0 ? 2.0 * search->reach / USUAL_RHO : INFINITY);
        }
    }
    return 0.0;
}
