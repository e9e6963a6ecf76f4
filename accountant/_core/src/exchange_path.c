#include "exchange_path.h"

#include <math.h>

#include "clones.h"
#include "rounding.h"
#include "vmath.h"

/* how far |N e^{cU + (1-c)W}| may rise on the line above its real values, as a logarithm */
#define MOST_RISE 1.5

typedef struct {
    double re, im, error;
} complex_log;

/* log(1 - q + q e^{u + i turn}), 0 <= turn <= 1.2; u is off by u_err */
static complex_log log_ratio(const acct_exchange_path *p, double u, double u_err, double turn) {
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
static double log_lattice(const acct_exchange_path *p, double c) {
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
static int lay_out(acct_exchange_path *p, double c, double digits, double turn) {
    double a = turn / p->mu;
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

static void fill_nodes(acct_exchange_path *p) {
    const double mu = p->mu, a = p->height, turn = mu * a;
    for (int j = 0; j < p->count; j++) {
        const double x = (p->first + j) * p->h, u_err = 3.0 * ACCT_U * mu * (fabs(x) + mu);
        const complex_log up = log_ratio(p, mu * (x - 0.5 * mu), u_err, turn);
        const complex_log down = log_ratio(p, mu * (-x - 0.5 * mu), u_err, turn);
        p->l_re[j] = up.re - down.re;
        p->l_im[j] = up.im + down.im;
        p->e_re[j] = down.re - 0.5 * (x - a) * (x + a);
        p->e_im[j] = -down.im - x * a;
        p->doubt[j] = up.error + down.error + ACCT_U * (fabs(p->l_re[j]) + p->l_im[j] + 2.0 * turn);
    }
}

static void add_sizes(acct_exchange_sizes *s, double size, double err, double off, double doubt) {
    s->size += size;
    s->spread += size * off;
    s->size_err += err;
    s->spread_err += err * off;
    s->blur += size * doubt;
}

static void scale_sizes(acct_exchange_sizes *s, double scale) {
    s->size *= scale;
    s->spread *= scale;
    s->size_err *= scale;
    s->spread_err *= scale;
    s->blur *= scale;
}

/* The chance t^m of being above a threshold, t = 1 - e^{-z}, z = (E/scale)^2, E = re + i im, that of being below, and
 * bounds on their errors: t is off by at most 2 |E e^{-z}| / scale^2 times the error of E and 16 u of itself. */
typedef struct {
    double above[2], below[2], above_err, below_err;
} chances;

static double size_of(const double z[2]) { return sqrt(z[0] * z[0] + z[1] * z[1]); }

static chances chances_at(double re, double im, double doubt, acct_threshold threshold) {
    chances c;
    const double m = ldexp(1.0, threshold.doublings);
    double fall;
    acct_threshold_complex(re, im, threshold, c.above, c.below, &fall);
    const double r = (re - threshold.origin) / threshold.scale, i = im / threshold.scale;
    const double size = size_of(c.above), root = pow(size, 1.0 / m), l = sqrt(r * r + i * i);
    const double carried = 2.2 * l * fall / threshold.scale * doubt;
    const double moved = carried + 64.0 * ACCT_U * (root + l * l * fall);
    /* (t + e)^m - t^m */
    c.above_err = 1.1 * m * moved * pow(root + moved, m - 1.0) + 8.0 * m * ACCT_U * size;
    c.below_err = c.above_err + ACCT_U;
    if (size < 0.5) {
        c.below[0] = 1.0 - c.above[0];
        c.below[1] = -c.above[1];
        return c;
    }
    /* the product of e^{-z} and the 1 + t^{2^i}, each of which is off by 2^i times what t is */
    double all = fall, t = root * (1.0 + 1e-12);
    for (int j = 0; j < threshold.doublings; j++, t *= t) all *= 1.0 + t;
    const double own = ACCT_U * (64.0 + 24.0 * l * l + 32.0 * m) * all;
    c.below_err = acct_min(c.below_err, 1.1 * m * carried * pow(root + carried, m - 1.0) + own);
    return c;
}

/* What is kept of a node: 1, or its chance of not being large, as e^{log_size} (re, im), and a bound on the error of
 * the latter; adds the large share to *large. */
typedef struct {
    double re, im, err, log_size;
} kept;

static kept keep(const acct_exchange_path *p, int j, const acct_exchange_split *split,
                 acct_exchange_large *large) {
    if (!split || !(split->outer.scale > 0.0)) return (kept){1.0, 0.0, 0.0, 0.0};
    const double x = (p->first + j) * p->h, a = p->height;
    const double w_re = p->e_re[j] + 0.5 * (x - a) * (x + a), w_im = p->e_im[j] + x * a;
    const double re = p->l_re[j] + w_re, im = p->l_im[j] + w_im; /* U */
    const double size = 4.0 * ACCT_U * (x * x + a * a + fabs(re) + fabs(im) + fabs(p->log_1mq));
    const chances c = chances_at(re, im, p->doubt[j] + size, split->outer);
    const double q = exp(p->e_re[j]), up = exp(p->e_re[j] + p->l_re[j]), share = size_of(c.above);
    const double q_turn = p->e_im[j], p_turn = p->e_im[j] + p->l_im[j];
    const double r = 2.0 * p->doubt[j] +
                     ACCT_U * (48.0 + p->count +
                               4.0 * (fabs(p->l_re[j]) + p->l_im[j] + fabs(p->e_re[j]) + fabs(p->e_im[j])));
    large->q += q * (c.above[0] * cos(q_turn) - c.above[1] * sin(q_turn));
    large->p += up * (c.above[0] * cos(p_turn) - c.above[1] * sin(p_turn));
    large->q_err += q * (share * r + c.above_err);
    large->p_err += up * (share * r + c.above_err);
    const double left = size_of(c.below);
    if (!(left > ACCT_EXCHANGE_LEAST)) return (kept){0.0, 0.0, 1.01, log(ACCT_EXCHANGE_LEAST)};
    return (kept){c.below[0] / left, c.below[1] / left, c.below_err / left + 4.0 * ACCT_U, log(left)};
}

/* the largest weight's logarithm; leaves what is kept of each node in the arrays of the weights */
static double fill_kept(acct_exchange_path *p, double c, const acct_exchange_split *split,
                        acct_exchange_large *large) {
    double top = -INFINITY;
    for (int j = 0; j < p->count; j++) {
        const kept k = keep(p, j, split, large);
        p->c_re[j] = k.re;
        p->c_im[j] = k.im;
        p->w_re[j] = k.err;
        p->w_im[j] = k.log_size;
        top = acct_max(top, c * p->l_re[j] + p->e_re[j] + k.log_size);
    }
    return top;
}

/* weights of the order c and the sums over them
 * returns  log A(c), or of its part without large steps */
static double fill_weights(acct_exchange_path *p, double c, double mean, const acct_exchange_split *split,
                           acct_exchange_large *large) {
    const double top = fill_kept(p, c, split, large);
    const int middling = split && split->threshold.scale > 0.0;
    double total = 0.0;
    for (int j = 0; j < p->count; j++) {
        const double size = exp(c * p->l_re[j] + p->e_re[j] + p->w_im[j] - top);
        const double angle = c * p->l_im[j] + p->e_im[j], re = cos(angle), im = sin(angle);
        const double r = (c + 1.0) * p->doubt[j] + p->w_re[j] +
                         ACCT_U * (40.0 + 4.0 * (c * (fabs(p->l_re[j]) + p->l_im[j]) + fabs(p->e_re[j]) +
                                                 fabs(p->e_im[j]) + fabs(p->w_im[j]) + fabs(top)));
        chances chance = {.above = {0.0, 0.0}};
        p->w_re[j] = size * (re * p->c_re[j] - im * p->c_im[j]);
        p->w_im[j] = size * (re * p->c_im[j] + im * p->c_re[j]);
        total += p->w_re[j];
        if (middling) chance = chances_at(p->l_re[j], p->l_im[j], p->doubt[j], split->threshold);
        p->c_re[j] = p->w_re[j] * chance.above[0] - p->w_im[j] * chance.above[1];
        p->c_im[j] = p->w_re[j] * chance.above[1] + p->w_im[j] * chance.above[0];
        const double share = size_of(chance.above);
        p->l_re[j] -= mean;
        p->doubt[j] += ACCT_U * fabs(p->l_re[j]);
        const double off = fabs(p->l_re[j]) + p->l_im[j];
        add_sizes(&p->all, size, size * r, off, p->doubt[j]);
        add_sizes(&p->middling, size * share, size * (share * r + (middling ? chance.above_err : 0.0)), off,
                  p->doubt[j]);
    }
    for (int j = 0; j < p->count; j++) {
        p->w_re[j] /= total;
        p->w_im[j] /= total;
        p->c_re[j] /= total;
        p->c_im[j] /= total;
    }
    scale_sizes(&p->all, 1.0 / total);
    scale_sizes(&p->middling, 1.0 / total);
    return top + log(total * p->h / ACCT_SQRT_2PI);
}

int acct_exchange_path_in_range(const acct_exchange_path *p, double y) {
    for (int j = 0; j < p->count; j++)
        if (!(acct_min(y * p->l_im[j], 60.0) * fabs(p->l_re[j]) < 2.0 * ACCT_MOST_ANGLE * p->l_im[j])) return 0;
    return 1;
}

static void place(acct_exchange_path *p, double *memory, double mu, double q) {
    *p = (acct_exchange_path){.mu = mu, .q = q, .log_1mq = log1p(-q), .lattice = INFINITY};
    double **slots[ACCT_EXCHANGE_PATH_ARRAYS] = {&p->l_re, &p->l_im, &p->e_re, &p->e_im, &p->doubt,
                                                 &p->w_re, &p->w_im, &p->c_re, &p->c_im};
    for (int i = 0; i < ACCT_EXCHANGE_PATH_ARRAYS; i++)
        *slots[i] = memory + (size_t)i * ACCT_EXCHANGE_PATH_NODES;
}

/* the relative error of A(c) as it was summed; whether all is known well enough */
static int set_scale_err(acct_exchange_path *p) {
    p->scale_err = p->all.size_err + (p->count + 8.0) * ACCT_U * p->all.size + p->lattice;
    return p->lattice < 1e-3 && p->scale_err < 1e-3 && p->c_lattice < 1e-3;
}

int acct_exchange_path_set(acct_exchange_path *p, double *memory, double mu, double q, double c, double mean,
                           double digits, double turn, const acct_exchange_split *split) {
    place(p, memory, mu, q);
    if (!lay_out(p, c, digits + (split ? split->log_most : 0.0), turn)) return 0;
    fill_nodes(p);
    const double log_mgf = fill_weights(p, c, mean, split, NULL);
    if (!(log_mgf < INFINITY && p->all.size < INFINITY)) return 0;
    const double lo = p->first * p->h, hi = (p->first + p->count - 1.0) * p->h;
    const double outside = acct_exchange_log_outside(mu, q, p->log_1mq, c, lo, hi) - log_mgf + log_rise(p, c);
    p->lattice = 1.02 * (exp(log_lattice(p, c)) + exp(outside + 1e-3));
    p->c_lattice = split ? p->lattice * exp(split->log_most) : 0.0;
    return set_scale_err(p);
}

int acct_exchange_path_set_large(acct_exchange_path *p, double *memory, const acct_exchange_nodes *n,
                                 double c, double mean, const acct_exchange_split *split,
                                 acct_exchange_large *large) {
    place(p, memory, n->mu, n->q);
    p->height = n->height;
    p->h = acct_exchange_few_digits(n->h);
    const double count = ceil((n->hi - n->lo) / p->h) + 1.0;
    if (!(count <= ACCT_EXCHANGE_PATH_NODES - ACCT_LANES)) return 0;
    p->first = floor(n->lo / p->h);
    p->count = ((int)count + ACCT_LANES - 1) / ACCT_LANES * ACCT_LANES;
    fill_nodes(p);
    *large = (acct_exchange_large){.p = 0.0};
    const double log_mgf = fill_weights(p, c, mean, split, large);
    if (!(log_mgf < INFINITY && p->all.size < INFINITY)) return 0;
    const double unit = p->h / ACCT_SQRT_2PI, adds = (p->count + 8.0) * ACCT_U;
    const double fine = exp(-2.0 * ACCT_PI * p->height / p->h * (1.0 - 1e-12)) * 2.02;
    large->log_mgf = log_mgf;
    large->p_err = 1.02 * (unit * large->p_err + fine * exp(n->strip_p) + exp(n->out_p));
    large->q_err = 1.02 * (unit * large->q_err + fine * exp(n->strip_q) + exp(n->out_q));
    large->p *= unit;
    large->q *= unit;
    p->lattice = 1.02 * (fine * exp(n->strip_all - log_mgf) + exp(n->out_all - log_mgf));
    p->c_lattice = split->threshold.scale > 0.0
                       ? 1.02 * (fine * exp(n->strip_middling - log_mgf) + exp(n->out_all - log_mgf))
                       : 0.0;
    large->log_mgf_err = 1.02 * (p->all.size_err + adds * p->all.size + p->lattice) +
                         ACCT_U * (4.0 * fabs(log_mgf) + 64.0);
    return set_scale_err(p);
}

typedef struct {
    double all[2], middling[2];
} path_sums;

ACCT_CLONES
static void sum(const acct_exchange_path *p, double y, path_sums *out) {
    const double *restrict l_re = p->l_re, *restrict l_im = p->l_im;
    const double *restrict w_re = p->w_re, *restrict w_im = p->w_im;
    const double *restrict c_re = p->c_re, *restrict c_im = p->c_im;
    const double half = 0.5 * y;
    double r[ACCT_LANES] = {0}, t[ACCT_LANES] = {0}, a[ACCT_LANES] = {0}, b[ACCT_LANES] = {0};
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
            a[i] += c_re[j + i] * (1.0 + dr) - c_im[j + i] * di;
            b[i] += c_re[j + i] * di + c_im[j + i] * (1.0 + dr);
        }
    *out =
        (path_sums){{acct_lanes_total(r), acct_lanes_total(t)}, {acct_lanes_total(a), acct_lanes_total(b)}};
}

/* Every summand of V is w (e^z - 1), Re z <= 0, of modulus at most |w| min(|z|, 2), z = iy(L - mean). */
static double error_of_all(const acct_exchange_path *p, double y, double modulus) {
    const acct_exchange_sizes *s = &p->all;
    const double adds = (p->count / ACCT_LANES + 60.0) * ACCT_U;
    const double near = y * (s->spread_err + adds * s->spread), far = 2.0 * (s->size_err + adds * s->size);
    const double turned = y * (s->blur + 4.0 * ACCT_U * s->spread) + 1e-25 * s->size;
    return 1.02 * (acct_min(near, far) + turned + 2.0 * p->lattice + modulus * p->scale_err);
}

double acct_exchange_path_sum(const acct_exchange_path *p, double y, double *re, double *im) {
    path_sums s;
    sum(p, y, &s);
    *re = s.all[0];
    *im = s.all[1];
    return error_of_all(p, y, sqrt(*re * *re + *im * *im));
}

double acct_exchange_path_split(const acct_exchange_path *p, double y, double *re, double *im,
                                double middling[2], double *middling_err) {
    const acct_exchange_sizes *m = &p->middling;
    const double adds = (p->count / ACCT_LANES + 80.0) * ACCT_U;
    path_sums s;
    sum(p, y, &s);
    *re = s.all[0];
    *im = s.all[1];
    middling[0] = s.middling[0];
    middling[1] = s.middling[1];
    *middling_err = 1.02 * (m->size_err + (adds + p->scale_err) * m->size +
                            y * (m->blur + 4.0 * ACCT_U * m->spread) + 1e-25 * m->size + p->c_lattice);
    return error_of_all(p, y, sqrt(*re * *re + *im * *im));
}

double acct_exchange_path_decay(const acct_exchange_path *p, double y) {
    const int split = p->c_lattice > 0.0;
    const double *re = split ? p->c_re : p->w_re, *im = split ? p->c_im : p->w_im;
    double total = 0.0;
    y *= 1.0 - 1e-9; /* l_im has a small relative error */
    for (int j = 0; j < p->count && y < 1e300; j++)
        total += sqrt(re[j] * re[j] + im[j] * im[j]) * exp(-y * p->l_im[j]);
    total += split ? p->c_lattice + p->middling.size_err : p->lattice + p->all.size_err;
    return total * (1.01 + 2.0 * p->scale_err);
}
