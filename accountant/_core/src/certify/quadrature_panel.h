/* One panel of a Gauss-Legendre sum: the ellipse around it, and the bound on its quadrature error
 * (Theorem 4).  All errors are logs of upper bounds. */
#ifndef ACCT_QUADRATURE_PANEL_H
#define ACCT_QUADRATURE_PANEL_H

#include <math.h>

#include "loss.h"
#include "rounding.h"
#include "vmath.h"

/* Soft thresholds of the loss: steps are labelled small, middling or large at random, with probabilities
 * that are analytic in the noise (Theorem 15).
 *
 * With E = L - log(1 - q) > 0, t = 1 - e^{-(E/scale)^2} and m = 2^doublings, a step counts as above the
 * threshold with probability t^m, at most (E/scale)^{2m}, and below it with probability
 * 1 - t^m <= m e^{-(E/scale)^2}.
 */
/* where the loss, counted from its infimum `origin` = log(1 - q), begins to be large; scale 0: none */
typedef struct {
    double origin, scale;
    int doublings;
} acct_threshold;

/* bounds on the logs of |t^m| and |1 - t^m|, t = 1 - e^{-((L - origin)/scale)^2}, m = 2^doublings, where
 * Re L is in [low - modulus, high] and |Im L| <= arg; returns 0 where there are none */
int acct_threshold_bounds(double low, double high, double modulus, double arg, acct_threshold threshold,
                          double *log_above, double *log_below);

/* of the two thresholds of rare events: t^128 and t^16 */
#define ACCT_OUTER_DOUBLINGS 7
#define ACCT_INNER_DOUBLINGS 4

/* two thresholds and their chances at the nodes of a law (acct_thresholds_set) */
typedef struct {
    acct_threshold outer, inner; /* the inner one at most half the outer one's scale */
    double *above_out, *share_out, *above_in, *share_in, *middle;
} acct_thresholds;

/* at each loss the chance t^m of being above; that of being below is share * e^{-(E/scale)^2} */
void acct_threshold_values(int count, const double *loss, acct_threshold threshold, double *above,
                           double *share);

/* middle: the chance of being above the inner and below the outer threshold; its error is at most 4 times
 * that of either chance */
void acct_thresholds_between(int count, const double *loss, const acct_thresholds *thresholds,
                             double *middle);

/* relative errors of the chance of being above, and of being below, where E is off by `err`:
 * t^m moves by m t^{m-1} e^{-z} dz, z = (E/scale)^2, and 1 - t^m >= (1 - t) m t^{m-1} */
ACCT_INLINE double acct_threshold_above_error(double e, acct_threshold threshold, double err) {
    const double z = e / threshold.scale * (e / threshold.scale), m = (double)(1 << threshold.doublings);
    const double near = z > 0.0 ? z / acct_vexpm1(z) : 1.0, rate = z < 40.0 ? near : 1e-15;
    return m * (16.0 * ACCT_U + (e > 0.0 ? 2.1 * rate * err / e : 0.0));
}

ACCT_INLINE double acct_threshold_below_error(double e, acct_threshold threshold, double err) {
    const double z = e / threshold.scale * (e / threshold.scale), m = (double)(1 << threshold.doublings);
    return (16.0 * m + 8.0 * z) * ACCT_U + 2.1 * z * err / (e > 0.0 ? e : 1.0);
}

/* The chances off the real line without branches, for loops. */
/* both chances at one complex loss, and |e^{-(E/scale)^2}|; returns |t|.  A loop may know the doublings.  A NaN where |e^{-z}| overflows,
 * or turns further than acct_vsincos knows.  Beyond 690 e^{-z} is a square, within 11 u, and t^m is 1. */
ACCT_INLINE double acct_threshold_complex_at(double re, double im, double origin, double scale, int doublings,
                                             double above[2], double below[2], double *fall) {
    const double a = (re - origin) / scale, b = im / scale;
    const double zr = (a - b) * (a + b), zi = 2.0 * a * b;
    double em1, half, rest, sin_z, cos_z;
    const double near = acct_vexp_both(-zr, &em1), root = acct_vexp(-0.5 * zr);
    const int is_far = zr > 690.0, is_known = fabs(zi) < ACCT_MOST_ANGLE;
    const double size = is_far ? root * root : near, angle = is_known ? zi : 0.0;
    const double e = (zr < -690.0) | (!is_known & (size > 0.0)) ? NAN : size;
    em1 = is_far ? -1.0 : em1;
    acct_vsincos(0.5 * angle, &half, &rest);
    acct_vsincos(angle, &sin_z, &cos_z);
    double tr = -(em1 - 2.0 * e * half * half), ti = e * sin_z; /* 1 - e^{-z} */
    double br = e * cos_z, bi = -ti;
    const double modulus = sqrt(tr * tr + ti * ti);
    for (int i = 0; i < doublings; i++) {
        const double wr = br * (1.0 + tr) - bi * ti, wi = br * ti + bi * (1.0 + tr);
        const double sr = (tr - ti) * (tr + ti), si = 2.0 * tr * ti;
        br = wr, bi = wi;
        tr = sr, ti = si;
    }
    above[0] = tr, above[1] = ti;
    below[0] = br, below[1] = bi;
    *fall = e;
    return modulus;
}

/* the data of one panel's ellipse that the error bounds use; x runs over its projection [lo, hi] */
typedef struct {
    double lo, mid, hi;
    double rho;        /* sum of the ellipse's semi-axes over half the panel's width */
    double loss_lo, loss_mid, loss_hi;
    double slope_mid;  /* L'(mid) */
    double log_factor; /* of everything that does not depend on c and y */
    double damp;       /* log of the bound on chi, 0 without it */
    double above;      /* log of the bound on 1 - chi */
    double middle;     /* log of the bound on the chance of being between two thresholds */
    double theta;      /* largest |Im x| / sigma^2 on the ellipse */
    double log_share;  /* several shifts: log of P(any shift | x) / q at hi; NaN for one (mixture_loss.h) */
    double arg;        /* bound on what e^{-y arg e^L} is at most e^{y arg} by: 0 for a shifted window */
    double turn;       /* bound on |arg e^L| over the ellipse */
    double modulus;    /* bound on log(|e^L| real / |e^L| complex) over the ellipse, >= 0 */
} acct_panel;

#define ACCT_MAX_BREAKS 8

/* where the noise is looked at, and where panels must end on the way */
typedef struct {
    double lo, hi;
    double shift; /* 0: nodes on the real line; a > 0: panels for the line Im x = a, every ellipse
                   * inside 0 <= Im x <= 2a, where |e^{iyL}| <= 1 for all y >= 0 */
    /* with a threshold (scale > 0) the integrand has the factor chi, the chance of being below it, and every
     * ellipse admits bounds on both */
    acct_threshold threshold, inner_threshold;
    /* with an inner threshold, errors of integrals times the chance of being above the outer one matter,
     * too: of N and of N e^u, and of N e^{-reverse_order L} times e^{reverse_log} */
    double reverse_order, reverse_log;
    double log_plain; /* the error wanted of all integrals without that chance, if not 0 and larger */
    /* orders at which the integral of what is between the thresholds is wanted within e^{log_middle}, in place of
     * that at the panel's order; 0: none */
    double middle_order[2], log_middle[2];
    int breaks;
    double at[ACCT_MAX_BREAKS]; /* increasing, inside (lo, hi) */
} acct_window;

/* sets  *panel to x .. x + width with the ellipse of rho
 * returns by how much, as a logarithm, the error of the integral of N e^{(c+iy)L} over it, c = order, |y| <= y_max, may
 *         exceed about e^{log_error}, or the least of that where it is above 0; inf where the ellipse has no bound */
double acct_panel_excess(acct_panel *panel, const acct_step *step, double x, double width, double rho,
                         const acct_window *window, double order, double y_max, double log_error);

/* what one panel tells about the next */
typedef struct {
    double reach; /* half its width times rho; 0: there was none */
    double wish;  /* how wide it might have been */
    double trend; /* the factor of its size that is tried next: the other way where the last one did not help */
} acct_panel_search;

/* before the first panel */
#define ACCT_PANEL_SEARCH {.reach = 0.0, .wish = 0.0, .trend = 1.15}

/* a panel from x, at most `width`, about as wide as fits; returns its width, 0 if none does */
double acct_panel_widest(acct_panel *panel, const acct_step *step, double x, double width,
                         const acct_window *window, double order, double y_max, double log_error,
                         acct_panel_search *search);

/* logs of the quadrature errors of N e^{(c+iy)L}, of N and of N e^u, e^L = 1 - q + q e^u (that is also what
 * e^u means where the shift is random) */
double acct_panel_error(const acct_panel *panel, double c, double y, double var);
double acct_panel_error_of_one(const acct_panel *panel, double var);
double acct_panel_error_of_exp_u(const acct_panel *panel, double var);

/* the same of N e^{-mL} times the chance of being above the outer threshold */
double acct_panel_error_of_reverse(const acct_panel *panel, double m, double var);

#endif
