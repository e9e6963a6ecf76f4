#include "line.h"

#include <math.h>
#include <string.h>

#include "rounding.h"
#include "vmath.h"

#define LANES 4 /* divides every node count */
#define MOST_ANGLE 2097152.0

void acct_line_place(acct_line *line, double *memory, int capacity) {
    memset(line, 0, sizeof *line);
    double **slots[ACCT_LINE_ARRAYS] = {
        &line->loss,   &line->weight, &line->weight_err, &line->loss_err, &line->d1_re,
        &line->d1_im,  &line->wd1_re, &line->wd1_im,     &line->wv1_im,   &line->wd_re,
        &line->wd_im,  &line->wv_im};
    for (int i = 0; i < ACCT_LINE_ARRAYS; i++) *slots[i] = memory + (size_t)i * (size_t)capacity;
}

void acct_line_set(acct_line *line, const acct_grid *grid, const acct_moments *m) {
    const double c = m->order, mean = m->mean;
    int n = 0;
    for (int j = 0; j < grid->count; j++) {
        const double loss = grid->loss[j];
        line->loss[n] = loss - mean;
        line->weight[n] = grid->weight[j];
        line->weight_err[n] = (128.0 + 12.0 * grid->x2[j]) * ACCT_U + m->log_mgf_err +
                              fabs(c) * (grid->loss_err[j] + 4.0 * ACCT_U * fabs(loss));
        line->loss_err[n] = grid->loss_err[j] + 2.0 * ACCT_U * (fabs(loss) + fabs(mean));
        n++;
    }
    line->count = n;
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

void acct_line_step(acct_line *line, double dy) {
    line->dy = dy;
    direct(line->count, dy, line->loss, line->d1_re, line->d1_im, line->wv1_im);
    for (int j = 0; j < line->count; j++) {
        const double w = line->weight[j];
        line->wd1_re[j] = w * line->d1_re[j];
        line->wd1_im[j] = w * line->d1_im[j];
        line->wv1_im[j] *= w;
    }
}

static void restart(acct_line *line, double y) {
    direct(line->count, y, line->loss, line->wd_re, line->wd_im, line->wv_im);
    for (int j = 0; j < line->count; j++) {
        const double w = line->weight[j];
        line->wd_re[j] *= w;
        line->wd_im[j] *= w;
        line->wv_im[j] *= w;
    }
}

/* sums the current v over the nodes and advances d and v, which have one real part, by one step */
ACCT_CLONES
static void advance(int count, const double *restrict d1_re, const double *restrict d1_im,
                    const double *restrict wd1_re, const double *restrict wd1_im,
                    const double *restrict wv1_im, double *restrict wd_re, double *restrict wd_im,
                    double *restrict wv_im, double *re, double *im) {
    double sr[LANES] = {0}, si[LANES] = {0};
    for (int j = 0; j < count; j += LANES) {
        for (int i = 0; i < LANES; i++) {
            const double dr = wd_re[j + i], di = wd_im[j + i];
            const double pr = dr * d1_re[j + i] - di * d1_im[j + i];
            const double pi = dr * d1_im[j + i] + di * d1_re[j + i];
            sr[i] += dr;
            si[i] += wv_im[j + i];
            wd_re[j + i] = dr + (wd1_re[j + i] + pr);
            wd_im[j + i] = di + (wd1_im[j + i] + pi);
            wv_im[j + i] += wv1_im[j + i] + pi;
        }
    }
    double a = 0.0, b = 0.0;
    for (int i = 0; i < LANES; i++) {
        a += sr[i];
        b += si[i];
    }
    *re = a;
    *im = b;
}

/* Round-off per node, with t = y l: the recurrence's d is within 16 k u min(t, 2) and v within
 * (64 k + 96) u min(t^2, 2 + t) of the truth after k <= ACCT_BLOCK steps (Theorem 8); the weight's
 * error multiplies v, the loss's moves v by |d| y; the sum adds (count/8 + 8) u. */
ACCT_CLONES
static double roundoff(int count, double y, double recurrence, const double *restrict loss,
                       const double *restrict weight, const double *restrict weight_err,
                       const double *restrict loss_err) {
    double total[LANES] = {0};
    for (int j = 0; j < count; j += LANES)
        for (int i = 0; i < LANES; i++) {
            const double t = fabs(y * loss[j + i]), square = t * t, line = 2.0 + t;
            const double v = square < line ? square : line, d = t < 2.0 ? t : 2.0;
            const double near = (recurrence + weight_err[j + i]) * v + d * y * loss_err[j + i];
            /* |v| <= 2 + t, and so is, up to a factor, what was computed */
            total[i] += weight[j + i] * (t < MOST_ANGLE ? near : 4.0 * line);
        }
    return ((total[0] + total[1]) + (total[2] + total[3])) * ACCT_SLACK;
}

double acct_line_block(acct_line *line, long first, int n, double *re, double *im) {
    if (first == 0) {
        const size_t bytes = (size_t)line->count * sizeof(double);
        memset(line->wd_re, 0, bytes);
        memset(line->wd_im, 0, bytes);
        memset(line->wv_im, 0, bytes);
    } else {
        restart(line, (double)first * line->dy);
    }
    for (int i = 0; i < n; i++)
        advance(line->count, line->d1_re, line->d1_im, line->wd1_re, line->wd1_im, line->wv1_im,
                line->wd_re, line->wd_im, line->wv_im, re + i, im + i);
    const double recurrence = (64.0 * n + 112.0 + line->count / LANES) * ACCT_U;
    return roundoff(line->count, (double)(first + n - 1) * line->dy, recurrence, line->loss,
                    line->weight, line->weight_err, line->loss_err);
}
