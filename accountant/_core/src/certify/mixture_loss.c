#include "mixture_loss.h"

#include <math.h>
#include <stddef.h>

#include "rounding.h"
#include "bounds.h"
#include "vmath.h"

int acct_mixture_set(acct_mixture *m, const acct_mixture_part *part) {
    const double sigma = part->sigma, *shift = part->shift, *weight = part->weight;
    const int count = part->count;
    acct_sum rest = {1.0, 0.0}, present = {0.0, 0.0};
    if (!(count >= 1 && count <= ACCT_MOST_SHIFTS && sigma > 0.0)) return ACCT_EDOMAIN;
    double before = 0.0;
    for (int j = 0; j < count; j++) {
        if (!(shift[j] > before && shift[j] < INFINITY && weight[j] > 1e-280)) return ACCT_EDOMAIN;
        before = m->shift[j] = shift[j];
        m->weight[j] = weight[j];
        acct_sum_add(&rest, -weight[j]);
        acct_sum_add(&present, weight[j]);
    }
    m->smallest = shift[0];
    m->largest = before;
    m->count = count;
    for (; m->count % ACCT_LANES; m->count++) {
        m->shift[m->count] = before; /* so that no exponent is above the largest */
        m->weight[m->count] = 0.0;
    }
    m->var2 = 2.0 * sigma * sigma;
    m->silent = acct_sum_total(&rest);
    m->present = acct_sum_total(&present);
    m->weight_err = 0.0;
    if (part->silent == 0.0 && part->weight_err == 0.0) return m->silent >= ACCT_LEAST_SILENT ? ACCT_OK : ACCT_EDOMAIN;
    if (!(part->silent == 0.0 || part->silent > 1e-250)) return ACCT_EDOMAIN;
    if (!(fabs(m->silent - part->silent) < 1e-9)) return ACCT_EDOMAIN;
    if (!(part->weight_err >= 0.0 && part->weight_err <= 1e-13)) return ACCT_EDOMAIN;
    m->silent = part->silent;
    m->weight_err = part->weight_err;
    return ACCT_OK;
}

/* sums over the shifts, in units of e^top */
typedef struct {
    double excess;     /* w (e^u - 1); top = 0 only */
    double size;       /* |w (e^u - 1)|; top = 0 only */
    double total;      /* w e^{u - top} */
    double slope;      /* d w e^{u - top} */
    double angle;      /* |u| w e^{u - top} */
} sums;

ACCT_CLONES
static void add_shifts(const acct_mixture *m, double x, double top, double *restrict posterior,
                   sums *out) {
    const double *restrict shift = m->shift, *restrict weight = m->weight;
    const double var2 = m->var2;
    double e[ACCT_LANES] = {0}, a[ACCT_LANES] = {0}, t[ACCT_LANES] = {0}, s[ACCT_LANES] = {0};
    double b[ACCT_LANES] = {0};
    for (int j = 0; j < m->count; j += ACCT_LANES)
        ACCT_EACH_LANE for (int i = 0; i < ACCT_LANES; i++) {
            const double d = shift[j + i], w = weight[j + i], u = d * (2.0 * x - d) / var2;
            double em1;
            const double part = w * acct_vexp_both(u - top, &em1), off = w * em1;
            e[i] += off;
            a[i] += fabs(off);
            t[i] += part;
            s[i] += d * part;
            b[i] += fabs(u) * part;
            posterior[j + i] = part;
        }
    *out = (sums){acct_lanes_total(e), acct_lanes_total(a), acct_lanes_total(t), acct_lanes_total(s),
                  acct_lanes_total(b)};
}

/* at least 1 - cos of anything up to |t|, and increasing in |t| (Theorem D2) */
static inline double versine(double t) {
    const double w = t * t, poly = w * (0.5 - w * (1.0 / 24.0 - w * (1.0 / 720.0)));
    return poly < 2.0 ? poly : 2.0;
}

/* the largest exponent, that of no shift included, where its modulus is above 300, else 0: no term may overflow,
 * and not all of them underflow */
static double top_exponent(const acct_mixture *m, double x) {
    double top = m->silent > 0.0 ? 0.0 : -INFINITY;
    /* u is largest at the shift nearest to x */
    if (m->silent > 0.0 && x * x / m->var2 < 300.0) return 0.0;
    for (int j = 0; j < m->count; j++) {
        const double d = m->shift[j], u = d * (2.0 * x - d) / m->var2;
        if (m->weight[j] > 0.0 && u > top) top = u;
    }
    return fabs(top) > 300.0 ? top : 0.0;
}

/* Round-off: u_j carries 4 u of itself; a term w (e^u - 1) 10 u; a sum count/4 + 4 more; then the logarithm.
 * A change of the argument of log1p moves L by it over e^L. */
void acct_mixture_at(const acct_mixture *m, double x, double *posterior, acct_mixture_point *out) {
    double scratch[ACCT_MOST_SHIFTS];
    double *p = posterior ? posterior : scratch;
    sums s;
    const double top = top_exponent(m, x), adds = 0.25 * m->count + 16.0;
    add_shifts(m, x, top, p, &s);
    const double silent = top > 0.0 ? m->silent * acct_vexp(-top) : m->silent; /* 0 where top < 0 */
    const double all = silent + s.total;
    if (top != 0.0) {
        const double rest = log(all);
        out->loss = top + rest;
        out->error = ACCT_U * (2.0 * adds + 5.0 * s.angle / all + 8.0 * fabs(top) + 9.0 * fabs(rest));
    } else if (s.excess > -0.5) {
        out->loss = acct_vlog1p(s.excess);
        out->error = 1.01 * ACCT_U * (adds * s.size / (1.0 + s.excess) + 4.5 * s.angle / all + 9.0 * fabs(out->loss));
    } else {
        out->loss = log(all);
        out->error = 1.01 * ACCT_U * (2.0 * adds + 4.5 * s.angle / all + 9.0 * fabs(out->loss));
    }
    /* e^L = 1 + sum of w (e^u - 1), if the weights add up to one */
    const int near = top == 0.0 && s.excess > -0.5;
    out->error += 1.01 * m->weight_err * (near ? s.size / (1.0 + s.excess) : 1.0);
    out->slope = s.slope / all;
    out->present = s.total / all;
    if (posterior)
        for (int j = 0; j < m->count; j++) posterior[j] /= all;
}

/* What arg e^L is taken off from before atan2: 0 where the principal branch is the one that is real at theta =
 * 0; else theta times the posterior mean, if E[1 - cos((d - mean) t)] < 1 shows that for all t <= theta the rest
 * stays within pi/2 (Theorem D2); else infinity. */
static double branch(const acct_mixture *m, const double *p, double silent, double all, double mean,
                     double theta) {
    if (m->largest * theta < 3.1) return 0.0;
    double off = silent * versine(mean * theta);
    for (int j = 0; j < m->count; j++) off += p[j] * versine((m->shift[j] - mean) * theta);
    return off < 0.98 * all ? mean * theta : INFINITY;
}

void acct_mixture_complex(const acct_mixture *m, double x, double eta, double *re, double *im,
                          double *error) {
    double p[ACCT_MOST_SHIFTS], dr = 0.0, di = 0.0, turned = 0.0;
    sums s;
    const double top = top_exponent(m, x), theta = 2.0 * eta / m->var2;
    add_shifts(m, x, top, p, &s);
    for (int j = 0; j < m->count; j++) {
        const double t = m->shift[j] * theta, half = sin(0.5 * t);
        dr -= 2.0 * p[j] * half * half;
        di += p[j] * sin(t);
        turned += p[j] * t;
    }
    const double silent = top > 0.0 ? m->silent * exp(-top) : m->silent;
    const double all = silent + s.total;
    const double base = branch(m, p, silent, all, s.slope / all, theta);
    /* e^{L - top} = real + i di; near 1 by its difference a from 1, which does not cancel */
    const int near = top == 0.0 && s.excess > -0.5;
    const double a = s.excess + dr, real = near ? 1.0 + a : all + dr;
    const double modulus2 = real * real + di * di;
    *re = near && a > -0.5 && a < 1e100 ? 0.5 * log1p(2.0 * a + a * a + di * di) : top + 0.5 * log(modulus2);
    *im = base > 0.0 ? base + atan2(di * cos(base) - real * sin(base), real * cos(base) + di * sin(base))
                     : atan2(di, real);
    /* the first two parts as in acct_mixture_at, relative to |e^L| here; each e^{i t} - 1 adds 12 u t */
    const double size = near ? s.size : 2.0 * all;
    *error = 1.01 * ACCT_U *
                 (((m->count + 16.0) * (size + turned) + 5.0 * s.angle + 12.0 * turned) / sqrt(modulus2) +
                  9.0 * (fabs(*re) + fabs(*im)) + 8.0 * fabs(top)) +
             1.01 * m->weight_err * (size + turned) / sqrt(modulus2);
    if (!(base < INFINITY)) {
        *im = 0.0;
        *error = INFINITY;
    }
}

/* E over the posterior of bounds on 1 - cos and on |sin| of (d - centre) theta.  Both bounds grow with the
 * distance |d - centre|, and the posterior grows with x in the order of likelihood ratios: shifts above the
 * centre have the largest expectation at x1, those below at x0.
 *     1 - cos t <= min(t^2/2 - t^4/24 + t^6/720, 2),       |sin t| <= min(t, 1);
 * the polynomial is increasing: its derivative t (1 - t^2/6 + t^4/120) has no other zero.
 * margin bounds the relative error of the posteriors and of these sums. */
typedef struct {
    double versine, sine; /* bounds on the expectations of 1 - cos and of |sin| */
    double apart;         /* on that of |d - centre| theta */
} spread;

ACCT_CLONES
static void spread_about(const acct_mixture *m, double centre, double theta, const double *restrict p0,
                         const double *restrict p1, double silent0, double margin, spread *out) {
    const double *restrict shift = m->shift;
    double v[ACCT_LANES] = {0}, s[ACCT_LANES] = {0}, a[ACCT_LANES] = {0};
    for (int j = 0; j < m->count; j += ACCT_LANES)
        ACCT_EACH_LANE for (int i = 0; i < ACCT_LANES; i++) {
            const double off = shift[j + i] - centre, t = fabs(off) * theta, w = t * t;
            const double p = off > 0.0 ? p1[j + i] : p0[j + i];
            const double poly = w * (0.5 - w * (1.0 / 24.0 - w * (1.0 / 720.0)));
            v[i] += p * (poly < 2.0 ? poly : 2.0);
            s[i] += p * (t < 1.0 ? t : 1.0);
            a[i] += p * t;
        }
    const double t = centre * theta, wide = 1.0 + margin;
    *out = (spread){.versine = (acct_lanes_total(v) + silent0 * versine(t)) * wide,
                    .sine = (acct_lanes_total(s) + silent0 * acct_min(t, 1.0)) * wide,
                    .apart = (acct_lanes_total(a) + silent0 * t) * wide};
}

/* whether theta E[d^2] < pi E[d] under the given posterior: sin t >= t - t^2/pi, so that E sin(d t) >= 0 for all
 * t <= theta, and as E[d^2]/E[d] grows with x, so it is to the left */
static int sines_are_positive(const acct_mixture *m, const double *p, double theta, double margin) {
    double first = 0.0, second = 0.0;
    for (int j = 0; j < m->count; j++) {
        first += p[j] * m->shift[j];
        second += p[j] * m->shift[j] * m->shift[j];
    }
    return theta * second * (1.0 + 2.0 * margin) < ACCT_PI * first;
}

/* With e^L = |e^L|_real E_p e^{i d t}, |t| <= theta: turned by the centre, its real part is at least
 * 1 - versine and its imaginary part at most sine.  Where largest * theta < pi, all d t lie in a half plane. */
int acct_mixture_region_set(const acct_mixture *m, double x0, double mid, double x1, double theta,
                            acct_mixture_region *r) {
    double p0[ACCT_MOST_SHIFTS], p1[ACCT_MOST_SHIFTS];
    acct_mixture_at(m, x0, p0, &r->lo);
    acct_mixture_at(m, x1, p1, &r->hi);
    acct_mixture_at(m, mid, NULL, &r->mid);
    r->arg = r->modulus = INFINITY;
    r->turns = 0;
    const double cone = m->largest * theta;
    /* an exponent u_j carries 4 u of itself, in a posterior and in what it is divided by */
    const double exponent = m->largest * (2.0 * acct_max(fabs(x0), fabs(x1)) + m->largest) / m->var2;
    const double turned = 16.0 * ACCT_U * exponent;
    if (cone < 3.1) {
        r->arg = cone;
        r->modulus = -log(cos(0.5 * cone)) * (1.0 + 1e-9);
        r->turns = 1;
    }
    const double margin = 1e-9 + turned;
    for (int i = 0; i < 2; i++) {
        const double centre = i ? r->mid.slope : 0.0;
        spread s;
        spread_about(m, centre, theta, p0, p1, 1.0 - r->lo.present + 1e-12 + turned, margin, &s);
        const double left = 1.0 - s.versine;
        if (!(left > 0.05)) continue;
        r->modulus = acct_min(r->modulus, -log(left) * (1.0 + 1e-9));
        r->arg = acct_min(r->arg, centre * theta + atan2(s.sine, left) * (1.0 + 1e-9));
        /* at every t <= theta, arg e^L >= centre t - t E|d - centre|/left */
        if (s.apart <= centre * theta * left) r->turns = 1;
    }
    if (!(r->modulus < INFINITY)) return 0;
    if (!r->turns) r->turns = sines_are_positive(m, p1, theta, margin);
    return 1;
}

double acct_mixture_inverse(const acct_mixture *m, double loss) {
    /* every shift alone gives less than L, so the root is to the left of theirs; Newton comes down from there */
    double hi = INFINITY, lo = -INFINITY, x = INFINITY;
    for (int j = 0; j < m->count; j++)
        if (m->weight[j] > 0.0) {
            const double at = 0.5 * m->shift[j] + 0.5 * m->var2 * (loss - log(m->weight[j])) / m->shift[j];
            if (at < x) x = at;
        }
    for (int i = 0; i < 60; i++) {
        acct_mixture_point p;
        acct_mixture_at(m, x, NULL, &p);
        const double gap = p.loss - loss;
        if (gap > 0.0)
            hi = x;
        else
            lo = x;
        const double next = x - gap * 0.5 * m->var2 / p.slope;
        if (!(next > -1e4 * sqrt(m->var2))) return -1e4 * sqrt(m->var2);
        if (fabs(next - x) <= 1e-9 * (fabs(x) + m->smallest)) return next;
        x = next < lo ? 0.5 * (lo + hi) : next;
    }
    return x;
}
