#include "grid.h"

#include <math.h>

#include "floating_point.h"
#include "rounding.h"

/* Masses below this are noise of underflow (the protocol's absolute error). */
#define TINY 2e-300

/* Relative error of q e^t: that of the masses, of a knot that is rounded, and of exp. */
static double hull_error_at(const acct_cells *c, ptrdiff_t i) {
    return c->error + ACCT_U * (24.0 + 8.0 * fabs(c->t[i]));
}

static double upwards(double mass, double error) { return mass * (1.0 + error) + TINY; }

static double downwards(double mass, double error) {
    const double m = mass * (1.0 - error) - TINY;
    return m > 0.0 ? m : 0.0;
}

/* q e^t, also where the exponential leaves the range of doubles; an infinite gap is a valid one */
static double at_knot(double q, double t) { return q > 0.0 ? q * exp(t) : 0.0; }

static double clamp(double x, double high) { return x < 0.0 ? 0.0 : x > high ? high : x; }

void acct_grid_upper(const acct_cells *c, double *out) {
    const ptrdiff_t n = c->cells;
    const double width = -expm1(-c->spacing);
    for (ptrdiff_t i = 0; i <= n; i++) out[i] = upwards(c->atom[i], c->error + 4.0 * ACCT_U);
    out[0] += upwards(c->below, c->error + 4.0 * ACCT_U);
    for (ptrdiff_t i = 0; i < n; i++) {
        const double e = hull_error_at(c, i), both = c->p_low[i] + c->p_high[i];
        if (!(both > 0.0)) continue;
        const double p = upwards(both, e), q = downwards(c->q_low[i] + c->q_high[i], e);
        /* H grows with b at fixed p, so b is rounded up */
        const double rest = at_knot(q, c->t[i]);
        const double b = clamp((p - rest + 4.0 * ACCT_U * p) / width * (1.0 + 16.0 * ACCT_U), p);
        out[i] += p - b;
        out[i + 1] += b;
    }
    for (ptrdiff_t i = 0; i <= n; i++) out[i] *= 1.0 + 8.0 * ACCT_U;
}

/* p - q e^t of the masses above a knot and its negative of those below, rounded up */
static double gap_above(double p, double q, double t, double e) {
    return upwards(p, e) - at_knot(downwards(q, e), t);
}

/* q e^t <= e^D p within a cell of width D, up to errors, whatever becomes of q and the
 * exponential */
static double gap_below(double p, double q, double t, double e, double growth) {
    const double gap = at_knot(upwards(q, e), t) - downwards(p, e);
    const double most = upwards(p, e) * (growth + 2.0 * e) * (1.0 + 16.0 * ACCT_U);
    return gap < most ? gap : most;
}

static void raise_masses_to(double *gap, double g) {
    if (g > *gap) *gap = g;
}

/* the mass at its upper end when cell i is split between its ends, rounded down; sets *p to both */
static double upper_share(const acct_cells *c, ptrdiff_t i, double width, double *p) {
    const double e = hull_error_at(c, i), q = upwards(c->q_low[i] + c->q_high[i], e);
    *p = downwards(c->p_low[i] + c->p_high[i], e);
    return clamp((*p - at_knot(q, c->t[i]) - 4.0 * ACCT_U * *p) / width * (1.0 - 16.0 * ACCT_U), *p);
}

/* Finds the knot that ends the law and returns its index.  Its atom must outweigh what lowering the
 * profile at the knot before takes away; where it does not, the cell is rounded down: losses move
 * down, masses under P stay. */
static ptrdiff_t top_knot(const acct_cells *c, double *out) {
    const double width = -expm1(-c->spacing), growth = expm1(c->spacing);
    for (ptrdiff_t i = c->cells; i > 0; i--) {
        double p, g = 0.0;
        const double e = hull_error_at(c, i), b = upper_share(c, i - 1, width, &p);
        const double both = c->p_low[i - 1] + c->p_high[i - 1];
        raise_masses_to(&g, gap_above(both, c->q_low[i - 1] + c->q_high[i - 1], c->t[i - 1], e));
        if (i > 1) {
            const double whole = i == 2 ? 1.0 : 0.0; /* the first cell counts as one */
            const double p_below = c->p_high[i - 2] + whole * c->p_low[i - 2];
            const double q_below = c->q_high[i - 2] + whole * c->q_low[i - 2];
            raise_masses_to(&g, gap_below(p_below, q_below, c->t[i - 1], e, growth));
        }
        if (out[i] > 0.0 && (out[i] + b) * (1.0 - 64.0 * ACCT_U) > g / width * (1.0 + 64.0 * ACCT_U))
            return i;
        out[i - 1] += out[i] + p;
        out[i] = 0.0;
    }
    return 0;
}

int acct_grid_hull(ptrdiff_t last, double spacing, double sign, double *out, ptrdiff_t *stack) {
    ptrdiff_t depth = 0;
    for (ptrdiff_t r = 0; r <= last; r++) {
        while (depth > 0 && out[stack[depth - 1]] < 0.0) {
            const ptrdiff_t i = stack[--depth];
            const double mass = out[i], rounding = sign * 64.0 * ACCT_U * fabs(mass);
            double share = 1.0;
            if (depth > 0) {
                const ptrdiff_t l = stack[depth - 1];
                share = expm1(-spacing * (double)(i - l)) / expm1(-spacing * (double)(r - l));
                out[l] += mass * (1.0 - share) + rounding;
            }
            out[r] += mass * share + rounding;
            out[i] = 0.0;
        }
        stack[depth++] = r;
    }
    return !(out[last] < 0.0);
}

static void round_down(const acct_cells *c, double *out) {
    for (ptrdiff_t i = 0; i <= c->cells; i++) out[i] = downwards(c->atom[i], c->error);
    out[c->cells] += downwards(c->above, c->error);
    for (ptrdiff_t i = 0; i < c->cells; i++)
        out[i] += downwards(c->p_low[i] + c->p_high[i], hull_error_at(c, i));
    for (ptrdiff_t i = 0; i <= c->cells; i++) out[i] *= 1.0 - 8.0 * ACCT_U;
}

/* chords rounded down into out, and how far the profile must be lowered at each knot into gap */
static void chords_and_gaps(const acct_cells *c, ptrdiff_t last, double *out, double *gap) {
    const double width = -expm1(-c->spacing), growth = expm1(c->spacing);
    for (ptrdiff_t i = 0; i <= last; i++) gap[i] = 0.0;
    for (ptrdiff_t i = 0; i < last; i++) {
        const double e = hull_error_at(c, i), f = hull_error_at(c, i + 1);
        const double both = c->p_low[i] + c->p_high[i], other = c->q_low[i] + c->q_high[i];
        if (!(both > 0.0)) continue;
        double p;
        const double b = upper_share(c, i, width, &p);
        out[i] += p - b;
        out[i + 1] += b;
        if (i == 0 && last > 1) { /* at the lower end, below which the profile is a line */
            raise_masses_to(&gap[1], gap_below(both, other, c->t[1], f, growth));
        } else if (i + 1 < last) { /* the tangent at the middle of the cell */
            raise_masses_to(&gap[i], gap_above(c->p_low[i], c->q_low[i], c->t[i], e));
            raise_masses_to(&gap[i + 1], gap_below(c->p_high[i], c->q_high[i], c->t[i + 1], f, growth));
        } else { /* at its end, beyond which the profile is zero */
            raise_masses_to(&gap[i], gap_above(both, other, c->t[i], e));
        }
    }
}

int acct_grid_lower(const acct_cells *c, double *out, double *gap, ptrdiff_t *stack) {
    const double width = -expm1(-c->spacing), growth = expm1(c->spacing);
    const double error = c->error + 4.0 * ACCT_U, u = 64.0 * ACCT_U;
    for (ptrdiff_t i = 0; i <= c->cells; i++) out[i] = downwards(c->atom[i], error);
    out[c->cells] += downwards(c->above, error);
    const ptrdiff_t last = top_knot(c, out);
    chords_and_gaps(c, last, out, gap);
    for (ptrdiff_t i = 0; i <= last; i++) {
        if (gap[i] < INFINITY) continue;
        round_down(c, out); /* losses so large that masses under Q are below the doubles */
        return 0;
    }
    for (ptrdiff_t i = 0; i <= last; i++) {
        const double g = gap[i], left = i > 0 ? gap[i - 1] : g, right = i < last ? gap[i + 1] : g;
        /* second differences of the gaps, each term rounded down */
        const double plus = g / growth + g / width, minus = right / growth + left / width;
        out[i] = out[i] * (1.0 - u) + (plus * (1.0 - u) - minus * (1.0 + u));
    }
    if (acct_grid_hull(last, c->spacing, -1.0, out, stack)) return 1;
    round_down(c, out);
    return 0;
}

void acct_spectrum_power(ptrdiff_t count, const double *z, unsigned long long power, double *out) {
    const double floor = exp(-180.0 / (double)power);
    for (ptrdiff_t i = 0; i < count; i++) {
        double x = z[2 * i], y = z[2 * i + 1];
        if (x * x + y * y < floor) {
            out[2 * i] = out[2 * i + 1] = 0.0;
            continue;
        }
        double a = out[2 * i], b = out[2 * i + 1];
        for (unsigned long long k = power;;) {
            if (k & 1) {
                const double s = a * x - b * y;
                b = a * y + b * x;
                a = s;
            }
            if (!(k >>= 1)) break;
            const double s = x * x - y * y;
            y = 2.0 * x * y;
            x = s;
        }
        out[2 * i] = a;
        out[2 * i + 1] = b;
    }
}

#define BLOCK 64

void acct_profile(ptrdiff_t count, const double *b, double first, double spacing, double tilt,
                  acct_profile_sums *out) {
    double decay[BLOCK], shrink[BLOCK];
    for (int i = 0; i < BLOCK; i++) {
        decay[i] = exp(-tilt * (i * spacing));
        shrink[i] = exp(-(i * spacing));
    }
    acct_profile_sums s = {0.0, 0.0, 0.0, 0.0};
    /* Blocks are added with compensation: no error grows with their number. */
    acct_sum blocks = {0.0, 0.0};
    for (ptrdiff_t from = 0; from < count; from += BLOCK) {
        const double past = (double)from * spacing, v = first + past;
        if (tilt * past > 680.0) break; /* below 1e-295: counted by the caller */
        const double base = exp(-tilt * past), x = exp(-v), one = -expm1(-v);
        const int size = count - from < BLOCK ? (int)(count - from) : BLOCK;
        double value = 0.0;
        for (int i = 0; i < size; i++) {
            const double e = base * decay[i];
            /* 1 - e^-v_j without cancellation where v is small */
            const double g = one + x * (1.0 - shrink[i]), w = e * g;
            const double m = b[from + i] > 0.0 ? b[from + i] : 0.0;
            value += m * w;
            s.gross += m * e;
            s.square += w * w;
            if (w > s.most) s.most = w;
        }
        acct_sum_add(&blocks, value);
    }
    s.value = acct_sum_total(&blocks);
    *out = s;
}

void acct_spread(
    const double *s, const double *p, int64_t n, const double *t, const double *r, int64_t m,
    const double *grid, int64_t g, double *out, int64_t *counts, double *escaped
) {
    double over = 0.0;
    for (int64_t k = 0; k < g; k++) {
        out[k] = 0.0;
        counts[k] = 0;
    }
    for (int64_t i = 0; i < n; i++) {
        if (p[i] == 0.0) continue;
        int64_t k = 0;
        int64_t j = 0;
        while (j < m) {
            /* the cell of s_i + t_j, then every j that stays in it */
            double v = s[i] + t[j];
            while (k < g - 1 && grid[k + 1] <= v) k++;
            if (k == g - 1) {
                for (; j < m; j++) {
                    double w = p[i] * r[j];
                    out[k] += w;
                    over += w * (s[i] + t[j] - grid[k]);
                    counts[k]++;
                }
                break;
            }
            double left = grid[k], right = grid[k + 1], width = right - left;
            double low = 0.0, high = 0.0;
            int64_t first = j;
            do {
                double w = p[i] * r[j];
                double b = w * ((v - left) / width);
                high += b;
                low += w - b;
                j++;
                if (j == m) break;
                v = s[i] + t[j];
            } while (v < right);
            out[k] += low;
            out[k + 1] += high;
            /* an upper bound on the additions any term passes through */
            counts[k] += j - first;
            counts[k + 1] += j - first;
        }
    }
    *escaped = over;
}

void acct_merge(
    const double *s, const double *p, int64_t n, const double *t, const double *r, int64_t m,
    const double *grid, int64_t g, double *mass, double *moment, int64_t *counts
) {
    for (int64_t k = 0; k < g; k++) {
        mass[k] = 0.0;
        moment[k] = 0.0;
        counts[k] = 0;
    }
    for (int64_t i = 0; i < n; i++) {
        if (p[i] == 0.0) continue;
        int64_t k = 0;
        int64_t j = 0;
        while (j < m) {
            double v = s[i] + t[j];
            while (k < g - 1 && grid[k + 1] <= v) k++;
            double right = k < g - 1 ? grid[k + 1] : INFINITY;
            double w_sum = 0.0, v_sum = 0.0;
            int64_t first = j;
            do {
                double w = p[i] * r[j];
                w_sum += w;
                v_sum += w * v;
                j++;
                if (j == m) break;
                v = s[i] + t[j];
            } while (v < right);
            mass[k] += w_sum;
            moment[k] += v_sum;
            counts[k] += j - first;
        }
    }
}
