#include "game.h"

#include <string.h>

#include "clones.h"
#include "rounding.h"

/* Relative error of a sum of n products of non-negative numbers, and of the few roundings around it. */
static double slack(ptrdiff_t n) { return 1.0 + ((double)n + 64.0) * ACCT_U; }

/* Rows at a time: sums are read and written once for all of them. */
#define ROWS 4

/* adds masses times the values from so many places before */
ACCT_CLONES static void add_rows(const double *mass, const double *restrict from, const ptrdiff_t *before,
                                        ptrdiff_t n, double *restrict sum) {
    const double a = mass[0], b = mass[1], c = mass[2], d = mass[3];
    const double *x = from - before[0], *y = from - before[1], *z = from - before[2], *w = from - before[3];
    for (ptrdiff_t i = 0; i < n; i++) sum[i] += (a * x[i] + b * y[i]) + (c * z[i] + d * w[i]);
}

/* adds the masses of a law, all non-negative, times the values from `before` places before */
static void add_law(const double *mass, const ptrdiff_t *before, ptrdiff_t count, const double *from, ptrdiff_t n,
                    double *sum) {
    double some[ROWS] = {0.0};
    ptrdiff_t places[ROWS] = {0}, held = 0;
    for (ptrdiff_t k = 0; k < count; k++) {
        if (!(mass[k] > 0.0)) continue;
        some[held] = mass[k];
        places[held++] = before ? before[k] : k;
        if (held == ROWS) add_rows(some, from, places, n, sum), held = 0;
    }
    if (held == 0) return;
    for (; held < ROWS; held++) some[held] = 0.0, places[held] = places[0];
    add_rows(some, from, places, n, sum);
}

ACCT_CLONES static void raise_to(const double *restrict sum, ptrdiff_t n, double *restrict best) {
    for (ptrdiff_t i = 0; i < n; i++) best[i] = sum[i] > best[i] ? sum[i] : best[i];
}

/* chords between values that are stride places apart */
ACCT_CLONES static void chords(const double *restrict far, ptrdiff_t cells, const double *restrict share,
                               ptrdiff_t stride, double *restrict out) {
    for (ptrdiff_t c = 0; c < cells; c++) {
        const double here = far[c], next = far[c + 1];
        for (ptrdiff_t p = 0; p < stride; p++) out[c * stride + p] = here * (1.0 - share[p]) + next * share[p];
    }
}

/* the values at all places from -above to size + below, in units of stride where it matters */
static void continue_line(const acct_game *g, ptrdiff_t size, const double *values, double *line, double *coarse) {
    const ptrdiff_t most = g->above * g->stride, last = size - 1, after = g->below * g->stride;
    for (ptrdiff_t k = 1; k <= most; k++)
        line[most - k] = g->gain[k] + g->decay[k] * values[k < last ? k : last];
    memcpy(line + most, values, (size_t)size * sizeof *line);
    for (ptrdiff_t k = 0; k < after; k++) line[most + size + k] = values[last];
    const ptrdiff_t knots = g->above + last / g->stride + g->below + 1;
    for (ptrdiff_t k = 0; k < knots; k++) coarse[k] = line[k * g->stride];
}

/* Cells of values that are looked at together, so that they stay in the nearest cache. */
#define BLOCK 32

ptrdiff_t acct_game_work(const acct_game *g, ptrdiff_t size) {
    const ptrdiff_t cells = (size - 1) / g->stride, knots = g->above + cells + g->below + 1;
    return knots * (g->stride + 1) + g->laws * (cells + 1) + BLOCK * g->stride;
}

void acct_game_play(const acct_game *g, ptrdiff_t size, double *values, ptrdiff_t count, double *work) {
    const ptrdiff_t most = g->above * g->stride, cells = (size - 1) / g->stride, width = g->below + g->above + 1;
    double *line = work, *coarse = line + (cells + width) * g->stride;
    double *far = coarse + cells + width, *sum = far + g->laws * (cells + 1);
    const double error = slack(g->near + width);
    for (ptrdiff_t step = 0; step < count; step++) {
        continue_line(g, size, values, line, coarse);
        for (ptrdiff_t j = 0; j < g->laws; j++) {
            double *row = far + j * (cells + 1);
            for (ptrdiff_t i = 0; i <= cells; i++) row[i] = g->infinite[j];
            add_law(g->far_mass + j * width, NULL, width, coarse + width - 1, cells + 1, row);
        }
        memset(values, 0, (size_t)size * sizeof *values);
        for (ptrdiff_t first = 0; first < cells; first += BLOCK) {
            const ptrdiff_t some = first + BLOCK < cells ? BLOCK : cells - first, start = first * g->stride;
            for (ptrdiff_t j = 0; j < g->laws; j++) {
                chords(far + j * (cells + 1) + first, some, g->share, g->stride, sum);
                add_law(g->near_mass + j * g->near, g->near_place, g->near, line + most + start, some * g->stride, sum);
                raise_to(sum, some * g->stride, values + start);
            }
        }
        /* the last knot has what the one before it has */
        values[size - 1] = values[size - 2];
        for (ptrdiff_t i = 0; i < size; i++) {
            const double value = values[i] * error;
            values[i] = value < 1.0 ? value : 1.0;
        }
    }
}
