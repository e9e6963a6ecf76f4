#include "rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clones.h"

/* One clone for machines with wide vectors, one for all: the same operations in the same order. */
enum { SUM_LANES = 8 };

#define DEFINE_FOR(TYPE, SUFFIX)                                                                  \
    ACCT_CLONES_MEMORY static double sum_of_squares_##SUFFIX(const TYPE *x, ptrdiff_t n)                 \
    {                                                                                             \
        double lane[SUM_LANES] = {0.0};                                                               \
        ptrdiff_t k = 0;                                                                          \
        for (; k + SUM_LANES <= n; k += SUM_LANES)                                                        \
            for (int j = 0; j < SUM_LANES; j++) {                                                     \
                const double v = (double)x[k + j];                                                \
                lane[j] += v * v;                                                                 \
            }                                                                                     \
        for (int j = 0; k < n; k++, j++) {                                                        \
            const double v = (double)x[k];                                                        \
            lane[j] += v * v;                                                                     \
        }                                                                                         \
        return ((lane[0] + lane[4]) + (lane[2] + lane[6])) +                                      \
               ((lane[1] + lane[5]) + (lane[3] + lane[7]));                                       \
    }                                                                                             \
                                                                                                  \
    void acct_ghost_norms_##SUFFIX(const TYPE *a, const TYPE *g, ptrdiff_t rows,                  \
                                   ptrdiff_t a_columns, ptrdiff_t g_columns, double bias,         \
                                   double limit, double *norms2)                                  \
    {                                                                                             \
        for (ptrdiff_t i = 0; i < rows; i++) {                                                    \
            const double a2 = sum_of_squares_##SUFFIX(a + i * a_columns, a_columns);              \
            const double g2 = sum_of_squares_##SUFFIX(g + i * g_columns, g_columns);              \
            /* Positive form: a NaN is not within the limit. */                                   \
            norms2[i] = a2 <= limit && g2 <= limit ? norms2[i] + (a2 + bias) * g2 : INFINITY;     \
        }                                                                                         \
    }                                                                                             \
                                                                                                  \
    void acct_row_norms_##SUFFIX(const TYPE *v, ptrdiff_t rows, ptrdiff_t columns, double limit,  \
                                 double *norms2)                                                  \
    {                                                                                             \
        for (ptrdiff_t i = 0; i < rows; i++) {                                                    \
            const double v2 = sum_of_squares_##SUFFIX(v + i * columns, columns);                  \
            norms2[i] = v2 <= limit ? norms2[i] + v2 : INFINITY;                                  \
        }                                                                                         \
    }                                                                                             \
                                                                                                  \
    void acct_scale_rows_##SUFFIX(TYPE *x, const double *factors, ptrdiff_t rows,                 \
                                  ptrdiff_t columns)                                              \
    {                                                                                             \
        for (ptrdiff_t i = 0; i < rows; i++) {                                                    \
            TYPE *row = x + i * columns;                                                          \
            if (factors[i] == 0.0) {                                                              \
                memset(row, 0, (size_t)columns * sizeof *row);                                    \
            } else if (factors[i] != 1.0) {                                                       \
                const TYPE factor = (TYPE)factors[i];                                             \
                for (ptrdiff_t k = 0; k < columns; k++)                                           \
                    row[k] *= factor;                                                             \
            }                                                                                     \
        }                                                                                         \
    }

DEFINE_FOR(double, f64)
DEFINE_FOR(float, f32)

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define ACCT_X86 1
#endif

/* One element is one chain of operations over k, so how many rows and columns a tile has, and how
 * deep a panel is, changes no value: only which elements share a register. Hence
 * where there is no memory for a deep panel a shallow one will do, which the smallest stack holds. Columns that fill up a
 * tile are zeros of the panel, rows that fill it up repeat its last row, and neither is stored. */

enum { DEPTH = 512, SHALLOW = 64, WIDTH_F64 = 16, WIDTH_F32 = 32, TILE = 8, LANES = 16, FEW = 3 };

/* Adds the products of TILE rows with a panel to `sums`, whose rows are `stride` apart; sums that are
 * `fresh` begin at zero. */
typedef void tile_f64(const double *const *x, ptrdiff_t depth, const double *panel, double *sums,
                      ptrdiff_t stride, int fresh);
typedef void tile_f32(const float *const *x, ptrdiff_t depth, const float *panel, float *sums,
                      ptrdiff_t stride, int fresh);

#define PLAIN_TILE(TYPE, SUFFIX, WIDTH)                                                            \
    static void plain_tile_##SUFFIX(const TYPE *const *x, ptrdiff_t depth, const TYPE *panel,      \
                                    TYPE *sums, ptrdiff_t stride, int fresh)                       \
    {                                                                                              \
        for (int i = 0; i < TILE; i++) {                                                           \
            TYPE sum[WIDTH] = {0};                                                                 \
            if (!fresh)                                                                            \
                memcpy(sum, sums + i * stride, sizeof sum);                                        \
            for (ptrdiff_t k = 0; k < depth; k++)                                                  \
                for (int j = 0; j < WIDTH; j++)                                                    \
                    sum[j] += x[i][k] * panel[k * WIDTH + j];                                      \
            memcpy(sums + i * stride, sum, sizeof sum);                                            \
        }                                                                                          \
    }

PLAIN_TILE(double, f64, WIDTH_F64)
PLAIN_TILE(float, f32, WIDTH_F32)

#ifdef ACCT_X86

/* R rows by two registers of C columns each. */
#define FUSED_TILE(NAME, TARGET, TYPE, VECTOR, R, C, P, S, WIDTH)                                  \
    __attribute__((target(TARGET))) static void NAME(                                              \
        const TYPE *const *x, ptrdiff_t depth, const TYPE *panel, TYPE *sums, ptrdiff_t stride,    \
        int fresh)                                                                                 \
    {                                                                                              \
        for (int from = 0; from < TILE; from += R)                                                 \
            for (int left = 0; left < WIDTH; left += 2 * C) {                                      \
                VECTOR a[R], b[R];                                                                 \
                const TYPE *row[R];                                                                \
                _Pragma("GCC unroll 8") for (int i = 0; i < R; i++)                                \
                {                                                                                  \
                    row[i] = x[from + i];                                                          \
                    const TYPE *s = sums + (from + i) * stride + left;                             \
                    a[i] = fresh ? P##_set1_##S(0) : P##_loadu_##S(s);                             \
                    b[i] = fresh ? P##_set1_##S(0) : P##_loadu_##S(s + C);                         \
                }                                                                                  \
                for (ptrdiff_t k = 0; k < depth; k++) {                                            \
                    const VECTOR u = P##_loadu_##S(panel + k * WIDTH + left);                      \
                    const VECTOR v = P##_loadu_##S(panel + k * WIDTH + left + C);                  \
                    _Pragma("GCC unroll 8") for (int i = 0; i < R; i++)                            \
                    {                                                                              \
                        const VECTOR c = P##_set1_##S(row[i][k]);                                  \
                        a[i] = P##_fmadd_##S(c, u, a[i]);                                          \
                        b[i] = P##_fmadd_##S(c, v, b[i]);                                          \
                    }                                                                              \
                }                                                                                  \
                _Pragma("GCC unroll 8") for (int i = 0; i < R; i++)                                \
                {                                                                                  \
                    P##_storeu_##S(sums + (from + i) * stride + left, a[i]);                       \
                    P##_storeu_##S(sums + (from + i) * stride + left + C, b[i]);                   \
                }                                                                                  \
            }                                                                                      \
    }

FUSED_TILE(wide_tile_f64, "avx512f", double, __m512d, 8, 8, _mm512, pd, WIDTH_F64)
FUSED_TILE(wide_tile_f32, "avx512f", float, __m512, 8, 16, _mm512, ps, WIDTH_F32)
FUSED_TILE(fused_tile_f64, "avx2,fma", double, __m256d, 4, 4, _mm256, pd, WIDTH_F64)
FUSED_TILE(fused_tile_f32, "avx2,fma", float, __m256, 4, 8, _mm256, ps, WIDTH_F32)

#define CHOOSE(SUFFIX)                                                                             \
    (__builtin_cpu_supports("avx512f") ? wide_tile_##SUFFIX                                        \
     : __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? fused_tile_##SUFFIX       \
                                                                       : plain_tile_##SUFFIX)
#else
#define CHOOSE(SUFFIX) plain_tile_##SUFFIX
#endif

/* Sums in LANES lanes; the last incomplete group goes to the first lanes. */
#define DOT(TYPE, SUFFIX)                                                                          \
    ACCT_CLONES_MEMORY static TYPE dot_##SUFFIX(const TYPE *x, const TYPE *w, ptrdiff_t n)                \
    {                                                                                              \
        TYPE lane[LANES] = {0};                                                                    \
        ptrdiff_t k = 0;                                                                           \
        for (; k + LANES <= n; k += LANES)                                                         \
            for (int j = 0; j < LANES; j++)                                                        \
                lane[j] += x[k + j] * w[k + j];                                                    \
        for (int j = 0; k < n; k++, j++)                                                           \
            lane[j] += x[k] * w[k];                                                                \
        for (int half = LANES / 2; half; half /= 2)                                                \
            for (int j = 0; j < half; j++)                                                         \
                lane[j] += lane[j + half];                                                         \
        return lane[0];                                                                            \
    }

DOT(double, f64)
DOT(float, f32)

#define PRODUCTS(TYPE, SUFFIX, WIDTH)                                                              \
    static void fill_##SUFFIX(TYPE *panel, const TYPE *w, ptrdiff_t depth, ptrdiff_t columns,      \
                              ptrdiff_t down, ptrdiff_t across)                                    \
    {                                                                                              \
        for (ptrdiff_t k = 0; k < depth; k++) {                                                    \
            for (ptrdiff_t j = 0; j < columns; j++)                                                \
                panel[k * WIDTH + j] = w[k * down + j * across];                                   \
            for (ptrdiff_t j = columns; j < WIDTH; j++)                                            \
                panel[k * WIDTH + j] = 0;                                                          \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    /* One panel's columns of all rows; `out` points to their first. */                            \
    static void panel_##SUFFIX(const TYPE *x, ptrdiff_t rows, ptrdiff_t inner, ptrdiff_t depth,    \
                               const TYPE *panel, ptrdiff_t columns, TYPE *out, ptrdiff_t outer,   \
                               int fresh)                                                          \
    {                                                                                              \
        tile_##SUFFIX *const tile = CHOOSE(SUFFIX);                                                \
        for (ptrdiff_t first = 0; first < rows; first += TILE) {                                   \
            const ptrdiff_t filled = rows - first < TILE ? rows - first : TILE;                    \
            const TYPE *row[TILE];                                                                 \
            TYPE *const to = out + first * outer;                                                  \
            for (ptrdiff_t i = 0; i < TILE; i++)                                                   \
                row[i] = x + (first + (i < filled ? i : filled - 1)) * inner;                      \
            if (filled == TILE && columns == WIDTH) {                                              \
                tile(row, depth, panel, to, outer, fresh);                                         \
                continue;                                                                          \
            }                                                                                      \
            TYPE sums[TILE * WIDTH] = {0};                                                         \
            const size_t bytes = (size_t)columns * sizeof *sums;                                   \
            for (ptrdiff_t i = 0; i < filled && !fresh; i++)                                       \
                memcpy(sums + i * WIDTH, to + i * outer, bytes);                                   \
            tile(row, depth, panel, sums, WIDTH, fresh);                                           \
            for (ptrdiff_t i = 0; i < filled; i++)                                                 \
                memcpy(to + i * outer, sums + i * WIDTH, bytes);                                   \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    /* Few columns would leave a tile empty. */                                                    \
    static void columns_##SUFFIX(const TYPE *x, ptrdiff_t rows, ptrdiff_t inner, const TYPE *w,    \
                                 ptrdiff_t outer, ptrdiff_t down, ptrdiff_t across, TYPE *out)     \
    {                                                                                              \
        TYPE column[DEPTH];                                                                        \
        for (ptrdiff_t j = 0; j < outer; j++)                                                      \
            for (ptrdiff_t top = 0; top < inner; top += DEPTH) {                                   \
                const ptrdiff_t depth = inner - top < DEPTH ? inner - top : DEPTH;                 \
                for (ptrdiff_t k = 0; k < depth; k++)                                              \
                    column[k] = w[(top + k) * down + j * across];                                  \
                for (ptrdiff_t i = 0; i < rows; i++)                                               \
                    out[i * outer + j] += dot_##SUFFIX(x + i * inner + top, column, depth);        \
            }                                                                                      \
    }                                                                                              \
                                                                                                   \
    void acct_row_products_##SUFFIX(const TYPE *x, ptrdiff_t rows, ptrdiff_t inner, const TYPE *w, \
                                    ptrdiff_t outer, ptrdiff_t down, ptrdiff_t across, TYPE *out)  \
    {                                                                                              \
        if (outer <= FEW || !inner)                                                                \
            memset(out, 0, (size_t)rows * (size_t)outer * sizeof *out);                            \
        if (outer <= FEW) {                                                                        \
            columns_##SUFFIX(x, rows, inner, w, outer, down, across, out);                         \
            return;                                                                                \
        }                                                                                          \
        TYPE small[SHALLOW * WIDTH];                                                               \
        TYPE *const large = inner > SHALLOW ? malloc(DEPTH * WIDTH * sizeof *large) : NULL;        \
        TYPE *const panel = large ? large : small;                                                 \
        const ptrdiff_t most = large ? DEPTH : SHALLOW;                                            \
        for (ptrdiff_t left = 0; left < outer; left += WIDTH) {                                    \
            const ptrdiff_t columns = outer - left < WIDTH ? outer - left : WIDTH;                 \
            for (ptrdiff_t top = 0; top < inner; top += most) {                                    \
                const ptrdiff_t depth = inner - top < most ? inner - top : most;                   \
                fill_##SUFFIX(panel, w + top * down + left * across, depth, columns, down,         \
                              across);                                                             \
                panel_##SUFFIX(x + top, rows, inner, depth, panel, columns, out + left, outer,     \
                               top == 0);                                                          \
            }                                                                                      \
        }                                                                                          \
        free(large);                                                                               \
    }

PRODUCTS(double, f64, WIDTH_F64)
PRODUCTS(float, f32, WIDTH_F32)

void acct_row_units(double *x, ptrdiff_t rows, ptrdiff_t columns)
{
    for (ptrdiff_t i = 0; i < rows; i++) {
        double *row = x + i * columns;
        double square = dot_f64(row, row, columns);
        if (!(square >= 1e-280 && square <= 1e280)) {
            double largest = 0.0;
            for (ptrdiff_t k = 0; k < columns; k++)
                largest = fmax(largest, fabs(row[k]));
            if (largest == 0.0)
                continue;
            for (ptrdiff_t k = 0; k < columns; k++)
                row[k] /= largest;
            square = dot_f64(row, row, columns);
        }
        const double norm = sqrt(square);
        for (ptrdiff_t k = 0; k < columns; k++)
            row[k] /= norm;
    }
}
