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

/* name, attributes and value of each, in the header's order */
#define ELEMENTARY(each)                       \
    each(libm_exp, , exp(x))                   \
    each(libm_expm1, , expm1(x))               \
    each(libm_log, , log(x))                   \
    each(libm_log1p, , log1p(x))               \
    each(libm_sin, , sin(x))                   \
    each(libm_cos, , cos(x))                   \
    each(libm_atan2, , atan2(x, y))            \
    each(libm_erf, , erf(x))                   \
    each(libm_erfc, , erfc(x))                 \
    each(libm_pow, , pow(x, y))                \
    each(vmath_exp, ACCT_CLONES, acct_vexp(x)) \
    each(vmath_expm1, ACCT_CLONES, acct_vexpm1(x)) \
    each(vmath_log1p, ACCT_CLONES, acct_vlog1p(x)) \
    each(vmath_sin, ACCT_CLONES, vsin(x))      \
    each(vmath_cos, ACCT_CLONES, vcos(x))

ELEMENTARY(EACH)

typedef void loop(const double *restrict, const double *restrict, ptrdiff_t, double *restrict);

#define NAME(name, attributes, expression) name,
static loop *const LOOPS[ACCT_ELEMENTARY_COUNT] = {ELEMENTARY(NAME)};

void acct_elementary_values(acct_elementary function, const double *x, const double *y, ptrdiff_t n,
                            double *out) {
    LOOPS[function](x, y ? y : x, n, out);
}
