#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "page.h"
#include "rounding.h"

/* Theorem S12 (ii): where all other contributions are -1 and the record's is +1, or nothing, its batch stands out
 * by 2, or by 1. What is looked at is the largest of an epoch's releases, with distribution function
 * Phi((x - s)/sigma) Phi(x/sigma)^(T-1). Any event of a run bounds epsilon from below: P(A) <= e^eps Q(A) + delta.
 * Here A says that a sum over the epochs, of how much the cell of each largest release speaks for P, is large. The
 * masses of A under both laws are sums of products, so that no rounding of losses needs a proof. */

enum { CELLS = 400, MOST_EPOCHS = 1000 };
/* relative error of a mass that counts; others are in no event */
#define MASS_ERROR 1e-9
#define LEAST_MASS 1e-280
#define SQRT_HALF 0.7071067811865476

typedef struct {
    double *p, *q; /* masses of the knots 0, 1, ..., size - 1 */
    int size;
} law;

/* log of the distribution function, and a bound on its error; y in units of sigma */
static double log_below(double y, double shift, double steps, double *error) {
    const double own = 0.5 * erfc((y - shift) * SQRT_HALF), other = 0.5 * erfc(y * SQRT_HALF);
    const double value = log1p(-fmin(own, 1.0 - ACCT_U)) + (steps - 1.0) * log1p(-fmin(other, 1.0 - ACCT_U));
    /* of erfc, of its arguments, and of the shift, which was rounded */
    const double sizes = 24.0 + 4.0 * y * y + 4.0 * (y - shift) * (y - shift) + 4.0 * shift * fabs(y - shift);
    const double of_own = own * sizes / fmax(1.0 - own, 1e-17);
    const double of_other = other * sizes / fmax(1.0 - other, 1e-17);
    *error = ACCT_U * (of_own + (steps - 1.0) * of_other + 32.0 * fabs(value));
    return value;
}

/* masses of the cells between CELLS edges, below the first and above the last; 0 where not known well */
static void cell_masses(double sigma, double shift, double steps, double *mass) {
    const double low = -2.0, high = 2.0 / sigma + 9.0;
    double before = -INFINITY, before_error = 0.0;
    for (int i = 0; i <= CELLS; i++) {
        double error = 0.0, value = 0.0;
        if (i < CELLS) value = log_below(low + (high - low) * i / (CELLS - 1), shift, steps, &error);
        /* the side on which the difference keeps its digits */
        const int below = value < -0.7;
        const double first = below ? exp(before) : -expm1(before), second = below ? exp(value) : -expm1(value);
        const double moved = below ? second - first : first - second;
        const double absolute = exp(fmin(before, 0.0)) * before_error + exp(fmin(value, 0.0)) * error +
                                16.0 * ACCT_U * (first + second);
        mass[i] = moved > LEAST_MASS && absolute <= MASS_ERROR * moved ? moved : 0.0;
        before = value;
        before_error = error;
    }
}

/* puts the cells on `size` knots by their loss */
static void lattice(const double *p, const double *q, law *one) {
    double lowest = INFINITY, highest = -INFINITY;
    for (int i = 0; i <= CELLS; i++) {
        if (!(p[i] > 0.0 && q[i] > 0.0)) continue;
        lowest = fmin(lowest, log(p[i] / q[i]));
        highest = fmax(highest, log(p[i] / q[i]));
    }
    const double scale = highest > lowest ? (one->size - 1) / (highest - lowest) : 0.0;
    for (int i = 0; i <= CELLS; i++) {
        if (!(p[i] > 0.0 && q[i] > 0.0)) continue;
        const int at = (int)fmin((log(p[i] / q[i]) - lowest) * scale, one->size - 1);
        one->p[at] += p[i];
        one->q[at] += q[i];
    }
}

static void convolve(double *sum, int size, const double *one, int knots, double *room) {
    memset(room, 0, (size_t)(size + knots - 1) * sizeof *room);
    for (int i = 0; i < size; i++)
        for (int j = 0; j < knots; j++) room[i + j] += sum[i] * one[j];
    memcpy(sum, room, (size_t)(size + knots - 1) * sizeof *room);
}

/* the best event {sum >= k}: log((P - delta)/Q), rounded down; relative errors of the masses are added up */
static double best_event(const double *p, const double *q, int size, int epochs, double delta) {
    const double error = epochs * (MASS_ERROR + 4.0 * (size + 8.0) * ACCT_U) + 1e-12;
    double of_p = 0.0, of_q = 0.0, best = 0.0;
    for (int k = size - 1; k >= 0; k--) {
        of_p += p[k];
        of_q += q[k];
        const double rest = of_p * (1.0 - error) - delta * (1.0 + ACCT_U);
        /* products that underflow are lost: they are far below this */
        if (rest > 0.0) best = fmax(best, log(rest / (of_q * (1.0 + error) + 1e-270)) - 1e-12);
    }
    return best;
}

static int bound(const double *p, const double *q, double epochs, double delta, double *epsilon) {
    /* more epochs reveal no less */
    const int counted = (int)fmin(epochs, MOST_EPOCHS);
    const int knots = counted == 1 ? CELLS : (int)fmax(8.0, fmin(CELLS, 6e3 / counted));
    const int most = counted * (knots - 1) + 1;
    double *room = calloc((size_t)(3 * most + 2 * knots), sizeof *room);
    if (!room) return ACCOUNTANT_ENOMEM;
    law one = {room + 3 * most, room + 3 * most + knots, knots};
    double *sum_p = room, *sum_q = room + most, *spare = room + 2 * most;
    lattice(p, q, &one);
    sum_p[0] = sum_q[0] = 1.0;
    for (int e = 0, size = 1; e < counted; e++, size += knots - 1) {
        convolve(sum_p, size, one.p, knots, spare);
        convolve(sum_q, size, one.q, knots, spare);
    }
    *epsilon = best_event(sum_p, sum_q, most, counted, delta);
    free(room);
    return ACCOUNTANT_OK;
}

static int whole(double x) { return x >= 1.0 && x < 0x1p53 && x == floor(x); }

int page_shuffled_epsilon_lower(double sigma, double steps, double epochs, double delta, double *epsilon) {
    double p[CELLS + 1], q[CELLS + 1], other = 0.0;
    if (!epsilon || !(sigma > 0.0) || !whole(steps) || !whole(epochs) || !(delta > 0.0 && delta < 1.0))
        return ACCOUNTANT_EDOMAIN;
    *epsilon = 0.0;
    /* Beyond these hardly any cell has mass under both laws, or the laws hardly differ. */
    if (!(sigma >= 0.05 && sigma <= 1e6)) return ACCOUNTANT_OK;
    cell_masses(sigma, 2.0 / sigma, steps, p);
    cell_masses(sigma, 1.0 / sigma, steps, q);
    int status = bound(p, q, epochs, delta, epsilon);
    if (!status) status = bound(q, p, epochs, delta, &other);
    *epsilon = fmax(*epsilon, other);
    return status;
}
