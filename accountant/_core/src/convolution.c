#include "convolution.h"

#include <math.h>

#include "floating_point.h"

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
