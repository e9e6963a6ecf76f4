/* One step restricted to a window of the noise, exponentially tilted, as a finite sum.
 *
 * For a real order c (c > 1: pair (P, Q); c < 0: pair (Q, P)) the tilted law has density
 *     N(x; 0, sigma^2) e^{c L(x)} / A(c)      on I = [lo, hi],     A(c) = int_I N e^{c L}.
 * Integrals over I are composite Gauss-Legendre sums with a proved error (docs/theorems.md,
 * Theorem 4): on each panel the integrand is analytic in a Bernstein ellipse, where
 *     |N e^{(c+iy)L}| <= exp(b^2/2s^2 + y max arg + growth + sup(cL - x^2/2s^2)).
 */
#ifndef ACCT_TILTED_LAW_H
#define ACCT_TILTED_LAW_H

#include <math.h>
#include <stddef.h>

#include "clones.h"
#include "gauss_legendre.h"
#include "quadrature_panel.h"
#include "rounding.h"

/* arrays of this length lie side by side: not a multiple of a page, or all of them would meet in the
 * same sets of the cache */
#define ACCT_MAX_NODES 2600
#define ACCT_MAX_PANELS 1024
/* large shifts under little noise take many panels: all that a law may have */
#define ACCT_MIXTURE_NODES (ACCT_MAX_PANELS * ACCT_GL_ORDER + 40)

/* moments over the first panels: J = I up to the end of one panel */
typedef struct {
    double variance; /* lower bound on E[(L - L~)^2; J x J] / 2, L~ an independent copy */
    double fourth;   /* upper bound on E[(L - L~)^4; J x J] */
} acct_cf_decay_window;

typedef struct {
    acct_step step;
    double lo, hi;
    int count, capacity, panels;
    int whole;        /* whether the panels cover all of [lo, hi], and N e^{cL} itself: no threshold, no shift */
    double *node;     /* x */
    double *x2;       /* x^2 / (2 sigma^2) */
    double *loss;     /* L(x) */
    double *quad;     /* quadrature weight / (sigma sqrt(2 pi)) */
    double *gauss;    /* quadrature weight times N(x; 0, sigma^2) */
    double *exp_loss; /* e^L */
    double *e2_plus;  /* E2(L) */
    double *e2_minus; /* E2(-L) */
    double *loss_err; /* absolute error of L, that of the node included */
    double *term, *slope, *rate; /* scratch of acct_tilted_law_moments, and of acct_tilted_law_set */
    double *weight;   /* tilted weights: gauss * e^{cL} / A(c), of the last acct_tilted_law_moments */
    double weighed;   /* its order, if it was certified; NaN where it was not, and of other weights */
    double q_above, pq_above; /* Q(x > hi) and (P - Q)(x > hi) */
    double above_err;         /* bound on the relative error of both */
    double outside;           /* bound on P and on Q of {x < lo} */
    double of_one, of_exp_u;  /* acct_tilted_law_plain_errors, once they were asked for; NaN before */
    acct_panel *panel;
    acct_cf_decay_window *window; /* one a panel, set by acct_cf_decay_set */
} acct_tilted_law;

typedef struct {
    double order;       /* c */
    double log_mgf;     /* K = log A(c) */
    double log_mgf_err; /* bound on its absolute error: quadrature and round-off; may be inf */
    double mean;        /* tilted mean of L */
    double mean_err;    /* bound on its absolute error */
    double m1, m2;      /* moments of the tilted law about `mean`; plain rounding */
    double weight_err;  /* mean relative round-off of the weights */
} acct_moments;

/* the law's arrays live in the caller's memory: ACCT_TILTED_LAW_DOUBLES(capacity) doubles */
#define ACCT_TILTED_LAW_ARRAYS 13
#define ACCT_TILTED_LAW_PANEL ((sizeof(acct_panel) + sizeof(acct_cf_decay_window)) / sizeof(double))
#define ACCT_TILTED_LAW_DOUBLES(capacity)          \
    (ACCT_TILTED_LAW_ARRAYS * (size_t)(capacity) + \
     ((size_t)(capacity) / ACCT_GL_ORDER * ACCT_TILTED_LAW_PANEL + ACCT_WIDE - 1) / ACCT_WIDE * ACCT_WIDE)
void acct_tilted_law_place(acct_tilted_law *law, double *memory, int capacity);

/* sets the fields that do not depend on the panels; returns 0 if there is no window */
int acct_tilted_law_start(acct_tilted_law *law, const acct_step *step, const acct_window *window);

/* sets  panels and nodes on the window, fine enough that integrals of N e^{(c+iy)L}, |y| <= y_max,
 *       are within about e^{log_error} (absolute)
 * returns ACCT_EPRECISION where that needs more than the capacity */
int acct_tilted_law_set(acct_tilted_law *law, const acct_step *step, const acct_window *window, double order,
                        double y_max, double log_error);

/* ensures |sum - integral| <= returned * e^K for N e^{(c+iy')L}, 0 <= y' <= y, c = m->order;
 * for that integrand times (L - mean)^k: a factor acct_tilted_law_reach^k more */
double acct_tilted_law_error(const acct_tilted_law *law, const acct_moments *m, double y);

/* the terms of acct_tilted_law_error one by one: each panel's own */
void acct_tilted_law_errors(const acct_tilted_law *law, const acct_moments *m, double y, double *each);

/* the log of one panel's term of acct_tilted_law_error, before division by e^K */
double acct_tilted_law_panel_error(const acct_tilted_law *law, int panel, double order, double y);

/* bound on the quadrature error of N over the window and of N e^u; e^u = e^{(x - 1/2)/sigma^2} */
void acct_tilted_law_plain_errors(acct_tilted_law *law, double *of_one, double *of_exp_u);

/* bound on the relative round-off of a node's gauss[j] (quadrature weight times N) and of a tilted weight
 * up to that of c L: the exponent x^2/(2 sigma^2) carries 12 u of itself, all factors 128 u */
static inline double acct_weight_roundoff(double x2) { return (128.0 + 12.0 * x2) * ACCT_U; }

/* from this exponent of the noise on, N is so near to underflow that N e^L is taken by one exponent */
#define ACCT_FAR_NOISE 690.0

/* quadrature weight times N e^{times L} at a node; acct_weight_roundoff and the error of L apply, and underflow */
static inline double acct_weight_with_loss(const acct_tilted_law *law, int j, double times) {
    const double rise = times * law->loss[j];
    return law->x2[j] < ACCT_FAR_NOISE ? law->gauss[j] * exp(rise) : law->quad[j] * exp(rise - law->x2[j]);
}

/* mass of all outcomes outside the window, under P or Q, upper bound up to ACCT_SLACK */
static inline double acct_tilted_law_mass_outside(const acct_tilted_law *law) {
    return law->outside + law->q_above + acct_max(law->pq_above, 0.0) + 3.0 * ACCT_UNDERFLOW;
}

/* max of |L - mean| over the panels' ellipses */
double acct_tilted_law_reach(const acct_tilted_law *law, double mean);

/* sets  K, mean, central moments of the tilted law; with `certify`, also the error bounds;
 *       overwrites law->weight */
void acct_tilted_law_moments(acct_tilted_law *law, double order, int certify, acct_moments *out);

/* sets     *sum to that of N (e^{cL} - 1 - c (e^L - 1)) over the nodes, c > 1 or c < 0, and *error to a bound on the
 *          summands' round-off, that of adding them not counted
 * returns  0 where a factor leaves the range of vmath.h: nothing is set */
int acct_tilted_law_excess(const acct_tilted_law *law, double order, double *sum, double *error);

/* the K of acct_tilted_law_moments alone, and the bound on its error unless that is NULL; may overwrite
 * law->weight */
double acct_tilted_law_log_mgf(acct_tilted_law *law, double order, double *error);

/* The tilted law restricted by soft thresholds: integrals of N e^{cL} times the chance of being below the
 * outer threshold, between the thresholds, or above the outer one (Theorem 15). */
/* sets  both thresholds' chances at the nodes of a law */
void acct_thresholds_set(const acct_tilted_law *law, acct_thresholds *thresholds);

/* bounds on the quadrature errors of N, of N e^u and of N e^{-mL}, each times 1 - chi */
void acct_above_errors(const acct_tilted_law *law, double m, double *of_one, double *of_exp_u,
                       double *of_reverse);

/* A(c) = int chi N e^{cL} over the law's window, chi the chance of being below the threshold, c > 1;
 * certified if the panels were set for that threshold as window->threshold.  Leaves the tilted weights in
 * law->weight. */
void acct_thresholded_moments(acct_tilted_law *law, const double *above, const double *share,
                              acct_threshold threshold, double order, int certify, acct_moments *out);

/* its log A(c) alone, without errors, for searches; overwrites law->weight */
double acct_thresholded_log_mgf(acct_tilted_law *law, const double *above, const double *share,
                                acct_threshold threshold, double order);

/* the log of an upper bound on the same A(c), which does not cancel where A(c) is far below 1 */
double acct_thresholded_log_mgf_upper(const acct_tilted_law *law, const double *share,
                                      acct_threshold threshold, double order);

/* the log of an upper bound on int middle N e^{cL}, if the panels were set for both thresholds; and, for
 * searches, about its log */
double acct_between_log_mgf_upper(const acct_tilted_law *law, const acct_thresholds *thresholds,
                                  double order);
double acct_between_log_mgf(const acct_tilted_law *law, const double *middle, double order);

#endif
