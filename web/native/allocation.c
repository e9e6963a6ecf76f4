#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "page.h"
#include "rounding.h"

/* Rényi divergences of random allocation at integer orders. Remove: the moments of S10, as the coefficients of a
 * power of a polynomial, all of whose terms are positive. Add: the integral of S26. With Y the likelihood ratio of a
 * step and S the mean of T copies, they are log E S^order and log E S^(1 - order), over order - 1. */

enum { MOST_ORDER = 512, MOST_NODES = 4000, POINTS = 2600 };
#define LEAST_SIGMA 0.15 /* below it there is little to amplify, and the powers are beyond the doubles */
#define LEAST_TERM 1e-300
#define MOST_EXPONENT 690.0

/* --- Remove ----------------------------------------------------------------------------------------------- */

/* of two polynomials, up to a degree; what underflow takes is put back */
static void multiply(double *a, const double *b, int degree, double *room) {
    for (int n = 0; n <= degree; n++) {
        double sum = LEAST_TERM;
        for (int j = 0; j <= n; j++) sum += a[j] * b[n - j];
        room[n] = sum;
    }
    memcpy(a, room, ((size_t)degree + 1) * sizeof *a);
}

/* sets  cumulant[n] to an upper bound on log E S^n, n = 2 ... MOST_ORDER, or to INFINITY */
static int remove_cumulants(double sigma, double steps, double *cumulant) {
    double *room = malloc(3 * (MOST_ORDER + 1) * sizeof *room);
    if (!room) return ACCOUNTANT_ENOMEM;
    double *power = room, *base = room + MOST_ORDER + 1, *spare = base + MOST_ORDER + 1;
    /* E e^{tY} as a formal series, in units that keep all coefficients within the doubles */
    const double unit = MOST_ORDER / 2.718281828459045, log_unit = log(unit / steps);
    /* the largest relative error of the coefficients so far */
    double log_factorial[MOST_ORDER + 1] = {0.0}, worst[MOST_ORDER + 1];
    int degree = -1;
    for (int j = 0; j <= MOST_ORDER; j++) {
        if (j) log_factorial[j] = log_factorial[j - 1] + log(j);
        const double moment = 0.5 * j * (j - 1.0) / (sigma * sigma);
        const double exponent = moment + j * log_unit - log_factorial[j];
        if (exponent < MOST_EXPONENT && degree == j - 1) degree = j;
        base[j] = fmax(exp(fmin(exponent, MOST_EXPONENT)), LEAST_TERM);
        power[j] = j == 0;
        const double sizes = moment + j * fabs(log_unit) + (j + 16.0) / 16.0 * log_factorial[j];
        worst[j] = fmax(j ? worst[j - 1] : 0.0, 16.0 * ACCT_U * (1.0 + sizes));
    }
    for (double left = steps; left >= 1.0; left = floor(0.5 * left)) {
        if (fmod(left, 2.0) == 1.0) multiply(power, base, degree, spare);
        if (left > 1.0) multiply(base, base, degree, spare);
    }
    for (int n = 2; n <= MOST_ORDER; n++) {
        /* relative errors add up in a product, and each rounds as many times as it has terms */
        const double error = steps * (worst[n] + (n + 8.0) * ACCT_U);
        const double sizes = log_factorial[n] * (n + 16.0) + n * fabs(log(unit)) * 16.0 + 1e3;
        cumulant[n] = log(power[n]) + log_factorial[n] - n * log(unit) + 1.01 * error + ACCT_U * sizes;
        if (n > degree || !(cumulant[n] < 1e300) || error > 0.01) cumulant[n] = INFINITY;
    }
    free(room);
    return ACCOUNTANT_OK;
}

/* --- Add -------------------------------------------------------------------------------------------------- */

/* E S^-a = 1/Gamma(a) * integral of e^{au} g(e^u) du, g(t) = E e^{-tS} */
#define FIRST_U (-14.0)
#define STEP_U 0.02
/* where the integrand has fallen from its peak by so much, by its logarithm, the sum ends */
#define FALLEN (-32.0)

/* E e^-lY by the same sum. With terms above e^-100 exponents err by less than 1e-10; the others, and what is beyond
 * the nodes, are less than 1e-30. */
static double directly(double at, const double *weight, const double *ratio, int nodes) {
    double sum = 0.0;
    for (int i = 0; i < nodes; i++) sum += weight[i] * exp(-fmin(at * ratio[i], 100.0));
    return sum * (1.0 + 1e-10) + 1e-30;
}

/* log of an upper bound on g at the points of u: T log phi(e^u / T) */
static int transform(double sigma, double steps, double *log_g) {
    const double mu = 1.0 / sigma, width = fmin(0.5 * 3.14159265358979 * sigma, 6.0);
    /* phi(l) = 1 - E(1 - e^{-lY}) by a trapezoid rule in the normal score, whose error falls like e^{-2 pi width/step} */
    const double step = 2.0 * ACCT_PI * width / (0.5 * width * width + 64.0), low = -12.0, high = 12.0 + mu;
    const int nodes = (int)ceil((high - low) / step);
    if (nodes > MOST_NODES) return ACCOUNTANT_EPRECISION;
    double *weight = malloc(2 * (size_t)nodes * sizeof *weight);
    if (!weight) return ACCOUNTANT_ENOMEM;
    double *ratio = weight + nodes;
    for (int i = 0; i < nodes; i++) {
        const double t = low + step * i;
        weight[i] = step / ACCT_SQRT_2PI * exp(-0.5 * t * t);
        ratio[i] = exp(mu * t - 0.5 * mu * mu);
    }
    /* of a term: score and density, the exponent of Y, expm1, the products; and their sum */
    const double rounded = ACCT_U * (4.0 * high * high + 32.0 * (mu * high + mu * mu) + 64.0 + nodes);
    const double alias = 2.1 * exp(0.5 * width * width - 2.0 * ACCT_PI * width / step);
    for (int k = 0; k < POINTS; k++) {
        const double at = exp(FIRST_U + STEP_U * k) * (1.0 - 1e-13) / steps;
        double sum = 0.0;
        for (int i = 0; i < nodes; i++) sum -= weight[i] * expm1(-at * ratio[i]);
        const double lost = fmin(fmax(sum * (1.0 - rounded) - alias * fmin(2.0, at), 0.0), 1.0 - ACCT_U);
        double log_phi = log1p(-lost);
        if (lost > 0.5) log_phi = fmin(log_phi, log(directly(at, weight, ratio, nodes) + alias));
        log_g[k] = steps * log_phi * (1.0 - 32.0 * ACCT_U);
    }
    free(weight);
    return ACCOUNTANT_OK;
}

/* an upper bound on log E S^-a, a a whole number >= 1 */
static double add_cumulant(const double *log_g, int a) {
    const int peak = (int)((log(a) - FIRST_U) / STEP_U);
    const double u = FIRST_U + STEP_U * peak;
    const double height = a * u - exp(u) * (1.0 + 1e-12); /* g(t) >= e^-t: Jensen */
    /* what comes before the first point, where g <= 1 */
    double sum = exp(a * FIRST_U - height) / expm1(a * STEP_U), last = 0.0;
    int k = 0;
    for (; k < POINTS; k++) {
        last = a * (FIRST_U + STEP_U * k) + log_g[k] - height;
        if (last > MOST_EXPONENT) return INFINITY;
        sum += exp(last);
        if (k > peak && last < FALLEN) break;
    }
    if (k == POINTS) return INFINITY;
    /* The integrand is log-concave: beyond, it falls at least as fast as from the peak to here. */
    sum += exp(last) / expm1(-last / (k - peak));
    /* the best of a few strips for the trapezoid rule's error, a share of the integral */
    double share = 1.0;
    for (double v = 0.1; v < 1.5; v += 0.05)
        share = fmin(share, 2.0 * exp(fmin(-a * log(cos(v)) - 2.0 * ACCT_PI * v / STEP_U, 1.0)));
    if (!(share < 1e-6)) return INFINITY;
    double log_gamma = 0.0;
    for (int j = 2; j < a; j++) log_gamma += log(j);
    const double sizes = 64.0 * (a * 40.0 + fabs(height) + 1e3) + log_gamma * (a + 16.0);
    return log(sum * STEP_U) + height - log_gamma + 2.0 * share + ACCT_U * sizes;
}

/* --- Both ------------------------------------------------------------------------------------------------- */

static int whole(double x) { return x >= 1.0 && x < 0x1p53 && x == floor(x); }

/* sets  cumulant[n], n = 2 ... MOST_ORDER, to upper bounds on (n - 1) times the divergence of an epoch */
static int cumulants(double sigma, double steps, int direction, double *cumulant) {
    if (direction == ACCOUNTANT_REMOVE) return remove_cumulants(sigma, steps, cumulant);
    double *log_g = malloc(POINTS * sizeof *log_g);
    if (!log_g) return ACCOUNTANT_ENOMEM;
    const int status = transform(sigma, steps, log_g);
    /* S10 has a closed bound too */
    for (int n = 2; n <= MOST_ORDER; n++) {
        /* every small order, and one in eight of the large ones */
        const int asked = !status && (n <= 40 || n % 8 == 0);
        const double closed = 0.5 * (n - 1.0) * (1.0 + (n - 1.0) / steps) / (sigma * sigma) * (1.0 + 1e-14);
        cumulant[n] = asked ? fmin(add_cumulant(log_g, n - 1), closed) : closed;
    }
    free(log_g);
    return status;
}

int page_allocation_renyi_upper(double sigma, double steps, int order, int direction, double *divergence) {
    double cumulant[MOST_ORDER + 1];
    if (!divergence || !(sigma >= LEAST_SIGMA && sigma <= 1e6) || !whole(steps) || order < 2 ||
        order > MOST_ORDER || (direction != ACCOUNTANT_REMOVE && direction != ACCOUNTANT_ADD))
        return ACCOUNTANT_EDOMAIN;
    const int status = cumulants(sigma, steps, direction, cumulant);
    if (!status) *divergence = acct_up(fmax(cumulant[order], 0.0) / (order - 1.0));
    return status;
}

/* epsilon by the best order (Theorem 12) */
static double converted(const double *cumulant, double epochs, double delta) {
    double best = INFINITY;
    for (int n = 2; n <= MOST_ORDER; n++) {
        const double spent = epochs * fmax(cumulant[n], 0.0), given = log(delta) + log(n);
        const double epsilon = (spent - given) / (n - 1.0) + log1p(-1.0 / n);
        best = fmin(best, epsilon + 1e-14 * (spent + fabs(given) + 1.0));
    }
    return fmax(best, 0.0);
}

int page_allocation_epsilon_upper(double sigma, double steps, double epochs, double delta, double *epsilon) {
    accountant_bounds full;
    double cumulant[MOST_ORDER + 1], worst = 0.0;
    if (!epsilon || !whole(steps) || !whole(epochs)) return ACCOUNTANT_EDOMAIN;
    /* Picking a step is no worse than telling which (S2). */
    int status = accountant_epsilon_bounds(1.0, sigma, epochs, delta, ACCOUNTANT_EITHER, &full);
    if (status) return status;
    *epsilon = full.upper;
    if (!(sigma >= LEAST_SIGMA && sigma <= 1e6)) return ACCOUNTANT_OK;
    for (int direction = ACCOUNTANT_REMOVE; direction <= ACCOUNTANT_ADD; direction++) {
        status = cumulants(sigma, steps, direction, cumulant);
        if (status == ACCOUNTANT_EPRECISION) return ACCOUNTANT_OK;
        if (status) return status;
        worst = fmax(worst, converted(cumulant, epochs, delta));
    }
    *epsilon = fmin(*epsilon, worst);
    return ACCOUNTANT_OK;
}
