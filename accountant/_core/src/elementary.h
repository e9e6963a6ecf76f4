/* The elementary functions that the certificates trust, as the core calls them: for measuring their errors on
 * the machine at hand. */
#ifndef ACCT_ELEMENTARY_H
#define ACCT_ELEMENTARY_H

#include <stddef.h>

/* the C library's exp, expm1, log, log1p, sin, cos, atan2 (of x over y), erf, erfc and pow (x to the power y), then the
 * exp, expm1, log1p, sin and cos of vmath.h */
#define ACCT_ELEMENTARY_COUNT 15
typedef int acct_elementary;

/* out[i] = the function of x[i], and of y[i] where it takes two; y may be NULL where it does not */
void acct_elementary_values(acct_elementary function, const double *x, const double *y, ptrdiff_t n,
                            double *out);

#endif
