#include <math.h>

#include "loss.h"
#include "noise_table.h"
#include "rounding.h"
#include "vmath.h"

/* pieces of the window, and arcs of half an ellipse */
#define PIECES 256
#define ARCS 16
#define TABLE_MOST_EXPONENT 1e5

/* log of an upper bound on int e^{-precision u^2/2 - u/2 + order L} du over the window: every factor at the end
 * of a piece where it is larger */
ACCT_CLONES
static double log_integral(const acct_noise_range *r, double precision, double order) {
    const double width = (r->hi - r->lo) / PIECES, log_q = log(r->q), log_1mq = log1p(-r->q);
    const double odds = (1.0 - r->q) / r->q, q = r->q, lo = r->lo;
    double rise[PIECES + 1], top = -INFINITY, sum = 0.0;
    /* so that no exponent errs by more than 1e-9 */
    const double most = acct_max(fabs(lo), fabs(r->hi));
    if (!(precision * most * most + (1.0 + fabs(order)) * (most - log_q - log_1mq) < TABLE_MOST_EXPONENT))
        return INFINITY;
    for (int i = 0; i <= PIECES; i++) {
        double p;
        rise[i] = order * acct_loss_at(lo + i * width, q, log_q, log_1mq, odds, &p);
    }
    for (int i = 0; i < PIECES; i++) {
        const double u0 = lo + i * width, u1 = u0 + width;
        const double near = u0 > 0.0 ? u0 : u1 < 0.0 ? u1 : 0.0;
        const double larger = rise[i] > rise[i + 1] ? rise[i] : rise[i + 1];
        rise[i] = larger - 0.5 * precision * near * near - 0.5 * u0;
        top = rise[i] > top ? rise[i] : top;
    }
    for (int i = 0; i < PIECES; i++) sum += acct_vexp(rise[i] - top);
    return top + log(sum * width * (1.0 + 1e-6));
}

/* at most Re 1/beta^2 where Re beta = at and |Im beta| <= high < at */
static double precision_at(double at, double high) {
    const double b2 = at * at, e2 = high * high, size = b2 + e2;
    return (b2 - e2) / (size * size) - 1e-12 / size;
}

/* ensures  Re 1/beta^2 >= returned on the ellipse: it is harmonic there, so least on the boundary; for
 *          b >= eta it falls with eta, and in b it rises, then falls: least at the corners of the box of an arc.
 *          At most 0: no claim */
static double least_precision(double mid, double a, double axis) {
    double least = INFINITY;
    for (int i = 0; i < ARCS; i++) { /* the top of the ellipse is an end of two arcs */
        const double t0 = ACCT_PI * i / ARCS, t1 = ACCT_PI * (i + 1) / ARCS, high = axis * acct_max(sin(t0), sin(t1));
        least = acct_min(least, precision_at(mid + a * cos(t0), high));
        least = acct_min(least, precision_at(mid + a * cos(t1), high));
    }
    return least;
}

void acct_noise_bound_set(acct_noise_bound *bound, const acct_noise_range *r, double order) {
    const double mid = 0.5 * (r->least + r->most);
    const double half = 0.5 * (r->most - r->least) * (1.0 + 1e-12) + 1e-14 * mid;
    const double ratio = mid / half, largest = log(ratio + sqrt(ratio * ratio - 1.0));
    for (int i = 0; i < ACCT_NOISE_ELLIPSES; i++) {
        const double log_rho = acct_min(largest, 5.0) * (0.3 + 0.1 * i), rho = exp(log_rho);
        const double a = 0.5 * half * (rho + 1.0 / rho) * (1.0 + 1e-12);
        const double axis = 0.5 * half * (rho - 1.0 / rho) * (1.0 + 1e-12), nearest = mid - a;
        bound->log_rho[i] = log_rho;
        bound->log_size[i] = INFINITY;
        if (!(nearest > axis)) continue;
        const double precision = least_precision(mid, a, axis);
        if (!(precision > 0.0)) continue;
        bound->log_size[i] = log_integral(r, precision, order) - log(nearest * ACCT_SQRT_2PI) -
                             0.125 * (nearest * nearest - axis * axis) + 1e-9;
    }
    /* G at the ends, for real 1/sigma */
    double edge = 0.0, p;
    const double end[2] = {r->lo, r->hi},
                 log_front = -log(r->least * ACCT_SQRT_2PI) - 0.125 * r->least * r->least;
    for (int i = 0; i < 2; i++) {
        const double u = end[i];
        const double loss = acct_loss_at(u, r->q, log(r->q), log1p(-r->q), (1.0 - r->q) / r->q, &p);
        edge += 16.0 * ACCT_U * (fabs(u) + 1.0 + r->most * r->most) *
                exp(log_front - 0.5 * u * u / (r->most * r->most) - 0.5 * u + order * loss + 1e-9);
    }
    bound->log_edge = log(edge + ACCT_TINY);
}

double acct_noise_remainder(const acct_noise_bound *bound, int kinds) {
    double best = INFINITY;
    for (int i = 0; i < ACCT_NOISE_ELLIPSES; i++) {
        const double log_rho = bound->log_rho[i];
        const double log_error = bound->log_size[i] + ACCT_LOG_2_UP - (kinds - 1.0) * log_rho -
                                 log(expm1(log_rho));
        best = acct_min(best, log_error + 1e-9 * (1.0 + fabs(log_error)));
    }
    return best;
}
