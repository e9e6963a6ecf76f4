/* The elementary functions that the certificates trust, as the core calls them: for measuring their errors on
 * the machine at hand. */
#ifndef ACCT_ELEMENTARY_H
#define ACCT_ELEMENTARY_H

#include <stddef.h>

typedef enum {
    ACCT_LIBM_EXP,
    ACCT_LIBM_EXPM1,
    ACCT_LIBM_LOG,
    ACCT_LIBM_LOG1P,
    ACCT_LIBM_SIN,
    ACCT_LIBM_COS,
    ACCT_LIBM_ATAN2, /* of x over y */
    ACCT_LIBM_ERF,
    ACCT_LIBM_ERFC,
    ACCT_LIBM_POW, /* x to the power y */
    ACCT_VMATH_EXP,
    ACCT_VMATH_EXPM1,
    ACCT_VMATH_LOG1P,
    ACCT_VMATH_SIN,
    ACCT_VMATH_COS,
    ACCT_ELEMENTARY_COUNT
} acct_elementary;

/* out[i] = the function of x[i], and of y[i] where it takes two; y may be NULL where it does not */
void acct_elementary_values(acct_elementary function, const double *x, const double *y, ptrdiff_t n,
                            double *out);

#endif
