#include "exchange_law.h"

#include <math.h>

#include "clones.h"
#include "rounding.h"
#include "vmath.h"

/* the largest a mu: 2 a mu < pi is what Theorem D23 asks for, and this leaves the losses' errors small */
#define MOST_TURN 1.2
/* how far |N e^{cU + (1-c)W}| may rise on the line above its real values, as a logarithm */
#define MOST_RISE 1.5

typedef struct {
    double re, im, error;
} complex_log;

/* log(1 - q + q e^{u + i turn}), 0 <= turn <= 1.2; u is off by u_err */
static complex_log complex_log_ratio(const acct_exchange_path *p, double u, double u_err, double turn) {
    const double q = p->q, c = cos(turn), s = sin(turn);
    complex_log out;
    if (u > 30.0) {
        const double r = (1.0 - q) / q * exp(-u);
        out.re = log(q) + u + 0.5 * log1p(2.0 * r * c + r * r);
        out.im = turn - atan2(r * s, 1.0 + r * c);
        out.error = 1.01 * (u_err + ACCT_U * 24.0 * (fabs(u) + fabs(log(q)) + 2.0));
        return out;
    }
    /* 1 + z is right of 1 - q >= 1/2 */
    const double e = exp(u), zr = q * (e * c - 1.0), zi = q * e * s, size = sqrt(zr * zr + zi * zi);
    const double off = q * e * (u_err + 24.0 * ACCT_U) + 4.0 * ACCT_U * size;
    const double t = 2.0 * zr + (zr * zr + zi * zi);
    out.re = 0.5 * log1p(t);
    out.im = atan2(zi, 1.0 + zr);
    out.error = 1.01 * (off / sqrt(1.0 + t) + 6.0 * ACCT_U * (size + size * size) / (1.0 + t) +
                        9.0 * ACCT_U * (fabs(out.re) + out.im));
    return out;
}

/* log of the error of the trapezoid sum relative to A(c): the strip is 2a high, its half a on either side */
static double log_path_lattice(const acct_exchange_path *p, double c) {
    const double a = p->height, exponent = 2.0 * ACCT_PI * a / p->h;
    if (!(exponent > 1.0)) return INFINITY;
    return ACCT_LOG_2 + 2.0 * a * a - (c - 1.0) * log(cos(a * p->mu * (1.0 + 1e-12))) -
           exponent * (1.0 - 1e-12) - log1p(-exp(-exponent)) + 1e-9;
}

/* how far the modulus on the line may be above that of the real noise */
static double log_rise(const acct_exchange_path *p, double c) {
    return 0.5 * p->height * p->height - (c - 1.0) * log(cos(0.5 * p->height * p->mu)) + 1e-9;
}

/* the height, spacing and ends of the nodes */
static int lay_out(acct_exchange_path *p, double c, double digits) {
    double a = MOST_TURN / p->mu;
    p->height = a;
    while (log_rise(p, c) > MOST_RISE) p->height = a *= 0.9;
    const double rise = 2.0 * a * a - (c - 1.0) * log(cos(a * p->mu)) + ACCT_LOG_2 + 1e-6;
    p->h = acct_exchange_few_digits(2.0 * ACCT_PI * a / (digits + rise));
    double lo, hi;
    acct_exchange_ends(p->mu, p->q, p->log_1mq, c, digits + MOST_RISE, &lo, &hi);
    const double count = ceil((hi - lo) / p->h) + 1.0;
    if (!(count <= ACCT_EXCHANGE_PATH_NODES - ACCT_LANES)) return 0;
    p->first = floor(lo / p->h);
    p->count = ((int)count + ACCT_LANES - 1) / ACCT_LANES * ACCT_LANES;
    return 1;
}

static void fill_path_nodes(acct_exchange_path *p) {
    const double mu = p->mu, a = p->height, turn = mu * a;
    for (int j = 0; j < p->count; j++) {
        const double x = (p->first + j) * p->h, u_err = 3.0 * ACCT_U * mu * (fabs(x) + mu);
        const complex_log up = complex_log_ratio(p, mu * (x - 0.5 * mu), u_err, turn);
        const complex_log down = complex_log_ratio(p, mu * (-x - 0.5 * mu), u_err, turn);
        p->l_re[j] = up.re - down.re;
        p->l_im[j] = up.im + down.im;
        p->e_re[j] = down.re - 0.5 * (x - a) * (x + a);
        p->e_im[j] = -down.im - x * a;
        p->doubt[j] = up.error + down.error + ACCT_U * (fabs(p->l_re[j]) + p->l_im[j] + 2.0 * turn);
    }
}

/* weights of the order c and the sums over them
 * returns  log A(c) */
static double fill_weights(acct_exchange_path *p, double c, double mean) {
    double top = -INFINITY, total = 0.0;
    for (int j = 0; j < p->count; j++) top = acct_max(top, c * p->l_re[j] + p->e_re[j]);
    acct_exchange_sizes s = {.size = 0.0};
    for (int j = 0; j < p->count; j++) {
        const double size = exp(c * p->l_re[j] + p->e_re[j] - top), angle = c * p->l_im[j] + p->e_im[j];
        const double r = (c + 1.0) * p->doubt[j] +
                         ACCT_U * (40.0 + 4.0 * (c * (fabs(p->l_re[j]) + p->l_im[j]) + fabs(p->e_re[j]) +
                                                 fabs(p->e_im[j]) + fabs(top)));
        p->w_re[j] = size * cos(angle);
        p->w_im[j] = size * sin(angle);
        total += p->w_re[j];
        p->l_re[j] -= mean;
        p->doubt[j] += ACCT_U * fabs(p->l_re[j]);
        const double off = fabs(p->l_re[j]) + p->l_im[j];
        s.size += size;
        s.spread += size * off;
        s.size_err += size * r;
        s.spread_err += size * r * off;
        s.blur += size * p->doubt[j];
    }
    for (int j = 0; j < p->count; j++) {
        p->w_re[j] /= total;
        p->w_im[j] /= total;
    }
    const double scale = 1.0 / total;
    p->sizes = (acct_exchange_sizes){s.size * scale, s.spread * scale, s.size_err * scale, s.spread_err * scale,
                                     s.blur * scale};
    return top + log(total * p->h / ACCT_SQRT_2PI);
}

int acct_exchange_path_in_range(const acct_exchange_path *p, double y) {
    for (int j = 0; j < p->count; j++)
        if (!(acct_min(y * p->l_im[j], 60.0) * fabs(p->l_re[j]) < 2.0 * ACCT_MOST_ANGLE * p->l_im[j])) return 0;
    return 1;
}

int acct_exchange_path_set(acct_exchange_path *p, double *memory, double mu, double q, double c, double mean,
                           double digits) {
    *p = (acct_exchange_path){.mu = mu, .q = q, .log_1mq = log1p(-q)};
    double **slots[ACCT_EXCHANGE_PATH_ARRAYS] = {&p->l_re,  &p->l_im, &p->e_re, &p->e_im,
                                                 &p->doubt, &p->w_re, &p->w_im};
    for (int i = 0; i < ACCT_EXCHANGE_PATH_ARRAYS; i++)
        *slots[i] = memory + (size_t)i * ACCT_EXCHANGE_PATH_NODES;
    if (!lay_out(p, c, digits)) return 0;
    fill_path_nodes(p);
    const double log_mgf = fill_weights(p, c, mean);
    if (!(log_mgf < INFINITY && p->sizes.size < INFINITY)) return 0;
    const double lo = p->first * p->h, hi = (p->first + p->count - 1.0) * p->h;
    const double outside = acct_exchange_log_outside(mu, q, p->log_1mq, c, lo, hi) - log_mgf + log_rise(p, c);
    p->lattice = 1.02 * (exp(log_path_lattice(p, c)) + exp(outside + 1e-3));
    p->scale_err = p->sizes.size_err + (p->count + 8.0) * ACCT_U * p->sizes.size + p->lattice;
    return p->lattice < 1e-3 && p->scale_err < 1e-3;
}

ACCT_CLONES
static void sum(const acct_exchange_path *p, double y, double *re, double *im) {
    const double *restrict l_re = p->l_re, *restrict l_im = p->l_im;
    const double *restrict w_re = p->w_re, *restrict w_im = p->w_im;
    const double half = 0.5 * y;
    double r[ACCT_LANES] = {0}, t[ACCT_LANES] = {0};
    for (int j = 0; j < p->count; j += ACCT_LANES)
        ACCT_EACH_LANE for (int i = 0; i < ACCT_LANES; i++) {
            const double fall = y * l_im[j + i];
            /* beyond, e^{iyL} is next to nothing, and its angle may be out of range */
            const double keep = fall < 60.0 ? 1.0 : 0.0;
            double s, c, em1;
            const double e = acct_vexp_both(fall < 60.0 ? -fall : -60.0, &em1);
            acct_vsincos(keep * half * l_re[j + i], &s, &c);
            const double dr = em1 - 2.0 * e * s * s, di = 2.0 * e * s * c;
            r[i] += w_re[j + i] * dr - w_im[j + i] * di;
            t[i] += w_re[j + i] * di + w_im[j + i] * dr;
        }
    *re = acct_lanes_total(r);
    *im = acct_lanes_total(t);
}

/* Every summand of V is w (e^z - 1), Re z <= 0, of modulus at most |w| min(|z|, 2), z = iy(L - mean). */
double acct_exchange_path_sum(const acct_exchange_path *p, double y, double *re, double *im) {
    const acct_exchange_sizes *s = &p->sizes;
    sum(p, y, re, im);
    const double modulus = sqrt(*re * *re + *im * *im), adds = (p->count / ACCT_LANES + 60.0) * ACCT_U;
    const double near = y * (s->spread_err + adds * s->spread), far = 2.0 * (s->size_err + adds * s->size);
    const double turned = y * (s->blur + 4.0 * ACCT_U * s->spread) + 1e-25 * s->size;
    return 1.02 * (acct_min(near, far) + turned + 2.0 * p->lattice + modulus * p->scale_err);
}

double acct_exchange_path_decay(const acct_exchange_path *p, double y) {
    double total = 0.0;
    y *= 1.0 - 1e-9; /* l_im has a small relative error */
    for (int j = 0; j < p->count && y < 1e300; j++)
        total += sqrt(p->w_re[j] * p->w_re[j] + p->w_im[j] * p->w_im[j]) * exp(-y * p->l_im[j]);
    return (total + p->lattice + p->sizes.size_err) * (1.01 + 2.0 * p->scale_err);
}
