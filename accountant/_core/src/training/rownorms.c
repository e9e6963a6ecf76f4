#include "rownorms.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "clones.h"

/* One clone for machines with wide vectors, one for all: the same operations in the same order. */
enum { LANES = 8 };

#define DEFINE_FOR(TYPE, SUFFIX)                                                                  \
    ACCT_CLONES_MEMORY static double sum_of_squares_##SUFFIX(const TYPE *x, ptrdiff_t n)                 \
    {                                                                                             \
        double lane[LANES] = {0.0};                                                               \
        ptrdiff_t k = 0;                                                                          \
        for (; k + LANES <= n; k += LANES)                                                        \
            for (int j = 0; j < LANES; j++) {                                                     \
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
    }                                                                                             \
                                                                                                  \
    ACCT_CLONES_MEMORY void acct_accumulate_##SUFFIX(const TYPE *x, ptrdiff_t n, double *total)          \
    {                                                                                             \
        for (ptrdiff_t k = 0; k < n; k++)                                                         \
            total[k] += (double)x[k];                                                             \
    }                                                                                             \
                                                                                                  \
    void acct_zero_rows_##SUFFIX(TYPE *x, const double *factors, ptrdiff_t rows,                  \
                                 ptrdiff_t columns)                                               \
    {                                                                                             \
        for (ptrdiff_t i = 0; i < rows; i++)                                                      \
            if (factors[i] == 0.0)                                                                \
                memset(x + i * columns, 0, (size_t)columns * sizeof *x);                          \
    }

DEFINE_FOR(double, f64)
DEFINE_FOR(float, f32)

void acct_clip_factors(const double *norms2, ptrdiff_t rows, ptrdiff_t filled, double clipping_norm,
                       double stability, double *factors)
{
    for (ptrdiff_t i = 0; i < rows; i++) {
        const double norm = sqrt(norms2[i]);
        if (i >= filled || !(norm <= DBL_MAX))
            factors[i] = 0.0;
        else if (stability >= 0.0)
            factors[i] = clipping_norm / (norm + stability);
        else
            factors[i] = norm <= clipping_norm ? 1.0 : clipping_norm / norm;
    }
}
