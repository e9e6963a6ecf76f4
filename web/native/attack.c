#include <math.h>

#include "page.h"
#include "rounding.h"

/* Every epsilon gives a bound, so that the search for the best one needs no proof. */
typedef struct {
    double q, sigma, steps, rate;
    int status;
} attack;

enum { SCANNED = 22, REFINEMENTS = 24 };

/* epsilon = 0, 2^-10, ..., 2^10 */
static double scanned(int i) { return i == 0 ? 0.0 : ldexp(1.0, i - 11); }

static double profile(attack *a, double epsilon) {
    accountant_bounds delta;
    const int status =
        accountant_delta_bounds(a->q, a->sigma, a->steps, epsilon, ACCOUNTANT_EITHER, &delta);
    if (status) a->status = status;
    return status ? 1.0 : delta.upper;
}

/* TPR <= e^epsilon FPR + delta(epsilon) */
static double by_alarms(attack *a, double epsilon) {
    const double power = epsilon < 709.0 ? acct_times_exp_upper(epsilon, a->rate) : a->rate * 1e308;
    return acct_up(power + profile(a, epsilon));
}

/* TPR <= 1 - e^-epsilon (1 - delta(epsilon) - FPR) */
static double by_misses(attack *a, double epsilon) {
    const double kept = acct_down(acct_down(1.0 - profile(a, epsilon)) - a->rate);
    if (!(kept > 0.0)) return 1.0;
    return acct_up(1.0 - acct_times_exp_lower(-epsilon, kept));
}

typedef double bound(attack *a, double epsilon);

static double least(bound *at, attack *a) {
    const double golden = 0.6180339887498949;
    double best = at(a, 0.0);
    int where = 0;
    for (int i = 1; i < SCANNED; i++) {
        const double value = at(a, scanned(i));
        if (value < best) best = value, where = i;
        if (value > 4.0 * best && i > where + 1) break; /* unimodal */
    }
    double low = scanned(where > 0 ? where - 1 : 0), high = scanned(where < SCANNED - 1 ? where + 1 : where);
    double left = high - golden * (high - low), right = low + golden * (high - low);
    double at_left = at(a, left), at_right = at(a, right);
    for (int i = 0; i < REFINEMENTS; i++) {
        best = fmin(best, fmin(at_left, at_right));
        if (at_left < at_right) {
            high = right, right = left, at_right = at_left;
            at_left = at(a, left = high - golden * (high - low));
        } else {
            low = left, left = right, at_left = at_right;
            at_right = at(a, right = low + golden * (high - low));
        }
    }
    return fmin(best, fmin(at_left, at_right));
}

int page_attack_rate(double q, double sigma, double steps, double false_positives, double *rate) {
    attack a = {q, sigma, steps, false_positives, ACCOUNTANT_OK};
    if (!rate || !(false_positives >= 0.0 && false_positives <= 1.0)) return ACCOUNTANT_EDOMAIN;
    *rate = fmin(1.0, fmin(least(by_alarms, &a), least(by_misses, &a)));
    return a.status;
}
