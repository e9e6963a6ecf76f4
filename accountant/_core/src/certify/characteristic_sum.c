#include "characteristic_sum.h"

#include <math.h>
#include <string.h>

#include "rounding.h"
#include "vmath.h"

/* direct_sum() hands half the angle to acct_vsincos */
#define MOST_ANGLE (2.0 * ACCT_MOST_ANGLE)

void acct_characteristic_sum_place(acct_characteristic_sum *cf, double *memory, int capacity) {
    memset(cf, 0, sizeof *cf);
    double **slots[ACCT_SUM_ARRAYS] = {&cf->loss,   &cf->weight, &cf->weight_err, &cf->loss_err,
                                       &cf->d1_re,  &cf->d1_im,  &cf->wd1_re,     &cf->wd1_im,
                                       &cf->wv1_im, &cf->wd_re,  &cf->wd_im,      &cf->wv_im};
    for (int i = 0; i < ACCT_SUM_ARRAYS; i++) *slots[i] = memory + (size_t)i * (size_t)capacity;
}

void acct_characteristic_sum_set(acct_characteristic_sum *cf, const acct_tilted_law *law,
                                 const acct_moments *m) {
    const double c = m->order, mean = m->mean;
    int n = 0;
    for (int j = 0; j < law->count; j++) {
        const double loss = law->loss[j];
        cf->loss[n] = loss - mean;
        cf->weight[n] = law->weight[j];
        cf->weight_err[n] = acct_weight_roundoff(law->x2[j]) + m->log_mgf_err +
                            fabs(c) * (law->loss_err[j] + 4.0 * ACCT_U * fabs(loss));
        cf->loss_err[n] = law->loss_err[j] + 2.0 * ACCT_U * (fabs(loss) + fabs(mean));
        n++;
    }
    for (cf->count = acct_to_wide(n); n < cf->count; n++) /* arrays are no shorter */
        cf->loss[n] = cf->weight[n] = cf->weight_err[n] = cf->loss_err[n] = 0.0;
}

/* d = e^{it} - 1 and the imaginary part of v = d - it; for small t the sine's own series, so that
 * sin t - t does not cancel */
ACCT_CLONES
static void direct_sum(int count, double y, const double *restrict loss, double *restrict d_re,
                   double *restrict d_im, double *restrict v_im) {
    for (int j = 0; j < count; j++) {
        /* beyond the range of acct_vsincos any value will do: roundoff() counts it in full */
        double t = y * loss[j];
        t = t > MOST_ANGLE ? MOST_ANGLE : t < -MOST_ANGLE ? -MOST_ANGLE : t;
        double s, c;
        acct_vsincos(0.5 * t, &s, &c);
        const double sin_t = 2.0 * s * c, w = t * t;
        double p = 2.8114572543455206e-15; /* 1/17! */
        p = p * w - 7.647163731819816e-13;
        p = p * w + 1.6059043836821613e-10;
        p = p * w - 2.505210838544172e-08;
        p = p * w + 2.7557319223985893e-06;
        p = p * w - 1.984126984126984e-04;
        p = p * w + 8.333333333333333e-03;
        p = p * w - 1.6666666666666666e-01;
        const double series = t * (w * p);
        d_re[j] = -2.0 * s * s;
        d_im[j] = sin_t;
        const double apart = sin_t - t;
        v_im[j] = w > 0.5 ? apart : series;
    }
}

void acct_characteristic_sum_step(acct_characteristic_sum *cf, double dy) {
    cf->dy = dy;
    direct_sum(cf->count, dy, cf->loss, cf->d1_re, cf->d1_im, cf->wv1_im);
    for (int j = 0; j < cf->count; j++) {
        const double w = cf->weight[j];
        cf->wd1_re[j] = w * cf->d1_re[j];
        cf->wd1_im[j] = w * cf->d1_im[j];
        cf->wv1_im[j] *= w;
    }
}

static void restart_sum(acct_characteristic_sum *cf, double y) {
    direct_sum(cf->count, y, cf->loss, cf->wd_re, cf->wd_im, cf->wv_im);
    for (int j = 0; j < cf->count; j++) {
        const double w = cf->weight[j];
        cf->wd_re[j] *= w;
        cf->wd_im[j] *= w;
        cf->wv_im[j] *= w;
    }
}

/* nodes whose eight values leave room in a cache of 32 KB: all points of a block run over so many before the next */
#define NODES_AT_ONCE 320

/* partial sums over the nodes */
typedef struct {
    double re[ACCT_WIDE], im[ACCT_WIDE];
} wide_sums;

/* adds v of the nodes at this point and at the next to the sums, and advances d and v, which have one real part, by
 * two steps: what is loaded once serves both */
ACCT_CLONES
static void advance_two(int count, const double *restrict d1_re, const double *restrict d1_im,
                        const double *restrict wd1_re, const double *restrict wd1_im,
                        const double *restrict wv1_im, double *restrict wd_re, double *restrict wd_im,
                        double *restrict wv_im, wide_sums *now, wide_sums *then) {
    double ar[ACCT_WIDE], ai[ACCT_WIDE], br[ACCT_WIDE], bi[ACCT_WIDE];
    memcpy(ar, now->re, sizeof ar);
    memcpy(ai, now->im, sizeof ai);
    memcpy(br, then->re, sizeof br);
    memcpy(bi, then->im, sizeof bi);
    for (int j = 0; j < count; j += ACCT_WIDE)
        for (int i = 0; i < ACCT_WIDE; i++) {
            const int k = j + i;
            const double dr = wd_re[k], di = wd_im[k], v = wv_im[k], cr = d1_re[k], ci = d1_im[k];
            const double pi = dr * ci + di * cr, dr1 = dr + (wd1_re[k] + (dr * cr - di * ci));
            const double di1 = di + (wd1_im[k] + pi), v1 = v + (wv1_im[k] + pi), pi1 = dr1 * ci + di1 * cr;
            ar[i] += dr;
            ai[i] += v;
            br[i] += dr1;
            bi[i] += v1;
            wd_re[k] = dr1 + (wd1_re[k] + (dr1 * cr - di1 * ci));
            wd_im[k] = di1 + (wd1_im[k] + pi1);
            wv_im[k] = v1 + (wv1_im[k] + pi1);
        }
    memcpy(now->re, ar, sizeof ar);
    memcpy(now->im, ai, sizeof ai);
    memcpy(then->re, br, sizeof br);
    memcpy(then->im, bi, sizeof bi);
}

/* the sums at the next n points, and at one more where n is odd */
static void sum_block(acct_characteristic_sum *cf, int n, wide_sums *sums) {
    for (int first = 0; first < cf->count; first += NODES_AT_ONCE) {
        const int size = cf->count - first < NODES_AT_ONCE ? cf->count - first : NODES_AT_ONCE;
        for (int i = 0; i < n; i += 2)
            advance_two(size, cf->d1_re + first, cf->d1_im + first, cf->wd1_re + first, cf->wd1_im + first,
                        cf->wv1_im + first, cf->wd_re + first, cf->wd_im + first, cf->wv_im + first, sums + i,
                        sums + i + 1);
    }
}

/* Round-off per node, with t = y l: the recurrence's d is within 16 k u min(t, 2) and v within
 * (64 k + 96) u min(t^2, 2 + t) of the truth after k <= ACCT_SUM_BLOCK steps (Theorem 8); the weight's
 * error multiplies v, the loss's moves v by |d| y; the sum adds (count/8 + 8) u. */
ACCT_CLONES
static double roundoff(int count, double y, double recurrence, const double *restrict loss,
                       const double *restrict weight, const double *restrict weight_err,
                       const double *restrict loss_err) {
    double total[ACCT_LANES] = {0};
    for (int j = 0; j < count; j += ACCT_LANES)
        ACCT_EACH_LANE for (int i = 0; i < ACCT_LANES; i++) {
            const double t = fabs(y * loss[j + i]), square = t * t, linear = 2.0 + t;
            const double v = square < linear ? square : linear, d = t < 2.0 ? t : 2.0;
            const double near = (recurrence + weight_err[j + i]) * v + d * y * loss_err[j + i];
            /* |v| <= 2 + t, and so is, up to a factor, what was computed */
            total[i] += weight[j + i] * (t < MOST_ANGLE ? near : 4.0 * linear);
        }
    return acct_lanes_total(total) * ACCT_SLACK;
}

double acct_characteristic_sum_block(acct_characteristic_sum *cf, long first, int n, double *re, double *im) {
    if (first == 0) {
        const size_t bytes = (size_t)cf->count * sizeof(double);
        memset(cf->wd_re, 0, bytes);
        memset(cf->wd_im, 0, bytes);
        memset(cf->wv_im, 0, bytes);
    } else {
        restart_sum(cf, (double)first * cf->dy);
    }
    wide_sums sums[ACCT_SUM_BLOCK + 1] = {0};
    sum_block(cf, n, sums);
    for (int i = 0; i < n; i++) {
        re[i] = acct_wide_total(sums[i].re);
        im[i] = acct_wide_total(sums[i].im);
    }
    const double recurrence = (64.0 * n + 112.0 + cf->count / ACCT_LANES) * ACCT_U;
    return roundoff(cf->count, (double)(first + n - 1) * cf->dy, recurrence, cf->loss, cf->weight,
                    cf->weight_err, cf->loss_err);
}

acct_characteristic_errors acct_characteristic_errors_set(const acct_tilted_law *law, const acct_moments *m,
                                                          double y_last) {
    return (acct_characteristic_errors){.at_zero = acct_tilted_law_error(law, m, 0.0),
                                        .at_last = acct_tilted_law_error(law, m, y_last),
                                        .reach = acct_tilted_law_reach(law, m->mean),
                                        .mean_err = m->mean_err};
}
