#include "rare_event.h"

#include <math.h>

#include "clones.h"
#include "gauss_legendre.h"
#include "order.h"
#include "rounding.h"
#include "bounds.h"
#include "vmath.h"

/* The inner loops of a rare-event contour, over its nodes. */
/* e^{iyl}, Im l >= 0 */
ACCT_CLONES
static void direct_rotations(int n, double y, const double *restrict l_re, const double *restrict l_im,
                   double *restrict z_re, double *restrict z_im) {
    for (int j = 0; j < n; j++) {
        double s, c;
        acct_vsincos(y * l_re[j], &s, &c);
        const double e = acct_vexp(-y * l_im[j]);
        z_re[j] = e * c;
        z_im[j] = e * s;
    }
}

/* sets     sums: real and imaginary parts of the sums over n nodes of w z and of c z, then those at the next point
 * error    as of each point alone: its sums are added in the same order.  What is loaded once serves both.
 * requires a multiple of ACCT_WIDE; z moves two steps on, by z1 each */
ACCT_CLONES
static void next_two(int n, const double *restrict w_re, const double *restrict w_im,
                     const double *restrict c_re, const double *restrict c_im, const double *restrict z1_re,
                     const double *restrict z1_im, double *restrict z_re, double *restrict z_im,
                     double *restrict sums) {
    double ar[ACCT_WIDE] = {0}, ai[ACCT_WIDE] = {0}, br[ACCT_WIDE] = {0}, bi[ACCT_WIDE] = {0};
    double cr[ACCT_WIDE] = {0}, ci[ACCT_WIDE] = {0}, dr[ACCT_WIDE] = {0}, di[ACCT_WIDE] = {0};
    for (int j = 0; j < n; j += ACCT_WIDE)
        for (int i = 0; i < ACCT_WIDE; i++) {
            const int k = j + i;
            const double r = z_re[k], s = z_im[k], p = z1_re[k], q = z1_im[k];
            const double r1 = r * p - s * q, s1 = r * q + s * p;
            const double wr = w_re[k], wi = w_im[k], vr = c_re[k], vi = c_im[k];
            ar[i] += wr * r - wi * s;
            ai[i] += wr * s + wi * r;
            br[i] += vr * r - vi * s;
            bi[i] += vr * s + vi * r;
            cr[i] += wr * r1 - wi * s1;
            ci[i] += wr * s1 + wi * r1;
            dr[i] += vr * r1 - vi * s1;
            di[i] += vr * s1 + vi * r1;
            z_re[k] = r1 * p - s1 * q;
            z_im[k] = r1 * q + s1 * p;
        }
    const double *const lanes[8] = {ar, ai, br, bi, cr, ci, dr, di};
    for (int i = 0; i < 8; i++) sums[i] = acct_wide_total(lanes[i]);
}

/* what of the sum of the bounds on C's weights is next to nothing */
#define NEGLIGIBLE 1e-19

/* sets `low`: of how many nodes, whole panels, the weights of C are negligible */
static void set_low(acct_rare_event_sum *rare) {
    double most = 0.0;
    rare->low = 0; /* only such nodes may be replaced by their moments */
    rare->left_out = 0.0;
    for (int k = 0; k < rare->count; k++) most += rare->large[k];
    for (int j = 0; j < rare->count && rare->left_out + rare->large[j] <= NEGLIGIBLE * most; j++) {
        rare->left_out += rare->large[j];
        if ((j + 1) % ACCT_GL_ORDER == 0) rare->low = j + 1;
    }
}

void acct_rare_event_sum_step(acct_rare_event_sum *rare, double dy) {
    const int all = rare->count + ACCT_WIDE;
    rare->dy = dy;
    direct_rotations(all, dy, rare->l_re, rare->l_im, rare->z1_re, rare->z1_im);
    rare->dead = rare->count;
    rare->dead_size = rare->dead_large = 0.0;
    set_low(rare);
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

/* these nodes are whole lines of cache: registers that cross one are loaded twice */
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

void acct_rare_event_sum_block(acct_rare_event_sum *rare, long first, int n, acct_rare_event_sums *out,
                               double *of_a, double *of_c) {
    const double y0 = (double)first * rare->dy, y1 = (double)(first + n - 1) * rare->dy;
    set_ranges(rare, y0, y1);
    const int low = rare->low, active = acct_to_wide(rare->dead - low); /* some that are gone, or weigh nothing */
    direct_rotations(active, y0, rare->l_re + low, rare->l_im + low, rare->z_re + low, rare->z_im + low);
    for (int i = 0; i < n; i += 2) { /* and one point beyond an odd number */
        double sums[8];
        next_two(active, rare->w_re + low, rare->w_im + low, rare->c_re + low, rare->c_im + low, rare->z1_re + low,
                 rare->z1_im + low, rare->z_re + low, rare->z_im + low, sums);
        double *const slots[4] = {out->ar, out->ai, out->cr, out->ci};
        for (int j = 0; j < 4; j++) {
            slots[j][i] = sums[j];
            slots[j][i + 1] = sums[j + 4];
        }
    }
    add_outer_sums(rare, first, n, out->ar, out->ai);
    /* moments: the remainder of the series, |ye| <= 1/4, and their own round-off */
    const double t0 = y1 * fabs(rare->origin), d0 = acct_min(t0, 2.0), v0 = acct_min(t0 * t0, 2.0 + t0);
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
    const double of_z = (32.0 + 16.0 * ACCT_RARE_EVENT_BLOCK + rare->count / ACCT_LANES) * ACCT_U;
    add_roundoff(rare, 0, low, y, of_z, 0.0, &a, &c);
    add_roundoff(rare, low, rare->count, y, of_z, of_z, &a, &c);
    *of_a = a * ACCT_SLACK;
    *of_c = c * ACCT_SLACK;
}

/* bounds on the errors of a block's sums: that of A grows with y */
typedef struct {
    double of_a, of_a_by_y, of_c;
} sum_errors;

/* The terms of a block: A = 1 + V, C, both over A(c) e^{iym}; F = A^n - (A - C)^n.  Every angle and logarithm errs by
 * 5 u of itself: with 8 u, the 64 u of a term's own factors and angles would not do. */
ACCT_CLONES
static void rare_terms(const acct_contour *k, const acct_rare_event_sums *sums, const sum_errors *e,
                       int first, double *restrict amplitude, double *restrict phase,
                       double *restrict error) {
    const double n = k->steps, b = k->b, dy = k->dy;
    const double of_a = e->of_a, of_a_by_y = e->of_a_by_y, err_c = e->of_c;
    for (int i = 0; i < ACCT_RARE_EVENT_BLOCK; i++) {
        const double y = (first + i) * dy, vr = sums->ar[i], ui = sums->ai[i], cr = sums->cr[i], ci = sums->ci[i];
        const double err_a = of_a + y * of_a_by_y, ur = 1.0 + vr;
        const double mod2 = ur * ur + ui * ui, mod = sqrt(mod2), turn_a = acct_vatan2(ui, ur);
        /* log |A| keeps the digits of a tiny V */
        const double z = 2.0 * vr + vr * vr + ui * ui, near = 1.0 + z;
        const int is_near = vr > -0.5;
        const double log_mod =
            0.5 * acct_vlog_corrected(is_near ? near : mod2, is_near ? (z - (near - 1.0)) / near : 0.0);
        /* r = C/A, w = n log(1 - r), F = A^n (1 - e^w) */
        const double rr = (cr * ur + ci * ui) / mod2, ri = (ci * ur - cr * ui) / mod2;
        const double rest = -2.0 * rr + rr * rr + ri * ri;
        const double wr = n * 0.5 * acct_vlog1p(rest > -1.0 + ACCT_U ? rest : -1.0 + ACCT_U);
        const double wi = n * acct_vatan2(-ri, 1.0 - rr), turned = fabs(wi);
        double half, other, em1;
        acct_vsincos(turned < ACCT_MOST_ANGLE ? 0.5 * wi : 0.0, &half, &other);
        const double ew = acct_vexp_both(wr, &em1);
        const double fr = -(em1 - 2.0 * ew * half * half), fi = -ew * (2.0 * half * other);
        const double front = acct_trapezoid_factor(b, y, dy, 1);
        const double power_a = n * log_mod, a = acct_vexp(power_a) * sqrt(fr * fr + fi * fi) * front;
        /* F = C sum A^i B^{n-1-i}: both factors' errors, with M >= |A|, |B| and their computed values */
        const double c_size = sqrt(cr * cr + ci * ci) + err_c;
        const double b_size = sqrt((ur - cr) * (ur - cr) + (ui - ci) * (ui - ci));
        const double above = 1.0 + err_a + err_c, larger = (mod > b_size ? mod : b_size) + err_a + err_c;
        const double most = larger < above ? larger : above, log_power = (n - 1.0) * acct_vlog(most);
        const double power = acct_vexp(log_power) * front * n;
        const double formula = (64.0 + 16.0 * n * (fabs(log_mod) + fabs(turn_a))) * ACCT_U;
        const double of_term = power * (err_c + c_size * ((n - 1.0) * (2.0 * err_a + err_c) / most +
                                                          64.0 * ACCT_U * (1.0 + n * c_size / most))) +
                               (a + power * c_size) * formula;
        const int bounded = (mod2 > 1e-300) & (turned < ACCT_MOST_ANGLE) & (wr < ACCT_MOST_LOG) &
                            (power_a < ACCT_MOST_LOG) & (log_power < ACCT_MOST_LOG);
        const int vanishes = power_a < ACCT_LEAST_LOG;
        amplitude[i] = vanishes ? 0.0 : a;
        phase[i] = n * turn_a + acct_vatan2(fi, fr) - acct_poles_phase(b, y);
        error[i] = !bounded ? INFINITY : vanishes ? of_term + a : of_term;
    }
}

static void fill_terms(acct_contour *k, acct_rare_event_sum *rare, const acct_moments *m,
                       const acct_rare_event_errors *e) {
    const double whole = acct_rare_event_sum_large(rare, 0.0);
    double amplitude[ACCT_RARE_EVENT_BLOCK], phase[ACCT_RARE_EVENT_BLOCK], error[ACCT_RARE_EVENT_BLOCK];
    double of_a = 0.0, of_c = 0.0, left_a, left_c;
    acct_rare_event_sums sums = {0};
    int known = 0; /* one bound serves several blocks: it grows with y */
    acct_rare_event_sum_step(rare, k->dy);
    k->numerical = 0.0;
    for (int first = 0; first < k->count; first += ACCT_RARE_EVENT_BLOCK) {
        const int size = k->count - first < ACCT_RARE_EVENT_BLOCK ? k->count - first : ACCT_RARE_EVENT_BLOCK;
        acct_rare_event_sum_block(rare, first, size, &sums, &left_a, &left_c);
        if (first + size > known) {
            known = first + size + first / 8;
            acct_rare_event_sum_roundoff(rare, known * k->dy, &of_a, &of_c);
        }
        const sum_errors errors = {
            .of_a = (2.0 * e->a + of_a + left_a + 2.0 * m->log_mgf_err) * ACCT_SLACK,
            .of_a_by_y = (e->a * e->reach + m->mean_err) * ACCT_SLACK,
            .of_c = (e->c + of_c + left_c + 2.0 * m->log_mgf_err * whole) * ACCT_SLACK,
        };
        rare_terms(k, &sums, &errors, first, amplitude, phase, error);
        if (first == 0) { /* half a term */
            amplitude[0] *= 0.5;
            error[0] *= 0.5;
        }
        for (int i = 0; i < size; i++) {
            k->terms.re[first + i] = amplitude[i];
            k->terms.im[first + i] = phase[i];
            k->numerical += error[i];
        }
    }
    k->numerical *= ACCT_SLACK;
    acct_line_terms_set(&k->terms, k->count, k->dy);
}

int acct_rare_event_contour_build(acct_contour *k, acct_tilted_law *law, acct_tilted_law *scratch,
                                  double *memory, const acct_problem *problem, double log_delta,
                                  double tolerance) {
    const acct_step *step = &problem->step;
    if (!(step->log_1mq > -INFINITY)) return ACCT_EPRECISION; /* every loss is large */
    const acct_threshold none = {.origin = step->log_1mq};
    acct_rare_event_plan s = {.step = step,
                              .law = law,
                              .spare = memory + (size_t)5 * ACCT_MAX_NODES,
                              .steps = problem->steps,
                              .epsilon = problem->epsilon,
                              .log_delta = log_delta,
                              .tolerance = tolerance,
                              .log_wanted = log(0.1 * tolerance) + log_delta,
                              .thresholds = {.outer = none, .inner = none}};
    s.thresholds.outer.doublings = ACCT_OUTER_DOUBLINGS;
    s.thresholds.inner.doublings = ACCT_INNER_DOUBLINGS;
    double **slots[5] = {&s.thresholds.above_out, &s.thresholds.share_out, &s.thresholds.above_in,
                         &s.thresholds.share_in, &s.thresholds.middle};
    for (int i = 0; i < 5; i++) *slots[i] = memory + (size_t)i * ACCT_MAX_NODES;
    acct_window window = {.lo = 0.0};
    acct_rare_event_sum rare;
    acct_rare_event_errors e;
    acct_moments m;
    int status = acct_rare_event_search(&s, problem->window.lo, &window);
    if (!status) status = acct_rare_event_certify_small(k, &s, &window);
    if (!status) status = acct_rare_event_certify(k, &s, scratch, &window, &m);
    if (!status) status = acct_rare_event_set_line(k, &s, scratch, memory, &window, &m, &rare, &e);
    if (status) return status;
    fill_terms(k, &rare, &m, &e);
    return k->numerical < INFINITY ? ACCT_OK : ACCT_EPRECISION;
}
