/* The inner loops of a rare-event contour, over its nodes, for rare_event_sum.c alone. */
#ifndef ACCT_RARE_EVENT_PASS_H
#define ACCT_RARE_EVENT_PASS_H

#include "clones.h"
#include "vmath.h"

/* e^{iyl}, Im l >= 0 */
ACCT_CLONES
static void direct(int n, double y, const double *restrict l_re, const double *restrict l_im,
                   double *restrict z_re, double *restrict z_im) {
    for (int j = 0; j < n; j++) {
        double s, c;
        acct_vsincos(y * l_re[j], &s, &c);
        const double e = acct_vexp(-y * l_im[j]);
        z_re[j] = e * c;
        z_im[j] = e * s;
    }
}

/* sets     sums: real and imaginary parts of the sums over n nodes of w z and of c z, then those at the next point
 * error    as of each point alone: its sums are added in the same order.  What is loaded once serves both.
 * requires a multiple of ACCT_WIDE; z moves two steps on, by z1 each
 * both     whether c is read: else its sums are 0 */
ACCT_INLINE void pass_two(int n, int both, const double *restrict w_re, const double *restrict w_im,
                          const double *restrict c_re, const double *restrict c_im, const double *restrict z1_re,
                          const double *restrict z1_im, double *restrict z_re, double *restrict z_im, double *sums) {
    double ar[ACCT_WIDE] = {0}, ai[ACCT_WIDE] = {0}, br[ACCT_WIDE] = {0}, bi[ACCT_WIDE] = {0};
    double cr[ACCT_WIDE] = {0}, ci[ACCT_WIDE] = {0}, dr[ACCT_WIDE] = {0}, di[ACCT_WIDE] = {0};
    for (int j = 0; j < n; j += ACCT_WIDE)
        for (int i = 0; i < ACCT_WIDE; i++) {
            const int k = j + i;
            const double r = z_re[k], s = z_im[k], p = z1_re[k], q = z1_im[k];
            const double r1 = r * p - s * q, s1 = r * q + s * p;
            const double wr = w_re[k], wi = w_im[k];
            ar[i] += wr * r - wi * s;
            ai[i] += wr * s + wi * r;
            cr[i] += wr * r1 - wi * s1;
            ci[i] += wr * s1 + wi * r1;
            if (both) {
                const double vr = c_re[k], vi = c_im[k];
                br[i] += vr * r - vi * s;
                bi[i] += vr * s + vi * r;
                dr[i] += vr * r1 - vi * s1;
                di[i] += vr * s1 + vi * r1;
            }
            z_re[k] = r1 * p - s1 * q;
            z_im[k] = r1 * q + s1 * p;
        }
    const double *const lanes[8] = {ar, ai, br, bi, cr, ci, dr, di};
    for (int i = 0; i < 8; i++) sums[i] = acct_wide_total(lanes[i]);
}

ACCT_CLONES
static void next_two(int n, const double *restrict w_re, const double *restrict w_im,
                     const double *restrict c_re, const double *restrict c_im, const double *restrict z1_re,
                     const double *restrict z1_im, double *restrict z_re, double *restrict z_im,
                     double *restrict sums) {
    pass_two(n, 1, w_re, w_im, c_re, c_im, z1_re, z1_im, z_re, z_im, sums);
}

/* the same of w z alone: the other sums are 0 */
ACCT_CLONES
static void next_two_alone(int n, const double *restrict w_re, const double *restrict w_im,
                           const double *restrict z1_re, const double *restrict z1_im, double *restrict z_re,
                           double *restrict z_im, double *restrict sums) {
    pass_two(n, 0, w_re, w_im, w_re, w_im, z1_re, z1_im, z_re, z_im, sums);
}

/* z by z1 each: one step */
ACCT_CLONES
static void next(int n, const double *restrict z1_re, const double *restrict z1_im, double *restrict z_re,
                 double *restrict z_im) {
    for (int k = 0; k < n; k++) {
        const double r = z_re[k], s = z_im[k], p = z1_re[k], q = z1_im[k];
        z_re[k] = r * p - s * q;
        z_im[k] = r * q + s * p;
    }
}

#endif
