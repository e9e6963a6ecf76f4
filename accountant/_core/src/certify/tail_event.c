#include "tail_event.h"

#include <math.h>
#include <stddef.h>

#include "order.h"
#include "rounding.h"
#include "tilted_law.h"

/* Log of an upper bound on A(-m) = E_Q[e^{-mL}] over the whole line: int_I, and what lies outside, where
 * e^{-mL} is at most e^{-m L(hi)} above and (1-q)^{-m} below the window; where there is always a shift, without
 * what lies below (Theorem D26).  Without `certify` the bound lacks the error of the first. */
static double log_mgf_upper(acct_tilted_law *law, double loss_hi, double m, int certify) {
    double err = 0.0;
    const double inside = acct_tilted_law_log_mgf(law, -m, certify ? &err : NULL);
    const double q = law->q_above + ACCT_UNDERFLOW;
    const double below =
        law->step.log_1mq > -INFINITY ? law->outside * exp(-m * law->step.log_1mq - inside) : 0.0;
    return inside + err + log1p(q * exp(-m * loss_hi - inside) + below);
}

/* Log of Chernoff's bound on the reverse term at the order -m that was set, its dependence e^{(m+1) eps} left out: one
 * of the n steps lies above the window, the others are free. */
static double reverse_upper(const acct_tail_event *tail, const acct_tilted_law *law) {
    const double m = tail->reverse_order, loss_hi = tail->loss_hi;
    return tail->reverse_front + (tail->steps - 1.0) * tail->log_mgf - m * loss_hi +
           log(tail->steps * (law->q_above + ACCT_UNDERFLOW)) + 1e-9 * (1.0 + fabs(m * loss_hi));
}

/* the same, at an order that was not tried before */
static double reverse_at(acct_tail_event *tail, acct_tilted_law *law, double m, int certify) {
    tail->reverse_order = m;
    tail->reverse_front = acct_log_chernoff(m);
    tail->log_mgf = log_mgf_upper(law, tail->loss_hi, m, certify);
    return reverse_upper(tail, law);
}

double acct_tail_event_lost(const acct_tilted_law *law, double steps, int nodes) {
    const int shifts = law->step.mixture ? law->step.mixture->count : 1;
    return (8.0 + nodes + shifts) * ACCT_UNDERFLOW * steps;
}

/* Q^n and P^n - Q^n of the event that some step lies above, from one step's: each is 1 - (1 - mass)^n, without
 * cancellation where the masses are small.  `nodes`: of the sums that they are. */
static void raise_masses(acct_tail_event *tail, const acct_tilted_law *law, double steps, int nodes) {
    tail->steps = steps;
    tail->lost = acct_tail_event_lost(law, steps, nodes);
    tail->outside = steps * law->outside;
    const double exponent = steps * tail->log_stay, gone = expm1(exponent);
    tail->q_mass = -gone;
    tail->pq_mass = exp(exponent) * -expm1(steps * tail->log_stay_ratio);
}

static void set_masses(acct_tail_event *tail, const acct_tilted_law *law, double steps, int direction,
                       double q, double pq, int nodes) {
    tail->direction = direction;
    tail->log_stay = log1p(-q);
    tail->log_stay_ratio = log1p(-pq / (1.0 - q));
    raise_masses(tail, law, steps, nodes);
}

double acct_below_share(const acct_tilted_law *law, double steps) {
    const double inside = 1.0 - (law->q_above + acct_max(law->pq_above, 0.0)) * (1.0 + law->above_err);
    if (law->step.log_1mq > -INFINITY) return 0.0;
    return inside > 0.0 ? acct_min(steps * law->outside / inside * ACCT_SLACK, 1.0) : 1.0;
}

/* the error of both masses; of exponents of size steps * q, too */
static void set_error(acct_tail_event *tail, const acct_tilted_law *law) {
    tail->mass_err = (law->above_err + 16.0 * ACCT_U) * (1.0 + tail->steps * law->q_above) +
                     acct_below_share(law, tail->steps);
}

void acct_tail_event_set(acct_tail_event *tail, acct_tilted_law *law, double steps, int direction,
                         double epsilon, double reverse_order, int certify) {
    set_masses(tail, law, steps, direction, law->q_above, law->pq_above, 0);
    set_error(tail, law);
    tail->reverse_log = INFINITY;
    tail->reverse_slope = tail->reverse_order = tail->log_mgf = 0.0;
    if (direction == ACCT_ADD || !(law->q_above > 0.0)) return;
    const double loss_hi = tail->loss_hi = acct_loss(&law->step, law->hi, NULL);
    if (!(loss_hi > epsilon)) return;
    /* walk m = 4^i / gap until the bound stops falling */
    if (reverse_order > 0.0) {
        tail->reverse_log = reverse_at(tail, law, reverse_order, certify);
        tail->reverse_slope = reverse_order + 1.0;
        if (tail->reverse_log < INFINITY) return;
    }
    double m = 4.0 / (loss_hi - epsilon), best = INFINITY;
    for (int i = 0; i < 24; i++) {
        acct_tail_event next = *tail;
        const double log_reverse = reverse_at(&next, law, m, certify);
        if (!(log_reverse + (m + 1.0) * epsilon < best)) break;
        best = log_reverse + (m + 1.0) * epsilon;
        tail->log_mgf = next.log_mgf;
        tail->reverse_front = next.reverse_front;
        tail->reverse_order = m;
        tail->reverse_log = log_reverse;
        tail->reverse_slope = m + 1.0;
        m *= 1.7;
    }
}

void acct_tail_event_for_steps(acct_tail_event *tail, const acct_tilted_law *law, double steps) {
    raise_masses(tail, law, steps, 0);
    set_error(tail, law);
    if (tail->reverse_log < INFINITY) tail->reverse_log = reverse_upper(tail, law);
}

void acct_tail_event_set_thresholded(acct_tail_event *tail, const acct_tilted_law *law,
                                     acct_tilted_law *plain, const acct_thresholds *thresholds, double steps,
                                     double reverse_order) {
    const double m = reverse_order, loss_hi = acct_loss(&law->step, law->hi, NULL);
    /* the reverse term in units of e^{-m unit}, against underflow */
    const double unit = 0.5 * thresholds->outer.scale + thresholds->outer.origin;
    double q = 0.0, pq = 0.0, reverse = 0.0, q_err = 0.0, pq_err = 0.0;
    for (int j = 0; j < law->count; j++) {
        const double l = law->loss[j], le = law->loss_err[j];
        const double chance = thresholds->above_out[j], w = acct_weight_with_loss(law, j, 0.0) * chance;
        const int far = !(law->x2[j] < ACCT_FAR_NOISE);
        /* N (e^L - 1), and the moduli of what its two terms are: both may nearly cancel */
        const double more = far ? acct_weight_with_loss(law, j, 1.0) * chance - w : w * (law->e2_plus[j] + l);
        const double parts = far ? fabs(more) + 2.0 * w : w * (law->e2_plus[j] + fabs(l));
        const double e = (256.0 + law->count + 32.0 * law->x2[j]) * ACCT_U +
                         acct_threshold_above_error(l - thresholds->outer.origin, thresholds->outer, le);
        /* N e^{-mL}, in units of e^{-m unit} */
        const double of_node = far ? law->quad[j] * exp(m * (unit - l) - law->x2[j])
                                   : law->gauss[j] * exp(m * (unit - l));
        q += w;
        pq += more;
        q_err += w * e;
        pq_err += parts * e + 2.0 * (far ? parts : w * law->exp_loss[j]) * le;
        reverse += of_node * chance * (1.0 + e + m * le + 8.0 * ACCT_U * m * (fabs(l) + fabs(unit)));
    }
    double of_one, of_exp_u, of_reverse;
    acct_above_errors(law, m, &of_one, &of_exp_u, &of_reverse);
    q_err += of_one;
    pq_err += law->step.q * (of_one + of_exp_u);
    q += law->q_above;
    pq += law->pq_above;
    if (!(pq > pq_err)) pq = pq_err; /* at least 0, at most twice that: the law that moves has more above */
    reverse = (reverse + of_reverse * exp(m * unit) +
               (law->q_above + ACCT_UNDERFLOW) * exp(m * (unit - loss_hi)) + ACCT_TINY) *
              ACCT_SLACK;
    set_masses(tail, law, steps, ACCT_REMOVE, q, pq, law->count);
    /* a relative error r of q is at most (n + 1) r q/(1 - q) in what pq is multiplied by and divided by */
    tail->mass_err = ((law->above_err + 16.0 * ACCT_U) + (q_err / q + pq_err / pq) * ACCT_SLACK) *
                     (1.0 + steps * q) / (1.0 - q);
    const double log_all = log_mgf_upper(plain, loss_hi, m, 1);
    tail->reverse_log = acct_log_chernoff(m) + (steps - 1.0) * log_all + log(steps * reverse) - m * unit +
                        1e-9 * (1.0 + m * (loss_hi + fabs(unit))) + 1e-12 * steps * fabs(log_all);
    tail->reverse_slope = m + 1.0;
}

void acct_tail_event_profile(const acct_tail_event *tail, double epsilon, acct_bounds *out) {
    if (tail->direction == ACCT_ADD) {
        out->lower = 0.0;
        out->upper = tail->q_mass * (1.0 + tail->mass_err) + tail->outside + tail->lost;
        return;
    }
    const double rise = expm1(epsilon), spent = rise * tail->q_mass;
    const double err = tail->mass_err * (tail->pq_mass + fabs(spent)) + tail->lost * (2.0 + rise) +
                       (8.0 * fabs(epsilon) + 32.0) * ACCT_U * fabs(spent);
    const double parity = tail->pq_mass - spent;
    const double reverse = exp(tail->reverse_log + tail->reverse_slope * epsilon);
    /* the share is at most P's mass and at least 0 whatever the reverse term */
    const double whole = (tail->pq_mass + tail->q_mass) * (1.0 + tail->mass_err) + 2.0 * tail->lost;
    out->upper = acct_min(parity + err + reverse * ACCT_SLACK, whole) + tail->outside;
    out->lower = acct_max(parity - err, 0.0);
}
