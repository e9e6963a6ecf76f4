/* The chances of soft_threshold.h off the real line without branches, for loops. */
#ifndef ACCT_SOFT_THRESHOLD_INLINE_H
#define ACCT_SOFT_THRESHOLD_INLINE_H

#include <math.h>

#include "vmath.h"

/* both chances at one complex loss, and |e^{-(E/scale)^2}|; returns |t|.  A loop may know the doublings.  A NaN where |e^{-z}| overflows,
 * or turns further than acct_vsincos knows.  Beyond 690 e^{-z} is a square, within 11 u, and t^m is 1. */
ACCT_INLINE double acct_threshold_complex_at(double re, double im, double origin, double scale, int doublings,
                                             double above[2], double below[2], double *fall) {
    const double a = (re - origin) / scale, b = im / scale;
    const double zr = (a - b) * (a + b), zi = 2.0 * a * b;
    double em1, half, rest, sin_z, cos_z;
    const double near = acct_vexp_both(-zr, &em1), root = acct_vexp(-0.5 * zr);
    const int is_far = zr > 690.0, is_known = fabs(zi) < ACCT_MOST_ANGLE;
    const double size = is_far ? root * root : near, angle = is_known ? zi : 0.0;
    const double e = (zr < -690.0) | (!is_known & (size > 0.0)) ? NAN : size;
    em1 = is_far ? -1.0 : em1;
    acct_vsincos(0.5 * angle, &half, &rest);
    acct_vsincos(angle, &sin_z, &cos_z);
    double tr = -(em1 - 2.0 * e * half * half), ti = e * sin_z; /* 1 - e^{-z} */
    double br = e * cos_z, bi = -ti;
    const double modulus = sqrt(tr * tr + ti * ti);
    for (int i = 0; i < doublings; i++) {
        const double wr = br * (1.0 + tr) - bi * ti, wi = br * ti + bi * (1.0 + tr);
        const double sr = (tr - ti) * (tr + ti), si = 2.0 * tr * ti;
        br = wr, bi = wi;
        tr = sr, ti = si;
    }
    above[0] = tr, above[1] = ti;
    below[0] = br, below[1] = bi;
    *fall = e;
    return modulus;
}

#endif
