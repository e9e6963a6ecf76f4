#include "loss.h"

#include <math.h>

#include "rounding.h"
#include "bounds.h"

acct_step acct_step_make(double q, double sigma) {
    acct_step s;
    s.q = q;
    s.sigma = sigma;
    s.log_q = log(q);
    s.log_1mq = q < 1.0 ? log1p(-q) : -INFINITY;
    s.odds = (1.0 - q) / q;
    s.mixture = NULL;
    return s;
}

acct_step acct_step_make_mixture(const acct_mixture *mixture, double sigma) {
    acct_step s;
    s.q = acct_min(mixture->present * (1.0 + 4.0 * ACCT_U + mixture->weight_err), 1.0);
    s.sigma = sigma;
    s.log_q = log(s.q);
    /* below log w_0, so that no loss is */
    s.log_1mq = mixture->silent > 0.5 ? log1p(-mixture->present * (1.0 + mixture->weight_err))
                                        : log(mixture->silent);
    s.log_1mq = s.log_1mq * (1.0 + 32.0 * ACCT_U) - 1.01 * mixture->weight_err;
    s.odds = mixture->silent / mixture->present;
    s.mixture = mixture;
    return s;
}

int acct_part_set_mixture(acct_part *part, acct_mixture *mixture, const acct_mixture_part *law, double steps) {
    const int status = acct_mixture_set(mixture, law);
    if (status) return status;
    *part = (acct_part){acct_step_make_mixture(mixture, law->sigma).q, law->sigma, steps, mixture};
    return ACCT_OK;
}

acct_step acct_part_step(const acct_part *part) {
    return part->mixture ? acct_step_make_mixture(part->mixture, part->sigma)
                         : acct_step_make(part->q, part->sigma);
}

double acct_loss(const acct_step *step, double x, double *density_ratio) {
    if (step->mixture) {
        acct_mixture_point point;
        acct_mixture_at(step->mixture, x, NULL, &point);
        if (density_ratio) *density_ratio = point.slope;
        return point.loss;
    }
    const double u = (2.0 * x - 1.0) / (2.0 * step->sigma * step->sigma);
    if (step->q == 1.0) {
        if (density_ratio) *density_ratio = 1.0;
        return u;
    }
    double p;
    const double loss = acct_loss_at(u, step->q, step->log_q, step->log_1mq, step->odds, &p);
    if (density_ratio) *density_ratio = p;
    return loss;
}

ACCT_CLONES
static void four(const acct_step *step, const double *restrict x, double *restrict loss, double *restrict p) {
    const double scale = 2.0 * step->sigma * step->sigma, q = step->q, log_q = step->log_q;
    const double log_1mq = step->log_1mq, odds = step->odds;
    for (int i = 0; i < 4; i++)
        loss[i] = acct_loss_at((2.0 * x[i] - 1.0) / scale, q, log_q, log_1mq, odds, &p[i]);
}

void acct_loss_four(const acct_step *step, const double x[4], double loss[4], double density_ratio[4]) {
    if (step->q < 1.0 && !step->mixture) {
        four(step, x, loss, density_ratio);
        return;
    }
    for (int i = 0; i < 4; i++) loss[i] = acct_loss(step, x[i], &density_ratio[i]);
}

static acct_turn turn_at(const acct_step *step, double eta) {
    const double theta = 2.0 * eta / (2.0 * step->sigma * step->sigma), half = sin(0.5 * theta);
    return (acct_turn){theta, sin(theta), -2.0 * half * half};
}

ACCT_CLONES
static void complex_losses(const acct_step *step, int count, const double *restrict x, acct_turn by,
                           double *restrict re, double *restrict im) {
    const double scale = 2.0 * step->sigma * step->sigma, q = step->q, log_q = step->log_q;
    const double log_1mq = step->log_1mq, odds = step->odds;
    for (int j = 0; j < count; j++)
        acct_loss_complex_at((2.0 * x[j] - 1.0) / scale, q, log_q, log_1mq, odds, by, &re[j], &im[j]);
}

void acct_losses_complex(const acct_step *step, int count, const double *x, double eta, double *re, double *im) {
    double error;
    const acct_turn by = turn_at(step, eta);
    if (step->q < 1.0 && !step->mixture) {
        complex_losses(step, count, x, by, re, im);
        return;
    }
    for (int j = 0; j < count; j++)
        if (step->mixture) {
            acct_mixture_complex(step->mixture, x[j], eta, &re[j], &im[j], &error);
        } else { /* the loss is u */
            re[j] = (2.0 * x[j] - 1.0) / (2.0 * step->sigma * step->sigma);
            im[j] = by.theta;
        }
}

void acct_loss_complex(const acct_step *step, double x, double eta, double *re, double *im) {
    acct_losses_complex(step, 1, &x, eta, re, im);
}

double acct_loss_arg_chord(double theta, double p) {
    return p <= 0.5 ? theta * p : theta < ACCT_PI ? theta : theta + 1.6;
}

double acct_loss_arg_upper(double theta, double p) {
    if (theta < 1.57) return atan2(p * sin(theta), 1.0 - p + p * cos(theta)) * (1.0 + 1e-12);
    return acct_loss_arg_chord(theta, p);
}

double acct_loss_modulus_upper(double spread) { return -0.5 * log1p(-acct_min(spread * (1.0 + 1e-9), 1.0)); }

double acct_loss_inverse(const acct_step *step, double loss) {
    if (step->mixture) return acct_mixture_inverse(step->mixture, loss);
    const double var = step->sigma * step->sigma;
    double u;
    if (step->q == 1.0)
        u = loss;
    else if (loss < 1.0)
        u = log1p(expm1(loss) / step->q);
    else
        u = loss - step->log_q + log1p(-(1.0 - step->q) * exp(-loss));
    return var * u + 0.5;
}

double acct_e2(double z) {
    if (fabs(z) > 0.5) return expm1(z) - z;
    /* z^2/2 (1 + z/3 (1 + z/4 (1 + ...))): the remainder after z^15 is below 2^-60 relative */
    double r = 1.0;
    for (int k = 15; k >= 3; k--) r = 1.0 + r * z / k;
    return 0.5 * z * z * r;
}
