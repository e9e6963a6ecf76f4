#include "characteristic_sum.h"

#include <math.h>
#include <string.h>

#include "order.h"
#include "rounding.h"
#include "vmath.h"

void acct_line_values_place(acct_line_values *values, double *memory, size_t points) {
    double **slots[ACCT_LINE_ARRAYS] = {&values->log_modulus, &values->arg,   &values->ratio,
                                        &values->log_most,    &values->factor, &values->poles,
                                        &values->error};
    for (int i = 0; i < ACCT_LINE_ARRAYS; i++) *slots[i] = memory + (size_t)i * points;
}

ACCT_CLONES
void acct_characteristic_polar_set(acct_characteristic_polar *block, const acct_characteristic_errors *errors,
                                   int first, double dy, const double *restrict round,
                                   const double *restrict re, const double *restrict im) {
    const acct_characteristic_errors e = *errors;
    double *restrict log_modulus = block->log_modulus, *restrict arg = block->arg;
    double *restrict ratio = block->ratio, *restrict log_most = block->log_most;
    for (int i = 0; i < ACCT_SUM_BLOCK; i++) {
        const acct_characteristic_value v = acct_characteristic_value_at(&e, (first + i) * dy, re[i], im[i], round[i]);
        const double rest = v.modulus - v.error, over = v.error / rest;
        log_modulus[i] = v.log_modulus;
        arg[i] = v.arg;
        ratio[i] = rest > 0.0 ? over : INFINITY;
        /* log(1 + x) <= x; the error of the logarithm is counted with the term */
        const double apart = acct_vlog(v.modulus + v.error), near = v.log_modulus + over;
        log_most[i] = (rest > 0.0) & (over < 0.1) ? near : apart;
    }
}

void acct_characteristic_polar_sum(acct_characteristic_sum *cf, const acct_characteristic_errors *errors, int first,
                                   int size, acct_characteristic_polar *block) {
    double re[ACCT_SUM_BLOCK] = {0}, im[ACCT_SUM_BLOCK] = {0}, round[ACCT_SUM_BLOCK];
    round[0] = acct_characteristic_sum_block(cf, first, size, re, im);
    for (int i = 1; i < ACCT_SUM_BLOCK; i++) round[i] = round[0];
    acct_characteristic_polar_set(block, errors, first, cf->dy, round, re, im);
}

/* what the poles make of all points */
ACCT_CLONES
static void set_poles(int count, double b, double dy, double *restrict factor, double *restrict poles) {
    for (int k = 0; k < count; k++) {
        const double y = k * dy;
        factor[k] = acct_trapezoid_factor(b, y, dy, 1);
        poles[k] = acct_poles_phase(b, y);
    }
    factor[0] *= 0.5;
}

void acct_line_values_set(acct_line_values *values, acct_characteristic_sum *cf,
                          const acct_tilted_law *law, const acct_moments *m, double b, double dy,
                          int count) {
    const acct_characteristic_errors errors = acct_characteristic_errors_set(law, m, (count - 1) * dy);
    for (int first = 0; first < count; first += ACCT_SUM_BLOCK) {
        acct_characteristic_polar block;
        const int size = count - first < ACCT_SUM_BLOCK ? count - first : ACCT_SUM_BLOCK;
        const size_t bytes = (size_t)size * sizeof(double);
        acct_characteristic_polar_sum(cf, &errors, first, size, &block);
        memcpy(values->log_modulus + first, block.log_modulus, bytes);
        memcpy(values->arg + first, block.arg, bytes);
        memcpy(values->ratio + first, block.ratio, bytes);
        memcpy(values->log_most + first, block.log_most, bytes);
    }
    set_poles(count, b, dy, values->factor, values->poles);
}

/* With r = |1+V| - error > 0 the n-th power is within a factor e^{n error / r} of the computed one; where
 * that says nothing, the term and its computed value are bounded apart, by (|1+V| + error)^n.  log, atan2 and exp
 * move the power by 16 n u of log and argument, the other factors by less than 40 u.  (Theorem 8(d)) */
ACCT_CLONES
static void raise_values(int count, double steps, double sign, const double *restrict log_modulus,
                  const double *restrict arg, const double *restrict ratio, const double *restrict log_most,
                  const double *restrict factor, const double *restrict poles, double *restrict amplitude,
                  double *restrict phase, double *restrict error) {
    for (int k = 0; k < count; k++) {
        const double power = steps * log_modulus[k], above = steps * log_most[k];
        const double relative = steps * ratio[k], turn = steps * arg[k];
        const double product = acct_vexp(power) * factor[k], high = acct_vexp(above) * factor[k];
        const double a = power < ACCT_LEAST_LOG ? 0.0 : product, most = above > ACCT_MOST_LOG ? INFINITY : high;
        const double moved = a * acct_vexpm1(relative), apart = a + most;
        const double near = relative < ACCT_MOST_RELATIVE ? moved : apart;
        const double round = a * ACCT_U * (40.0 + 16.0 * (fabs(power) + fabs(turn)));
        amplitude[k] = a;
        phase[k] = sign * turn - poles[k];
        error[k] = (power < ACCT_LEAST_LOG ? apart : near) + round;
    }
}

ACCT_CLONES
static double total_of(int count, const double *restrict x) {
    double sum[ACCT_WIDE] = {0};
    int k = 0;
    for (; k + ACCT_WIDE <= count; k += ACCT_WIDE)
        for (int i = 0; i < ACCT_WIDE; i++) sum[i] += x[k + i];
    for (; k < count; k++) sum[0] += x[k];
    return acct_wide_total(sum);
}

double acct_line_values_power(const acct_line_values *v, int count, double steps, double sign,
                              double *amplitude, double *phase) {
    raise_values(count, steps, sign, v->log_modulus, v->arg, v->ratio, v->log_most, v->factor, v->poles, amplitude,
                 phase, v->error);
    return total_of(count, v->error) * ACCT_SLACK;
}

/* sums of a and of a y over the points, in lanes */
ACCT_CLONES
static void set_value_sizes(acct_line_terms *terms, int count, const double *restrict a) {
    double size[ACCT_LANES] = {0}, weighed[ACCT_LANES] = {0};
    int k = 0;
    for (; k + ACCT_LANES <= count; k += ACCT_LANES)
        ACCT_EACH_LANE for (int i = 0; i < ACCT_LANES; i++) {
            size[i] += a[k + i];
            weighed[i] += a[k + i] * (k + i);
        }
    for (; k < count; k++) {
        size[0] += a[k];
        weighed[0] += a[k] * k;
    }
    terms->size = acct_lanes_total(size) * ACCT_SLACK;
    terms->weighed = acct_lanes_total(weighed) * terms->dy * ACCT_SLACK;
}

/* returns whether all phases are in the range of acct_vsincos; a NaN is not */
ACCT_CLONES
static int set_value_parts(int count, const double *restrict amplitude, const double *restrict phase,
                           double *restrict re, double *restrict im) {
    double beyond = 0.0;
    for (int k = 0; k < count; k++) {
        double s, c;
        acct_vsincos(phase[k], &s, &c);
        re[k] = amplitude[k] * c;
        im[k] = amplitude[k] * s;
        beyond += fabs(phase[k]) < ACCT_MOST_ANGLE ? 0.0 : 1.0;
    }
    return beyond == 0.0;
}

void acct_line_terms_set(acct_line_terms *terms, int count, double dy) {
    double re[ACCT_SUM_BLOCK], im[ACCT_SUM_BLOCK];
    terms->count = count;
    terms->dy = dy;
    set_value_sizes(terms, count, terms->re);
    for (int first = 0; first < count; first += ACCT_SUM_BLOCK) {
        const int size = count - first < ACCT_SUM_BLOCK ? count - first : ACCT_SUM_BLOCK;
        double *modulus = terms->re + first, *phase = terms->im + first;
        const int known = set_value_parts(size, modulus, phase, re, im);
        for (int i = 0; i < size && !known; i++) {
            if (!isfinite(phase[i])) terms->size = INFINITY;
            re[i] = modulus[i] * cos(phase[i]);
            im[i] = modulus[i] * sin(phase[i]);
        }
        memcpy(modulus, re, (size_t)size * sizeof(double));
        memcpy(phase, im, (size_t)size * sizeof(double));
    }
    for (int k = count; k < count + ACCT_LINE_SPARE; k++) terms->re[k] = terms->im[k] = 0.0;
}

/* partial sums: two registers of AVX-512, as each turn waits for the one before */
#define VALUES_AT_ONCE ACCT_LINE_SPARE
/* turns from one sine to the next */
#define TURNS 7

/* Adds to the partial sums of re and of y im the terms from `first` on, up to `end`, the factor e^{i rate y} turned from
 * each VALUES_AT_ONCE points to the next. */
ACCT_INLINE void add_turning(const acct_line_terms *t, int first, int end, double rate, double turn_re,
                             double turn_im, double *restrict re, double *restrict slope) {
    const double *restrict term_re = t->re, *restrict term_im = t->im;
    const double dy = t->dy, lane[VALUES_AT_ONCE] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    double z_re[VALUES_AT_ONCE], z_im[VALUES_AT_ONCE], y[VALUES_AT_ONCE];
    for (int i = 0; i < VALUES_AT_ONCE; i++) {
        y[i] = (first + lane[i]) * dy;
        acct_vsincos(rate * y[i], &z_im[i], &z_re[i]);
    }
    for (int j = first; j < end; j += VALUES_AT_ONCE)
        for (int i = 0; i < VALUES_AT_ONCE; i++) {
            const double r = z_re[i], s = z_im[i], p = term_re[j + i], q = term_im[j + i];
            re[i] += p * r - q * s;
            slope[i] += y[i] * (p * s + q * r);
            z_re[i] = r * turn_re - s * turn_im;
            z_im[i] = r * turn_im + s * turn_re;
            y[i] += VALUES_AT_ONCE * dy;
        }
}

/* beyond the range of acct_vsincos */
static void sum_far(const acct_line_terms *t, double rate, double *re, double *slope) {
    *re = *slope = 0.0;
    for (int k = 0; k < t->count; k++) {
        const double y = k * t->dy, c = cos(rate * y), s = sin(rate * y);
        *re += t->re[k] * c - t->im[k] * s;
        *slope += y * (t->re[k] * s + t->im[k] * c);
    }
}

/* rounding: Theorem 8(e) */
ACCT_CLONES
void acct_line_terms_sum(const acct_line_terms *t, double rate, double speed, double b, acct_line_sums *out) {
    double re[VALUES_AT_ONCE] = {0}, slope[VALUES_AT_ONCE] = {0}, turn_re, turn_im;
    const int count = t->count, block = (TURNS + 1) * VALUES_AT_ONCE;
    const int known = fabs(rate) * ((count + 2 * VALUES_AT_ONCE) * t->dy) < ACCT_MOST_ANGLE;
    if (!known) sum_far(t, rate, re, slope);
    acct_vsincos(known ? rate * (VALUES_AT_ONCE * t->dy) : 0.0, &turn_im, &turn_re);
    for (int first = 0; first < count && known; first += block)
        add_turning(t, first, first + block < count ? first + block : count, rate, turn_re, turn_im, re, slope);
    const int turns = (count - 1) / VALUES_AT_ONCE < TURNS ? (count - 1) / VALUES_AT_ONCE : TURNS;
    for (int half = VALUES_AT_ONCE / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) {
            re[i] += re[i + half];
            slope[i] += slope[i + half];
        }
    const double adds = known ? (double)(count / VALUES_AT_ONCE) : (double)count;
    out->re = re[0];
    out->slope = slope[0] - b * re[0];
    out->rounding = ACCT_U * (4.0 * speed * t->weighed + (20.0 + 8.0 * turns + adds) * t->size);
}
