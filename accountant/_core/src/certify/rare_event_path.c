#include <math.h>
#include <stddef.h>

#include "bounds.h"
#include "gauss_legendre.h"
#include "loss.h"
#include "rare_event.h"
#include "rounding.h"
#include "vmath.h"

/* The first half: the tilted weight without chances, its modulus in `size`; beyond: where the angle leaves the range
 * of acct_vsincos, the angle, else 0. */
ACCT_CLONES
static void set_tilted(int count, double order, double log_mgf, const double *restrict l_re,
                       const double *restrict l_im, double *restrict size, double *restrict re,
                       double *restrict im, double *restrict least, double *restrict beyond) {
    for (int j = 0; j < count; j++) {
        const double e = order * l_re[j] + re[j] - log_mgf, turn = order * l_im[j] + im[j];
        const int known = fabs(turn) < ACCT_MOST_ANGLE;
        const double weight = size[j] * (e < ACCT_MOST_LOG ? acct_vexp(e) : INFINITY);
        double sine, cosine;
        acct_vsincos(known ? turn : 0.0, &sine, &cosine);
        size[j] = weight;
        re[j] = weight * cosine;
        im[j] = weight * sine;
        least[j] = e < ACCT_LEAST_LOG ? weight : 0.0;
        beyond[j] = known ? 0.0 : turn;
    }
}

static void set_far_angles(int count, const double *size, const double *beyond, double *re, double *im) {
    for (int j = 0; j < count; j++)
        if (beyond[j] != 0.0) { /* a NaN, too */
            re[j] = size[j] * cos(beyond[j]);
            im[j] = size[j] * sin(beyond[j]);
        }
}

/* of one threshold at one node */
typedef struct {
    double above[2], below[2];
    double most_above, most_below; /* sums of moduli */
    double of_above, of_below;     /* their relative round-off */
    double turn_above, turn_below; /* their relative changes, per relative change of E */
} chances;

ACCT_INLINE void chances_at(double re, double im, acct_threshold threshold, int doublings, chances *c) {
    double e;
    const double size = acct_threshold_complex_at(re, im, threshold.origin, threshold.scale, doublings, c->above,
                                                  c->below, &e);
    const double modulus = size * (1.0 + 1e-12);
    const double a = (re - threshold.origin) / threshold.scale, b = im / threshold.scale;
    const double m = (double)(1 << doublings);
    /* far below what any bound notices, and squares may underflow there */
    c->most_above = sqrt(c->above[0] * c->above[0] + c->above[1] * c->above[1]) + 1e-150;
    double t = modulus, sum = 1.0, noise = 0.0, power = 1.0;
    for (int i = 0; i < doublings; i++) {
        sum *= 1.0 + t;
        noise += power * (t < 1.0 ? t : 1.0);
        t *= t;
        power *= 2.0;
    }
    /* t itself is within 12 u, every square doubles that */
    c->of_above = (64.0 + 16.0 * m) * ACCT_U;
    c->of_below = (64.0 + 16.0 * noise) * ACCT_U;
    c->most_below = e * sum;
    /* d(t^m) = m t^{m-1} e^{-z} dz, dz = 2 z dE/E */
    const double rate = 2.0 * m * (a * a + b * b);
    c->turn_above = modulus > 0.0 ? rate * e / modulus : 2.0 * m;
    c->turn_below = modulus > 0.0 ? rate * c->most_above / modulus / sum : 0.0;
}

/* what is the same for all nodes */
typedef struct {
    double order, mean;
    acct_threshold outer, inner;
} setting;

/* the second half of weigh_nodes: `least` is what a weight is wrong by beyond all else */
ACCT_CLONES
static void set_path_weights(int count, const setting *s, double *restrict l_re, const double *restrict l_im,
                        double *restrict w_re, double *restrict w_im, double *restrict c_re,
                        double *restrict c_im, double *restrict size, double *restrict large,
                        double *restrict w_err, double *restrict c_err,
                        double *restrict moved, const double *restrict least) {
    const double order = s->order, mean = s->mean;
    const acct_threshold outer = s->outer, inner = s->inner;
    for (int j = 0; j < count; j++) {
        const double lr = l_re[j], li = l_im[j], weight = size[j], wr = w_re[j], wi = w_im[j];
        const double loss = c_re[j], x2 = c_err[j], loss_err = moved[j];
        chances out, in;
        chances_at(lr, li, outer, ACCT_OUTER_DOUBLINGS, &out);
        chances_at(lr, li, inner, ACCT_INNER_DOUBLINGS, &in);
        /* between the thresholds: the difference that cancels less */
        const double by_above = in.most_above + out.most_above, by_below = in.most_below + out.most_below;
        const int near = by_above < by_below;
        const double mr = near ? in.above[0] - out.above[0] : out.below[0] - in.below[0];
        const double mi = near ? in.above[1] - out.above[1] : out.below[1] - in.below[1];
        const double between = near ? by_above : by_below;
        /* L: twice the error of the real loss and of the node, and what the complex logarithm adds */
        const double er = lr - outer.origin, apart = sqrt(er * er + li * li);
        const double off = 2.0 * loss_err + 64.0 * ACCT_U * (fabs(lr) + fabs(li) + fabs(mean) + fabs(loss));
        const double plain = acct_weight_roundoff(x2) + fabs(order) * off;
        const double relative = 1.1 * off / (apart > 1e-300 ? apart : 1e-300);
        const double turned = relative < 1e100 ? relative : 1e100;
        const double of_above = in.most_above * (in.of_above + in.turn_above * turned) +
                                out.most_above * (out.of_above + out.turn_above * turned);
        const double of_below = in.most_below * (in.of_below + in.turn_below * turned) +
                                out.most_below * (out.of_below + out.turn_below * turned);
        l_re[j] = lr - mean;
        w_re[j] = wr * out.below[0] - wi * out.below[1];
        w_im[j] = wr * out.below[1] + wi * out.below[0];
        c_re[j] = wr * mr - wi * mi;
        c_im[j] = wr * mi + wi * mr;
        size[j] = weight * out.most_below;
        moved[j] = off;
        w_err[j] = weight * out.most_below * (plain + out.of_below + out.turn_below * turned) +
                   least[j] * out.most_below + weight * ACCT_UNDERFLOW;
        c_err[j] = weight * (between * plain + (near ? of_above : of_below)) + least[j] * between +
                   weight * ACCT_UNDERFLOW; /* e^{-z} may underflow */
        large[j] = weight * between + c_err[j];
    }
}

/* Weighs the nodes from `first` on, x + i eta: tilted weights over A(c), c = m->order, times the chances.  Before, l is
 * L there; w is log |N| but for its constant, (eta^2 - x^2) / (2 sigma^2), and arg of N and of the path's direction;
 * c_re is L(x) and c_err x^2 / (2 sigma^2); size is the quadrature weight over sigma sqrt(2 pi); moved bounds the error
 * of L(x) and half of that of L.
 * requires the doublings ACCT_OUTER_DOUBLINGS and ACCT_INNER_DOUBLINGS
 * error    beyond the ranges of vmath.h a weight is its own error, or a NaN or infinite */
static void weigh_nodes(const acct_rare_event_sum *n, int first, int count, const acct_moments *m,
                        const acct_thresholds *thresholds) {
    const setting s = {m->order, m->mean, thresholds->outer, thresholds->inner};
    double *least = n->z_re + first, *beyond = n->z_im + first, *size = n->size + first;
    double *l_re = n->l_re + first, *l_im = n->l_im + first, *w_re = n->w_re + first, *w_im = n->w_im + first;
    set_tilted(count, m->order, m->log_mgf, l_re, l_im, size, w_re, w_im, least, beyond);
    set_far_angles(count, size, beyond, w_re, w_im);
    set_path_weights(count, &s, l_re, l_im, w_re, w_im, n->c_re + first, n->c_im + first, size, n->large + first,
                     n->w_err + first, n->c_err + first, n->moved + first, least);
}

static void place(acct_rare_event_sum *rare, double *memory) {
    double **slots[ACCT_RARE_EVENT_ARRAYS] = {
        &rare->l_re,    &rare->l_im,  &rare->w_re,  &rare->w_im,  &rare->c_re,  &rare->c_im,  &rare->size,
        &rare->large,   &rare->w_err, &rare->c_err, &rare->moved, &rare->z1_re, &rare->z1_im, &rare->z_re,
        &rare->z_im};
    for (int i = 0; i < ACCT_RARE_EVENT_ARRAYS; i++) *slots[i] = memory + (size_t)i * ACCT_MAX_NODES;
    rare->count = rare->low = 0;
}

/* what the complex logarithm of random shifts may add to the error of L */
static double complex_error(const acct_step *step, double x, double eta) {
    double re, im, error = 0.0;
    if (step->mixture) acct_mixture_complex(step->mixture, x, eta, &re, &im, &error);
    return error;
}

/* the law's nodes, at the height eta */
static int add_grid(acct_rare_event_sum *rare, const acct_tilted_law *law, double eta, double y,
                    const acct_moments *m, const acct_thresholds *thresholds, acct_rare_event_errors *e) {
    if (rare->count + law->count + ACCT_GL_ORDER > ACCT_MAX_NODES) return ACCT_EPRECISION;
    const acct_step *step = &law->step;
    const double var = step->sigma * step->sigma, lift = 0.5 * eta * eta / var;
    const int first = rare->count;
    acct_losses_complex(step, law->count, law->node, eta, rare->l_re + first, rare->l_im + first);
    for (int j = 0; j < law->count; j++) {
        const int k = first + j;
        rare->size[k] = law->quad[j];
        rare->w_re[k] = lift - law->x2[j];
        rare->w_im[k] = -law->node[j] * eta / var;
        rare->c_err[k] = law->x2[j];
        rare->c_re[k] = law->loss[j];
        rare->moved[k] = law->loss_err[j] + complex_error(step, law->node[j], eta);
    }
    weigh_nodes(rare, first, law->count, m, thresholds);
    rare->count += law->count;
    e->a += acct_tilted_law_error(law, m, y);
    for (int i = 0; i < law->panels; i++) {
        const acct_panel *p = &law->panel[i];
        const double factor = p->middle - p->damp - m->log_mgf;
        e->c += exp(acct_tilted_law_panel_error(law, i, m->order, y) + factor);
        e->tail_c += exp(acct_tilted_law_panel_error(law, i, m->order, 0.0) + factor);
    }
    e->reach = acct_max(e->reach, acct_tilted_law_reach(law, m->mean));
    return ACCT_OK;
}

/* bounds on Re L, |arg e^L| and its fall in modulus within |Im x| <= theta var of [x0, x1]; at y = 0 none where e^{iyL}
 * may grow with y above the real noise */
static int on_rectangle(const acct_step *step, double x0, double x1, double theta, double y, double *low,
                        double *high, double *arg, double *modulus) {
    double p;
    if (step->mixture) {
        acct_mixture_region region;
        if (!acct_mixture_region_set(step->mixture, x0, 0.5 * (x0 + x1), x1, theta, &region)) return 0;
        if (y == 0.0 && !region.turns) return 0; /* e^{iyL} is not to grow */
        *low = region.lo.loss;
        *high = region.hi.loss;
        *arg = region.arg;
        *modulus = region.modulus;
        return 1;
    }
    *low = acct_loss(step, x0, NULL);
    *high = acct_loss(step, x1, &p);
    *arg = acct_loss_arg_upper(theta, p);
    const double half = sin(0.5 * theta);
    if (!(theta < 3.0)) return 0;
    /* |1 + r e^{it}| >= (1 + r) (1 - 4 p (1-p) sin^2(t/2))^{1/2} */
    const double spread = (p < 0.5 ? 4.0 * p * (1.0 - p) : 1.0) * half * half;
    *modulus = acct_loss_modulus_upper(spread);
    return 1;
}

/* bounds on the factors within |Im x| <= theta var of [x0, x1], times |N e^{cL}| e^{y arg} there */
static int factors(const acct_step *step, const acct_thresholds *thresholds, double c, double x0, double x1,
                   double theta, double y, double *log_a, double *log_c, double *reach) {
    double low, high, arg, modulus, la, lb, ia, ib;
    const double var = step->sigma * step->sigma;
    if (!on_rectangle(step, x0, x1, theta, y, &low, &high, &arg, &modulus)) return 0;
    if (!acct_threshold_bounds(low, high, modulus, arg, thresholds->outer, &la, &lb) ||
        !acct_threshold_bounds(low, high, modulus, arg, thresholds->inner, &ia, &ib))
        return 0;
    const double nearest = x0 > 0.0 ? x0 : x1 < 0.0 ? x1 : 0.0;
    const double both = c * high - 0.5 * nearest * nearest / var + 0.5 * theta * theta * var + y * arg;
    *log_a = lb + both;
    *log_c = acct_min(acct_max(la, ia), acct_max(lb, ib)) + ACCT_LOG_2_UP + both;
    *reach = acct_max(fabs(low), fabs(high)) + arg + modulus;
    return 1;
}

/* a rise of the path at x, between two heights of the noise */
typedef struct {
    double x, from, to;
    double of_a, of_c, tail_c, reach; /* its share of acct_rare_event_errors */
} rise;

static void add_rising_nodes(acct_rare_event_sum *rare, const acct_step *step, const rise *r,
                             const acct_moments *m, const acct_thresholds *thresholds) {
    const double x = r->x, half = 0.5 * (r->to - r->from), var = step->sigma * step->sigma, x2 = 0.5 * x * x / var;
    double p;
    const double loss = acct_loss(step, x, &p), u = (x - 0.5) / var;
    const double error = acct_loss_error(loss, p, u) + ACCT_U * (8.0 * p * (fabs(x) + r->to + 1.0) / var);
    for (int i = 0, k = rare->count; i < ACCT_GL_ORDER; i++, k++) {
        const double eta = r->from + half * (1.0 + ACCT_GL_NODE[i]);
        acct_loss_complex(step, x, eta, &rare->l_re[k], &rare->l_im[k]);
        rare->size[k] = half / (step->sigma * ACCT_SQRT_2PI) * ACCT_GL_WEIGHT[i];
        rare->w_re[k] = 0.5 * eta * eta / var - x2;
        rare->w_im[k] = 0.5 * ACCT_PI - x * eta / var; /* dx is i deta */
        rare->c_err[k] = x2;
        rare->c_re[k] = loss;
        rare->moved[k] = error + complex_error(step, x, eta);
    }
    weigh_nodes(rare, rare->count, ACCT_GL_ORDER, m, thresholds);
    rare->count += ACCT_GL_ORDER;
}

/* Sets the errors of a rise, one panel, by the ellipse with the least bound: that of a rise from the real noise counts
 * how e^{iyL} grows below that, up to y; others stay above, where it does not grow.
 * returns whether one has a bound */
static int bound_rise(rise *r, const acct_step *step, double y, const acct_moments *m,
                      const acct_thresholds *thresholds) {
    const double half = 0.5 * (r->to - r->from), middle = 0.5 * (r->from + r->to), var = step->sigma * step->sigma;
    const double norm = half / (step->sigma * ACCT_SQRT_2PI), grown = r->from > 0.0 ? 0.0 : y;
    double log_a, log_c, reach, far = INFINITY, of_a = INFINITY, of_c = INFINITY;
    for (double rho = 12.0; rho > 1.5; rho *= 0.8) {
        const double wide = 0.5 * half * (rho - 1.0 / rho), tall = 0.5 * half * (rho + 1.0 / rho);
        const double front = log(8.0 * norm / (rho - 1.0)) - acct_gl_log_rate(rho) - m->log_mgf;
        if (r->from > 0.0 && !(tall <= middle)) continue;
        if (!factors(step, thresholds, m->order, r->x - wide, r->x + wide, (middle + tall) / var, grown, &log_a,
                     &log_c, &reach))
            continue;
        if (!(front + log_a < of_a)) continue;
        of_a = front + log_a;
        of_c = front + log_c;
        far = reach;
    }
    r->of_a = exp(of_a);
    r->of_c = r->tail_c = exp(of_c);
    if (r->from == 0.0) { /* beyond y |e^{iyL}| <= 1 is known on the path alone */
        if (!factors(step, thresholds, m->order, r->x, r->x, r->to / var, 0.0, &log_a, &log_c, &reach)) return 0;
        r->tail_c = exp(log(2.0 * norm) + log_c - m->log_mgf);
    }
    r->reach = far + fabs(m->mean);
    return far < INFINITY;
}

/* Sets the rises of the path, and returns how many: those whose errors are small, and the first. */
static int set_rises(rise rises[ACCT_RARE_EVENT_RISES], const acct_rare_event_path *path, const acct_step *step,
                     double y, double log_error, const acct_moments *m, const acct_thresholds *thresholds) {
    int count = 0;
    for (int i = 0; i < path->rises; i++) {
        rise *r = &rises[count];
        *r = (rise){.x = path->at[i], .from = count ? rises[count - 1].to : 0.0, .to = path->height[i]};
        const int bounded = bound_rise(r, step, y, m, thresholds);
        if (!count && !bounded) return 0;
        if (!count || (bounded && acct_max(r->of_a, r->of_c) < exp(log_error))) count++;
    }
    return count;
}

int acct_rare_event_path_set(acct_rare_event_sum *rare, double *memory, acct_tilted_law *law,
                             const acct_step *step, const acct_window *window, const acct_rare_event_path *path,
                             const acct_moments *m, const acct_thresholds *thresholds, double y_most,
                             double log_error, acct_rare_event_errors *e) {
    rise rises[ACCT_RARE_EVENT_RISES];
    const int count = set_rises(rises, path, step, y_most, log_error, m, thresholds);
    if (!count) return ACCT_EPRECISION;
    place(rare, memory);
    rare->origin = step->log_1mq - m->mean;
    *e = (acct_rare_event_errors){0.0, 0.0, 0.0, 0.0};
    acct_window part = *window;
    part.shift = 0.0;
    for (int i = 0; i <= count; i++) {
        const rise *r = &rises[i];
        const double y = i ? 0.0 : y_most;
        part.hi = i < count ? r->x : window->hi;
        int status = acct_tilted_law_set(law, step, &part, m->order, y, log_error);
        if (!status) status = add_grid(rare, law, part.shift, y, m, thresholds, e);
        if (status) return status;
        if (i == count) break;
        add_rising_nodes(rare, step, r, m, thresholds);
        e->a += r->of_a;
        e->c += r->of_c;
        e->tail_c += r->tail_c;
        e->reach = acct_max(e->reach, r->reach);
        part.lo = r->x;
        part.shift = r->to;
    }
    /* the way down at hi is left out */
    double log_a, log_c, reach;
    if (!factors(step, thresholds, m->order, window->hi, window->hi, part.shift / (step->sigma * step->sigma), 0.0,
                 &log_a, &log_c, &reach))
        return ACCT_EPRECISION;
    const double front = log(part.shift / (step->sigma * ACCT_SQRT_2PI)) - m->log_mgf;
    e->a = (e->a + exp(front + log_a)) * ACCT_SLACK;
    e->c = (e->c + exp(front + log_c)) * ACCT_SLACK;
    e->tail_c = (e->tail_c + exp(front + log_c)) * ACCT_SLACK;
    for (int j = rare->count; j < rare->count + ACCT_WIDE; j++) /* add_grid leaves some */
        rare->l_re[j] = rare->l_im[j] = rare->w_re[j] = rare->w_im[j] = rare->c_re[j] = rare->c_im[j] = 0.0;
    return ACCT_OK;
}

/* the last y: |F| <= n |C| A(c)^{n-1} */
static double last_y(const acct_rare_event_sum *rare, double steps, double spread, double share) {
    double y = 1.0 / spread, short_of = 0.5 * y;
    for (int i = 0; i < 60 && steps * acct_rare_event_sum_large(rare, y) / (ACCT_PI * y) > share; i++) {
        short_of = y;
        y *= 2.0;
    }
    for (int i = 0; i < 60 && y > 1.03 * short_of; i++) {
        const double mid = sqrt(y * short_of); /* 0 or inf where y^2 leaves the doubles */
        if (steps * acct_rare_event_sum_large(rare, mid) / (ACCT_PI * mid) > share)
            short_of = mid;
        else
            y = mid;
    }
    return y;
}

/* nodes times points: a few milliseconds */
#define RARE_MOST_WORK 6e6

int acct_rare_event_set_line(acct_contour *k, const acct_rare_event_plan *s, acct_tilted_law *scratch,
                             double *memory, const acct_window *window, const acct_moments *m,
                             acct_rare_event_sum *rare, acct_rare_event_errors *e) {
    const double inner = s->thresholds.inner.scale, n = s->steps;
    const double share = exp(s->log_wanted - k->log_scale + s->b * s->epsilon);
    acct_window raised = *window;
    raised.threshold = s->thresholds.outer;
    raised.inner_threshold = s->thresholds.inner;
    acct_rare_event_path path;
    acct_rare_event_find_path(s, window, &path);
    const double y_most = 300.0 / inner;
    const int status = acct_rare_event_path_set(rare, memory, scratch, s->step, &raised, &path, m,
                                                &s->thresholds, y_most,
                                                acct_min(-32.0, log1p(s->b) + log(share) - 3.0) - log(n), e);
    if (status) return status;
    const double y = last_y(rare, n, s->unit, share), points = floor(y / k->dy) + 2.0;
    if (!(points <= ACCT_MAX_POINTS && points * rare->count <= RARE_MOST_WORK)) return ACCT_EPRECISION;
    k->count = (int)points;
    const double y_last = (k->count - 1) * k->dy;
    if (!(y_last <= y_most)) return ACCT_EPRECISION;
    if (!(y_last * fabs(rare->origin) < ACCT_MOST_ANGLE)) return ACCT_EPRECISION;
    for (int j = 0; j < rare->count; j++)
        if (!(y_last * fabs(rare->l_re[j]) < ACCT_MOST_ANGLE)) return ACCT_EPRECISION; /* acct_vsincos */
    const double scale = 1.0 + m->log_mgf_err * 2.0; /* weights are over e^K as computed */
    k->truncated = n * (acct_rare_event_sum_large(rare, y_last) * scale * (1.0 + 1e-9) + e->tail_c) *
                   (1.0 + k->dy / y_last) / (ACCT_PI * y_last) * ACCT_SLACK;
    return ACCT_OK;
}
