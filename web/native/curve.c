#include "page.h"

#include <math.h>

#include "elementary.h"

double page_ratio_up(double numerator, double denominator) {
    const double ratio = numerator / denominator;
    /* The remainder is exact: fma rounds once, and what is left has few digits. */
    return fma(ratio, denominator, -numerator) < 0.0 ? nextafter(ratio, INFINITY) : ratio;
}

int page_epsilon_curve(double q, double sigma, const double *steps, const double *delta, int count,
                       accountant_bounds *out) {
    int worst = ACCOUNTANT_OK;
    for (int i = 0; i < count; i++) {
        const int status =
            accountant_epsilon_bounds(q, sigma, steps[i], delta[i], ACCOUNTANT_EITHER, &out[i]);
        if (status && !worst) worst = status;
    }
    return worst;
}

int page_elementary(int function, const double *x, const double *y, int count, double *out) {
    if (function < 0 || function >= ACCT_ELEMENTARY_COUNT || count < 0) return ACCOUNTANT_EDOMAIN;
    acct_elementary_values((acct_elementary)function, x, y, count, out);
    return ACCOUNTANT_OK;
}
