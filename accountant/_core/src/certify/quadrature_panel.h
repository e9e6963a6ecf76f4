/* One panel of a Gauss-Legendre sum: the ellipse around it, and the bound on its quadrature error
 * (Theorem 4).  All errors are logs of upper bounds. */
#ifndef ACCT_QUADRATURE_PANEL_H
#define ACCT_QUADRATURE_PANEL_H

#include "loss.h"
#include "soft_threshold.h"

/* the data of one panel's ellipse that the error bounds use; x runs over its projection [lo, hi] */
typedef struct {
    double lo, mid, hi;
    double rho;        /* sum of the ellipse's semi-axes over half the panel's width */
    double loss_lo, loss_mid, loss_hi;
    double slope_mid;  /* L'(mid) */
    double log_factor; /* of everything that does not depend on c and y */
    double damp;       /* log of the bound on chi, 0 without it (soft_threshold.h) */
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

/* whether that is nothing */
int acct_panel_fits(acct_panel *panel, const acct_step *step, double x, double width, double rho,
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
