#include "mixture_renyi.h"

#include <math.h>
#include <stdlib.h>

#include "rounding.h"
#include "bounds.h"

#define MOST_WORK 8e6
/* logs of the relative error aimed at */
#define FINE (-36.0)

/* one order of the transform A(c) = E_Q[e^{cL}] */
typedef struct {
    const acct_shift_law *law;
    double c, t;   /* the order, and its distance from [0, 1] */
    double spread; /* largest less smallest shift */
    double mode, top; /* where N e^{cL} is about largest, and the log of that without the constant */
    acct_bounds log_mgf;
} transform;

/* the height of a strip around the real line, and a bound there (D20(a), (b)) */
typedef struct {
    double height, h;
    double log_bound;  /* log of the integral of |N e^{cL}| along its edge, if it is not relative ... */
    double log_factor; /* ... to A(c), and then the log of the ratio */
    int relative;
} strip;

/* Bounds in closed form (D20(d)): Minkowski's inequality or convexity above, single shifts below. */
static void bound_by_shifts(transform *at) {
    const acct_shift_law *law = at->law;
    const double c = at->c, t = at->t, power = c > 1.0 ? t : t * (1.0 + t);
    const double error = acct_max(law->first_err, law->weight_err) + (law->count + 64.0) * ACCT_U;
    double best = 0.0, least = INFINITY, top = 0.0, total = 0.0;
    for (int j = 0; j < law->count; j++) {
        const double d = law->shift[j], exponent = power * (d * d * law->rate), log_w = log(law->weight[j]);
        best = acct_max(best, c * (log_w * (1.0 + 64.0 * ACCT_U) - error + exponent * (1.0 - 64.0 * ACCT_U)));
        least = acct_min(least, -t * log_w + exponent);
        top = acct_max(top, exponent);
    }
    for (int j = 0; j < law->count; j++) {
        const double d = law->shift[j];
        total += law->weight[j] * exp(power * (d * d * law->rate) - top);
    }
    if (law->count == 1)
        acct_bounds_intersect(&at->log_mgf, (c > 1.0 ? c : 1.0) * top * (1.0 - 64.0 * ACCT_U),
                              (c > 1.0 ? c : 1.0) * top * (1.0 + 64.0 * ACCT_U));
    const double rest = log(total), convex = top + rest + error + 64.0 * ACCT_U * (top - rest);
    acct_bounds_intersect(&at->log_mgf, c > 1.0 ? best : 0.0,
                          c > 1.0 ? c * convex * (1.0 + 8.0 * ACCT_U) : convex);
    if (c < 0.0) acct_bounds_intersect(&at->log_mgf, 0.0, least * (1.0 + 64.0 * ACCT_U) + t * error);
}

/* the root of x = c sigma^2 L'(x), c < 0, weights but the first multiplied by share; L' increases */
static double lower_mode(const transform *at, double share) {
    const double sigma = at->law->sigma;
    double lo = -sigma, hi = 0.0;
    for (int i = 0; i < 1000; i++) {
        if (lo > at->c * acct_shift_law_at(at->law, lo, share).slope) {
            hi = lo;
            lo *= 2.0;
            continue;
        }
        break;
    }
    for (int i = 0; i < 60 && hi - lo > 1e-3 * sigma + 1e-15 * -lo; i++) {
        const double x = 0.5 * (lo + hi);
        *(x > at->c * acct_shift_law_at(at->law, x, share).slope ? &hi : &lo) = x;
    }
    return 0.5 * (lo + hi);
}

static double log_term(const transform *at, double x) {
    return at->c * acct_shift_law_at(at->law, x, 1.0).loss - x * x * at->law->rate;
}

/* for c > 1 the iteration comes down from the shift that alone would give most */
static void find_mode(transform *at) {
    const acct_shift_law *law = at->law;
    if (at->c < 0.0) {
        at->mode = lower_mode(at, 1.0);
        at->top = log_term(at, at->mode);
        return;
    }
    int likely = law->count - 1;
    double best = -INFINITY;
    for (int j = 0; j < law->count; j++) {
        const double alone = log(law->weight[j]) + at->t * law->shift[j] * law->shift[j] * law->rate;
        if (alone > best) {
            best = alone;
            likely = j;
        }
    }
    double x = at->c * law->shift[likely];
    at->top = -INFINITY;
    for (int i = 0; i < 60; i++) {
        const double now = log_term(at, x), next = at->c * acct_shift_law_at(law, x, 1.0).slope;
        if (now > at->top) {
            at->top = now;
            at->mode = x;
        }
        if (fabs(next - x) <= 1e-2 * law->sigma) break;
        x = next;
    }
}

/* ensures the integral of N S^c <= e^{returned}, S = e^L with weights but the first times share, c < 0: the
 * log of the integrand is concave with second derivative at most -1/sigma^2 */
static double log_concave_bound(const transform *at, double share) {
    const double sigma = at->law->sigma, x = lower_mode(at, share), x2 = x * x * at->law->rate;
    const acct_shift_point p = acct_shift_law_at(at->law, x, share);
    const double slope = (fabs(at->c * p.slope - x) + 1e-9 * fabs(x)) / sigma;
    return at->c * p.loss - x2 + 0.5 * slope * slope + 1e-6 - at->c * p.error +
           1e-12 * (x2 + fabs(at->c * p.loss));
}

/* spacing at which the error of the trapezoid rule is e^{-wanted} times the integral along the edge */
static double spacing(const acct_shift_law *law, double *height, double wanted) {
    const double sigma = law->sigma;
    *height = acct_min(*height, sigma * sqrt(2.0 * wanted));
    return 2.0 * ACCT_PI * *height / (wanted + *height * *height * law->rate);
}

/* log of 2 e^{a^2 / 2 sigma^2} / (e^{2 pi a / h} - 1) */
static double log_alias(const acct_shift_law *law, double height, double h) {
    const double exponent = 2.0 * ACCT_PI * height / h;
    if (!(exponent > 1.0)) return INFINITY;
    return ACCT_LOG_2 + height * height * law->rate - exponent - log1p(-exp(-exponent)) + 1e-9;
}

/* the strip in which fewest nodes are needed for an error of e^{floor}, A(c) being about e^{size} */
static strip find_strip(const transform *at, double size, double floor, double unit) {
    static const double ANGLES[] = {3.1, 2.4, 1.4, 1.0, 0.6, 0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4, 1e-5};
    const acct_shift_law *law = at->law;
    const double wanted = size - floor + 1.0, var = law->sigma * law->sigma;
    strip best = {.relative = 1};
    if (at->c > 1.0) {
        best.height = at->c == nearbyint(at->c) ? INFINITY : 0.999 * ACCT_PI * var / at->spread;
        best.h = spacing(law, &best.height, wanted);
        return best;
    }
    for (unsigned i = 0; i < sizeof ANGLES / sizeof *ANGLES; i++) {
        strip s = {.height = acct_min(ANGLES[i] * var / at->spread, law->sigma * sqrt(2.0 * wanted)),
                   .relative = 1};
        const double turn = s.height * at->spread / var * (1.0 + 1e-12);
        s.log_factor = at->c * log(cos(0.5 * turn));
        s.log_bound = INFINITY;
        if (turn < 1.5 && s.log_factor > 0.5) {
            s.log_bound = log_concave_bound(at, cos(turn) * (1.0 - 1e-12)) - unit;
            s.relative = s.log_factor + size < s.log_bound;
        }
        s.h = spacing(law, &s.height, wanted + (s.relative ? s.log_factor : acct_max(s.log_bound - size, 0.0)));
        if (s.h < best.h && s.log_factor < 10.0) break;
        if (s.h > best.h) best = s;
    }
    return best;
}

/* the largest number with four binary digits that is not above x, so that its multiples are exact */
static double few_digits(double x) {
    int exponent;
    const double m = frexp(x, &exponent);
    return ldexp(floor(m * 16.0) / 16.0, exponent);
}

/* N (c - 1 - c e^L), which is entire, is what a sum of second order has besides; its error on the lattice */
static double entire_part_error(const transform *at, double h) {
    const double r = ACCT_PI * at->law->sigma / h, e = 2.0 * r * r;
    return 2.0 * (1.0 + 2.0 * fabs(at->c)) * exp(-e * (1.0 - 1e-12)) / -expm1(-2.0 * e) * ACCT_SLACK;
}

/* one sum, as fine as `floor` asks
 * sets     *sum, *error: of A(c) e^{-shift}, or of A(c) - 1
 * returns  0 where there is none */
static int run(const transform *at, acct_renyi_sum *sum, double floor, double *error) {
    const acct_shift_law *law = at->law;
    const double size = sum->plain ? 2.0 : acct_max(at->top, 0.0) + 1.0;
    strip s = find_strip(at, size, floor, sum->shift);
    sum->floor = floor;
    sum->h = acct_min(s.h, 16.0 * law->sigma * law->sigma / law->shift[law->count - 1]);
    if (!sum->plain)
        sum->h =
            acct_min(sum->h, ACCT_PI * law->sigma * sqrt(2.0 / (1.0 - floor + log(2.0 + 4.0 * fabs(at->c)))));
    sum->h = few_digits(sum->h);
    if (!(sum->h > 1e-9 * law->sigma) || !acct_renyi_sum_run(sum, at->mode)) return 0;
    const double alias = log_alias(law, s.height, sum->h);
    *error = sum->round + sum->left_out + (sum->plain ? 0.0 : entire_part_error(at, sum->h));
    if (s.relative) {
        const double share = exp(alias + s.log_factor) * ACCT_SLACK;
        if (!(share < 0.1)) return 0;
        *error += share / (1.0 - share) * (sum->sum + *error + (sum->plain ? 0.0 : 1.0));
    } else {
        *error += exp(alias + s.log_bound) * ACCT_SLACK;
    }
    *error *= ACCT_SLACK;
    return *error < INFINITY;
}

static void narrow_by_sum(transform *at) {
    const acct_shift_law *law = at->law;
    acct_renyi_sum sum = {.law = law, .c = at->c, .t = at->t, .most_work = MOST_WORK};
    double mean = 0.0, error;
    for (int j = 0; j < law->count; j++) mean += law->weight[j] * (law->shift[j] / law->sigma);
    const double small = log(0.5 * fabs(at->c)) + log(fabs(at->c - 1.0)) + 2.0 * log(mean);
    sum.plain = at->top > (at->c > 1.0 ? 1.0 : 0.1);
    sum.shift = sum.plain ? at->top : 0.0;
    double floor = FINE + (sum.plain ? 0.0 : acct_max(acct_min(small, 0.0), -690.0));
    for (int pass = 0; pass < 2; pass++) {
        if (!run(at, &sum, floor, &error)) return;
        if (error - sum.round <= 1e-14 * sum.sum || !(sum.sum > 0.0)) break;
        floor = log(sum.sum) + FINE;
    }
    if (!sum.plain) {
        if (!(sum.most < 0.01)) return;
        const double low = log1p(acct_max(sum.sum - error, 0.0)), high = log1p(sum.sum + error);
        acct_bounds_intersect(&at->log_mgf, low * (1.0 - 10.0 * ACCT_U), high * (1.0 + 10.0 * ACCT_U));
        return;
    }
    /* relative errors that are not small are those of an exponent */
    const double relative = sum.most < 0.01 ? error / sum.sum : (error - sum.round) / sum.sum;
    if (!(relative < 0.1)) return;
    const double doubt = 1.06 * relative + (sum.most < 0.01 ? 0.0 : 1.01 * sum.most) +
                         ACCT_U * (4.0 * fabs(sum.shift) + 12.0 * fabs(log(sum.sum)));
    const double value = sum.shift + log(sum.sum);
    acct_bounds_intersect(&at->log_mgf, value - doubt, value + doubt);
}

static void bound_divergence(const acct_shift_law *law, double order, int direction, acct_bounds *out) {
    transform at = {.law = law,
                    .t = order - 1.0,
                    .c = direction == ACCT_REMOVE ? order : 1.0 - order,
                    .spread = law->shift[law->count - 1] - law->shift[0],
                    .log_mgf = {0.0, INFINITY}};
    bound_by_shifts(&at);
    if (law->count > 1 && !acct_bounds_are_narrow(&at.log_mgf, 1e-13)) {
        find_mode(&at);
        if (fabs(at.top) < INFINITY) narrow_by_sum(&at);
    }
    out->lower = at.log_mgf.lower / at.t * (1.0 - 4.0 * ACCT_U);
    out->upper = at.log_mgf.upper / at.t * (1.0 + 4.0 * ACCT_U);
    out->upper = at.log_mgf.upper > 0.0 ? acct_up(out->upper) : 0.0;
}

int acct_mixture_renyi(const acct_mixture_curve *curve, double order, int direction, acct_bounds *out) {
    *out = (acct_bounds){0.0, INFINITY};
    if (!(order > 1.0 && order < 1e140) || (direction != ACCT_REMOVE && direction != ACCT_ADD))
        return ACCT_EDOMAIN;
    if (curve->count < 1) return ACCT_EDOMAIN;
    double *memory = malloc(2 * (size_t)curve->count * sizeof(double));
    if (!memory) return ACCT_ENOMEM;
    acct_shift_law law;
    const int status = acct_shift_law_set(&law, memory, curve->sigma, curve->count, curve->shift,
                                          curve->weight, curve->first_err, curve->weight_err);
    if (!status) {
        if (law.count == 1 && law.shift[0] == 0.0)
            out->upper = 0.0;
        else
            bound_divergence(&law, order, direction, out);
    }
    free(memory);
    return status;
}
