/* The inner loop of a rare-event contour: sums over its nodes, for rare_event_sum.c alone. */
#ifndef ACCT_RARE_EVENT_PASS_H
#define ACCT_RARE_EVENT_PASS_H

#include "clones.h"

/* partial sums: one register of AVX-512 */
#define WIDE (2 * ACCT_LANES)

/* so many nodes with those that fill the last register up */
static inline int to_wide(int n) { return (n + WIDE - 1) / WIDE * WIDE; }

/* sets     sums and then: real and imaginary parts of the sums of w z and of c z, at this point and the next
 * error    as of each point alone: its sums are added in the same order.  What is loaded once serves both.
 * requires a multiple of WIDE; z moves two steps on, by z1 each */
ACCT_CLONES
static void next_two(int n, const double *restrict w_re, const double *restrict w_im,
                     const double *restrict c_re, const double *restrict c_im, const double *restrict z1_re,
                     const double *restrict z1_im, double *restrict z_re, double *restrict z_im,
                     double *restrict sums, double *restrict then) {
    double ar[WIDE] = {0}, ai[WIDE] = {0}, br[WIDE] = {0}, bi[WIDE] = {0};
    double cr[WIDE] = {0}, ci[WIDE] = {0}, dr[WIDE] = {0}, di[WIDE] = {0};
    for (int j = 0; j < n; j += WIDE)
        for (int i = 0; i < WIDE; i++) {
            const int k = j + i;
            const double r = z_re[k], s = z_im[k], p = z1_re[k], q = z1_im[k];
            const double wr = w_re[k], wi = w_im[k], vr = c_re[k], vi = c_im[k];
            const double r1 = r * p - s * q, s1 = r * q + s * p;
            ar[i] += wr * r - wi * s;
            ai[i] += wr * s + wi * r;
            br[i] += vr * r - vi * s;
            bi[i] += vr * s + vi * r;
            cr[i] += wr * r1 - wi * s1;
            ci[i] += wr * s1 + wi * r1;
            dr[i] += vr * r1 - vi * s1;
            di[i] += vr * s1 + vi * r1;
            z_re[k] = r1 * p - s1 * q;
            z_im[k] = r1 * q + s1 * p;
        }
    const double *const lanes[8] = {ar, ai, br, bi, cr, ci, dr, di};
    for (int i = 0; i < 4; i++) {
        sums[i] = acct_lanes_total(lanes[i]) + acct_lanes_total(lanes[i] + ACCT_LANES);
        then[i] = acct_lanes_total(lanes[i + 4]) + acct_lanes_total(lanes[i + 4] + ACCT_LANES);
    }
}

#endif
