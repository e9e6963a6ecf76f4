#include "exchange_strip.h"

#include <math.h>

#include "loss.h"
#include "rounding.h"

/* the least length of a cell, over 1/mu, and how much the loss may grow on one, over the scale and over itself */
#define CELL 0.1
#define GROWTH 0.04
#define WIDE (1.0 + 1e-9)

double acct_exchange_lost_modulus(double p, double turn) {
    const double s = sin(0.5 * turn);
    return -0.5 * log1p(-4.0 * p * (1.0 - p) * s * s) * (1.0 + 1e-9) + 1e-15;
}

double acct_exchange_posterior(const acct_exchange_law *law, double x) {
    return 1.0 / (1.0 + (1.0 - law->q) / law->q * exp(-law->mu * (x - 0.5 * law->mu)));
}

static double loss_at(const acct_exchange_law *law, double x) {
    return acct_exchange_at(law->mu, law->q, law->log_1mq, x).loss;
}

void acct_exchange_cell_next(const acct_exchange_law *law, double scale, double widest,
                             acct_exchange_cell *c) {
    const double least = acct_min(CELL / law->mu, widest);
    double step = least;
    c->x0 = c->x1;
    const double from = loss_at(law, c->x0), most = acct_max(GROWTH * scale, GROWTH * from);
    while (step < acct_min(1e6 * least, 0.5 * widest) && loss_at(law, c->x0 + 2.0 * step) - from < most)
        step *= 2.0;
    c->x1 = c->x0 + step;
    c->p0 = acct_exchange_at(law->mu, law->q, law->log_1mq, c->x0);
    c->p1 = acct_exchange_at(law->mu, law->q, law->log_1mq, c->x1);
}

/* 4 p (1 - p) is largest in the middle */
double acct_exchange_middle_posterior(const acct_exchange_law *law, const acct_exchange_cell *c) {
    const double p0 = acct_exchange_posterior(law, c->x0) / WIDE;
    const double p1 = acct_min(acct_exchange_posterior(law, c->x1) * WIDE, 1.0);
    return p1 < 0.5 ? p1 : p0 > 0.5 ? p0 : 0.5;
}

int acct_exchange_cell_bounds(const acct_exchange_law *law, acct_threshold threshold,
                              const acct_exchange_cell *c, double turn, double *above, double *below) {
    const double p = acct_exchange_middle_posterior(law, c);
    const double p1 = acct_min(acct_exchange_posterior(law, c->x1) * WIDE, 1.0);
    const double r =
        acct_min(acct_exchange_posterior(law, -c->x0) * WIDE, 0.5); /* of the other law, falls with x */
    const double arg = (acct_loss_arg_upper(turn, p1) + acct_loss_arg_upper(turn, r)) * WIDE;
    const double high = c->p1.loss + c->p1.error + acct_exchange_lost_modulus(r, turn);
    return acct_threshold_bounds(c->p0.loss - c->p0.error, high, acct_exchange_lost_modulus(p, turn), arg,
                                 threshold, above, below);
}

int acct_exchange_cell_large(const acct_exchange_law *law, acct_threshold threshold,
                             const acct_exchange_cell *c, double turn, double *above, double *below) {
    const double p1 = acct_min(acct_exchange_posterior(law, c->x1) * WIDE, 1.0);
    const double lost = acct_exchange_lost_modulus(acct_exchange_middle_posterior(law, c), turn);
    return acct_threshold_bounds(c->p0.up - c->p0.error, c->p1.up + c->p1.error, lost,
                                 acct_loss_arg_upper(turn, p1) * WIDE, threshold, above, below);
}

int acct_exchange_left_large(const acct_exchange_law *law, acct_threshold threshold, double turn,
                             double *above, double *below) {
    const acct_exchange_point p = acct_exchange_at(law->mu, law->q, law->log_1mq, 0.0);
    const double p0 = acct_min(acct_exchange_posterior(law, 0.0) * WIDE, 0.5);
    return acct_threshold_bounds(law->log_1mq - ACCT_U, p.up + p.error, acct_exchange_lost_modulus(p0, turn),
                                 acct_loss_arg_upper(turn, p0) * WIDE, threshold, above, below);
}
