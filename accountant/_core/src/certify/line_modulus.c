#include "chernoff.h"

#include <math.h>

#include "order.h"
#include "rounding.h"
#include "vmath.h"

/* the share of the sum that is given to large y, about */
#define TAIL_SHARE 1e-4
/* where the transform must have decayed, in deviations of the total */
#define MODULUS_REACH 60.0
/* of a line, below which 1/b^2 overflows */
#define LEAST_DISTANCE 1e-150

/* The integral of e^{-x^2/2} h(x^2) over one cell, for a convex h: at most left * h at its start, the end of the cell
 * before, + right * h at its end, by the chord of h.  Both weights are within 1e-13. */
typedef struct {
    double end, left, right;
} cell;

#define CELLS 17
static const cell CELL[CELLS] = {
    {0.15, 0.099775541282711308, 0.049663852080791465},
    {0.3, 0.081591710914386328, 0.064529000482892729},
    {0.45, 0.075163997079606512, 0.064538812727982869},
    {0.6, 0.069267019903540977, 0.061333583485548543},
    {0.8, 0.083750940869092155, 0.072656946266584879},
    {1.0, 0.071142861260224122, 0.062210125538786978},
    {1.25, 0.071995777767218619, 0.060869257774427733},
    {1.5, 0.052933616892048799, 0.044430273340172632},
    {1.8, 0.04303832000472977, 0.034358545839779452},
    {2.1, 0.025409028112752533, 0.019875463999566505},
    {2.5, 0.017223076482181049, 0.011991062528888203},
    {2.9, 0.0065329420562712905, 0.00435548025138968},
    {3.4, 0.0024447317142899318, 0.0013876122357389523},
    {4.0, 0.0005220144207153971, 0.00024315397290935849},
    {4.75, 5.7122306045132379e-05, 1.9716274612966087e-05},
    {5.5, 1.9226180663022812e-06, 5.792317729739449e-07},
    {6.5, 3.990996323755746e-08, 7.5891447561639282e-09},
};

/* log |A(c+iy)/A(c)|^n <= -a u + c2 u^2 + c3 u^3 for u = y^2 <= most */
typedef struct {
    double a, c2, c3, most;
} exponent;

/* Of one window's moments (Theorem 6): with x = V u - F u^2 / 24 in [0, 1] the factor A is at most exp(-x/2 - x^2/4),
 * and x^2 >= V^2 u^2 - V F u^3 / 12. */
static exponent exponent_of(const acct_cf_decay_window *w, double steps) {
    const double v = w->variance, f = w->fourth;
    return (exponent){
        .a = 0.5 * steps * v,
        .c2 = acct_max(0.25 * steps * (f / 12.0 - v * v), 0.0),
        .c3 = steps * v * f / 48.0,
        .most = acct_min(24.0 * v / f, 1.0 / v) * (1.0 - 1e-9),
    };
}

/* ensures  the integral over 0 <= y <= *y of |A(c+iy)/A(c)|^n b(b+1) / (|s| |s-1|) <= returned, up to 1e-9 of it
 * error    h, what is left of the integrand beside e^{-a u}, is convex as its log is; *y, u and h are within a few u,
 *          which move the sum by as little, for the integrand falls */
static double near_upper(const exponent *g, double b, double *y) {
    const double s = 1.0 / (b * b), t = 1.0 / ((b + 1.0) * (b + 1.0)), scale = 0.5 / g->a;
    double sum = 0.0, before = 1.0;
    *y = 0.0;
    for (int i = 0; i < CELLS; i++) {
        const double u = scale * CELL[i].end * CELL[i].end;
        const double rise = u * u * (g->c2 + g->c3 * u);
        if (!(u < g->most && rise < 1.0)) break;
        const double h = acct_vexp(rise) / sqrt((1.0 + s * u) * (1.0 + t * u));
        sum += CELL[i].left * before + CELL[i].right * h;
        before = h;
        *y = CELL[i].end * sqrt(scale);
    }
    return sum * sqrt(scale);
}

/* ensures the integral of |A(c+iy)/A(c)|^n / (pi |s| |s-1|) over y >= 0 <= returned, up to 1e-9 of it */
static double integral_upper(acct_cf_decay *decay, acct_tilted_law *scratch, double b, double deviation) {
    const double front = 1.0 / (ACCT_PI * b * (b + 1.0)), most = MODULUS_REACH / deviation;
    double best = INFINITY, end = 0.0;
    if (!(acct_cf_decay_stop(decay, scratch, b, TAIL_SHARE * front / deviation) < most))
        return INFINITY;
    for (int i = 0; i < decay->windows; i++) {
        double y;
        const exponent g = exponent_of(&decay->window[i], decay->steps);
        const double near = front * near_upper(&g, b, &y);
        if (near < best && y > 0.0) {
            best = near;
            end = y;
        }
    }
    return end > 0.0 ? best + acct_cf_decay_tail_upper(decay, b, end, 0.0) : INFINITY;
}

void acct_line_modulus_set(acct_line_modulus *out, acct_tilted_law *law, acct_tilted_law *scratch, double steps,
                           int direction, double b, double epsilon, double enough) {
    acct_moments m;
    acct_cf_decay decay;
    *out = (acct_line_modulus){1.0, 1.0, 0.0};
    if (direction == ACCT_REMOVE) b = acct_exact_distance(b);
    if (!(law->whole && b > LEAST_DISTANCE && b < ACCT_MOST_DISTANCE)) return;
    acct_tilted_law_moments(law, acct_order_at(direction, b), 1, &m);
    out->doubt = steps * m.log_mgf_err;
    const double log_unit = steps * (m.log_mgf + m.log_mgf_err) - b * epsilon;
    const double round = 1e-12 * (steps * fabs(m.log_mgf) + b * fabs(epsilon) + 1.0);
    /* outcomes outside the window count in full: under Q where the record is added */
    const double beyond = direction == ACCT_ADD ? law->outside + law->q_above + 3.0 * ACCT_UNDERFLOW
                                                : acct_tilted_law_mass_outside(law);
    const double outside = steps * beyond * ACCT_SLACK;
    if (!(log_unit + round < 700.0)) return;
    const double bound = exp(log_unit + round + acct_log_chernoff(b)) + outside;
    out->chernoff = out->upper = bound < 1.0 ? acct_up(acct_max(bound, ACCT_TINY)) : 1.0;
    if (out->upper <= enough || out->doubt > 1.0) return;
    acct_cf_decay_set(&decay, law, &m, steps);
    const double modulus = exp(log_unit + round) * integral_upper(&decay, scratch, b, sqrt(steps * m.m2)) + outside;
    const double rounded = acct_up(acct_max(modulus * (1.0 + 1e-9), ACCT_TINY));
    if (rounded < out->upper) out->upper = rounded;
}
