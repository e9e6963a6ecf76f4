/* The transform of a replace-one step along a line above the real noise (docs/theorems_mixtures.md, Theorem D23).
 *
 * With z = x + ia, 0 < 2 a mu < pi, the argument of e^L is between 0 and pi where 0 <= Im z <= 2a, so that
 * |e^{iyL}| <= 1 for every y >= 0: the trapezoid sum of N e^{cU + (1-c)W} e^{iyL} over the nodes k h + ia errs by a
 * bound that does not grow with y, and its terms fall with y.
 */
#ifndef ACCT_EXCHANGE_PATH_H
#define ACCT_EXCHANGE_PATH_H

#include "exchange_law.h"
#include "exchange_split.h"

#define ACCT_EXCHANGE_PATH_NODES 40000
#define ACCT_EXCHANGE_PATH_ARRAYS 9
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
    double *c_re, *c_im; /* weights times the chance of being middling; split only */
    double lattice, c_lattice; /* errors of A(c + iy) and C(c + iy), y >= 0, as sums, over A(c) */
    acct_exchange_sizes all, middling;
    double scale_err; /* relative error of the sum for A(c) */
} acct_exchange_path;

/* sets     nodes and weights of the order c, relative to the mean given; errors below e^{-digits} as far as can be;
 *          with the chances of being middling, if split is not NULL; turn: the largest a mu, at most 1.2
 * requires 0 < q <= 1/2, 0 < mu <= 40, memory for ACCT_EXCHANGE_PATH_DOUBLES
 * returns  0 where the nodes are too many */
int acct_exchange_path_set(acct_exchange_path *path, double *memory, double mu, double q, double c,
                           double mean, double digits, double turn, const acct_exchange_split *split);

/* The same with steps that count as large (Theorem D27): where the nodes are, and logs of bounds on the integrals of
 * moduli over any height up to twice the path's, and on what lies beyond the nodes, of the integrands of A(c) and
 * C(c) without large steps, and of the large steps' masses under P and Q */
typedef struct {
    double mu, q, height, h, lo, hi;
    double strip_all, strip_middling, strip_p, strip_q;
    double out_all, out_p, out_q;
} acct_exchange_nodes;

/* masses of large steps with bounds on their errors, and log A(c) of the others */
typedef struct {
    double p, q, p_err, q_err;
    double log_mgf, log_mgf_err;
} acct_exchange_large;

/* sets     nodes, weights and *large; the split's inner threshold may have scale 0, the outer one may not
 * returns  0 where the nodes are too many or do not resolve the weights */
int acct_exchange_path_set_large(acct_exchange_path *path, double *memory, const acct_exchange_nodes *nodes,
                                 double c, double mean, const acct_exchange_split *split,
                                 acct_exchange_large *large);

/* whether all angles at frequencies up to y are within the range of the sums */
int acct_exchange_path_in_range(const acct_exchange_path *path, double y);

/* (re, im) = V = E[e^{iy(L - mean)}] - 1, 0 <= y
 * returns  a bound on the modulus of its error */
double acct_exchange_path_sum(const acct_exchange_path *path, double y, double *re, double *im);

/* the same, and middling = C(c + iy) e^{-iy mean} / A(c) with a bound on its error */
double acct_exchange_path_split(const acct_exchange_path *path, double y, double *re, double *im,
                                double middling[2], double *middling_err);

/* ensures |E[e^{iy'L}]| <= returned for every y' >= y >= 0; |C(c + iy')| / A(c) of a split path */
double acct_exchange_path_decay(const acct_exchange_path *path, double y);

#endif
