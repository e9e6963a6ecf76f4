#include "line_values.h"

#include <math.h>

#include "order.h"
#include "rounding.h"
#include "vmath.h"

void acct_line_values_place(acct_line_values *values, double *memory, size_t points) {
    double **slots[ACCT_LINE_ARRAYS] = {&values->log_modulus, &values->arg,   &values->ratio,
                                        &values->log_most,    &values->factor, &values->poles,
                                        &values->error};
    for (int i = 0; i < ACCT_LINE_ARRAYS; i++) *slots[i] = memory + (size_t)i * points;
}

void acct_line_values_set(const acct_line_values *values, acct_characteristic_sum *cf,
                          const acct_tilted_law *law, const acct_moments *m, double b, double dy,
                          int count) {
    const acct_characteristic_errors errors = acct_characteristic_errors_set(law, m, (count - 1) * dy);
    double re[ACCT_SUM_BLOCK], im[ACCT_SUM_BLOCK];
    for (int first = 0; first < count; first += ACCT_SUM_BLOCK) {
        const int size = count - first < ACCT_SUM_BLOCK ? count - first : ACCT_SUM_BLOCK;
        const double round = acct_characteristic_sum_block(cf, first, size, re, im);
        for (int i = 0; i < size; i++) {
            const int k = first + i;
            const double y = k * dy;
            const acct_characteristic_value v = acct_characteristic_value_at(&errors, y, re[i], im[i], round);
            const double rest = v.modulus - v.error;
            values->log_modulus[k] = v.log_modulus;
            values->arg[k] = v.arg;
            values->ratio[k] = rest > 0.0 ? v.error / rest : INFINITY;
            /* log(1 + x) <= x; the error of the logarithm is counted with the term */
            values->log_most[k] =
                rest > 0.0 ? v.log_modulus + v.error / rest : log(v.modulus + v.error);
            values->factor[k] = acct_trapezoid_factor(b, y, dy, k);
            values->poles[k] = atan2(y, b) + atan2(y, b + 1.0);
        }
    }
}

/* a power below this is taken for 0, and e^{LEAST_LOG} for its error; beyond MOST_LOG there is no bound */
#define LEAST_LOG (-690.0)
#define MOST_LOG 700.0
/* n error / r up to which a term is bounded relative to itself */
#define MOST_RELATIVE 100.0

/* With r = |1+V| - error > 0 the n-th power is within a factor e^{n error / r} of the computed one; where
 * that says nothing, the term and its computed value are bounded apart, by (|1+V| + error)^n.  log, atan2 and exp
 * move the power by 16 n u of log and argument, the other factors by less than 40 u.  (Theorem 8(d)) */
ACCT_CLONES
static void raise(int count, double steps, double sign, const double *restrict log_modulus,
                  const double *restrict arg, const double *restrict ratio, const double *restrict log_most,
                  const double *restrict factor, const double *restrict poles, double *restrict amplitude,
                  double *restrict phase, double *restrict error) {
    for (int k = 0; k < count; k++) {
        const double power = steps * log_modulus[k], above = steps * log_most[k];
        const double relative = steps * ratio[k], turn = steps * arg[k];
        const double product = acct_vexp(power) * factor[k], high = acct_vexp(above) * factor[k];
        const double a = power < LEAST_LOG ? 0.0 : product, most = above > MOST_LOG ? INFINITY : high;
        const double moved = a * acct_vexpm1(relative), apart = a + most;
        const double near = relative < MOST_RELATIVE ? moved : apart;
        const double round = a * ACCT_U * (40.0 + 16.0 * (fabs(power) + fabs(turn)));
        amplitude[k] = a;
        phase[k] = sign * turn - poles[k];
        error[k] = (power < LEAST_LOG ? apart : near) + round;
    }
}

double acct_line_values_power(const acct_line_values *v, int count, double steps, double sign,
                              double *amplitude, double *phase) {
    double total = 0.0;
    raise(count, steps, sign, v->log_modulus, v->arg, v->ratio, v->log_most, v->factor, v->poles, amplitude,
          phase, v->error);
    for (int k = 0; k < count; k++) total += v->error[k];
    return total * ACCT_SLACK;
}
