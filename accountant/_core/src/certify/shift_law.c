#include "mixture_renyi.h"

#include <math.h>

#include "rounding.h"
#include "bounds.h"
#include "vmath.h"

#define LANES ACCT_SHIFT_BLOCK
/* exponents outside are taken out of the sums; below the least one e^L is not near 1 */
#define MOST_EXPONENT 300.0
#define LEAST_EXPONENT (-1.0)

int acct_shift_law_set(acct_shift_law *law, double *memory, double sigma, int count, const double *shift,
                       const double *weight, double first_err, double weight_err) {
    if (!(sigma > 1e-100 && sigma < 1e100 && count >= 1)) return ACCT_EDOMAIN;
    if (!(first_err >= 0.0 && first_err <= 1e-6 && weight_err >= 0.0 && weight_err <= 1e-6))
        return ACCT_EDOMAIN;
    int exponent;
    *law = (acct_shift_law){.sigma = frexp(sigma, &exponent),
                            .count = count,
                            .shift = memory,
                            .weight = memory + count,
                            .first_err = first_err,
                            .weight_err = weight_err};
    law->rate = 0.5 / (law->sigma * law->sigma);
    double before = 0.0, total = 0.0;
    for (int j = 0; j < count; j++) {
        const double d = shift[j], relative = d / sigma;
        if (!(j == 0 && d == 0.0) && !(relative > 1e-60 && relative < 1e60 && d > before))
            return ACCT_EDOMAIN;
        if (!(weight[j] > 1e-280 && weight[j] <= 1.0)) return ACCT_EDOMAIN;
        before = d;
        law->shift[j] = ldexp(d, -exponent);
        law->weight[j] = weight[j];
        total += weight[j];
    }
    const double slack = (2.0 + count) * ACCT_U + acct_max(first_err, weight_err);
    return fabs(total - 1.0) <= 1.01 * slack * total ? ACCT_OK : ACCT_EDOMAIN;
}

/* u_j is largest at the shift nearest to x */
static double largest_exponent(const acct_shift_law *law, double x) {
    double nearest = INFINITY, top = 0.0;
    for (int j = 0; j < law->count; j++) {
        const double d = law->shift[j], off = fabs(x - d);
        if (off < nearest) {
            nearest = off;
            top = d * (2.0 * x - d) * law->rate;
        }
    }
    return top > MOST_EXPONENT || top < LEAST_EXPONENT ? top : 0.0;
}

/* sums over the shifts at the points of a block, in units of e^top */
typedef struct {
    double excess[LANES]; /* w (e^u - 1); top = 0 only */
    double size[LANES];   /* |w (e^u - 1)|; top = 0 only */
    double total[LANES];  /* w e^{u - top} */
    double angle[LANES];  /* |u| w e^{u - top} */
} sums;

ACCT_CLONES
static void add_up(const acct_shift_law *law, const double *restrict x, double top, sums *restrict s) {
    const double rate = law->rate;
    double e[LANES] = {0}, a[LANES] = {0}, t[LANES] = {0}, b[LANES] = {0};
    for (int j = 0; j < law->count; j++) {
        const double d = law->shift[j], w = law->weight[j];
        for (int i = 0; i < LANES; i++) {
            const double u = d * (2.0 * x[i] - d) * rate;
            double em1;
            const double part = w * acct_vexp_both(u - top, &em1), off = w * em1;
            e[i] += off;
            a[i] += fabs(off);
            t[i] += part;
            b[i] += fabs(u) * part;
        }
    }
    for (int i = 0; i < LANES; i++) {
        s->excess[i] = e[i];
        s->size[i] = a[i];
        s->total[i] = t[i];
        s->angle[i] = b[i];
    }
}

/* Round-off: u_j carries 5 u of itself, and u of it and of top once top is taken off; a term 9 u; a sum of n
 * terms n u of the sum of their moduli; then the logarithm.  The first term of the excess is 0 where d_0 is. */
void acct_shift_law_losses(const acct_shift_law *law, const double *x, double *loss, double *error) {
    sums s;
    const double top = largest_exponent(law, x[LANES / 2]), adds = law->count + 12.0;
    const double near_err = law->shift[0] > 0.0 ? acct_max(law->first_err, law->weight_err) : law->weight_err;
    const double far_err = acct_max(law->first_err, law->weight_err);
    add_up(law, x, top, &s);
    for (int i = 0; i < LANES; i++) {
        if (top == 0.0 && s.excess[i] > -0.5) {
            const double all = 1.0 + s.excess[i];
            loss[i] = log1p(s.excess[i]);
            error[i] = 1.01 * ((adds * ACCT_U + near_err) * s.size[i] + 6.5 * ACCT_U * s.angle[i]) / all +
                       9.0 * ACCT_U * fabs(loss[i]);
        } else {
            const double rest = log(s.total[i]);
            loss[i] = top + rest;
            error[i] = 1.01 * (adds * ACCT_U + far_err + 6.5 * ACCT_U * s.angle[i] / s.total[i]) +
                       ACCT_U * (9.0 * fabs(rest) + 3.0 * fabs(top));
        }
    }
}

acct_shift_point acct_shift_law_at(const acct_shift_law *law, double x, double share) {
    const double top = largest_exponent(law, x);
    double total = 0.0, slope = 0.0, angle = 0.0;
    for (int j = 0; j < law->count; j++) {
        const double d = law->shift[j], u = d * (2.0 * x - d) * law->rate;
        const double part = (j ? share : 1.0) * law->weight[j] * exp(u - top);
        total += part;
        slope += d * part;
        angle += fabs(u) * part;
    }
    const double rest = log(total), adds = law->count + 24.0;
    return (acct_shift_point){
        .loss = top + rest,
        .slope = slope / total,
        .error = 1.01 *
                     (adds * ACCT_U + acct_max(law->first_err, law->weight_err) + 8.0 * ACCT_U * angle / total) +
                 ACCT_U * (9.0 * fabs(rest) + 3.0 * fabs(top)),
    };
}
