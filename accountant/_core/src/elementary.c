#include "elementary.h"

#include <math.h>

#include "clones.h"
#include "vmath.h"

/* The functions of vmath.h run as clones for each instruction set, as in the loops of the core. */
#define EACH(name, attributes, expression)                                                                \
    attributes static void name(const double *restrict a, const double *restrict b, ptrdiff_t n,          \
                                double *restrict out) {                                                   \
        for (ptrdiff_t i = 0; i < n; i++) {                                                               \
            const double x = a[i], y = b[i];                                                              \
            (void)y;                                                                                      \
            out[i] = (expression);                                                                        \
        }                                                                                                 \
    }

ACCT_INLINE double vsin(double x) {
    double s, c;
    acct_vsincos(x, &s, &c);
    return s;
}

ACCT_INLINE double vcos(double x) {
    double s, c;
    acct_vsincos(x, &s, &c);
    return c;
}

EACH(libm_exp, , exp(x))
EACH(libm_expm1, , expm1(x))
EACH(libm_log, , log(x))
EACH(libm_log1p, , log1p(x))
EACH(libm_sin, , sin(x))
EACH(libm_cos, , cos(x))
EACH(libm_atan2, , atan2(x, y))
EACH(libm_erf, , erf(x))
EACH(libm_erfc, , erfc(x))
EACH(libm_pow, , pow(x, y))
EACH(vmath_exp, ACCT_CLONES, acct_vexp(x))
EACH(vmath_expm1, ACCT_CLONES, acct_vexpm1(x))
EACH(vmath_log1p, ACCT_CLONES, acct_vlog1p(x))
EACH(vmath_sin, ACCT_CLONES, vsin(x))
EACH(vmath_cos, ACCT_CLONES, vcos(x))

typedef void loop(const double *restrict, const double *restrict, ptrdiff_t, double *restrict);

static loop *const LOOPS[ACCT_ELEMENTARY_COUNT] = {
    libm_exp, libm_expm1, libm_log,  libm_log1p,  libm_sin,    libm_cos,  libm_atan2, libm_erf,
    libm_erfc, libm_pow,  vmath_exp, vmath_expm1, vmath_log1p, vmath_sin, vmath_cos,
};

void acct_elementary_values(acct_elementary function, const double *x, const double *y, ptrdiff_t n,
                            double *out) {
    LOOPS[function](x, y ? y : x, n, out);
}
