#include "characteristic_sum.h"

#include <math.h>
#include <string.h>

#include "rounding.h"
#include "vmath.h"

/* direct() hands half the angle to acct_vsincos */
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
    cf->count = n;
}

/* d = e^{it} - 1 and the imaginary part of v = d - it; for small t the sine's own series, so that
 * sin t - t does not cancel */
ACCT_CLONES
static void direct(int count, double y, const double *restrict loss, double *restrict d_re,
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
    direct(cf->count, dy, cf->loss, cf->d1_re, cf->d1_im, cf->wv1_im);
    for (int j = 0; j < cf->count; j++) {
        const double w = cf->weight[j];
        cf->wd1_re[j] = w * cf->d1_re[j];
        cf->wd1_im[j] = w * cf->d1_im[j];
        cf->wv1_im[j] *= w;
    }
}

static void restart(acct_characteristic_sum *cf, double y) {
    direct(cf->count, y, cf->loss, cf->wd_re, cf->wd_im, cf->wv_im);
    for (int j = 0; j < cf->count; j++) {
        const double w = cf->weight[j];
        cf->wd_re[j] *= w;
        cf->wd_im[j] *= w;
        cf->wv_im[j] *= w;
    }
}

/* so many nodes stay in the nearest memory while the points of a block are summed */
#define TILE 128

/* adds v, of which d has the real part, to the partial sums, and advances both by one step */
ACCT_CLONES
static void advance(int count, const double *restrict d1_re, const double *restrict d1_im,
                    const double *restrict wd1_re, const double *restrict wd1_im,
                    const double *restrict wv1_im, double *restrict wd_re, double *restrict wd_im,
                    double *restrict wv_im, double *restrict re, double *restrict im) {
    double sr[ACCT_LANES], si[ACCT_LANES];
    for (int i = 0; i < ACCT_LANES; i++) {
        sr[i] = re[i];
        si[i] = im[i];
    }
    for (int j = 0; j < count; j += ACCT_LANES)
        ACCT_EACH_LANE for (int i = 0; i < ACCT_LANES; i++) {
            const double dr = wd_re[j + i], di = wd_im[j + i];
            const double pr = dr * d1_re[j + i] - di * d1_im[j + i];
            const double pi = dr * d1_im[j + i] + di * d1_re[j + i];
            sr[i] += dr;
            si[i] += wv_im[j + i];
            wd_re[j + i] = dr + (wd1_re[j + i] + pr);
            wd_im[j + i] = di + (wd1_im[j + i] + pi);
            wv_im[j + i] += wv1_im[j + i] + pi;
        }
    for (int i = 0; i < ACCT_LANES; i++) {
        re[i] = sr[i];
        im[i] = si[i];
    }
}

/* sums v over all nodes at n points; every lane adds its nodes in their order */
static void sum_block(acct_characteristic_sum *cf, int n, double *re, double *im) {
    double sr[ACCT_SUM_BLOCK][ACCT_LANES] = {{0}}, si[ACCT_SUM_BLOCK][ACCT_LANES] = {{0}};
    for (int j = 0; j < cf->count; j += TILE) {
        const int nodes = cf->count - j < TILE ? cf->count - j : TILE;
        for (int k = 0; k < n; k++)
            advance(nodes, cf->d1_re + j, cf->d1_im + j, cf->wd1_re + j, cf->wd1_im + j, cf->wv1_im + j,
                    cf->wd_re + j, cf->wd_im + j, cf->wv_im + j, sr[k], si[k]);
    }
    /* one after the other, as the error count of roundoff() has it */
    for (int k = 0; k < n; k++) {
        re[k] = ((sr[k][0] + sr[k][1]) + sr[k][2]) + sr[k][3];
        im[k] = ((si[k][0] + si[k][1]) + si[k][2]) + si[k][3];
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
        restart(cf, (double)first * cf->dy);
    }
    sum_block(cf, n, re, im);
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
