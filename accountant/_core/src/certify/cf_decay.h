/* How fast the transform of the tilted loss decays along the vertical line. */
#ifndef ACCT_CF_DECAY_H
#define ACCT_CF_DECAY_H

#include "tilted_law.h"

typedef struct {
    const acct_tilted_law *law;
    const acct_moments *moments;
    double steps;
    int windows;
    const acct_cf_decay_window *window; /* the law's */
    int mode;        /* node of the largest tilted density */
    double y_uniform;   /* from here on the minorant's bound is used: */
    double log_uniform; /* log |A(c+iy)/A(c)| <= log_uniform for every y >= y_uniform */
} acct_cf_decay;

/* overwrites law->window and law->rate */
void acct_cf_decay_set(acct_cf_decay *d, const acct_tilted_law *law, const acct_moments *m, double steps);

/* ensures log |A(c+iy')/A(c)| <= returned <= 0 for every y' in [y0, y1] (Theorem 6) */
double acct_cf_decay_moment_upper(const acct_cf_decay *d, double y0, double y1);

/* ensures log |A(c+iy')/A(c)| <= returned <= 0 for every y' >= y (Theorem 7); the effort
 * is the number of window widths to try and of windows on each side; stops improving below `enough` */
double acct_cf_decay_minorant_upper(const acct_cf_decay *d, double y, int widths, int most, double enough);

/* One path Im x = shift and the bound that it gives: |A(c+iy)| <= int |N e^{(c+iy)L}| along it (Theorem 9) */
typedef struct {
    const acct_tilted_law *law; /* on the path; its e2_plus and e2_minus are log |e^L| and arg e^L */
    double order, lift, rest;
} acct_cf_decay_path;

/* requires 2 shift <= 3 sigma^2 over the largest shift of a step that is not plain
 * sets  *path and law, exact to about e^{log_error}; ACCT_EPRECISION where that takes too many nodes */
int acct_cf_decay_path_set(const acct_cf_decay *d, acct_tilted_law *law, double shift, double log_error,
                           acct_cf_decay_path *path);

/* ensures log |A(c+iy')/A(c)| <= returned for every y' >= y >= 0 */
double acct_cf_decay_path_upper(const acct_cf_decay_path *path, double y);

/* The same for few steps: |A(c+iy)| <= int |N e^{(c+iy)L}| along Im x = a, which falls with y
 * (Theorem 9).  Finds a, y with steps * log <= wanted and y < y_most, by trial.
 * sets d->y_uniform, d->log_uniform if it succeeds; scratch is another law */
void acct_cf_decay_shift(acct_cf_decay *d, acct_tilted_law *scratch, double wanted, double y_most);

/* sets d->y_uniform, d->log_uniform and returns a y beyond which the tail is about `share`;
 * inf if none is found */
double acct_cf_decay_stop(acct_cf_decay *d, acct_tilted_law *scratch, double b, double share);

/* requires acct_cf_decay_stop (on this or an equal law)
 * ensures sum over lattice points y_k = k dy > y of
 *             dy/pi |A(c+iy_k)/A(c)|^steps / (|alpha| |alpha - 1|) <= returned,
 *         alpha - 1 = b + i y_k, y itself a lattice point */
double acct_cf_decay_tail_upper(const acct_cf_decay *d, double b, double y, double dy);

#endif
