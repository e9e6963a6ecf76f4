/* Drives the entry points that work on arrays, over random lengths and extreme values.
 * Usage: arrays CALLS SEED */
#include <string.h>

#include "grid.h"
#include "drive.h"
#include "game.h"
#include "noise.h"
#include "rows.h"

static size_t length(void) {
    static const size_t corners[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 63, 64, 65, 255, 256, 257};
    return chance(2) ? PICK(corners) : 1 + below(600);
}

static double *masses(size_t n) {
    double *p = doubles(n), sum = 0.0;
    for (size_t i = 0; i < n; i++) sum += p[i] = chance(5) ? 0.0 : log_uniform(1e-300, 1.0);
    for (size_t i = 0; i < n; i++) p[i] = sum > 0.0 ? p[i] / sum : 0.0;
    return p;
}

static double *increasing(size_t n, double step) {
    double *x = doubles(n), at = chance(2) ? 0.0 : unit() * step;
    for (size_t i = 0; i < n; i++) x[i] = at += (0.01 + unit()) * step;
    return x;
}

static void convolution(void) {
    const size_t n = length(), m = length(), g = 1 + length();
    double *s = increasing(n, 1.0), *t = increasing(m, log_uniform(1e-9, 1e9));
    double *p = masses(n), *r = masses(m), *grid = increasing(g, log_uniform(1e-9, 1e9));
    double *out = doubles(g), *moment = doubles(g), escaped = NAN, sum = 0.0, whole = 0.0;
    int64_t *counts = exactly(g, sizeof *counts);
    grid[0] = 0.0;
    acct_spread(s, p, (int64_t)n, t, r, (int64_t)m, grid, (int64_t)g, out, counts, &escaped);
    for (size_t i = 0; i < g; i++) sum += out[i];
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < m; j++) whole += p[i] * r[j];
    REQUIRE(fabs(sum - whole) <= 1e-9, "spread: %a of %a", sum, whole);
    REQUIRE(escaped >= 0.0, "spread: escaped %a", escaped);
    acct_merge(s, p, (int64_t)n, t, r, (int64_t)m, grid, (int64_t)g, out, moment, counts);
    sum = 0.0;
    for (size_t i = 0; i < g; i++) sum += out[i];
    REQUIRE(fabs(sum - whole) <= 1e-9, "merge: %a of %a", sum, whole);
    free(s), free(t), free(p), free(r), free(grid), free(out), free(moment), free(counts);
}

static void laws(void) {
    const size_t n = 1 + length();
    const double spacing = log_uniform(1e-6, 3.0), first = (unit() - 0.5) * 2.0 * spacing * (double)n;
    double *t = doubles(n + 1), *atom = masses(n + 1), *out = doubles(n + 1), *gap = doubles(n + 1);
    double *p_low = masses(n), *p_high = masses(n), *q_low = doubles(n), *q_high = doubles(n);
    ptrdiff_t *stack = exactly(n + 1, sizeof *stack);
    const int wild = chance(4); /* masses under Q that contradict those under P */
    for (size_t i = 0; i <= n; i++) t[i] = first + (double)i * spacing;
    for (size_t i = 0; i < n; i++) {
        p_low[i] *= 0.2, p_high[i] *= 0.2, atom[i] *= 0.2;
        q_low[i] = wild ? unit() : p_low[i] * exp(-t[i] - spacing * unit() / 2.0);
        q_high[i] = wild ? 0.0 : p_high[i] * exp(-t[i] - spacing * (1.0 + unit()) / 2.0);
    }
    const acct_cells cells = {(ptrdiff_t)n, spacing, 1e-13, unit() * 0.1, unit() * 0.1, t, atom,
                              p_low, q_low, p_high, q_high};
    acct_grid_upper(&cells, out);
    for (size_t i = 0; i <= n; i++) REQUIRE(out[i] >= 0.0, "upper law: %a at %zu", out[i], i);
    acct_grid_lower(&cells, out, gap, stack);
    for (size_t i = 0; i <= n; i++) REQUIRE(out[i] >= 0.0, "lower law: %a at %zu", out[i], i);
    acct_profile_sums sums;
    acct_profile((ptrdiff_t)n, out, log_uniform(1e-9, 100.0), spacing, chance(3) ? 0.0 : log_uniform(1e-6, 1e6), &sums);
    REQUIRE(sums.value >= 0.0 && sums.value <= sums.gross * 1.001 && sums.most <= 1.001, "profile: %a of %a", sums.value, sums.gross);
    free(t), free(atom), free(out), free(gap), free(p_low), free(p_high), free(q_low), free(q_high), free(stack);
}

static void spectrum(void) {
    const size_t n = length();
    double *z = doubles(2 * n), *out = doubles(2 * n);
    for (size_t i = 0; i < n; i++) {
        const double size = chance(3) ? 1.0 : unit(), angle = 7.0 * unit();
        z[2 * i] = size * cos(angle), z[2 * i + 1] = size * sin(angle);
        out[2 * i] = 1.0, out[2 * i + 1] = 0.0;
    }
    acct_spectrum_power((ptrdiff_t)n, z, chance(4) ? UINT64_C(1) << 53 : 1 + below(1000), out);
    for (size_t i = 0; i < 2 * n; i++) REQUIRE(isfinite(out[i]), "spectrum: %a", out[i]);
    free(z), free(out);
}

static void randomness(void) {
    const size_t n = length(), blocks = 1 + length() / 16;
    uint32_t key[8];
    for (int i = 0; i < 8; i++) key[i] = (uint32_t)word();
    uint8_t *stream = exactly(64 * blocks, 1), again[64];
    const uint64_t counter = chance(4) ? UINT64_MAX - blocks : chance(2) ? UINT32_MAX - below(blocks) : word() >> 1;
    acct_chacha20(key, counter, stream, blocks);
    acct_chacha20(key, counter + blocks - 1, again, 1);
    REQUIRE(!memcmp(stream + 64 * (blocks - 1), again, 64), "chacha: block %zu differs when drawn alone", blocks - 1);
    uint64_t *bits = exactly(n, sizeof *bits);
    for (size_t i = 0; i < n; i++) bits[i] = chance(10) ? below(4) : chance(10) ? UINT64_MAX - below(4) : word();
    double *normals = doubles(n);
    size_t *undecided = exactly(n, sizeof *undecided);
    const size_t open = acct_rounded_normal(bits, n, chance(3) ? 0x1p40 : log_uniform(1e-30, 0x1p40), normals, undecided);
    REQUIRE(open <= n, "rounded normal: %zu undecided of %zu", open, n);
    for (size_t i = 0; i < n; i++) REQUIRE(normals[i] == rint(normals[i]), "rounded normal: %a", normals[i]);
    int64_t *integers = exactly(n, sizeof *integers);
    struct acct_words source = {bits, n, 0};
    const uint64_t scale = chance(3) ? 1 : chance(3) ? UINT64_C(1) << 20 : 1 + below(UINT64_C(1) << 20);
    const size_t made = acct_discrete_gaussian(&source, scale, n, integers);
    REQUIRE(made <= n && source.used <= n, "discrete Gaussian: %zu from %zu of %zu", made, source.used, n);
    for (size_t i = 0; i < made; i++)
        REQUIRE(integers[i] <= (int64_t)(2048 * scale) && integers[i] >= -(int64_t)(2048 * scale), "discrete Gaussian out of range");
    for (int i = 0; i < 10; i++) {
        const double z = acct_normal_tail_quantile(fmax(tail() / 2.0, 0x1p-1074));
        REQUIRE(z >= -1e-15 && z < 40.0, "quantile %a", z);
    }
    free(stream), free(bits), free(normals), free(undecided), free(integers);
}

static void rows(void) {
    const size_t n = 1 + below(9), a_columns = below(40), g_columns = below(40);
    double *a = doubles(n * a_columns), *g = doubles(n * g_columns), *norms = doubles(n), *factors = doubles(n);
    float *a32 = exactly(n * a_columns, sizeof *a32), *g32 = exactly(n * g_columns, sizeof *g32);
    for (size_t i = 0; i < n * a_columns; i++) {
        a[i] = chance(200) ? any_double() : unit() - 0.5;
        a32[i] = (float)(unit() - 0.5);
    }
    for (size_t i = 0; i < n * g_columns; i++) {
        g[i] = chance(200) ? any_double() : unit() - 0.5;
        g32[i] = (float)(chance(100) ? NAN : unit() - 0.5);
    }
    const double limit = chance(3) ? 1e-3 : 1e200;
    const ptrdiff_t r = (ptrdiff_t)n, ac = (ptrdiff_t)a_columns, gc = (ptrdiff_t)g_columns;
    memset(norms, 0, n * sizeof *norms);
    acct_ghost_norms_f64(a, g, r, ac, gc, (double)below(2), limit, norms);
    acct_ghost_norms_f32(a32, g32, r, ac, gc, (double)below(2), limit, norms);
    acct_row_norms_f64(a, r, ac, limit, norms);
    acct_row_norms_f32(g32, r, gc, limit, norms);
    for (size_t i = 0; i < n; i++) REQUIRE(norms[i] >= 0.0, "squared norm %a", norms[i]);
    const double norm = log_uniform(1e-6, 1e6); /* a row whose norm is infinite is dropped */
    for (size_t i = 0; i < n; i++) factors[i] = isfinite(norms[i]) ? fmin(1.0, norm / sqrt(norms[i] + 1e-12)) : 0.0;
    acct_scale_rows_f64(g, factors, r, gc);
    acct_scale_rows_f32(g32, factors, r, gc);
    for (size_t i = 0; i < n * g_columns; i++) REQUIRE(isfinite(g[i]) && isfinite((double)g32[i]), "a clipped row holds %a", g[i]);
    free(a), free(g), free(norms), free(factors), free(a32), free(g32);
}

static void game(void) {
    const ptrdiff_t laws = 1 + (ptrdiff_t)below(3), stride = (ptrdiff_t)1 << below(4), cells = 1 + (ptrdiff_t)below(70);
    const ptrdiff_t above = 1 + (ptrdiff_t)below(9), low = 1 + (ptrdiff_t)below((uint32_t)above), size = cells * stride + 1;
    const ptrdiff_t near = 1 + (ptrdiff_t)below(6), width = low + above + 1, losses = above * stride + 1;
    const double spacing = log_uniform(1e-6, 0.5);
    double *near_mass = doubles((size_t)(laws * near)), *far_mass = doubles((size_t)(laws * width));
    double *infinite = doubles((size_t)laws), *share = doubles((size_t)stride), *values = doubles((size_t)size);
    double *decay = doubles((size_t)losses), *gain = doubles((size_t)losses);
    ptrdiff_t *places = exactly((size_t)near, sizeof *places);
    for (ptrdiff_t k = 0; k < near; k++) places[k] = (ptrdiff_t)below((uint32_t)(2 * stride - 1)) - stride + 1;
    for (ptrdiff_t j = 0; j < laws; j++) {
        infinite[j] = 0.01 * unit();
        for (ptrdiff_t k = 0; k < near; k++) near_mass[j * near + k] = 0.5 * unit() / (double)near;
        for (ptrdiff_t k = 0; k < width; k++) far_mass[j * width + k] = chance(4) ? 0.0 : 0.49 * unit() / (double)width;
    }
    for (ptrdiff_t k = 0; k < stride; k++) share[k] = expm1((double)k * spacing) / expm1((double)stride * spacing);
    for (ptrdiff_t k = 0; k < losses; k++) decay[k] = exp(-(double)k * spacing), gain[k] = -expm1(-(double)k * spacing);
    for (ptrdiff_t k = 0; k < size; k++) values[k] = k ? values[k - 1] * unit() : unit();
    const acct_game all = {laws, near, stride, low, above, places, near_mass, far_mass, share, decay, gain, infinite};
    double *work = doubles((size_t)acct_game_work(&all, size));
    acct_game_play(&all, size, values, 1 + (ptrdiff_t)below(4), work);
    for (ptrdiff_t k = 0; k < size; k++) REQUIRE(values[k] >= 0.0 && values[k] <= 1.0, "game: %a", values[k]);
    free(near_mass), free(far_mass), free(infinite), free(share), free(values), free(decay), free(gain), free(places), free(work);
}

int main(int argc, char **argv) {
    const long calls = argc > 1 ? atol(argv[1]) : 100;
    state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    for (long i = 0; i < calls; i++) convolution(), laws(), spectrum(), randomness(), rows(), game();
    printf("arrays: %ld rounds\n", calls);
    return 0;
}
