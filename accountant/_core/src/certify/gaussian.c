#include "gaussian.h"

#include <math.h>

#include "contour.h"
#include "order.h"
#include "rounding.h"

/* Inversion on the line alpha = 1 + b + iy.  K(alpha) = mu^2 alpha (alpha-1) / 2 exactly, so
 * |A(alpha)/A(1+b)| = exp(-mu^2 y^2 / 2) and all error terms are closed forms (Theorems 2, 5). */
static double saddle(double mu2, double epsilon) {
    /* root of mu2 (b + 1/2) - eps - 1/b - 1/(b+1), increasing in b */
    double b = epsilon / mu2 - 0.5 + 1.0 / sqrt(mu2);
    if (!(b > 0.1 / (1.0 + sqrt(mu2) + mu2))) b = 1.0 / (acct_max(0.5 * mu2 - epsilon, 0.0) + sqrt(mu2));
    for (int i = 0; i < 30; i++) {
        const double f = mu2 * (b + 0.5) - epsilon - 1.0 / b - 1.0 / (b + 1.0);
        const double slope = mu2 + 1.0 / (b * b) + 1.0 / ((b + 1.0) * (b + 1.0));
        double next = b - f / slope;
        if (!(next > 0.3 * b)) next = 0.3 * b;
        if (fabs(next - b) < 1e-3 * b) return next;
        b = next;
    }
    return b;
}

/* Aliases of the trapezoid sum by Chernoff at the distances b + t and b b/(b + t), or on the left by H <= 1
 * where that needs a shorter period (Theorem 5).  The factors sup (1 - e^{-l}) e^{-b l} are below one. */
typedef struct {
    double t, right;    /* on the right: e^{right - t k period} for k = 1, 2, ... */
    double s, left;     /* on the left: e^{left - s k period} */
    double period;      /* at which all are below e^{-digits} */
} gaussian_aliases;

static gaussian_aliases aliases_of(double mu, double mu2, double epsilon, double b, double log_unit,
                                   double digits) {
    const double t = sqrt(2.0 * digits) / mu, drift = mu2 * (b + 0.5) - epsilon;
    const double s = b * t / (b + t), left = 0.5 * mu2 * s * s - drift * s;
    gaussian_aliases a = {.t = t, .right = 0.5 * mu2 * t * t + drift * t, .s = s, .left = left};
    const double by_chernoff = (left + digits) / s, by_one = (digits - log_unit) / b;
    double need = by_chernoff;
    if (!(left < -log_unit * s / b) || by_one < by_chernoff) {
        a.s = b;
        a.left = -log_unit;
        need = by_one;
    }
    a.period = (a.right + digits) / t;
    if (need > a.period) a.period = need;
    return a;
}

/* the geometric series of both sides */
static double gaussian_alias_sum(const gaussian_aliases *a) {
    return exp(a->right - a->t * a->period) / -expm1(-a->t * a->period) +
           exp(a->left - a->s * a->period) / -expm1(-a->s * a->period);
}

/* The sum over y_k = k dy, k < count, its derivative in epsilon, and a bound on the error of the sum: the
 * round-off of a term, the relative error `rel` of mu^2 in its exponent and in its phase, and the terms
 * beyond the last, which fall like e^{-mu^2 y^2 / 2}. */
static void sum_tails(double mu2, double rel, double epsilon, double b, double dy, int count, double *sum,
                      double *slope, double *error) {
    const double drift = mu2 * (b + 0.5) - epsilon;
    *sum = *slope = *error = 0.0;
    for (int k = 0; k < count; k++) {
        const double y = k * dy, fall = 0.5 * mu2 * y * y;
        const double factor = dy / ACCT_PI * (k ? 1.0 : 0.5) / acct_poles(b, y);
        const double a = factor * exp(-fall);
        const double phase = drift * y - atan2(y, b) - atan2(y, b + 1.0);
        *sum += a * cos(phase);
        *slope += a * (y * sin(phase) - b * cos(phase));
        *error += a * (ACCT_U * (64.0 + count) + fall * rel +
                       y * (mu2 * (b + 0.5) * (rel + 4.0 * ACCT_U) + 4.0 * ACCT_U * fabs(epsilon)) +
                       4.0 * ACCT_U * fabs(phase));
    }
    const double y_last = (count - 1) * dy;
    *error += exp(-0.5 * mu2 * y_last * y_last * (1.0 - 4.0 * rel)) /
              (ACCT_PI * (b * (b + 1.0)) * mu2 * y_last);
}

/* the bracket, the plain value and its derivative at epsilon; [0, 1] where no line gives more */
static void gaussian_point(double mu, double mu_err, double epsilon, acct_profile_point *point) {
    const double mu2 = mu * mu, rel = 2.0 * mu_err + 4.0 * ACCT_U;
    const double z = 0.5 * mu - epsilon / mu;
    *point = (acct_profile_point){.value = 1.0, .slope = 0.0, .bounds = {0.0, 1.0}};
    /* 1 - delta <= E_P[e^{theta (eps - L)}] at theta = 1/2 - eps/mu^2: e^{-z^2/2}, z < mu/2 when
     * epsilon > 0; the error of mu and rounding move z by this much */
    const double z_low = z - (mu_err + 4.0 * ACCT_U) * (0.5 * mu + fabs(epsilon) / mu) * ACCT_SLACK;
    if (z_low > 9.5 && epsilon >= 0.0) {
        point->bounds.lower = acct_down(1.0 - acct_exp_upper(-0.5 * z_low * z_low * (1.0 - 4.0 * ACCT_U)));
        return;
    }
    const double b = saddle(mu2, epsilon), poles = b * (b + 1.0);
    const double log_unit = 0.5 * mu2 * poles - b * epsilon;
    const double curvature = mu2 + 1.0 / (b * b) + 1.0 / ((b + 1.0) * (b + 1.0));
    const double log_size = -log(poles) - 0.5 * log(2.0 * ACCT_PI * curvature);
    if (!(log_unit > -INFINITY && log_unit < 1e300 && b < ACCT_MOST_DISTANCE)) return;
    const double digits = 38.0 - log_size; /* errors to e^{-38} of the answer */
    const double y_max = sqrt(2.0 * acct_max(digits - log(poles), 4.0)) / mu;
    const gaussian_aliases aliases = aliases_of(mu, mu2, epsilon, b, log_unit, digits);
    const double dy = 2.0 * ACCT_PI / aliases.period, points = ceil(y_max / dy);
    if (!(points < 100000.0)) return;
    double sum, slope, error;
    sum_tails(mu2, rel, epsilon, b, dy, (int)points + 1, &sum, &slope, &error);
    const double unit_err = (rel + 8.0 * ACCT_U) * (0.5 * mu2 * poles + b * fabs(epsilon) + 1.0);
    const double high = sum + error * ACCT_SLACK;
    const double low = sum - error * ACCT_SLACK - gaussian_alias_sum(&aliases) * (1.0 + 1e-3);
    if (!(high < INFINITY)) return;
    point->value = sum * exp(log_unit);
    point->slope = slope * exp(log_unit);
    const double lower = low > 0.0 ? acct_times_exp_lower(log_unit - unit_err, low) : 0.0;
    point->bounds.upper = acct_probability_upper(acct_times_exp_upper(log_unit + unit_err, high));
    point->bounds.lower = acct_probability_lower(lower);
}

void acct_gaussian_delta(double mu, double mu_err, double epsilon, acct_bounds *out) {
    acct_profile_point point;
    gaussian_point(mu, mu_err, epsilon, &point);
    *out = point.bounds;
    /* where no line helps: H <= e^{-a^2/2}, a = epsilon/mu - mu/2 > 0 */
    const double most = mu * (1.0 + mu_err);
    const double a = epsilon / most * (1.0 - 8.0 * ACCT_U) - most * (0.5 + 8.0 * ACCT_U);
    if (a > 0.0) acct_bounds_intersect(out, 0.0, acct_up(acct_exp_upper(-0.5 * a * a * (1.0 - 4.0 * ACCT_U))));
    out->lower = acct_min(out->lower, out->upper);
}

typedef struct {
    double mu, mu_err;
} gaussian_par;

static void gaussian_at(const void *par, double epsilon, acct_profile_point *point) {
    const gaussian_par *p = par;
    gaussian_point(p->mu, p->mu_err, epsilon, point);
}

void acct_gaussian_epsilon(double mu, double mu_err, double delta, acct_bounds *out) {
    const gaussian_par par = {mu, mu_err};
    const double z = sqrt(acct_max(-2.0 * log(2.5 * delta), 0.0));
    acct_invert(gaussian_at, &par, 0.5 * mu * mu + mu * z, delta, out);
    const double most = mu * (1.0 + mu_err) * (1.0 + 16.0 * ACCT_U);
    acct_bounds_intersect(out, 0.0, most * (0.5 * most + sqrt(-2.0 * log(delta))));
    out->lower = acct_min(out->lower, out->upper);
}

/* One step is the Gaussian mechanism seen through a change of epsilon:
 *   H_{P||Q}(eps) = q H(log(1 + (e^eps - 1)/q)),
 *   H_{Q||P}(eps) = q e^eps t H(-log t),  t = 1 - (1 - e^-eps)/q  (0 where t <= 0),
 * H the profile at q = 1 (Theorem 10). */
typedef struct {
    double q, mu;
} single_par;

static void remove_at(const void *par, double epsilon, acct_profile_point *point) {
    const double q = ((const single_par *)par)->q, mu = ((const single_par *)par)->mu;
    const double gain = expm1(epsilon) / q;
    const double inner = gain < INFINITY ? log1p(gain) : epsilon - log(q) + log1p(-(1.0 - q) * exp(-epsilon));
    const double err = 32.0 * ACCT_U * inner;
    acct_profile_point low, high;
    gaussian_point(mu, 2.0 * ACCT_U, inner + err, &low);
    gaussian_point(mu, 2.0 * ACCT_U, inner - err, &high);
    point->bounds.lower = acct_probability_lower(q * low.bounds.lower);
    point->bounds.upper = acct_probability_upper(q * high.bounds.upper);
    point->value = q * low.value;
    point->slope = low.slope * exp(epsilon - inner);
}

static void add_at(const void *par, double epsilon, acct_profile_point *point) {
    const double q = ((const single_par *)par)->q, mu = ((const single_par *)par)->mu;
    const double spent = -expm1(-epsilon) / q, front = q * exp(epsilon), kept = exp(-epsilon);
    /* where most of it is spent, the other form keeps the digits: 1 - q is then exact */
    const int late = q > 0.5 && spent > 0.5;
    const double t = late ? (kept - (1.0 - q)) / q : 1.0 - spent;
    const double t_err = late ? 16.0 * ACCT_U * (kept + fabs(t)) : 32.0 * ACCT_U * spent + 2.0 * ACCT_U;
    *point = (acct_profile_point){.value = 0.0};
    /* t H(-log t) increases with t */
    const double t_high = acct_min(t + t_err, 1.0), t_low = t - t_err;
    const double front_err = 64.0 * ACCT_U * (1.0 + epsilon);
    acct_profile_point p;
    if (!(t_high > 0.0)) return;
    gaussian_point(mu, 2.0 * ACCT_U, -log(t_high) * (1.0 - 32.0 * ACCT_U), &p);
    point->bounds.upper = acct_probability_upper(front * t_high * p.bounds.upper * (1.0 + front_err));
    if (!(t_low > 0.0)) return;
    gaussian_point(mu, 2.0 * ACCT_U, -log(t_low) * (1.0 + 32.0 * ACCT_U), &p);
    point->bounds.lower = acct_probability_lower(front * t_low * p.bounds.lower * (1.0 - front_err));
    point->value = front * t_low * p.value;
    point->slope = point->value + p.slope - p.value;
}

void acct_single_delta(double q, double sigma, double epsilon, int direction, acct_bounds *out) {
    const single_par par = {q, 1.0 / sigma};
    acct_profile_point point;
    (direction == ACCT_REMOVE ? remove_at : add_at)(&par, epsilon, &point);
    *out = point.bounds;
}

void acct_single_epsilon(double q, double sigma, double delta, int direction, acct_bounds *out) {
    const single_par par = {q, 1.0 / sigma};
    const double mu = par.mu, ratio = acct_min(delta / q, 0.4);
    const double inner = 0.5 * mu * mu + mu * sqrt(-2.0 * log(2.5 * ratio));
    double start = inner < 700.0 ? log1p(q * expm1(inner)) : inner + log(q);
    if (direction == ACCT_ADD && q < 1.0) start = acct_min(start, -0.5 * log1p(-q));
    acct_invert(direction == ACCT_REMOVE ? remove_at : add_at, &par, start, delta, out);
    /* no outcome added has a larger loss */
    if (direction == ACCT_ADD) out->upper = acct_min(out->upper, -log1p(-q) * (1.0 + 32.0 * ACCT_U));
    out->lower = acct_min(out->lower, out->upper);
}
