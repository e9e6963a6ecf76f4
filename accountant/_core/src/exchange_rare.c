#include "exchange_rare.h"

#include <math.h>

#include "exchange_large.h"
#include "exchange_terms.h"
#include "order.h"
#include "rounding.h"

/* n Q{x < lo}: outcomes below the window */
#define BELOW 1e-13
/* a chance t^128 is one half where E is so many scales */
#define HALF 2.28
#define MOST_WORK 6e7
#define MOST_HEIGHT 1.6

void acct_exchange_rare_set(acct_exchange_rare *r, double mu, double q, double steps, double *path_memory,
                            double *cell_memory, acct_contour *contour) {
    r->steps = steps;
    r->bare = (acct_exchange_law){.mu = mu, .q = q, .log_1mq = log1p(-q)};
    r->path_memory = path_memory;
    r->contour = contour;
    acct_exchange_cells_set(&r->cells, cell_memory, &r->bare);
}

static void set_outer(acct_exchange_rare *r, double scale) {
    r->split.outer = (acct_threshold){r->bare.log_1mq, scale, ACCT_EXCHANGE_LARGE_DOUBLINGS};
    acct_exchange_cells_threshold(&r->cells, r->split.outer, r->steps, BELOW);
}

/* log of the transform of all steps, upper bound: A^n, or A^n - B^n <= n C A^{n-1} */
static double log_whole(const acct_exchange_rare *r, double c) {
    const double excess = acct_exchange_cells_excess(&r->cells, c), n = r->steps;
    if (!(excess < INFINITY)) return INFINITY;
    if (!(r->split.threshold.scale > 0.0)) return n * log1p(excess);
    const double middling = acct_exchange_cells_middling(&r->cells, r->split.threshold, c);
    return acct_min(n * log1p(excess), log(n) + middling + (n - 1.0) * log1p(excess));
}

/* the distance at which e^{-b epsilon} times the transform over b (b + 1) is least, and that value's log */
static double find_distance(const acct_exchange_rare *r, double epsilon, double *log_least) {
    double best = INFINITY, at = 1.0 / epsilon;
    for (double b = 0.02 / epsilon; b < 100.0 / epsilon + 3.0; b *= 1.25) {
        const double value = log_whole(r, 1.0 + b) - b * epsilon - log(b) - log1p(b);
        if (value < best) {
            best = value;
            at = b;
        } else if (value > best + 30.0) {
            break;
        }
    }
    *log_least = best;
    return at;
}

double acct_exchange_rare_guess(acct_exchange_rare *r, double delta) {
    const double single = acct_exchange_single_guess(r->bare.mu, r->bare.q, delta / r->steps);
    double epsilon = acct_max(single, 1e-12);
    r->split.threshold.scale = 0.0;
    for (int i = 0; i < 8; i++) {
        set_outer(r, 1.6 * epsilon / HALF);
        double next = INFINITY;
        for (double b = 0.02 / epsilon; b < 300.0 / epsilon + 3.0; b *= 1.25)
            next = acct_min(next, (log_whole(r, 1.0 + b) + acct_log_chernoff(b) - log(delta)) / b);
        next = acct_max(next, acct_max(single, 0.05 * epsilon));
        if (!(next < INFINITY)) break;
        const int settled = fabs(next - epsilon) < 0.1 * epsilon;
        epsilon = next;
        if (settled) break;
    }
    return epsilon;
}

/* whether the reverse term is negligible at some order, which it sets */
static int reverse_is_small(acct_exchange_rare *r) {
    double best = INFINITY;
    for (double m = 1.0 / (r->epsilon + r->cells.outer); m < 3e3 / r->epsilon; m *= 1.6) {
        const double value = acct_exchange_cells_reverse(&r->cells, r->steps, m) + (m + 1.0) * r->epsilon;
        if (!(value < best)) return 0;
        best = value;
        r->reverse_order = m;
        if (best < r->log_delta + r->fine) return 1;
    }
    return 0;
}

/* The least threshold of those tried whose large steps have a negligible reverse term: beyond epsilon, and what many
 * steps spread by.
 * returns 0 where there is none */
static int find_outer(acct_exchange_rare *r) {
    static const double RATIO[] = {1.15, 1.35, 1.6, 2.0, 2.6, 3.6, 5.5, 9.0, 16.0, 30.0, 60.0, 120.0};
    const acct_exchange_law *g = &r->bare;
    const double usual = acct_exchange_at(g->mu, g->q, g->log_1mq, 1.0).loss * sqrt(r->steps);
    int low = 0, high = sizeof RATIO / sizeof *RATIO;
    while (low < high) {
        const int middle = (low + high) / 2;
        set_outer(r, RATIO[middle] * (r->epsilon + 2.0 * usual) / HALF);
        if (reverse_is_small(r))
            high = middle;
        else
            low = middle + 1;
    }
    if (low == sizeof RATIO / sizeof *RATIO) return 0;
    set_outer(r, RATIO[low] * (r->epsilon + 2.0 * usual) / HALF);
    return reverse_is_small(r);
}

/* The largest inner threshold of those tried below which all steps together add next to nothing (Theorem D24).
 * returns 0 where there is none */
static int find_inner(acct_exchange_rare *r) {
    const double wanted = r->log_delta + r->fine, n = r->steps;
    double low = 1e-3 * r->epsilon, high = 0.6 * r->epsilon, at = 2.0;
    int found = 0;
    while (high > 1.25 * low) {
        const acct_threshold inner = {0.0, sqrt(low * high), ACCT_EXCHANGE_DOUBLINGS};
        double best = INFINITY, slope = 0.0;
        acct_exchange_cells_inner(&r->cells, inner);
        for (double b = 0.2 * at / inner.scale; b < 60.0 / inner.scale; b *= 1.4) {
            const double excess = acct_exchange_cells_small(&r->cells, 1.0 + b);
            const double size = acct_log_chernoff(b) + n * log1p(excess) + 1e-9 * (1.0 + b * r->epsilon);
            if (!(size - b * r->epsilon < best)) {
                if (best < INFINITY) break;
                continue;
            }
            best = size - b * r->epsilon;
            slope = b;
            if (best < wanted) break;
        }
        if (best < wanted) {
            r->split.threshold = inner;
            r->split.small_log = best + slope * r->epsilon;
            r->split.small_slope = slope;
            low = inner.scale;
            found = 1;
        } else {
            high = inner.scale;
        }
        if (slope > 0.0) at = acct_max(slope * inner.scale, 0.5);
    }
    return found;
}

/* what underflow moves the masses of one step by, sums over cells: results below 1e-290 are not claimed */
#define UNDERFLOWS (333.0 * ACCT_UNDERFLOW)

/* the masses of outcomes with a large step, and none below the window (Theorem D27) */
static void set_tail(acct_exchange_rare *r) {
    const acct_exchange_cells *k = &r->cells;
    const acct_exchange_large *g = &r->large;
    const double n = r->steps, root = 0.7071067811865476, lo = k->x[k->lowest], q = r->bare.q;
    const double below = ((1.0 - q) * 0.5 * erfc(-lo * root) + q * 0.5 * erfc(-(lo + r->bare.mu) * root)) *
                         (1.0 + 1e-9);
    acct_tail_event *t = &r->contour->tail;
    *t = (acct_tail_event){.direction = ACCT_REMOVE,
                           .steps = n,
                           .lost = UNDERFLOWS * n,
                           .reverse_log = -INFINITY,
                           .left_out = n * below};
    if (!(g->q > 0.0 && g->q_err < 0.01 * g->q && g->p_err < 0.01 * g->p && g->p < 0.9)) {
        t->outside = n * (acct_max(g->p, 0.0) + g->p_err) * ACCT_SLACK;
        return;
    }
    const double p_mass = -expm1(n * log1p(-g->p));
    t->q_mass = -expm1(n * log1p(-g->q));
    t->pq_mass = p_mass - t->q_mass;
    const double lost = n * below / (0.99 - g->p) + exp(k->log_large[k->lowest]) * below / (0.98 * g->q);
    const double err = 1.02 * acct_max(g->p_err / g->p, g->q_err / g->q) + 32.0 * ACCT_U * (1.0 + n * g->p) +
                       lost * ACCT_SLACK;
    t->mass_err = t->pq_mass > 0.0 ? err * (p_mass + t->q_mass) / t->pq_mass * ACCT_SLACK : INFINITY;
    if (!(t->mass_err < 1.0)) {
        *t = (acct_tail_event){.direction = ACCT_REMOVE,
                               .steps = n,
                               .lost = UNDERFLOWS * n,
                               .reverse_log = -INFINITY,
                               .outside = p_mass * (1.0 + 1.1 * err) * ACCT_SLACK,
                               .left_out = n * below};
        return;
    }
    t->reverse_log = acct_exchange_cells_reverse(k, n, r->reverse_order);
    t->reverse_slope = r->reverse_order + 1.0;
}

/* the nodes with the widest spacing of those tried, and the sums over them */
static int set_path(acct_exchange_rare *r, double c, double excess, double mean) {
    static const double TURNS[] = {1.2, 0.85, 0.6, 0.5, 0.42, 0.3, 0.2, 0.12, 0.07};
    const double n = r->steps, log_mgf = log1p(excess);
    const double digits = -r->fine + log(n) + 10.0,
                 log_mass = r->log_delta + r->fine - log(n) - 4.0 - r->epsilon;
    acct_exchange_nodes best = {.h = 0.0};
    double middling = 0.0;
    if (r->split.threshold.scale > 0.0)
        middling = log_mgf - acct_exchange_cells_middling(&r->cells, r->split.threshold, c);
    for (unsigned i = 0; i < sizeof TURNS / sizeof *TURNS; i++) {
        acct_exchange_nodes at;
        const double turn = acct_min(TURNS[i], 2.0 * MOST_HEIGHT * r->bare.mu * TURNS[i]);
        if (!acct_exchange_nodes_set(&at, r->path_memory, &r->bare, &r->split, c, turn, log_mgf, log_mass,
                                     digits + acct_max(middling, 0.0)))
            continue;
        double exponent = digits + at.strip_all - log_mgf;
        if (r->split.threshold.scale > 0.0)
            exponent = acct_max(exponent, digits + middling + at.strip_middling - log_mgf);
        exponent = acct_max(exponent, acct_max(at.strip_p, at.strip_q) - log_mass);
        at.h = 2.0 * ACCT_PI * at.height / acct_max(exponent, 8.0);
        if (at.h > best.h) best = at;
    }
    return best.h > 0.0 &&
           acct_exchange_path_set_large(&r->path, r->path_memory, &best, c, mean, &r->split, &r->large);
}

/* log of a bound on the modulus of the transform of all steps, relative to the real order, at y and beyond */
static double log_modulus_upper(const acct_exchange_rare *r, double y) {
    const double along = acct_exchange_path_decay(&r->path, y);
    if (r->split.threshold.scale > 0.0) return log(r->steps * along) + 1e-12;
    return r->steps * log(acct_min(along, acct_exchange_decay_at(&r->decay, y))) * (1.0 - 1e-12);
}

static double truncated(const acct_exchange_rare *r, double y) {
    double total = 0.0, from = y;
    for (int i = 0; i < 20 && from < INFINITY; i++) {
        const double power = log_modulus_upper(r, from);
        const double to = i < 19 && power > -100.0 ? 1.5 * from : INFINITY;
        total += acct_tail_weight(r->contour->b, from, to, r->contour->dy) * exp(power);
        from = to;
    }
    return total * ACCT_SLACK;
}

/* the period at which one side's aliases are below e^{-digits} times the line's scale */
static double alias_side(const acct_exchange_rare *r, double digits, int sign, acct_alias *best) {
    const acct_contour *k = r->contour;
    const double b = k->b, unit = k->log_scale - k->log_scale_err;
    double period = INFINITY, move = sign > 0 ? 4.0 : 0.999;
    for (int i = 0; i < 9; i++, move *= 0.6) {
        const double b2 = acct_exact_distance(sign > 0 ? b * (1.0 + move) : b * (1.0 - move));
        if (b2 == b) continue;
        const double whole = log_whole(r, 1.0 + b2);
        acct_alias alias = {
            .log_size = acct_log_chernoff(b2) + whole - unit + 1e-9 + 1e-11 * (fabs(whole) + fabs(unit)),
            .slope = b2 - b};
        const double p = (alias.log_size - alias.slope * r->epsilon + digits) / fabs(alias.slope);
        if (p < period) {
            period = p;
            *best = alias;
        }
    }
    return period;
}

static int set_lattice(acct_exchange_rare *r, double digits) {
    acct_contour *k = r->contour;
    const double right = alias_side(r, digits, 1, &k->right), left = alias_side(r, digits, -1, &k->left);
    const double period = acct_max(acct_max(right, left), 1e-3 * r->epsilon), wanted = exp(-digits);
    if (!(period < INFINITY)) return 0;
    k->dy = acct_short_step(2.0 * ACCT_PI / period * (1.0 - 1e-12));
    const double most = acct_min(ACCT_MIXTURE_POINTS, MOST_WORK / r->path.count) - 2.0;
    double y = 8.0 * k->dy;
    if (!(truncated(r, most * k->dy) <= wanted)) return 0;
    while (y < most * k->dy && !(truncated(r, y) <= wanted)) y *= 1.15;
    k->count = (int)(floor(acct_min(y, most * k->dy) / k->dy) + 2.0);
    k->truncated = truncated(r, (k->count - 1) * k->dy);
    return acct_exchange_path_in_range(&r->path, (k->count - 1) * k->dy);
}

static double transform(const void *path, double y, double *re, double *im) {
    return acct_exchange_path_sum(path, y, re, im);
}

int acct_exchange_rare_line(acct_exchange_rare *r, int with_small) {
    acct_contour *k = r->contour;
    const double n = r->steps;
    r->split.threshold.scale = 0.0;
    if (!find_outer(r)) return 0;
    if (with_small && !find_inner(r)) return 0;
    double log_least, mean, mode = 0.0;
    const double b = acct_exact_distance(find_distance(r, r->epsilon, &log_least));
    if (!(log_least < INFINITY && b < ACCT_MOST_DISTANCE)) return 0;
    acct_exchange_cells_mean(&r->cells, 1.0 + b, &mean, &mode);
    if (!set_path(r, 1.0 + b, acct_exchange_cells_excess(&r->cells, 1.0 + b), mean)) return 0;
    *k = (acct_contour){.direction = ACCT_REMOVE,
                        .steps = n,
                        .b = b,
                        .amplitude = k->amplitude,
                        .phase = k->phase,
                        .small_losses_log = -INFINITY,
                        .least = ACCT_EXCHANGE_LEAST,
                        .drift = n * mean};
    k->log_scale = n * r->large.log_mgf;
    k->log_scale_err = n * r->large.log_mgf_err + 8.0 * ACCT_U * fabs(k->log_scale);
    if (!(k->log_scale_err < 1.0)) return 0;
    if (!with_small)
        acct_exchange_decay_set(&r->decay, &r->bare, 1.0 + b, mode, r->large.log_mgf + r->large.log_mgf_err,
                                r->split.outer);
    if (!set_lattice(r, k->log_scale - b * r->epsilon - r->log_delta - r->fine)) return 0;
    if (with_small) {
        k->small_losses_log = r->split.small_log;
        k->small_losses_slope = r->split.small_slope;
        acct_exchange_split_terms(k, &r->path);
    } else {
        acct_exchange_terms(k, transform, &r->path);
    }
    set_tail(r);
    return 1;
}
