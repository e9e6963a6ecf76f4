#include "exchange_terms.h"

#include <math.h>

#include "order.h"
#include "rounding.h"

void acct_exchange_terms(acct_contour *k, acct_exchange_transform transform, const void *par) {
    const double n = k->steps;
    double numerical = 0.0;
    for (int i = 0; i < k->count; i++) {
        const double y = i * k->dy, factor = acct_trapezoid_factor(k->b, y, k->dy, i);
        double re, im;
        const double off = transform(par, y, &re, &im);
        const double square = 2.0 * re + re * re + im * im, size = sqrt(re * re + im * im);
        const double modulus = sqrt((1.0 + re) * (1.0 + re) + im * im), arg = atan2(im, 1.0 + re);
        const double log_modulus = square > -0.5 ? 0.5 * log1p(square) : log(modulus);
        const double error = off + 8.0 * ACCT_U * size;
        const double amplitude = exp(n * log_modulus) * factor, rest = modulus - error;
        double err;
        if (rest > 0.0 && n * error < 100.0 * rest)
            err = amplitude * expm1(n * error / rest);
        else
            err = amplitude + exp(n * log(modulus + error)) * factor;
        if (amplitude > 0.0) err += amplitude * ACCT_U * (40.0 + 16.0 * n * (fabs(log_modulus) + fabs(arg)));
        numerical += err;
        k->amplitude[i] = amplitude;
        k->phase[i] = n * arg - atan2(y, k->b) - atan2(y, k->b + 1.0);
    }
    k->numerical = numerical * ACCT_SLACK;
}

/* -((1 - rho)^n - 1), complex */
static void missed(double n, const double rho[2], double *re, double *im, double *size) {
    const double square = -2.0 * rho[0] + rho[0] * rho[0] + rho[1] * rho[1];
    const double gr = square > -0.9 ? 0.5 * n * log1p(square) : 0.5 * n * log(acct_max(1.0 + square, 1e-300));
    const double gi = n * atan2(-rho[1], 1.0 - rho[0]), half = sin(0.5 * gi);
    const double e = exp(gr);
    *re = -(expm1(gr) - 2.0 * e * half * half);
    *im = -e * sin(gi);
    *size = fabs(gr) + fabs(gi);
}

/* A^n - B^n = A^n (1 - (1 - C/A)^n), known up to
 * n M^{n-1} (C_err + |C| (n-1) (2 A_err + C_err)/M), M the largest modulus of A and B, exact or computed. */
void acct_exchange_split_terms(acct_contour *k, const acct_exchange_path *path) {
    const double n = k->steps;
    double numerical = 0.0;
    for (int i = 0; i < k->count; i++) {
        const double y = i * k->dy, factor = acct_trapezoid_factor(k->b, y, k->dy, i);
        double re, im, c[2], c_err, part_re, part_im, turned;
        const double a_err = acct_exchange_path_split(path, y, &re, &im, c, &c_err) + 16.0 * ACCT_U;
        const double ar = 1.0 + re, modulus2 = ar * ar + im * im, modulus = sqrt(modulus2);
        const double square = 2.0 * re + re * re + im * im, arg = atan2(im, ar);
        const double log_modulus = square > -0.5 ? 0.5 * log1p(square) : log(modulus);
        const double rho[2] = {(c[0] * ar + c[1] * im) / modulus2, (c[1] * ar - c[0] * im) / modulus2};
        missed(n, rho, &part_re, &part_im, &turned);
        const double rest = sqrt((ar - c[0]) * (ar - c[0]) + (im - c[1]) * (im - c[1]));
        const double most = acct_max(modulus, rest) + a_err + c_err, size = sqrt(c[0] * c[0] + c[1] * c[1]);
        const double all = exp(n * log_modulus), part = sqrt(part_re * part_re + part_im * part_im);
        const double power = exp((n - 1.0) * log(most)) * n;
        const double round = 120.0 + 16.0 * n * (fabs(log_modulus) + fabs(arg)) + 32.0 * turned;
        numerical += factor * (power * (c_err + (size + c_err) * (n - 1.0) * (2.0 * a_err + c_err) / most) +
                               ACCT_U * (all * part * round + 32.0 * power * size));
        k->amplitude[i] = all * part * factor;
        k->phase[i] = n * arg + atan2(part_im, part_re) - atan2(y, k->b) - atan2(y, k->b + 1.0);
    }
    k->numerical = numerical * ACCT_SLACK;
}
