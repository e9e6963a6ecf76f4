#include "smoothed_line.h"

#include <math.h>

#include "bounds.h"

/* unit of roundoff */
#define U 0x1p-53

static const double TURN = 6.283185307179586;

/* A bound on log|F| of the parts that decay goes down to this; the rest up to log(ACCT_LINE_CUT) is
 * what the round-off of y may change in all of them together (acct_line_product checks it). */
static const double LOG_CUT = -41.0;

/* Added and taken off, it rounds what is below 2^51 to an integer: without a call, unlike rint. */
#define ROUNDS 0x1.8p52

/* Terms of theta beyond the first: the m-th is below 2 e^{-damping m (m-1)}; damping >= 1.7. */
#define MOST_TERMS 6

/* its `most` is set by acct_line_power */
typedef acct_line_value factor;

/* y less its whole periods */
static inline double reduced(const acct_line_part *part, double y, double *whole) {
    double turns = y * part->frequency;
    *whole = (turns + ROUNDS) - ROUNDS;
    return (turns - *whole) * part->period;
}

/* ensures  log|F(c + iy) / F(c)| <= returned <= 0, but for the round-off of y */
static double log_modulus(const acct_line_part *part, double y) {
    double rest = y, edge = 0.0, whole;
    if (part->kind > ACCT_LINE_LATTICE) return 0.0;
    if (part->kind == ACCT_LINE_LATTICE) {
        rest = reduced(part, y, &whole);
        /* |theta(z) / theta(c)| <= 1 + 2 e^{t - damping}, t = 2 pi distance |y|, and below 3.7 */
        edge = TURN * part->distance * fabs(rest) - part->damping;
        edge = edge < -40.0 && part->damping > 40.0 ? 0x1p-50 : 1.4;
    }
    rest = edge - 0.5 * part->spread * rest * rest;
    return rest < 0.0 ? part->runs * rest : 0.0;
}

static factor gaussian(const acct_line_part *part, double c, double y) {
    double decay = 0.5 * part->spread * y * y, turn = 0.5 * part->spread * y * (2.0 * c - 1.0);
    double size = exp(-decay);
    factor f = {size * cos(turn), size * sin(turn), 0.0, 0.0};
    f.err = size * (32.0 + 8.0 * (decay + fabs(turn))) * U;
    return f;
}

static factor lattice(const acct_line_part *part, double c, double y) {
    double g = part->damping, d = TURN * part->distance;
    int m;
    double whole, rest = reduced(part, y, &whole), t = d * fabs(rest);
    double re = 1.0, im = 0.0, at_c = 1.0, doubt = 32.0, doubt_at_c = 64.0, sum = 1.0;
    double v = part->spread, decay = 0.5 * v * rest * rest, turn = 0.5 * v * rest * (2.0 * c - 1.0);
    /* y is exact; what is left of it is off by some 6U of y */
    double slope = v * fabs(rest) + 0.5 * v * (2.0 * c - 1.0);
    double moved = 6.0 * fabs(y) * slope + 8.0 * (decay + fabs(turn));
    double size, scale;
    factor f;
    for (m = 1; m <= MOST_TERMS && g * m * (m - 1) < 60.0; m++) {
        double angle = d * m * c, up = exp(t * m - g * m * m), down = exp(-t * m - g * m * m);
        double small = exp(-g * m * m);
        double cosine = cos(angle), sine = sin(angle);
        re += cosine * (up + down);
        im -= sine * (rest < 0.0 ? down - up : up - down);
        at_c += 2.0 * cosine * small;
        doubt_at_c += small * (64.0 + 32.0 * (angle + g * m * m));
        sum += up + down;
        doubt += (up + down) * (16.0 + 8.0 * (t * m + g * m * m + angle) + 6.0 * d * m * fabs(y));
    }
    size = exp(-decay);
    scale = size / at_c;
    if (fmod(whole, 2.0) != 0.0 && fmod(part->distance, 2.0) != 0.0) scale = -scale;
    /* what the terms left out add, of theta(z) and of theta(c), is below 1e-20 */
    f.re = (re * cos(turn) - im * sin(turn)) * scale;
    f.im = (re * sin(turn) + im * cos(turn)) * scale;
    f.err = fabs(scale) * ((doubt + sum * (moved + doubt_at_c)) * U + 1e-19);
    return f;
}

static factor laplace(const acct_line_part *part, double c, double y) {
    double v = part->spread, twice = 2.0 * c - 1.0, far = exp(-twice * v);
    double norm = twice * twice + 4.0 * y * y;
    double tr = twice / norm, ti = -2.0 * y / norm; /* 1/(2z-1) */
    double co = cos(y * v), si = sin(y * v), size = fabs(tr) + fabs(ti);
    double at_c = 1.0 + 1.0 / twice + far * (1.0 - 1.0 / twice);
    /* e^{iyv} (1 + t) + far e^{-iyv} (1 - t) */
    double ar = 1.0 + tr, br = far * (1.0 - tr), bi = -far * ti;
    factor f;
    f.re = (co * ar - si * ti + co * br + si * bi) / at_c;
    f.im = (si * ar + co * ti - si * br + co * bi) / at_c;
    /* at_c >= 1/2: with t = 1/(2c-1) <= 1 it is 1 + t + far (1 - t) */
    f.err = (48.0 + 8.0 * fabs(y) * v + 8.0 * twice * v * far) * U;
    f.err *= (1.0 + far) * (1.0 + size) / at_c;
    return f;
}

static factor atoms(const acct_line_part *part, double y) {
    factor f = {0.0, 0.0, 0.0, 0.0};
    double doubt = 0.0;
    int64_t j;
    for (j = 0; j < part->atoms; j++) {
        double angle = y * part->loss[j], w = part->weight[j];
        f.re += w * cos(angle);
        f.im += w * sin(angle);
        doubt += w * (16.0 + 4.0 * fabs(angle));
    }
    f.err = (doubt + 4.0 * (double)part->atoms) * U + 2.0 * part->weight_err;
    return f;
}

acct_line_value acct_line_times(acct_line_value x, acct_line_value y) {
    factor out = {x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re, 0.0, x.most * y.most * (1.0 + 4.0 * U)};
    out.err = (x.err * y.most + x.most * y.err + 8.0 * U * x.most * y.most) * (1.0 + 16.0 * U);
    return out;
}

acct_line_value acct_line_power(acct_line_value f, double runs) {
    factor out = {1.0, 0.0, 0.0, 0.0};
    double one = hypot(f.re, f.im) * (1.0 + 4.0 * U) + f.err, rest = runs, part;
    double re = f.re, im = f.im;
    f.most = one;
    if (runs == 1.0) return f;
    out.most = pow(one, runs) * (1.0 + 64.0 * U);
    out.err = runs * f.err * pow(one, runs - 1.0) * (1.0 + 64.0 * U) + 16.0 * runs * U * out.most;
    while (rest > 0.0) {
        if (fmod(rest, 2.0) != 0.0) {
            part = out.re * re - out.im * im;
            out.im = out.re * im + out.im * re;
            out.re = part;
        }
        rest = floor(0.5 * rest);
        part = re * re - im * im;
        im = 2.0 * re * im;
        re = part;
    }
    return out;
}

/* The power of F = cosh((z - 1/2) v) / cosh(v / 2), over its value at c: with t = v y and
 * a = (c - 1/2) v, F(z) / F(c) = cos t + i sin t tanh a, whose modulus squared is 1 - sin^2 t / cosh^2 a. */
static factor response(const acct_line_part *part, double c, double y) {
    double a = (c - 0.5) * part->spread, t = part->spread * y, co = cosh(a), si = sin(t);
    double fall = part->runs * 0.5 * log1p(-(si / co) * (si / co));
    double turn = part->runs * atan2(si * tanh(a), cos(t)), size = exp(fall);
    factor f = {size * cos(turn), size * sin(turn), 0.0, 0.0};
    /* with |t| <= 1 the round-off of t moves either by three units of its own size at most */
    f.err = fabs(t) <= 1.0 ? size * (32.0 + 32.0 * (fabs(fall) + fabs(turn))) * U : INFINITY;
    f.most = size + f.err;
    return f;
}

static factor value(const acct_line_part *part, double c, double y) {
    switch (part->kind) {
    case ACCT_LINE_GAUSSIAN: return gaussian(part, c, y);
    case ACCT_LINE_LATTICE: return lattice(part, c, y);
    case ACCT_LINE_LAPLACE: return laplace(part, c, y);
    default: return atoms(part, y);
    }
}

/* How far the round-off of y = step * last moves the bounds of log_modulus, all together */
static double slack(const acct_line_part *parts, int64_t count, double y) {
    double all = 0.0, reach;
    int64_t j;
    for (j = 0; j < count; j++) {
        if (parts[j].kind > ACCT_LINE_LATTICE) continue;
        reach = parts[j].spread * y;
        if (parts[j].kind == ACCT_LINE_LATTICE) reach = 0.5 * TURN * parts[j].distance;
        all += parts[j].runs * (reach * y * 8.0 * U + 8.0 * U * 50.0);
    }
    return all;
}

int acct_line_product(const acct_line_part *parts, int64_t count, double c, double step,
                      int64_t last, const acct_line_nodes *first, acct_line_nodes *nodes) {
    int64_t k, j;
    nodes->kept = nodes->pruned = 0;
    if (first && first->kept <= last) {
        nodes->pruned = last + 1 - first->kept;
        last = first->kept - 1;
    }
    if (!(slack(parts, count, step * (double)last) < 0.9)) return ACCT_EPRECISION;
    for (k = 0; k <= last; k++) {
        double y = step * (double)k, low = 0.0;
        acct_line_value now = {1.0, 0.0, 0.0, 1.0};
        if (first) now = (acct_line_value){first->re[k], first->im[k], first->err[k], first->most[k]};
        if (now.most < 0.5 * ACCT_LINE_CUT) low = 2.0 * LOG_CUT;
        for (j = 0; j < count && parts[j].kind <= ACCT_LINE_LATTICE && low > LOG_CUT; j++)
            low += log_modulus(&parts[j], y);
        for (j = 0; j < count && low > LOG_CUT; j++) {
            factor f = parts[j].kind == ACCT_LINE_RESPONSE ? response(&parts[j], c, y)
                                                           : acct_line_power(value(&parts[j], c, y), parts[j].runs);
            if (!(f.most < 2.0)) return ACCT_EPRECISION;
            now = acct_line_times(now, f);
            if (now.most < 0.5 * ACCT_LINE_CUT) low = 2.0 * LOG_CUT;
        }
        if (!(low > LOG_CUT)) {
            nodes->pruned++;
            continue;
        }
        if (nodes->kept == nodes->room) return ACCT_EPRECISION;
        nodes->y[nodes->kept] = y;
        nodes->re[nodes->kept] = now.re;
        nodes->im[nodes->kept] = now.im;
        nodes->err[nodes->kept] = now.err;
        nodes->most[nodes->kept] = now.most;
        nodes->kept++;
    }
    return ACCT_OK;
}
