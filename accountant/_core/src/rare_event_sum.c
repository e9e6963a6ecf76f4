#include "rare_event_sum.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "gauss_legendre.h"
#include "loss_inline.h"
#include "rare_event_nodes.h"
#include "rare_event_pass.h"
#include "rounding.h"
#include "status.h"
#include "vmath.h"

static void place(acct_rare_event_sum *rare, double *memory) {
    double **slots[ACCT_RARE_EVENT_ARRAYS] = {
        &rare->l_re,    &rare->l_im,  &rare->w_re,  &rare->w_im,  &rare->c_re,  &rare->c_im,  &rare->size,
        &rare->large,   &rare->rest,  &rare->w_err, &rare->c_err, &rare->moved, &rare->z1_re, &rare->z1_im,
        &rare->zb_re,   &rare->zb_im, &rare->z_re,  &rare->z_im,  &rare->from_re, &rare->from_im};
    for (int i = 0; i < ACCT_RARE_EVENT_ARRAYS; i++) *slots[i] = memory + (size_t)i * ACCT_MAX_NODES;
    rare->count = rare->low = 0;
}

/* the arrays from the next node on */
static acct_rare_event_nodes next_nodes(const acct_rare_event_sum *rare) {
    const int j = rare->count;
    return (acct_rare_event_nodes){
        .l_re = rare->l_re + j,
        .l_im = rare->l_im + j,
        .w_re = rare->w_re + j,
        .w_im = rare->w_im + j,
        .c_re = rare->c_re + j,
        .c_im = rare->c_im + j,
        .size = rare->size + j,
        .large = rare->large + j,
        .rest = rare->rest + j,
        .w_err = rare->w_err + j,
        .c_err = rare->c_err + j,
        .moved = rare->moved + j,
        .spare = {rare->z_re + j, rare->z_im + j},
    };
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
    const acct_rare_event_nodes nodes = next_nodes(rare);
    acct_losses_complex(step, law->count, law->node, eta, nodes.l_re, nodes.l_im);
    for (int j = 0; j < law->count; j++) {
        nodes.size[j] = law->quad[j];
        nodes.w_re[j] = lift - law->x2[j];
        nodes.w_im[j] = -law->node[j] * eta / var;
        nodes.c_err[j] = law->x2[j];
        nodes.c_re[j] = law->loss[j];
        nodes.moved[j] = law->loss_err[j] + complex_error(step, law->node[j], eta);
    }
    acct_rare_event_nodes_weigh(&nodes, law->count, m, thresholds);
    rare->count += law->count;
    e->a += acct_tilted_law_error(law, m, y);
    for (int i = 0; i < law->panels; i++) {
        const acct_panel *p = &law->panel[i];
        const double factor = p->middle - p->damp - m->log_mgf;
        e->c += exp(acct_tilted_law_panel_error(law, i, m->order, y) + factor);
        e->tail_c += exp(acct_tilted_law_panel_error(law, i, m->order, 0.0) + factor);
    }
    e->reach = fmax(e->reach, acct_tilted_law_reach(law, m->mean));
    return ACCT_OK;
}

/* bounds on Re L, |arg e^L| and its fall in modulus within |Im x| <= theta var of [x0, x1] */
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
    *log_c = fmin(fmax(la, ia), fmax(lb, ib)) + ACCT_LOG_2_UP + both;
    *reach = fmax(fabs(low), fabs(high)) + arg + modulus;
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
    const acct_rare_event_nodes nodes = next_nodes(rare);
    double p;
    const double loss = acct_loss(step, x, &p), u = (x - 0.5) / var;
    const double error = acct_loss_error(loss, p, u) + ACCT_U * (8.0 * p * (fabs(x) + r->to + 1.0) / var);
    for (int i = 0; i < ACCT_GL_ORDER; i++) {
        const double eta = r->from + half * (1.0 + ACCT_GL_NODE[i]);
        acct_loss_complex(step, x, eta, &nodes.l_re[i], &nodes.l_im[i]);
        nodes.size[i] = half / (step->sigma * ACCT_SQRT_2PI) * ACCT_GL_WEIGHT[i];
        nodes.w_re[i] = 0.5 * eta * eta / var - x2;
        nodes.w_im[i] = 0.5 * ACCT_PI - x * eta / var; /* dx is i deta */
        nodes.c_err[i] = x2;
        nodes.c_re[i] = loss;
        nodes.moved[i] = error + complex_error(step, x, eta);
    }
    acct_rare_event_nodes_weigh(&nodes, ACCT_GL_ORDER, m, thresholds);
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
        if (!count || (bounded && fmax(r->of_a, r->of_c) < exp(log_error))) count++;
    }
    return count;
}

int acct_rare_event_sum_set(acct_rare_event_sum *rare, double *memory, acct_tilted_law *law,
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
        e->reach = fmax(e->reach, r->reach);
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

/* what of the sum of the bounds on C's weights is next to nothing */
#define NEGLIGIBLE 1e-19

/* Sets `low`, `small` and `equal`: of how many nodes the weights of C are negligible, and from where on those of being
 * below the inner threshold are. */
static void set_parts(acct_rare_event_sum *rare) {
    double most = 0.0, below = 0.0, above = 0.0;
    int j = 0, low = 0;
    for (int k = 0; k < rare->count; k++) most += rare->large[k];
    for (; j < rare->count && below + rare->large[j] <= NEGLIGIBLE * most; j++) {
        if (j % ACCT_GL_ORDER == 0) low = j;
        below += rare->large[j];
    }
    rare->low = low; /* only such nodes may be replaced by their moments */
    rare->small = j;
    for (j = rare->count; j > rare->small && above + rare->rest[j - 1] <= NEGLIGIBLE * most; j--)
        above += rare->rest[j - 1];
    rare->equal = j;
    rare->left_out = below + above;
    for (; j < rare->count; j++) { /* there C is summed by the weights of A, with their errors */
        rare->large[j] = fmax(rare->large[j], rare->size[j]);
        rare->c_err[j] = fmax(rare->c_err[j], rare->w_err[j]);
    }
}

void acct_rare_event_sum_step(acct_rare_event_sum *rare, double dy) {
    const int all = rare->count + ACCT_WIDE;
    rare->dy = dy;
    direct(all, dy, rare->l_re, rare->l_im, rare->z1_re, rare->z1_im);
    direct(all, ACCT_RARE_EVENT_BLOCK * dy, rare->l_re, rare->l_im, rare->zb_re, rare->zb_im);
    rare->dead = rare->count;
    rare->dead_size = rare->dead_large = 0.0;
    set_parts(rare);
    rare->block = -1;
    rare->fresh = 1;
}

/* moments of the weights below `low`: sum w (L - log(1-q))^k / k! */
static void set_moments(acct_rare_event_sum *rare, int low) {
    rare->low = low;
    for (int i = 0; i < 3; i++) rare->m_size[i] = 0.0;
    for (int i = 0; i < ACCT_RARE_EVENT_MOMENTS; i++) rare->m_re[i] = rare->m_im[i] = 0.0;
    for (int j = 0; j < low; j++) {
        const double er = rare->l_re[j] - rare->origin, ei = rare->l_im[j];
        const double modulus = sqrt(er * er + ei * ei);
        double pr = rare->w_re[j], pi = rare->w_im[j];
        for (int i = 0; i < ACCT_RARE_EVENT_MOMENTS; i++) {
            rare->m_re[i] += pr;
            rare->m_im[i] += pi;
            const double over = 1.0 / (i + 1), nr = (pr * er - pi * ei) * over;
            pi = (pr * ei + pi * er) * over;
            pr = nr;
        }
        rare->m_size[0] += rare->size[j];
        rare->m_size[1] += rare->size[j] * modulus;
        rare->m_size[2] += rare->size[j] * modulus * modulus;
    }
}

/* so many nodes are whole lines of cache: registers that cross one are loaded twice */
#define WHOLE_LINES (2 * ACCT_GL_ORDER)

/* the nodes below this are within |ye| <= 1/4 */
static int low_at(const acct_rare_event_sum *rare, double y) {
    int j = 0;
    for (; j < rare->low; j++) {
        const double er = rare->l_re[j] - rare->origin, ei = rare->l_im[j];
        if (!(y * y * (er * er + ei * ei) <= 0.0625)) break;
    }
    return j / WHOLE_LINES * WHOLE_LINES;
}

/* whether e^{iyl} is gone at the last nodes before `dead` */
static int are_gone(const acct_rare_event_sum *rare, double y, int dead) {
    for (int j = dead - ACCT_GL_ORDER; j < dead; j++)
        if (!(y * rare->l_im[j] > 48.0)) return 0;
    return 1;
}

/* the sums of w and of wl from `low` on, in as many strands as those of w e^{iyl} have */
static void set_rest(acct_rare_event_sum *rare, int low) {
    double re[ACCT_WIDE] = {0}, im[ACCT_WIDE] = {0}, l_re[ACCT_WIDE] = {0}, l_im[ACCT_WIDE] = {0};
    for (int j = low; j < rare->count; j++) {
        const int i = j % ACCT_WIDE;
        re[i] += rare->w_re[j];
        im[i] += rare->w_im[j];
        l_re[i] += rare->w_re[j] * rare->l_re[j] - rare->w_im[j] * rare->l_im[j];
        l_im[i] += rare->w_re[j] * rare->l_im[j] + rare->w_im[j] * rare->l_re[j];
    }
    rare->rest_re = acct_wide_total(re);
    rare->rest_im = acct_wide_total(im);
    rare->rest_l_re = acct_wide_total(l_re);
    rare->rest_l_im = acct_wide_total(l_im);
}

/* sets the range of nodes to be summed one by one for y0 <= y <= y1 */
static void set_ranges(acct_rare_event_sum *rare, double y0, double y1) {
    const int low = low_at(rare, y1);
    if (low != rare->low || rare->fresh) {
        set_moments(rare, low);
        set_rest(rare, low);
    }
    rare->fresh = 0;
    while (rare->dead > low && are_gone(rare, y0, rare->dead))
        for (int i = 0; i < ACCT_GL_ORDER; i++) {
            rare->dead--;
            rare->dead_size += rare->size[rare->dead];
            rare->dead_large += rare->large[rare->dead];
        }
}

/* Adds to the sums at n points from `first` on the low nodes' sum of w v(yl), and the rest's but for their w e^{iyl}:
 * v(t) = e^{it} - 1 - it, and with t0 = y origin and e = L - log(1-q), v(t0 + ye) = v(t0) + iye (e^{it0} - 1) +
 * e^{it0} v(ye) */
ACCT_CLONES
static void add_outer_sums(const acct_rare_event_sum *rare, long first, int n, double *restrict re,
                           double *restrict im) {
    const double dy = rare->dy, origin = rare->origin, rest_re = rare->rest_re, rest_im = rare->rest_im;
    const double rest_l_re = rare->rest_l_re, rest_l_im = rare->rest_l_im;
    for (int k = 0; k < n; k++) {
        const double y = (double)(first + k) * dy, t0 = y * origin, square = t0 * t0;
        double half, other;
        acct_vsincos(0.5 * t0, &half, &other);
        const double d_re = -2.0 * half * half, d_im = 2.0 * half * other;
        const double inner = 1.0 / 120.0 - square * (1.0 / 5040.0 - square / 362880.0);
        const double series = t0 * square * (-1.0 / 6.0 + square * inner), apart = d_im - t0;
        const double v_im = square < 0.01 ? series : apart;
        double sr = 0.0, si = 0.0;
        for (int i = ACCT_RARE_EVENT_MOMENTS - 1; i >= 2; i--) { /* Horner in iy */
            const double ar = rare->m_re[i] + sr, ai = rare->m_im[i] + si;
            sr = -y * ai;
            si = y * ar;
        }
        const double tr = -y * si, ti = y * sr; /* once more */
        const double ur = -y * rare->m_im[1], ui = y * rare->m_re[1];
        re[k] += rare->m_re[0] * d_re - rare->m_im[0] * v_im + ur * d_re - ui * d_im + tr * (1.0 + d_re) -
                 ti * d_im - (rest_re - y * rest_l_im);
        im[k] += rare->m_re[0] * v_im + rare->m_im[0] * d_re + ur * d_im + ui * d_re + tr * d_im +
                 ti * (1.0 + d_re) - (rest_im + y * rest_l_re);
    }
}

/* so many blocks in a row begin where a multiplication leads from the first point of the last one */
#define MOST_CHAINED 3

/* e^{iyl} at the first point of a block, for so many nodes from `low` on */
static void begin_block(acct_rare_event_sum *rare, long first, int active) {
    const int low = rare->low;
    const int follows = rare->block >= 0 && first == rare->block + ACCT_RARE_EVENT_BLOCK && low == rare->block_low;
    if (follows && rare->chained < MOST_CHAINED) {
        next(active, rare->zb_re + low, rare->zb_im + low, rare->from_re + low, rare->from_im + low);
        rare->chained++;
    } else {
        direct(active, (double)first * rare->dy, rare->l_re + low, rare->l_im + low, rare->from_re + low,
               rare->from_im + low);
        rare->chained = 0;
    }
    rare->block = first;
    rare->block_low = low;
    memcpy(rare->z_re + low, rare->from_re + low, (size_t)active * sizeof(double));
    memcpy(rare->z_im + low, rare->from_im + low, (size_t)active * sizeof(double));
}

/* sets sums (rare_event_pass.h) over the active nodes and moves on by two points: w alone where C has no weight, both
 * in the middle, and w for both where they are the same */
static void sum_two(acct_rare_event_sum *rare, int low, int first, int last, int end, double sums[8]) {
    double part[8];
    next_two_alone(first - low, rare->w_re + low, rare->w_im + low, rare->z1_re + low, rare->z1_im + low,
                   rare->z_re + low, rare->z_im + low, sums);
    next_two(last - first, rare->w_re + first, rare->w_im + first, rare->c_re + first, rare->c_im + first,
             rare->z1_re + first, rare->z1_im + first, rare->z_re + first, rare->z_im + first, part);
    for (int i = 0; i < 8; i++) sums[i] += part[i];
    next_two_alone(end - last, rare->w_re + last, rare->w_im + last, rare->z1_re + last, rare->z1_im + last,
                   rare->z_re + last, rare->z_im + last, part);
    for (int i = 0; i < 8; i++) sums[i] += part[(i & 4) + (i & 1)];
}

static int between(int low, int x, int high) { return x < low ? low : x > high ? high : x; }

void acct_rare_event_sum_block(acct_rare_event_sum *rare, long first, int n, acct_rare_event_sums *out,
                               double *of_a, double *of_c) {
    const double y0 = (double)first * rare->dy, y1 = (double)(first + n - 1) * rare->dy;
    set_ranges(rare, y0, y1);
    const int low = rare->low, active = acct_to_wide(rare->dead - low); /* some that are gone, or weigh nothing */
    begin_block(rare, first, active);
    /* the parts are whole registers: a few nodes more are in the middle */
    const int end = low + active, small = low + between(0, rare->small - low, active) / ACCT_WIDE * ACCT_WIDE;
    const int equal = small + acct_to_wide(between(0, rare->equal - small, end - small));
    for (int i = 0; i < n; i += 2) { /* and one point beyond an odd number */
        double sums[8];
        sum_two(rare, low, small, equal, end, sums);
        double *const slots[4] = {out->ar, out->ai, out->cr, out->ci};
        for (int j = 0; j < 4; j++) {
            slots[j][i] = sums[j];
            slots[j][i + 1] = sums[j + 4];
        }
    }
    add_outer_sums(rare, first, n, out->ar, out->ai);
    /* moments: the remainder of the series, |ye| <= 1/4, and their own round-off */
    const double t0 = y1 * fabs(rare->origin), d0 = fmin(t0, 2.0), v0 = fmin(t0 * t0, 2.0 + t0);
    const double first_size = y1 * rare->m_size[1], second = y1 * y1 * rare->m_size[2];
    const double gone = exp(-48.0);
    *of_a = second * 1e-14 + gone * rare->dead_size +
            (96.0 + rare->count) * ACCT_U * (rare->m_size[0] * v0 + first_size * d0 + second);
    *of_c = rare->left_out + gone * rare->dead_large;
}

ACCT_CLONES
double acct_rare_event_sum_large(const acct_rare_event_sum *rare, double y) {
    const double *restrict large = rare->large, *restrict l_im = rare->l_im;
    double sum[ACCT_LANES] = {0};
    for (int j = 0; j < rare->count; j += ACCT_LANES)
        ACCT_EACH_LANE for (int i = 0; i < ACCT_LANES; i++) sum[i] += large[j + i] * acct_vexp(-y * l_im[j + i]);
    return acct_lanes_total(sum);
}

/* adds what the nodes from `first` on contribute; of_rest: of e^{iyl} in the sum for A, and of the sums of w and of wl
 * that are taken off again, where nodes are not summed by their moments */
ACCT_CLONES
static void add_roundoff(const acct_rare_event_sum *rare, int first, int end, double y, double of_z, double of_rest,
                         double *of_a, double *of_c) {
    const double *restrict l_re = rare->l_re, *restrict l_im = rare->l_im, *restrict moved = rare->moved;
    const double *restrict w_err = rare->w_err, *restrict c_err = rare->c_err;
    const double *restrict size = rare->size, *restrict large = rare->large;
    double a[ACCT_LANES] = {0}, c[ACCT_LANES] = {0};
    for (int j = first; j < end; j += ACCT_LANES)
        ACCT_EACH_LANE for (int i = 0; i < ACCT_LANES; i++) {
            const int k = j + i;
            const double t = y * sqrt(l_re[k] * l_re[k] + l_im[k] * l_im[k]), square = t * t, linear = 2.0 + t;
            const double v = square < linear ? square : linear, d = t < 2.0 ? t : 2.0, turned = y * moved[k];
            a[i] += w_err[k] * v + size[k] * (d * turned + of_rest * linear);
            c[i] += c_err[k] + large[k] * (of_z + turned);
        }
    *of_a += acct_lanes_total(a);
    *of_c += acct_lanes_total(c);
}

void acct_rare_event_sum_roundoff(const acct_rare_event_sum *rare, double y, double *of_a, double *of_c) {
    double a = 0.0, c = 0.0;
    const int low = low_at(rare, y);
    const double of_z = (32.0 + 16.0 * (ACCT_RARE_EVENT_BLOCK + MOST_CHAINED) + rare->count / ACCT_LANES) * ACCT_U;
    add_roundoff(rare, 0, low, y, of_z, 0.0, &a, &c);
    add_roundoff(rare, low, rare->count, y, of_z, of_z, &a, &c);
    *of_a = a * ACCT_SLACK;
    *of_c = c * ACCT_SLACK;
}
