/* One Poisson-sampled Gaussian step under replace-one, tilted: the sum that stands for its transform.
 *
 * P = (1-q) N(0, 1) + q N(mu, 1) against Q = (1-q) N(0, 1) + q N(-mu, 1); with N the density of N(0, 1),
 *     P = N e^{U},  Q = N e^{W},  U = log(1-q+q e^{mu x - mu^2/2}),  W(x) = U(-x),  L = U - W,
 * odd and increasing.  A(s) = E_Q[e^{sL}] = int N e^{sU + (1-s)W} is summed by the trapezoid rule over nodes
 * k h, at orders c + iy, c > 1, with proved errors (docs/theorems_mixtures.md, Theorem D21).
 */
#ifndef ACCT_EXCHANGE_LAW_H
#define ACCT_EXCHANGE_LAW_H

#define ACCT_EXCHANGE_NODES 60000

typedef struct {
    double mu, q, log_1mq;
    double h; /* spacing; nodes (first + j) h are exact */
    double first;
    int count;
    double *loss;   /* L */
    double *tilt;   /* U */
    double *rest;   /* W - x^2 / 2 */
    double *doubt;  /* bound on the errors of U, of W and of L */
    double *weight; /* of the order last set, the largest about 1 */
} acct_exchange_law;

/* doubles of memory that a law needs */
#define ACCT_EXCHANGE_DOUBLES (5 * ACCT_EXCHANGE_NODES)

/* U, W and L at x, and a bound on the error of each */
typedef struct {
    double up, down, loss, error;
} acct_exchange_point;

acct_exchange_point acct_exchange_at(double mu, double q, double log_1mq, double x);

/* sets     nodes for orders from 1 to c and frequencies to y, with errors below e^{-digits} relative to A(c)
 *          as far as that can be had
 * requires 0 < q < 1, 0 < mu <= 40, memory for ACCT_EXCHANGE_DOUBLES
 * returns  0 where the nodes are too many */
int acct_exchange_law_set(acct_exchange_law *law, double *memory, double mu, double q, double c, double y,
                          double digits);

/* log of a bound on int N e^{cU+(1-c)W} below lo and above hi, together; and ends where it is below -digits */
/* Chances below it are taken as 0, with an error of as much; no profile is claimed above 0 from below it, nor below
 * it from above. */
#define ACCT_EXCHANGE_LEAST 1e-290

double acct_exchange_log_outside(double mu, double q, double log_1mq, double c, double lo, double hi);
void acct_exchange_ends(double mu, double q, double log_1mq, double c, double digits, double *lo, double *hi);

/* about x, with few binary digits, so that multiples are exact */
double acct_exchange_few_digits(double x);

/* the tilted law of one order */
typedef struct {
    double c;
    double log_mgf, log_mgf_err; /* K = log A(c) */
    double mean, m2;             /* of L, roughly; the mean as a number is what phases are relative to */
    double spread;               /* E |L - mean| */
    double blur;                 /* E of the error of L */
    double weight_err;           /* E of the weights' relative errors */
    double weight_spread;        /* the same times |L - mean| */
    double total;                /* of the weights */
    double mode;                 /* the node with the largest */
} acct_exchange_moments;

/* sets     *m and the weights; y: |A(c + iy) - sum| is to be bounded up to this frequency
 * sets     *lattice to that bound, relative to A(c); inf where none was found */
void acct_exchange_moments_set(acct_exchange_law *law, double c, double y, acct_exchange_moments *m,
                               double *lattice);

/* (re, im) = E[e^{iy(L - mean)}] - 1 by the weights last set; plain sums */
void acct_exchange_sum(const acct_exchange_law *law, const acct_exchange_moments *m, double y, double *re,
                       double *im);

/* How fast the characteristic function of a tilted replace-one loss decays (Theorem D22). */
#define ACCT_EXCHANGE_SCALES 6
#define ACCT_EXCHANGE_PIECES 512

/* pieces of the noise on which the loss has at least a uniform law: its length and the mass */
typedef struct {
    int count[ACCT_EXCHANGE_SCALES]; /* pieces of each width */
    double length[ACCT_EXCHANGE_PIECES], mass[ACCT_EXCHANGE_PIECES];
} acct_exchange_decay;

/* log_mgf: an upper bound on K at the order c */
void acct_exchange_decay_set(acct_exchange_decay *decay, const acct_exchange_law *law, double c, double mode,
                             double log_mgf);

/* ensures |phi(y')| <= returned for every y' >= y > 0 */
double acct_exchange_decay_at(const acct_exchange_decay *decay, double y);

/* The transform of a replace-one step along a line above the real noise (docs/theorems_mixtures.md, Theorem D23).
 *
 * With z = x + ia, 0 < 2 a mu < pi, the argument of e^L is between 0 and pi where 0 <= Im z <= 2a, so that
 * |e^{iyL}| <= 1 for every y >= 0: the trapezoid sum of N e^{cU + (1-c)W} e^{iyL} over the nodes k h + ia errs by a
 * bound that does not grow with y, and its terms fall with y.
 */
#define ACCT_EXCHANGE_PATH_NODES 40000
#define ACCT_EXCHANGE_PATH_ARRAYS 7
#define ACCT_EXCHANGE_PATH_DOUBLES (ACCT_EXCHANGE_PATH_ARRAYS * ACCT_EXCHANGE_PATH_NODES)

/* sums over the nodes with the moduli of the weights */
typedef struct {
    double size, spread; /* of 1 and of |L - mean| */
    double size_err, spread_err; /* of the weights' errors, and the same times |L - mean| */
    double blur; /* of the errors of L */
} acct_exchange_sizes;

typedef struct {
    double mu, q, log_1mq;
    double height; /* a */
    double h, first;
    int count;
    double *l_re, *l_im; /* L - mean, after acct_exchange_path_tilt; the imaginary part is not negative */
    double *e_re, *e_im; /* W - z^2/2 */
    double *doubt; /* bound on the error of U, of W and of L */
    double *w_re, *w_im; /* weights of the order, over the real part of their sum */
    double lattice; /* error of A(c + iy), y >= 0, as a sum, over A(c) */
    acct_exchange_sizes sizes;
    double scale_err; /* relative error of the sum for A(c) */
} acct_exchange_path;

/* sets     nodes and weights of the order c, relative to the mean given; errors below e^{-digits} as far as can be
 * requires 0 < q <= 1/2, 0 < mu <= 40, memory for ACCT_EXCHANGE_PATH_DOUBLES
 * returns  0 where the nodes are too many */
int acct_exchange_path_set(acct_exchange_path *path, double *memory, double mu, double q, double c,
                           double mean, double digits);

/* whether all angles at frequencies up to y are within the range of the sums */
int acct_exchange_path_in_range(const acct_exchange_path *path, double y);

/* (re, im) = V = E[e^{iy(L - mean)}] - 1, 0 <= y
 * returns  a bound on the modulus of its error */
double acct_exchange_path_sum(const acct_exchange_path *path, double y, double *re, double *im);

/* ensures |E[e^{iy'L}]| <= returned for every y' >= y >= 0 */
double acct_exchange_path_decay(const acct_exchange_path *path, double y);

#endif
