#include "mixture_renyi.h"

#include <math.h>

#include "rounding.h"
#include "vmath.h"

/* so many nodes are not looked at for parts to skip */
#define SHORT 256.0

/* E2(z) = e^z - 1 - z for z <= 1 */
static double second_order(double z) { return acct_ve2(z, expm1(z)); }

/* a term N (e^{cL} - 1 - c (e^L - 1)) >= 0 without the constant of N, and |d/dL| of it; x2 = x^2 / (2 sigma^2) */
static double term_at(const acct_renyi_sum *s, double loss, double x2, double *rate) {
    const double c = s->c, t = s->t, z = c > 1.0 ? t * loss : c * loss;
    const double still = exp(-x2), lifted = exp(loss - x2), tilted = exp(c * loss - x2);
    if (c > 1.0) {
        const double main = z > 1.0 ? tilted - (1.0 + z) * lifted : lifted * second_order(z);
        const double other = loss > 1.0    ? lifted * (loss - 1.0) + still
                             : loss < -1.0 ? still - lifted * (1.0 - loss)
                                           : lifted * second_order(-loss);
        *rate = c * (fabs(z) > 1.0 ? fabs(tilted - lifted) : lifted * fabs(expm1(z)));
        return main + t * other;
    }
    const double main = z > 1.0 ? tilted - (1.0 + z) * still : still * second_order(z);
    const double other = loss > 1.0 ? lifted - (1.0 + loss) * still : still * second_order(loss);
    *rate = t *
            ((z > 1.0 ? tilted : still * fabs(expm1(z))) + (loss > 1.0 ? lifted : still * fabs(expm1(loss))));
    return main + t * other;
}

/* one term and its round-off.  Exponents have a few u of their parts; a difference of two terms enlarges
 * relative errors at most seven times, E2 has 32 u; t and c carry one u (z (e^z - 1) is at most 2 + z_+
 * times E2(z)).  err |d/dL| is doubled for the second order in err. */
static void add_term(acct_renyi_sum *s, double loss, double err, double x2) {
    if (s->plain) {
        const double size = fabs(s->c * loss);
        const double term = exp(s->c * loss - x2 - s->shift);
        const double relative = fabs(s->c) * err +
                                ACCT_U * (16.0 + 8.0 * x2 + 4.0 * size + 2.0 * fabs(s->shift));
        s->sum += term;
        s->round += term * relative;
        if (relative > s->most) s->most = relative;
        return;
    }
    double rate;
    const double size = acct_max(s->c * loss, 0.0);
    const double term = term_at(s, loss, x2, &rate);
    const double second = err * (1.0 + fabs(s->c)); /* relative to the larger of e^{cL} and e^L */
    s->sum += term;
    s->round += term * ACCT_U * (300.0 + 40.0 * x2 + 24.0 * (size + fabs(loss))) +
                err * (rate + 2.0 * second * fabs(s->c) * (exp(-x2) + exp(acct_max(loss, s->c * loss) - x2))) +
                1e-315 * (1.0 + fabs(s->c)) * (1.0 + fabs(loss));
    if (second > s->most) s->most = second;
}

/* bound on log of N e^{oL} over [a, b], o > 0: L is below its chord, and a parabola has one top */
static double chord_bound(const acct_shift_law *law, double o, double a, double b, double la, double lb) {
    const double var = law->sigma * law->sigma, slope = b > a ? (lb - la) / (b - a) : 0.0;
    const double x = acct_min(acct_max(o * slope * var, a), b), x2 = x * x * law->rate;
    return o * (la + slope * (x - a)) - x2 + 1e-6 + 1e-11 * (x2 + fabs(o * la) + fabs(o * lb));
}

/* bound on log of the terms over [a, b]: N e^{cL} and what else is in them; not for c < 0 if plain */
static double piece_bound(const acct_renyi_sum *s, double a, double b) {
    const acct_shift_law *law = s->law;
    const double c = s->c, near = a > 0.0 ? a : b < 0.0 ? b : 0.0, still = -near * near * law->rate;
    const double la = acct_shift_law_at(law, a, 1.0).loss, lb = acct_shift_law_at(law, b, 1.0).loss;
    if (c > 1.0) {
        const double tilted = chord_bound(law, c, a, b, la, lb) - s->shift;
        return s->plain ? tilted : acct_max(tilted, log(c) + still) + ACCT_LOG_2_UP;
    }
    const double tilted = c * la + still + 1e-6 + 1e-11 * (fabs(c * la) - still);
    return acct_max(tilted, log(s->t) + chord_bound(law, 1.0, a, b, la, lb)) + ACCT_LOG_2_UP;
}

static double log_unit(const acct_renyi_sum *s) { return log(s->h / (s->law->sigma * ACCT_SQRT_2PI)); }

static void evaluate(acct_renyi_sum *s, double first, double last) {
    double x[ACCT_SHIFT_BLOCK], loss[ACCT_SHIFT_BLOCK], err[ACCT_SHIFT_BLOCK];
    for (double k = first; k <= last; k += ACCT_SHIFT_BLOCK) {
        for (int i = 0; i < ACCT_SHIFT_BLOCK; i++) x[i] = (k + i) * s->h;
        acct_shift_law_losses(s->law, x, loss, err);
        for (int i = 0; i < ACCT_SHIFT_BLOCK && k + i <= last; i++)
            add_term(s, loss[i], err[i], x[i] * x[i] * s->law->rate);
    }
    const double nodes = last - first + 1.0;
    s->nodes += nodes;
    s->work += (nodes + ACCT_SHIFT_BLOCK) * (s->law->count + 8.0);
}

/* bisects the nodes into parts that are skipped and parts that are added */
static void add_range(acct_renyi_sum *s, double first, double last) {
    if (s->work > s->most_work) return;
    const double bound = piece_bound(s, first * s->h, last * s->h) + log_unit(s) + log(last - first + 1.0);
    s->work += 2.0 * s->law->count;
    if (bound < s->floor - 6.0) {
        s->left_out += exp(bound) * ACCT_SLACK;
    } else if (last - first < SHORT) {
        evaluate(s, first, last);
    } else {
        const double middle = floor(0.5 * (first + last));
        add_range(s, first, middle);
        add_range(s, middle + 1.0, last);
    }
}

/* Bounds on the terms below the node lo and above hi, as integrals of monotone functions (D20(c)); L <= 0 below
 * 0 and L >= 0 above all shifts, because all u_j are. */
static double outside(const acct_renyi_sum *s, double lo, double hi) {
    const acct_shift_law *law = s->law;
    const double c = s->c, var = law->sigma * law->sigma, far = law->shift[law->count - 1];
    const acct_shift_point a = acct_shift_law_at(law, lo, 1.0), b = acct_shift_law_at(law, hi, 1.0);
    const double front = -log(law->sigma * ACCT_SQRT_2PI) - s->shift + 1e-6;
    const double la = -lo * lo * law->rate + front, lb = -hi * hi * law->rate + front;
    const double slack = 1e-11 * (lo * lo + hi * hi) * law->rate +
                         1e-11 * fabs(c) * (fabs(a.loss) + fabs(b.loss));
    double left, right;
    if (c > 1.0) {
        if (!(lo < 0.0 && hi > c * far * (1.0 + 1e-9))) return INFINITY;
        left = la - log(-lo / var) + (s->plain ? c * a.loss : log(s->t));
        right = lb + c * b.loss - log((hi - c * far) / var);
    } else {
        /* log-concave: from an end on it falls at least as fast as there */
        const double fall_left = (-lo + c * a.slope) / var, fall_right = (hi - c * b.slope) / var;
        const double doubt = 1e-9 * (fabs(lo) + fabs(hi) - c * (a.slope + b.slope)) / var;
        if (!(fall_left > doubt && fall_right > doubt)) return INFINITY;
        left = la + c * a.loss - log(fall_left - doubt);
        right = lb + c * b.loss - log(fall_right - doubt);
        if (!s->plain) {
            if (!(lo < 0.0 && hi > far * (1.0 + 1e-9))) return INFINITY;
            right = acct_max(right, lb + b.loss + log(s->t) - log((hi - far) / var)) + ACCT_LOG_2_UP;
        }
    }
    return (exp(left + slack) + exp(right + slack)) * ACCT_SLACK;
}

int acct_renyi_sum_run(acct_renyi_sum *s, double mode) {
    const double sigma = s->law->sigma, far = s->law->shift[s->law->count - 1];
    const double reach = sigma * sqrt(2.0 * (8.0 - acct_min(s->floor, 0.0) + log1p(fabs(s->c))));
    double lo = (s->c > 1.0 ? 0.0 : s->plain ? mode : acct_min(mode, 0.0)) - reach;
    double hi = (s->c > 1.0 ? s->c * far : s->plain ? mode : far) + reach;
    s->sum = s->round = s->most = s->left_out = s->nodes = s->work = 0.0;
    double first = 0.0, last = 0.0, out = INFINITY;
    for (int i = 0; i < 12 && !(out < INFINITY && log(out) < s->floor - 1.0); i++) {
        first = floor(lo / s->h);
        last = ceil(hi / s->h);
        if (!(acct_max(fabs(first), fabs(last)) < 0x1p48)) return 0;
        out = outside(s, first * s->h, last * s->h);
        lo -= 0.2 * reach;
        hi += 0.2 * reach;
    }
    if (!(out < INFINITY)) return 0;
    if (s->c > 1.0 || !s->plain)
        add_range(s, first, last);
    else if ((last - first) * (s->law->count + 8.0) < s->most_work)
        evaluate(s, first, last);
    else
        return 0;
    if (s->work > s->most_work) return 0;
    /* the constant of N and the spacing: a few roundings, and those of the sum */
    const double unit = s->h / (sigma * ACCT_SQRT_2PI);
    s->round = (s->round + s->sum * ((s->nodes + 8.0) * ACCT_U)) * unit * ACCT_SLACK;
    s->sum *= unit;
    s->left_out += out;
    return 1;
}
