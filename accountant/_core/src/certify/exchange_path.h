/* The transform of a replace-one step along a line above the real noise (docs/theorems_mixtures.md, Theorem D23).
 *
 * With z = x + ia, 0 < 2 a mu < pi, the argument of e^L is between 0 and pi where 0 <= Im z <= 2a, so that
 * |e^{iyL}| <= 1 for every y >= 0: the trapezoid sum of N e^{cU + (1-c)W} e^{iyL} over the nodes k h + ia errs by a
 * bound that does not grow with y, and its terms fall with y.
 */
#ifndef ACCT_EXCHANGE_PATH_H
#define ACCT_EXCHANGE_PATH_H

#include "exchange_law.h"

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
