#include "cf_decay.h"

#include <math.h>
#include <stddef.h>

#include "order.h"
#include "rounding.h"
#include "bounds.h"
#include "vmath.h"

/* A loss that is off by no more than 1e-8 of its distance from the mean moves powers up to the fourth by 4.1e-8 of
 * themselves; one that is nearer to the mean than 1e8 times its error, by 4.1e-8 of that power of this distance. */
#define NEAR_MEAN 1e8
#define OF_NEAR 4.1e-8

/* sums of w t^k and bounds on what they miss but for a share of 2e-7 of the sums of w |t|^k: k = 0 ... 4; and the
 * largest relative error of a weight */
typedef struct {
    double m[5], e[5], weight_err;
} moment_sums;

/* adds a panel's nodes: their quadrature error is error * reach^k, and t is off by its round-off */
static void add_panel(moment_sums *s, const acct_tilted_law *law, int panel, const acct_moments *of, double error) {
    const double mean = of->mean, c = fabs(of->order);
    const int order = law->count / law->panels, first = panel * order;
    const acct_panel *p = &law->panel[panel];
    const double before = s->m[0];
    double off = 0.0, far = 0.0;
    for (int j = first; j < first + order; j++) {
        const double t = law->loss[j] - mean, w = law->weight[j], wt = w * t, wtt = wt * t;
        s->m[0] += w;
        s->m[1] += wt;
        s->m[2] += wtt;
        s->m[3] += wtt * t;
        s->m[4] += wtt * t * t;
        off = law->loss_err[j] > off ? law->loss_err[j] : off;
        far = fabs(law->loss[j]) > far ? fabs(law->loss[j]) : far;
    }
    const double farthest = acct_max(law->x2[first], law->x2[first + order - 1]);
    s->weight_err = acct_max(s->weight_err, acct_weight_roundoff(farthest) + of->log_mgf_err +
                                            c * (off + 4.0 * ACCT_U * far));
    const double reach = acct_max(fabs(p->loss_lo - mean), fabs(p->loss_hi - mean)) + p->turn + p->modulus;
    const double near = NEAR_MEAN * (off + 4.0 * ACCT_U * (far + fabs(mean)));
    double quadrature = error, moved = OF_NEAR * (s->m[0] - before);
    for (int k = 0; k < 5; k++, quadrature *= reach, moved *= near) s->e[k] += quadrature + moved;
}

/* Theorem 6: of J, what was added; the shares of 2e-7 are inside the relative margin */
static acct_cf_decay_window window_of(const moment_sums *s) {
    const double margin = 1e-6, *m = s->m, *e = s->e, most = fabs(m[1]) + e[1], square = m[2] + e[2];
    const double cross = e[1] * (fabs(m[3]) + e[3]) + e[3] * fabs(m[1]);
    const double fourth = 2.0 * (m[0] + e[0]) * (m[4] + e[4]) + 6.0 * square * square + 8.0 * cross - 8.0 * m[1] * m[3];
    return (acct_cf_decay_window){
        .variance = (m[0] - e[0]) * (m[2] - e[2]) * (1.0 - margin) - most * most * (1.0 + margin),
        .fourth = fourth * (1.0 + margin) + margin * fabs(m[1] * m[3]) * 8.0,
    };
}

void acct_cf_decay_set(acct_cf_decay *d, const acct_tilted_law *law, const acct_moments *m, double steps) {
    d->law = law;
    d->moments = m;
    d->steps = steps;
    d->windows = 0;
    d->window = law->window;
    d->y_uniform = INFINITY;
    d->log_uniform = 0.0;
    d->mode = 0;
    for (int j = 1; j < law->count; j++)
        if (law->weight[j] > law->weight[d->mode]) d->mode = j;
    moment_sums sums = {{0.0}, {0.0}, 0.0};
    acct_tilted_law_errors(law, m, 0.0, law->rate);
    for (int i = 0; i < law->panels; i++) {
        add_panel(&sums, law, i, m, law->rate[i]);
        const acct_cf_decay_window w = window_of(&sums);
        const int known =
            sums.weight_err < 1e-7 && sums.m[0] > 2.0 * sums.e[0] && sums.m[2] > 2.0 * sums.e[2];
        if (w.variance > 0.0 && w.fourth > ACCT_TINY && known) law->window[d->windows++] = w;
    }
}

#define INTERVALS 8 /* at a time: one register of AVX-512 */

/* sets log_phi[i] to acct_cf_decay_moment_upper on [y[i], y[i + 1]]:
 * |phi|^2 = E cos(y(L - L~)) <= 1 - E[t^2/2 - t^4/24; J x J], t = y(L - L~) */
ACCT_CLONES
static void moments_upper(const acct_cf_decay *d, const double y[INTERVALS + 1], double log_phi[INTERVALS]) {
    double best[INTERVALS] = {0}, from[INTERVALS], to[INTERVALS];
    for (int i = 0; i < INTERVALS; i++) {
        from[i] = y[i] * y[i];
        to[i] = y[i + 1] * y[i + 1] / 24.0;
    }
    for (int w = 0; w < d->windows; w++) {
        const double variance = d->window[w].variance, fourth = d->window[w].fourth;
        for (int i = 0; i < INTERVALS; i++) {
            const double drop = from[i] * (variance - to[i] * fourth);
            best[i] = drop > best[i] ? drop : best[i];
        }
    }
    double most = 0.0;
    for (int i = 0; i < INTERVALS; i++) {
        const double x = best[i] *= 1.0 - 1e-9;
        /* log(1 - x) <= -x - x^2/2 - x^3/3 - x^4/4 */
        log_phi[i] = -x * (0.5 + x * (0.25 + x * (1.0 / 6.0 + x * 0.125)));
        most = x > most ? x : most;
    }
    for (int i = 0; i < INTERVALS && most > 0.2; i++) {
        const double x = best[i], far = 0.5 * acct_vlog1p(x < 1.0 ? -x : -0.5);
        log_phi[i] = x < 1.0 ? far : -0.5 * x;
    }
}

double acct_cf_decay_moment_upper(const acct_cf_decay *d, double y0, double y1) {
    double y[INTERVALS + 1] = {y0}, log_phi[INTERVALS];
    for (int i = 0; i < INTERVALS; i++) y[i + 1] = y1;
    moments_upper(d, y, log_phi);
    return log_phi[0];
}

/* The tilted density of L at L(x) is f(x) = N(x) e^{cL} / (A(c) L'(x)), L' = p/sigma^2, and
 * p = q e^{u - L}:  log f = -x^2/(2 sigma^2) + (c+1) L - u + const.  For c >= -1 convexity of L
 * (tangent at the middle) bounds it below by a concave quadratic; for c < -1 the chord does.
 * Either way the minimum over [x1, x2] is at an end. */
static double window_minorant(const acct_cf_decay *d, double x1, double x2, double *length) {
    const acct_step *s = &d->law->step;
    const double var = s->sigma * s->sigma, c = d->moments->order;
    const double mid = 0.5 * (x1 + x2), at[4] = {x1, mid, x2, mid};
    double loss[4], p[4];
    acct_loss_four(s, at, loss, p);
    const double l1 = loss[0], lm = loss[1], l2 = loss[2], p_mid = p[1];
    double a1 = l1, a2 = l2;
    if (c >= -1.0) {
        a1 = lm + (x1 - mid) * p_mid / var;
        a2 = lm + (x2 - mid) * p_mid / var;
    }
    const double e1 = -0.5 * x1 * x1 / var + (c + 1.0) * a1 - (x1 - 0.5) / var;
    const double e2 = -0.5 * x2 * x2 / var + (c + 1.0) * a2 - (x2 - 0.5) / var;
    /* round-off: of L (declared in loss.h, |u| <= |x| + 1 over var) and of the exponents' sums */
    const double loss_err = (24.0 + 12.0 * (fabs(x1) + fabs(x2) + 1.0) / var) * ACCT_U;
    const double size = x1 * x1 / var + x2 * x2 / var + (fabs(x1) + fabs(x2)) / var;
    const double margin = 1e-9 + 16.0 * ACCT_U * size + d->moments->log_mgf_err +
                          (fabs(c) + 1.0) * (fabs(a1) + fabs(a2) + fabs(lm)) * 2.0 * loss_err;
    *length = (l2 - l1) - loss_err * (fabs(l1) + fabs(l2));
    return (e1 < e2 ? e1 : e2) + log(s->sigma / (ACCT_SQRT_2PI * s->q)) - d->moments->log_mgf - margin;
}

/* The same where the shift is random: L' = slope/sigma^2 is at most that at x2, and log N + cL is at least a
 * concave quadratic, by the tangent at the middle for c >= 0 and by the chord for c < 0. */
static double piece_minorant(const acct_cf_decay *d, double x1, double x2, const acct_mixture_point *p1,
                             const acct_mixture_point *p2) {
    const acct_step *s = &d->law->step;
    const double var = s->sigma * s->sigma, c = d->moments->order, mid = 0.5 * (x1 + x2);
    acct_mixture_point pm;
    acct_mixture_at(s->mixture, mid, NULL, &pm);
    const double error = p1->error + pm.error + p2->error;
    const double a1 = c >= 0.0 ? pm.loss + (x1 - mid) * pm.slope / var : p1->loss;
    const double a2 = c >= 0.0 ? pm.loss + (x2 - mid) * pm.slope / var : p2->loss;
    const double e1 = c * a1 - 0.5 * x1 * x1 / var, e2 = c * a2 - 0.5 * x2 * x2 / var;
    const double size = (x1 * x1 + x2 * x2) / var + fabs(c) * (x2 - x1) * pm.slope / var;
    const double margin = 1e-9 + 1e-12 * size + d->moments->log_mgf_err + 4.0 * fabs(c) * error;
    return acct_min(e1, e2) + log(s->sigma / (ACCT_SQRT_2PI * p2->slope)) - d->moments->log_mgf - margin;
}

/* most pieces of a window, and how wide they should be in units of sigma: the quadratic falls by e^{-1/32}
 * from the middle of one of half a sigma */
#define MOST_MIXTURE_PIECES 64
#define MIXTURE_PIECE 0.5

/* the least over pieces of the window: shifts spread over many deviations are no quadratic */
static double mixture_minorant(const acct_cf_decay *d, double x1, double x2, double *length) {
    const acct_step *s = &d->law->step;
    const int pieces =
        (int)acct_min(acct_max(ceil((x2 - x1) / (MIXTURE_PIECE * s->sigma)), 1.0), MOST_MIXTURE_PIECES);
    acct_mixture_point p1, p2;
    acct_mixture_at(s->mixture, x1, NULL, &p1);
    const acct_mixture_point first = p1;
    double least = INFINITY, x = x1;
    for (int i = 1; i <= pieces; i++) {
        const double next = i < pieces ? x1 + (x2 - x1) * i / pieces : x2;
        acct_mixture_at(s->mixture, next, NULL, &p2);
        least = acct_min(least, piece_minorant(d, x, next, &p1, &p2));
        p1 = p2;
        x = next;
    }
    *length = (p2.loss - first.loss) - (p2.error + first.error);
    return least;
}

/* the drop of the window [x1, x2] of the noise */
static double window_drop(const acct_cf_decay *d, double x1, double x2, double y) {
    double length;
    if (!(x2 > x1)) return 0.0;
    const double log_height =
        d->law->step.mixture ? mixture_minorant(d, x1, x2, &length) : window_minorant(d, x1, x2, &length);
    if (!(length > 0.0)) return 0.0;
    return exp(log_height) * length * acct_sinc_missing(0.5 * y * length);
}

/* the noise whose loss is that, within the law's window */
static double noise_at(const acct_tilted_law *g, double loss) {
    const double x = loss > g->step.log_1mq ? acct_loss_inverse(&g->step, loss) : g->lo;
    return acct_min(acct_max(x, g->lo), g->hi);
}

/* Adjacent windows of the loss, each `width`/y wide, from the middle of one at `node` outwards in both
 * directions until they stop to matter: disjoint, so their drops add. */
static double tiled_drop(const acct_cf_decay *d, int node, double width, double y, int most, double enough) {
    const acct_tilted_law *g = d->law;
    const double step = width / y, base = g->loss[node];
    const double left = noise_at(g, base - 0.5 * step), right = noise_at(g, base + 0.5 * step);
    double total = window_drop(d, left, right, y);
    for (int side = -1; side <= 1; side += 2) {
        double x = side < 0 ? left : right;
        for (int i = 1; i <= most && total <= enough && g->lo < x && x < g->hi; i++) {
            const double next = noise_at(g, base + side * step * (i + 0.5));
            const double drop = window_drop(d, acct_min(x, next), acct_max(x, next), y);
            total += drop;
            x = next;
            if (total > 0.0 && !(drop > 0.002 * total)) break;
        }
    }
    return total * (1.0 - 1e-9);
}

double acct_cf_decay_minorant_upper(const acct_cf_decay *d, double y, int widths, int most, double enough) {
    const double drop = -expm1(enough) * (1.0 + 1e-6);
    double best = 0.0, width = 4.5;
    for (int i = 0; i < widths && best < drop; i++, width *= 2.0)
        best = acct_max(best, tiled_drop(d, d->mode, width, y, most, drop));
    return best < 1.0 ? log1p(-best) : -1.0;
}

int acct_cf_decay_path_set(const acct_cf_decay *d, acct_tilted_law *g, double shift, double log_error,
                           acct_cf_decay_path *path) {
    const acct_tilted_law *base = d->law;
    const acct_step *step = &base->step;
    const double sigma = step->sigma, var = sigma * sigma, order = d->moments->order;
    const double log_a = d->moments->log_mgf;
    const acct_window window = {.lo = base->lo, .hi = base->hi, .shift = shift};
    if (!(d->moments->log_mgf_err < 1e-7)) return ACCT_EPRECISION; /* the margin of acct_cf_decay_path_upper */
    const int status = acct_tilted_law_set(g, step, &window, order, 0.0, log_error + log_a);
    if (status) return status;
    /* quadrature error and the two vertical ends of the path, whatever y >= 0 */
    double modulus = 0.0;
    for (int p = 0; p < g->panels; p++) modulus = acct_max(modulus, g->panel[p].modulus);
    const double growth = 0.5 * shift * shift / var + (order < 0.0 ? -order * modulus : 0.0);
    const double at_lo = order * acct_loss(step, g->lo, NULL) - 0.5 * g->lo * g->lo / var;
    const double at_hi = order * acct_loss(step, g->hi, NULL) - 0.5 * g->hi * g->hi / var;
    path->law = g;
    path->rest = acct_tilted_law_error(g, d->moments, 0.0) +
                 shift / (sigma * ACCT_SQRT_2PI) * (exp(at_lo + growth - log_a) + exp(at_hi + growth - log_a));
    path->lift = 0.5 * shift * shift / var - log_a;
    path->order = order;
    /* |e^L| and arg e^L overwrite arrays that are not needed here */
    acct_losses_complex(step, g->count, g->node, shift, g->e2_plus, g->e2_minus);
    return ACCT_OK;
}

/* the least exponential of acct_vexp is too large, which is safe */
ACCT_CLONES
double acct_cf_decay_path_upper(const acct_cf_decay_path *path, double y) {
    const acct_tilted_law *g = path->law;
    const double *restrict modulus = g->e2_plus, *restrict arg = g->e2_minus;
    const double *restrict x2 = g->x2, *restrict quad = g->quad;
    const double order = path->order, lift = path->lift;
    double sum[ACCT_LANES] = {0};
    for (int j = 0; j < g->count; j += ACCT_LANES)
        ACCT_EACH_LANE for (int i = 0; i < ACCT_LANES; i++) {
            const double e = order * modulus[j + i] - y * arg[j + i] + (lift - x2[j + i]);
            sum[i] += e < ACCT_MOST_LOG ? quad[j + i] * acct_vexp(e) : INFINITY;
        }
    return log((path->rest + acct_lanes_total(sum)) * ACCT_SLACK);
}

/* whether about steps * log |A(c+iy')/A(c)| <= wanted for every y' >= y */
static int path_will_do(const acct_cf_decay *d, const acct_cf_decay_path *path, double y, double wanted) {
    return d->steps * acct_cf_decay_path_upper(path, y) <= wanted;
}

void acct_cf_decay_shift(acct_cf_decay *d, acct_tilted_law *g, double wanted, double y_most) {
    static const double SHIFTS[] = {0.25, 0.4, 0.6, 1.0, 1.5, 2.2, 3.0};
    const acct_step *step = &d->law->step;
    const double sigma = step->sigma, var = sigma * sigma;
    int found = 0;
    for (int i = step->sigma < 0.5 * acct_step_largest(step) ? 0 : 2; i < 7; i++) {
        const double shift = SHIFTS[i] * sigma;
        if (!step->mixture && step->q < 1.0 && 2.0 * shift > 3.0 * var) break;
        acct_cf_decay_path path;
        if (acct_cf_decay_path_set(d, g, shift, acct_min(1.5 * wanted / d->steps, -12.0), &path)) continue;
        if (!path_will_do(d, &path, 1e300, wanted)) continue;
        /* the bound falls with y: bisect in log y */
        double lo = 1e-3 * y_most, hi = y_most;
        if (!path_will_do(d, &path, hi, wanted)) {
            if (found) break; /* the best shift is behind us */
            continue;
        }
        found = 1;
        while (hi > 1.06 * lo) {
            const double mid = sqrt(lo * hi);
            *(path_will_do(d, &path, mid, wanted) ? &hi : &lo) = mid;
        }
        d->y_uniform = y_most = hi;
        d->log_uniform = acct_cf_decay_path_upper(&path, hi);
    }
}

/* from y down, by factors, as far as the moments alone make the tail small */
static double descend_by(const acct_cf_decay *d, double b, double share, double y, double factor) {
    const double log_bb = log(b * (b + 1.0)), log_wanted = log(0.1 * ACCT_PI * share), log_factor = log(factor);
    double log_y = log(y), at[INTERVALS + 1], log_phi[INTERVALS], power[INTERVALS + 1] = {1.0};
    for (int j = 0; j < INTERVALS; j++) power[j + 1] = power[j] / factor;
    for (int i = 0; i < 400 && y < INFINITY; i += INTERVALS) {
        for (int j = 0; j <= INTERVALS; j++) at[j] = y * power[INTERVALS - j];
        moments_upper(d, at, log_phi);
        for (int j = INTERVALS - 1; j >= 0; j--) {
            log_y -= log_factor;
            if (!(d->steps * log_phi[j] <= log_wanted + acct_max(log_y, log_bb - log_y))) return at[j + 1];
        }
        y = at[0];
    }
    return y;
}

/* the factor between two points where it is asked whether a tail is small: a line is at most that much longer */
#define STRIDE 1.06

/* the same from y_uniform, first in long strides, which are four short ones: it ends where short ones would */
static double descend(const acct_cf_decay *d, double b, double share) {
    const double far = descend_by(d, b, share, d->y_uniform, STRIDE * STRIDE * STRIDE * STRIDE);
    return descend_by(d, b, share, far, STRIDE);
}

/* windows about the mode on either side: few are quick, and nearly always enough */
#define FEW_WINDOWS 2
#define MOST_WINDOWS 24

/* whether the minorant alone makes the tail beyond y small; then that is where it takes over */
static int try_uniform(acct_cf_decay *d, double share, double y, int most) {
    const double enough = (log(0.5 * share) + log(ACCT_PI * y)) / d->steps;
    if (!(enough > -1.0)) return 0; /* out of the minorant's reach */
    const double flat = acct_cf_decay_minorant_upper(d, y, 3, most, enough);
    if (!(flat <= enough)) return 0;
    d->y_uniform = y;
    d->log_uniform = flat;
    return 1;
}

/* the factor between two such y that are tried, the first of which is a deviation's reciprocal, and the last one over
 * it: the first that will do is halved towards the one before as often; more cost more than shorter lines save */
#define UNIFORM_APART 1.5
#define UNIFORM_LAST 1e3
#define HALVINGS 2

/* the least such y, and where the moments take over from there */
static double least_uniform(acct_cf_decay *d, double b, double share, double y0, int most) {
    double y = y0, low;
    while (y < UNIFORM_LAST * y0 && !try_uniform(d, share, y, most)) y *= UNIFORM_APART;
    if (!(y < UNIFORM_LAST * y0)) return INFINITY;
    low = y / UNIFORM_APART;
    double stop = descend(d, b, share);
    for (int i = 0; i < HALVINGS && stop == d->y_uniform; i++) {
        y = sqrt(low * d->y_uniform);
        if (try_uniform(d, share, y, MOST_WINDOWS))
            stop = descend(d, b, share);
        else
            low = y;
    }
    return stop;
}

double acct_cf_decay_stop(acct_cf_decay *d, acct_tilted_law *scratch, double b, double share) {
    double variance = 0.0;
    for (int i = 0; i < d->windows; i++) variance = acct_max(variance, d->window[i].variance);
    if (!(variance > 0.0)) return INFINITY;
    const double one = 1.0 / sqrt(variance);
    const double total = 1.0 / sqrt(d->steps * d->moments->m2 + 1e-300);
    double stop = least_uniform(d, b, share, one, FEW_WINDOWS);
    if (!(stop < INFINITY)) stop = least_uniform(d, b, share, one, MOST_WINDOWS);
    if (stop > 20.0 * total && d->steps < 2000.0) {
        acct_cf_decay_shift(d, scratch, log(0.5 * share) + log(ACCT_PI * one), acct_min(d->y_uniform, 1e3 * one));
        if (d->y_uniform < INFINITY) stop = descend(d, b, share);
    }
    return stop;
}

#define PIECE 1.1 /* on which the tail is bounded */

double acct_cf_decay_tail_upper(const acct_cf_decay *d, double b, double y, double dy) {
    const double last = acct_max(y, d->y_uniform);
    double total = exp(d->steps * d->log_uniform) * (1.0 + dy / last) / (ACCT_PI * last);
    double at[INTERVALS + 1], log_phi[INTERVALS];
    for (; y < d->y_uniform; y = at[INTERVALS]) {
        at[0] = y;
        for (int j = 0; j < INTERVALS; j++) at[j + 1] = acct_min(PIECE * at[j], d->y_uniform);
        moments_upper(d, at, log_phi);
        for (int j = 0; j < INTERVALS && at[j] < d->y_uniform; j++)
            total += acct_vexp(d->steps * log_phi[j]) * acct_tail_weight(b, at[j], at[j + 1], dy);
    }
    return total * ACCT_SLACK;
}
