/* The privacy loss of one step in which a record shifts the noise at random.
 *
 * P = w_0 N(0, sigma^2) + sum of w_j N(d_j, sigma^2), Q = N(0, sigma^2), d_j > 0, w_0 = 1 - sum of w_j >= 0:
 *     L(x) = log(w_0 + sum w_j e^{u_j}),        u_j = d_j (2x - d_j) / (2 sigma^2).
 * With p_j the probability of the shift d_j given x (the posterior), sigma^2 L' = E_p[d] increases in x, so L
 * is increasing and convex, as for one shift (Theorems D1 and D2).
 */
#ifndef ACCT_MIXTURE_LOSS_H
#define ACCT_MIXTURE_LOSS_H

#define ACCT_MOST_SHIFTS 256

typedef struct {
    int count;           /* of shifts, made up to a multiple of ACCT_LANES by weights 0 */
    double var2;         /* 2 sigma^2 */
    double present;      /* sum of the weights w_j, j > 0 */
    double silent;       /* w_0, relative error at most 4 u and weight_err; or exactly 0 */
    double weight_err;   /* relative error of all weights */
    double smallest, largest; /* of the shifts */
    double shift[ACCT_MOST_SHIFTS], weight[ACCT_MOST_SHIFTS];
} acct_mixture;

/* the shifts and their weights, in the caller's memory */
typedef struct {
    double sigma;
    int count;                    /* of positive shifts */
    const double *shift, *weight; /* increasing */
    /* w_0 and the relative error of all weights; both 0: the weights are exact, and w_0 is what they leave of one;
     * silent alone 0: there is always a shift */
    double silent, weight_err;
} acct_mixture_part;

/* sets     *m
 * requires count >= 1, shifts positive and increasing, weights positive; unless silent and weight_err
 *          are 0 a law of weights that add up to one, from which the given ones differ relatively by at most
 *          weight_err <= 1e-13
 * returns  ACCT_EDOMAIN where they do not, where the shifts are too many, or where w_0 is below
 *          ACCT_LEAST_SILENT and is not given */
#define ACCT_LEAST_SILENT 1e-9
int acct_mixture_set(acct_mixture *m, const acct_mixture_part *part);

/* one point of the noise */
typedef struct {
    double loss;
    double slope;   /* sigma^2 L' = E_p[d] */
    double present; /* posterior probability of any shift */
    double error;   /* bound on |computed L - L|, x taken as exact */
} acct_mixture_point;

/* posterior: NULL, or space for ACCT_MOST_SHIFTS probabilities p_j, j > 0 (relative error
 * below 1e-12 + 16 u max |u_j|, u_j = d_j (2 x - d_j) / sigma^2) */
void acct_mixture_at(const acct_mixture *m, double x, double *posterior, acct_mixture_point *out);

/* L(x + i eta), 0 <= eta, the branch that is real at eta = 0, where e^L has no zero on the way (Theorem D2; as
 * on what acct_mixture_region_set admits); error: bound on the modulus of its error, inf, and
 * im = 0, where the branch is not known */
void acct_mixture_complex(const acct_mixture *m, double x, double eta, double *re, double *im,
                          double *error);

/* What a panel needs of L where x0 <= Re x <= x1 and |Im x| <= theta sigma^2 */
typedef struct {
    acct_mixture_point lo, mid, hi;
    double arg;     /* bound on |arg e^L| */
    double modulus; /* bound on log(|e^L| real / |e^L| complex) */
    int turns;      /* whether arg e^L >= 0 is shown where Im x >= 0 (Theorem D14) */
} acct_mixture_region;

/* returns 0 unless e^L is shown to have no zero there (Theorem D2) */
int acct_mixture_region_set(const acct_mixture *m, double x0, double mid, double x1, double theta,
                            acct_mixture_region *region);

/* the x at which L(x) = loss > log w_0; plain rounding, for searches only */
double acct_mixture_inverse(const acct_mixture *m, double loss);

#endif
