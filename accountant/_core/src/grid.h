/* The privacy loss distribution on a grid: discretise one mechanism, raise spectra to powers, and
 * read the privacy profile of the composed law (docs/theorems_grid.md).
 */
#ifndef ACCT_GRID_H
#define ACCT_GRID_H

#include <stddef.h>
#include <stdint.h>

/* The masses of one loss on the grid t[0..cells], equally spaced by `spacing`.
 *
 * atom[i] (cells + 1 of them) is mass under P exactly at t[i]; p_low/q_low and p_high/q_high (cells
 * each) are the masses under P and Q of the lower and the upper half of the cell (t[i], t[i+1]],
 * without the atoms.  below and above are the masses under P of L < t[0] and of t[cells] < L < inf.
 * Every mass is within the relative error `error` and 1e-300 of the truth.
 */
typedef struct acct_cells {
    ptrdiff_t cells;
    double spacing;
    double error;
    double below;
    double above;
    const double *t;
    const double *atom;
    const double *p_low;
    const double *q_low;
    const double *p_high;
    const double *q_high;
} acct_cells;

/* sets out[0..cells] to masses under P of a law on the grid whose profile is nowhere below that of
 * the finite losses up to t[cells] (Theorem G2) · requires cells >= 1, spacing > 0 · no aliasing */
void acct_grid_upper(const acct_cells *cells, double *out);

/* sets out[0..cells] to masses under P of a law on the grid whose profile is nowhere above that of
 * the finite losses (Theorem G3) · gap, stack: workspace, cells + 1 each · requires cells >= 2 · no aliasing
 * returns 1 where the second-order law was found, 0 where losses were only rounded down */
int acct_grid_lower(const acct_cells *cells, double *out, double *gap, ptrdiff_t *stack);

/* replaces second differences of a function at knots 0..last, which may be negative, by those of its
 * lower convex hull: the profile of masses out[0..last] (Theorems G3 and G13) · rounds masses up where
 * sign is 1, down where it is -1 · stack: workspace, last + 1
 * returns 0 where the last mass stays negative, 1 otherwise */
int acct_grid_hull(ptrdiff_t last, double spacing, double sign, double *out, ptrdiff_t *stack);

/* out[i] *= z[i]^power for complex numbers stored as pairs; the relative error is at most
 * (1 + 3u)^power - 1, and a factor |z^power| < e^-90 may be replaced by 0 (Theorem G5)
 * requires power >= 1 · no aliasing */
void acct_spectrum_power(ptrdiff_t count, const double *z, unsigned long long power, double *out);

/* Sums over the knots v_j = first + j * spacing > 0 of a composed, tilted law b[0..count-1], with the
 * weights w_j = e^{-tilt (v_j - first)} (1 - e^{-v_j}). */
typedef struct acct_profile_sums {
    double value;  /* sum of b_j w_j, each rounding at most 4e-13 of its gross */
    double gross;  /* sum of b_j e^{-tilt (v_j - first)} */
    double square; /* sum of w_j^2 */
    double most;   /* largest w_j */
} acct_profile_sums;

/* sets *out · requires first > 0, spacing > 0, tilt >= 0; negative b_j count as zero */
void acct_profile(ptrdiff_t count, const double *b, double first, double spacing, double tilt,
                  acct_profile_sums *out);

/* Sums of independent non-negative variables with finitely many values, kept to a given grid.
 *
 * The law of X + Y has n * m atoms. `acct_spread` moves each to the two grid points around it so
 * that its mean stays (the result is larger in the convex order); `acct_merge` replaces all atoms
 * of a cell by their mean (the result is smaller in the convex order). docs/theorems_sampling.md,
 * Theorem S5, states what that is good for.
 */
/* sets: out_k = sum of p_i r_j w_k(s_i + t_j), w_k the hat function of grid point k, and
 *   *escaped = sum of p_i r_j (s_i + t_j - top)_+ with everything above the top kept at the top
 * requires: s, t, grid increasing and >= 0, p, r >= 0, grid_0 <= s_0 + t_0, g >= 2
 * ensures: counts_k is the number of terms added to out_k
 * error: each term within 8u relative, moved by at most 8u relative; out_k sums counts_k of them
 * aliasing: inputs may alias each other, outputs nothing */
void acct_spread(
    const double *s, const double *p, int64_t n, const double *t, const double *r, int64_t m,
    const double *grid, int64_t g, double *out, int64_t *counts, double *escaped
);

/* sets: mass_k = sum of p_i r_j, moment_k = sum of p_i r_j (s_i + t_j) over the atoms in
 *   [grid_k, grid_{k+1}), the last cell reaching to infinity and the first to zero
 * requires, ensures, error, aliasing: as above; cells are assigned by the rounded sum */
void acct_merge(
    const double *s, const double *p, int64_t n, const double *t, const double *r, int64_t m,
    const double *grid, int64_t g, double *mass, double *moment, int64_t *counts
);

#endif
