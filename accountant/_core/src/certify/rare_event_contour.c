
#include <math.h>

#include "order.h"
#include "rare_event.h"
#include "rounding.h"
#include "bounds.h"
#include "vmath.h"

/* nodes times points: a few milliseconds */
#define RARE_MOST_WORK 6e6

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

void acct_rare_event_set_thresholds(acct_rare_event_plan *s) {
    const acct_tilted_law *g = s->law;
    acct_threshold_values(g->count, g->loss, s->thresholds.outer, s->thresholds.above_out,
                          s->thresholds.share_out);
    acct_threshold_values(g->count, g->loss, s->thresholds.inner, s->thresholds.above_in,
                          s->thresholds.share_in);
    acct_thresholds_between(g->count, g->loss, &s->thresholds, s->thresholds.middle);
}

/* log of an upper bound on the transform of the outcomes with a middling loss but no large one at order 1 + b, if
 * the plan's law was set for both thresholds */
static double rare_log_mgf_upper(acct_rare_event_plan *s, double b) {
    acct_moments m;
    acct_thresholded_moments(s->law, s->thresholds.above_out, s->thresholds.share_out, s->thresholds.outer,
                             1.0 + b, 1, &m);
    return acct_rare_event_of_either(s->steps, m.log_mgf + m.log_mgf_err,
                     acct_between_log_mgf_upper(s->law, &s->thresholds, 1.0 + b));
}

/* sets the bound on what the outcomes with all steps below the inner threshold add to the profile (Chernoff,
 * rounded up) */
static int certify_small_losses(acct_contour *k, acct_rare_event_plan *s, const acct_window *window) {
    const double n = s->steps, b = acct_exact_distance(s->b_small);
    acct_window limited = *window;
    acct_moments m;
    limited.threshold = s->thresholds.inner;
    const double log_size = acct_min((s->log_wanted + b * s->epsilon) / n, 0.0); /* of B */
    const int status = acct_tilted_law_set(s->law, s->step, &limited, 1.0 + b, 0.0, log_size - log(n) - 8.0);
    if (status) return status;
    acct_rare_event_set_thresholds(s);
    acct_thresholded_moments(s->law, s->thresholds.above_in, s->thresholds.share_in, s->thresholds.inner,
                             1.0 + b, 1, &m);
    const double near = m.log_mgf_err < INFINITY ? m.log_mgf + m.log_mgf_err : INFINITY;
    const double log_b = acct_min(
        near, acct_thresholded_log_mgf_upper(s->law, s->thresholds.share_in, s->thresholds.inner, 1.0 + b));
    k->small_losses_log = acct_log_chernoff(b) + n * log_b + 1e-9 + 1e-12 * n * fabs(log_b);
    k->small_losses_slope = b;
    if (!(k->small_losses_log < INFINITY)) k->small_losses_log = k->small_losses_slope = 0.0;
    return ACCT_OK;
}

/* sets all that comes from integrals along the real noise: the tail event above the outer threshold, the
 * scale, the mean and the aliases */
static int certify(acct_contour *k, acct_rare_event_plan *s, acct_tilted_law *scratch,
                   const acct_window *window, acct_moments *m) {
    const double n = s->steps;
    int status = acct_tilted_law_set(scratch, s->step, window, -s->reverse_order, 0.0, -log(n) - 8.0);
    if (status) return status;
    acct_window limited = *window;
    limited.threshold = s->thresholds.outer;
    limited.inner_threshold = s->thresholds.inner;
    limited.reverse_order = s->reverse_order;
    limited.reverse_log = s->reverse_log - log(n);
    limited.log_plain = -38.0 - log(n); /* relative to transforms next to 1 */
    s->b = acct_exact_distance(s->b);
    s->b_right = acct_exact_distance(s->b_right);
    if (s->b_left > 0.0) s->b_left = acct_exact_distance(s->b_left);
    /* the aliases' bounds need a few digits of C, however small it is, unless they are negligible */
    limited.middle_order[0] = 1.0 + s->b_right;
    limited.middle_order[1] = 1.0 + s->b_left;
    limited.log_middle[0] = acct_max(s->log_right - 5.0, s->log_wanted + s->b_right * s->epsilon - log(n) - 3.0);
    limited.log_middle[1] = acct_max(s->log_left - 5.0, s->log_wanted + s->b_left * s->epsilon - log(n) - 3.0);
    status = acct_tilted_law_set(s->law, s->step, &limited, 1.0 + s->b, 0.0,
                                 acct_min(s->log_wanted, -30.0) - log(n) - 3.0);
    if (status) return status;
    acct_rare_event_set_thresholds(s);
    acct_tail_event_set_thresholded(&k->tail, s->law, scratch, &s->thresholds, n, s->reverse_order);
    const double right = rare_log_mgf_upper(s, s->b_right),
                 left = rare_log_mgf_upper(s, s->b_left);
    acct_thresholded_moments(s->law, s->thresholds.above_out, s->thresholds.share_out, s->thresholds.outer,
                             1.0 + s->b, 1, m);
    k->direction = ACCT_REMOVE;
    k->answers_add = 0;
    k->least = 0.0;
    k->steps = n;
    k->b = s->b;
    k->log_scale = n * m->log_mgf;
    k->log_scale_err = n * m->log_mgf_err + 4.0 * ACCT_U * fabs(k->log_scale);
    k->drift = n * m->mean;
    const double unit = k->log_scale - k->log_scale_err - 1e-9;
    k->right = (acct_alias){.log_size = acct_log_chernoff(s->b_right) + right - unit,
                             .slope = s->b_right - s->b};
    k->left = (acct_alias){.log_size = acct_log_chernoff(s->b_left) + left - unit,
                             .slope = s->b_left - s->b};
    const double digits = k->log_scale - s->b * s->epsilon - s->log_wanted;
    const double to_right = k->right.log_size / k->right.slope - s->epsilon + digits / k->right.slope;
    const double to_left = -k->left.log_size / k->left.slope + s->epsilon - digits / k->left.slope;
    if (!(to_right < INFINITY && to_left < INFINITY)) return ACCT_EPRECISION;
    const double period = acct_max(acct_max(to_right, to_left), s->unit);
    k->dy = acct_short_step(2.0 * ACCT_PI / period * (1.0 - 1e-12));
    return ACCT_OK;
}

#define STRIP_TESTS 24

/* the height of the path over sigma^2 where the shift is random, as of find_angle from e on; the ellipses must show
 * everywhere up to hi that arg e^L >= 0 */
static double find_mixture_angle(const acct_step *step, double e, double hi) {
    const acct_mixture *m = step->mixture;
    const double x = acct_mixture_inverse(m, e + step->log_1mq);
    double theta = 0.17 / m->largest;
    for (; theta < 1.3; theta *= 1.15) {
        acct_mixture_region region;
        if (!acct_mixture_region_set(m, x, x, x, 2.42 * theta, &region) || !(region.arg < 0.45 * e)) break;
        int i = 0;
        for (; i <= STRIP_TESTS; i++) {
            const double at = x + (hi - x) * i / STRIP_TESTS;
            if (!acct_mixture_region_set(m, at, at, at, 2.42 * theta, &region) || !region.turns) break;
        }
        if (i <= STRIP_TESTS) break;
    }
    return theta;
}

/* the height of the path over sigma^2, looked for from one that is known to do: twice it is the top of the ellipses,
 * where the argument of L - log(1-q) should stay below .45 times itself from .7 of the scale on */
static double find_angle(double scale, double from) {
    const double e = 0.7 * scale, p = -expm1(-e);
    double theta = from;
    while (theta < 1.3 && acct_loss_arg_upper(2.2 * theta, p) < 0.45 * e) theta *= 1.1;
    return theta;
}

/* where the path first rises, in units of the inner threshold: times the angle, for that is how e^{iyL} turns there;
 * and where the shift is random */
#define FIRST_RISE 0.0075
#define FIRST_RISE_OF_MIXTURE 0.005
#define LEAST_ANGLE 0.17
/* the factor from one scale that is looked at to the next, and the least one from one height to the next */
#define NEXT_SCALE 1.3
#define HIGHER 1.5
/* how far from the window's end the last rise is at least, in deviations */
#define LEFT_OVER 0.5

/* The path's heights: below the first rise e^{iyL} hardly turns, and nothing counts as middling.  Larger losses may
 * turn further; not where the shift is random, for where one shift takes over from another no panel at a greater height
 * has a bound. */
static void find_path(const acct_rare_event_plan *s, const acct_window *window, acct_rare_event_path *path) {
    const acct_step *step = s->step;
    const double sigma = step->sigma, inner = s->thresholds.inner.scale, origin = step->log_1mq;
    double angle = step->mixture ? find_mixture_angle(step, 0.7 * inner, window->hi) : find_angle(inner, LEAST_ANGLE);
    const double share = step->mixture ? FIRST_RISE_OF_MIXTURE : FIRST_RISE / angle;
    path->rises = 1;
    path->height[0] = acct_min(angle * sigma * sigma, sigma);
    path->at[0] = acct_max(acct_loss_inverse(step, share * inner + origin), window->lo + 0.25 * sigma);
    if (step->mixture) return;
    for (double scale = NEXT_SCALE * inner; path->rises < ACCT_RARE_EVENT_RISES; scale *= NEXT_SCALE) {
        const double at = acct_loss_inverse(step, scale + origin), last = path->height[path->rises - 1];
        if (!(at < window->hi - LEFT_OVER * sigma && last < sigma)) break;
        angle = find_angle(scale, angle);
        const double height = acct_min(angle * sigma * sigma, sigma);
        if (!(height > HIGHER * last && at > path->at[path->rises - 1])) continue;
        path->at[path->rises] = at;
        path->height[path->rises++] = height;
    }
}

/* the line on its path, and how many points it takes */
static int set_line(acct_contour *k, const acct_rare_event_plan *s, acct_tilted_law *scratch, double *memory,
                    const acct_window *window, const acct_moments *m, acct_rare_event_sum *rare,
                    acct_rare_event_errors *e) {
    const double inner = s->thresholds.inner.scale, n = s->steps;
    const double share = exp(s->log_wanted - k->log_scale + s->b * s->epsilon);
    acct_window raised = *window;
    raised.threshold = s->thresholds.outer;
    raised.inner_threshold = s->thresholds.inner;
    acct_rare_event_path path;
    find_path(s, window, &path);
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
    if (!status) status = certify_small_losses(k, &s, &window);
    if (!status) status = certify(k, &s, scratch, &window, &m);
    if (!status) status = set_line(k, &s, scratch, memory, &window, &m, &rare, &e);
    if (status) return status;
    fill_terms(k, &rare, &m, &e);
    return k->numerical < INFINITY ? ACCT_OK : ACCT_EPRECISION;
}
