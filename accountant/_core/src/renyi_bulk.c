#include "renyi_bulk.h"

#include <math.h>

#include "gaussian_tail.h"
#include "rounding.h"

/* q e^u there, times |c| + 2; G is c (c - 1) / 2 y^2 below, to within this */
#define NEAR 1e-14

double acct_renyi_bulk_end(const acct_step *step, double c) {
    const double var = step->sigma * step->sigma;
    return var * (log(NEAR / (fabs(c) + 2.0)) - log(step->q)) + 0.5;
}

/* e^{lift} (1 - Phi(z)), lift >= 0; the relative error is below relative_error */
static double lifted_tail(double lift, double z) {
    if (z < 12.0) return 0.5 * exp(lift) * erfc(z * sqrt(0.5));
    return exp(lift - 0.5 * z * z) / ACCT_SQRT_2PI * acct_mills(z, 1);
}

/* of erfc or Mills' ratio, of the exponents, and of z, whose own error moves erfc by z^2 times as much */
static double relative_error(double lift, double z) {
    return ACCT_U * (512.0 + 16.0 * (lift + 0.5 * z * acct_max(z, 0.0)));
}

void acct_renyi_bulk(const acct_step *step, double c, double end, acct_bounds *out) {
    const double sigma = step->sigma, lift = 1.0 / (sigma * sigma), z = (2.0 - end) / sigma;
    const double far = lifted_tail(lift, z), doubt = relative_error(lift, z);
    /* M: all of it less a bound on the rest, or three normal masses */
    double most = expm1(lift), least = most - lifted_tail(lift, -z) * (1.0 + relative_error(lift, -z));
    if (!(least > (1.0 - 1e-14) * most)) {
        const double near = lifted_tail(0.0, -end / sigma), middle = lifted_tail(0.0, (1.0 - end) / sigma);
        const double size = near + 2.0 * middle + far;
        most = near - 2.0 * middle + far + doubt * size;
        least = acct_max(most - 2.0 * doubt * size, 0.0);
    }
    /* y^2 = q^2 (e^u - 1)^2, |y| <= NEAR / (|c| + 2): G/y^2 is within e^{1.01 NEAR} of c (c - 1) / 2; the
     * products one by one, because q^2 underflows */
    const double scale = 0.5 * fabs(c * (c - 1.0)), q = step->q, error = doubt + 2.0 * NEAR;
    out->upper = scale * q * most * q * (1.0 + error) + ACCT_UNDERFLOW * (1.0 + scale);
    out->lower = acct_max(scale * q * least * q * (1.0 - error) - ACCT_UNDERFLOW * (1.0 + scale), 0.0);
}
