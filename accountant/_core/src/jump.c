#include "jump.h"

#include <math.h>
#include <stddef.h>

#include "rounding.h"

/* log of sup_l (1 - e^{-l}) e^{-m l} = m^m / (m+1)^{m+1} */
static double log_chernoff(double m) { return -log1p(m) - m * log1p(1.0 / m); }

/* log of the Chernoff bound on the put at order -m, its dependence e^{(m+1) eps} left out.
 * A(-m) <= int_I + e^{-m L(hi)} Q(x > hi) + (1-q)^{-m} Q(x < lo) */
static double put_bound(acct_grid *grid, double steps, double loss_hi, double m,
                        int certify) {
    const double q = grid->q_above;
    acct_moments low;
    acct_grid_moments(grid, -m, certify, &low);
    const double log_all =
        low.log_mgf + low.log_mgf_err +
        log1p((q * exp(-m * loss_hi) + grid->outside * exp(-m * grid->step.log_1mq)) *
              exp(-low.log_mgf));
    return log_chernoff(m) + (steps - 1.0) * log_all - m * loss_hi + log(steps * q) +
           1e-9 * (1.0 + fabs(m * loss_hi));
}

void acct_jump_set(acct_jump *jump, acct_grid *grid, double steps, int direction, double epsilon,
                   double put_order, int certify) {
    const double q = grid->q_above, pq = grid->pq_above;
    jump->direction = direction;
    jump->steps = steps;
    jump->outside = steps * grid->outside;
    jump->q_mass = -expm1(steps * log1p(-q));
    jump->pq_mass = exp(steps * log1p(-q)) * -expm1(steps * log1p(-pq / (1.0 - q)));
    /* of exponents of size steps * q, too */
    jump->mass_err = (grid->above_err + 16.0 * ACCT_U) * (1.0 + steps * q);
    jump->put_log = INFINITY;
    jump->put_slope = 0.0;
    if (direction == ACCT_ADD || !(q > 0.0)) return;
    const double loss_hi = acct_loss(&grid->step, grid->hi, NULL);
    if (!(loss_hi > epsilon)) return;
    /* walk m = 4^i / gap until the bound stops falling */
    if (put_order > 0.0) {
        jump->put_log = put_bound(grid, steps, loss_hi, put_order, certify);
        jump->put_slope = put_order + 1.0;
        if (jump->put_log < INFINITY) return;
    }
    double m = 4.0 / (loss_hi - epsilon), best = INFINITY;
    for (int i = 0; i < 24; i++) {
        const double log_put = put_bound(grid, steps, loss_hi, m, certify);
        if (!(log_put + (m + 1.0) * epsilon < best)) break;
        best = log_put + (m + 1.0) * epsilon;
        jump->put_log = log_put;
        jump->put_slope = m + 1.0;
        m *= 1.7;
    }
}

void acct_jump_cut(acct_jump *jump, const acct_grid *grid, acct_grid *plain, const acct_cuts *cuts,
                   double steps, double put_order) {
    const double m = put_order, loss_hi = acct_loss(&grid->step, grid->hi, NULL);
    /* the put in units of e^{-m unit}, against underflow */
    const double unit = 0.5 * cuts->outer.scale + cuts->outer.origin;
    double q = 0.0, pq = 0.0, put = 0.0, q_err = 0.0, pq_err = 0.0;
    for (int j = 0; j < grid->count; j++) {
        const double l = grid->loss[j], le = grid->loss_err[j];
        const double w = grid->gauss[j] * cuts->above_out[j], excess = grid->e2_plus[j] + l;
        const double e = (256.0 + grid->count + 32.0 * grid->x2[j]) * ACCT_U +
                         acct_cut_above_error(l - cuts->outer.origin, cuts->outer, le);
        q += w;
        pq += w * excess;
        q_err += w * e;
        pq_err += w * (fabs(excess) * e + 2.0 * grid->exp_loss[j] * le);
        put += w * exp(m * (unit - l)) * (1.0 + e + m * le + 8.0 * ACCT_U * m * (fabs(l) + fabs(unit)));
    }
    double of_one, of_exp_u, of_put;
    acct_cut_above_errors(grid, m, &of_one, &of_exp_u, &of_put);
    q_err += of_one;
    pq_err += grid->step.q * (of_one + of_exp_u);
    q += grid->q_above;
    pq += grid->pq_above;
    put = (put + of_put * exp(m * unit) + grid->q_above * exp(m * (unit - loss_hi)) + ACCT_TINY) * ACCT_SLACK;
    jump->direction = ACCT_REMOVE;
    jump->steps = steps;
    jump->outside = steps * grid->outside;
    jump->q_mass = -expm1(steps * log1p(-q));
    jump->pq_mass = exp(steps * log1p(-q)) * -expm1(steps * log1p(-pq / (1.0 - q)));
    jump->mass_err = ((grid->above_err + 16.0 * ACCT_U) + (q_err / q + pq_err / pq) * ACCT_SLACK) *
                     (1.0 + steps * q);
    acct_moments low;
    acct_grid_moments(plain, -m, 1, &low);
    const double log_all = low.log_mgf + low.log_mgf_err +
                           log1p((plain->q_above * exp(-m * loss_hi) +
                                  plain->outside * exp(-m * grid->step.log_1mq)) * exp(-low.log_mgf));
    jump->put_log = log_chernoff(m) + (steps - 1.0) * log_all + log(steps * put) - m * unit +
                    1e-9 * (1.0 + m * (loss_hi + fabs(unit))) + 1e-12 * steps * fabs(log_all);
    jump->put_slope = m + 1.0;
}

void acct_jump_profile(const acct_jump *jump, double epsilon, acct_bounds *out) {
    if (jump->direction == ACCT_ADD) {
        out->lower = 0.0;
        out->upper = jump->q_mass * (1.0 + jump->mass_err) + jump->outside;
        return;
    }
    const double spent = expm1(epsilon) * jump->q_mass;
    const double err = jump->mass_err * (jump->pq_mass + fabs(spent)) +
                       (8.0 * fabs(epsilon) + 32.0) * ACCT_U * fabs(spent);
    const double parity = jump->pq_mass - spent;
    const double put = exp(jump->put_log + jump->put_slope * epsilon);
    /* the share is at most P's mass and at least 0 whatever the put */
    const double whole = (jump->pq_mass + jump->q_mass) * (1.0 + jump->mass_err);
    out->upper = fmin(parity + err + put * ACCT_SLACK, whole) + jump->outside;
    out->lower = fmax(parity - err, 0.0);
}
