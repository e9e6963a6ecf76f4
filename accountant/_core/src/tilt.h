/* One step restricted to a window of the noise, exponentially tilted, as a finite sum.
 *
 * For a real order c (c > 1: pair (P, Q); c < 0: pair (Q, P)) the tilted law has density
 *     N(x; 0, sigma^2) e^{c L(x)} / A(c)      on I = [lo, hi],     A(c) = int_I N e^{c L}.
 * Integrals over I are composite Gauss-Legendre sums with a proved error (docs/theorems.md,
 * Theorem 4): on each panel the integrand is analytic in a Bernstein ellipse, where
 *     |N e^{(c+iy)L}| <= exp(b^2/2s^2 + y max arg + growth + sup(cL - x^2/2s^2)).
 */
#ifndef ACCT_TILT_H
#define ACCT_TILT_H

#include <stddef.h>

#include "panel.h"

/* arrays of this length lie side by side: not a multiple of a page, or all of them would meet in the
 * same sets of the cache */
#define ACCT_MAX_NODES 2600
#define ACCT_MAX_PANELS 256

typedef struct {
    acct_step step;
    double lo, hi;
    int count, capacity, panels;
    double *node;     /* x */
    double *x2;       /* x^2 / (2 sigma^2) */
    double *loss;     /* L(x) */
    double *quad;     /* quadrature weight / (sigma sqrt(2 pi)) */
    double *gauss;    /* quadrature weight times N(x; 0, sigma^2) */
    double *exp_loss; /* e^L */
    double *e2_plus;  /* E2(L) */
    double *e2_minus; /* E2(-L) */
    double *loss_err; /* absolute error of L, that of the node included */
    double *term, *slope, *bend; /* scratch of acct_grid_moments */
    double *weight;   /* tilted weights: gauss * e^{cL} / A(c), of the last acct_grid_moments */
    acct_panel panel[ACCT_MAX_PANELS];
    double q_above, pq_above; /* Q(x > hi) and (P - Q)(x > hi) */
    double above_err;         /* bound on the relative error of both */
    double lift;              /* bound on arg e^L on the ellipses of a shifted window, else 0 */
    double outside;           /* bound on P and on Q of {x < lo} */
} acct_grid;

typedef struct {
    double order;       /* c */
    double log_mgf;     /* K = log A(c) */
    double log_mgf_err; /* bound on its absolute error: quadrature and round-off; may be inf */
    double mean;        /* tilted mean of L */
    double mean_err;    /* bound on its absolute error */
    double m1, m2;      /* moments of the tilted law about `mean`; plain rounding */
    double weight_err;  /* mean relative round-off of the weights */
} acct_moments;

/* the grid's arrays live in the caller's memory: ACCT_GRID_DOUBLES(capacity) doubles */
#define ACCT_GRID_ARRAYS 13
#define ACCT_GRID_DOUBLES(capacity) (ACCT_GRID_ARRAYS * (size_t)(capacity))
void acct_grid_place(acct_grid *grid, double *memory, int capacity);

/* sets  panels and nodes on the window, fine enough that integrals of N e^{(c+iy)L}, |y| <= y_max,
 *       are within about e^{log_error} (absolute)
 * returns ACCT_EPRECISION where that needs more than the capacity */
int acct_grid_set(acct_grid *grid, const acct_step *step, const acct_window *window, double order,
                  double y_max, double log_error);

/* Panels of one law for others alike: ends as fractions of the window, and their ellipses. */
#define ACCT_MAX_LAYOUT 48
typedef struct {
    int panels; /* 0: none */
    double end[ACCT_MAX_LAYOUT], rho[ACCT_MAX_LAYOUT];
} acct_layout;

void acct_grid_layout(const acct_grid *grid, acct_layout *layout);

/* acct_grid_set with given panels, no search; ACCT_EPRECISION also where one of them does not fit */
int acct_grid_set_along(acct_grid *grid, const acct_step *step, const acct_window *window, double order,
                        double y_max, double log_error, const acct_layout *layout);

/* ensures |sum - integral| <= returned * e^K for N e^{(c+iy')L}, 0 <= y' <= y, c = m->order;
 * for that integrand times (L - mean)^k: a factor acct_grid_reach^k more */
double acct_grid_error(const acct_grid *grid, const acct_moments *m, double y);

/* the log of one panel's term of acct_grid_error, before division by e^K */
double acct_grid_panel_error(const acct_grid *grid, int panel, double order, double y);

/* bound on the quadrature error of N over the grid and of N e^u; e^u = e^{(x - 1/2)/sigma^2} */
void acct_grid_plain_errors(const acct_grid *grid, double *of_one, double *of_exp_u);

/* max of |L - mean| over the panels' ellipses */
double acct_grid_reach(const acct_grid *grid, double mean);

/* sets  K, mean, central moments of the tilted law; with `certify`, also the error bounds;
 *       overwrites grid->weight */
void acct_grid_moments(acct_grid *grid, double order, int certify, acct_moments *out);

/* the K of acct_grid_moments alone, and the bound on its error; may overwrite grid->weight */
double acct_grid_log_mgf(acct_grid *grid, double order, double *error);

#endif
