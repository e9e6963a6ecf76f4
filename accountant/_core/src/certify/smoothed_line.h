/* The product of transforms at the nodes of a vertical line, smoothed by one Gaussian (Theorem 21).
 *
 * A law L of the loss has the transform F(z) = E_Q e^{zL}.  On the line z = c + iy, c > 1, every
 * factor is divided by its value at c, so that no modulus exceeds one; the smoothing of width s is
 * the factor of one Gaussian more, of spread s^2.
 */
#ifndef ACCT_SMOOTHED_LINE_H
#define ACCT_SMOOTHED_LINE_H

#include <stdint.h>

enum acct_line_kind {
    ACCT_LINE_GAUSSIAN, /* e^{v z(z-1)/2} */
    ACCT_LINE_LATTICE,  /* a discrete Gaussian: the same times theta(z) / theta(0) */
    ACCT_LINE_LAPLACE,  /* losses between -v and v */
    ACCT_LINE_ATOMS,    /* finitely many losses */
    ACCT_LINE_RESPONSE  /* v and -v, many times: its power is taken by logarithms; |v y| <= 1 */
};

/* `runs` independent releases of one kind */
typedef struct {
    int kind;
    double runs;
    double spread;   /* v: the squared distance over the variance, or the largest loss */
    double damping;  /* of a lattice: 2 pi^2 sigma^2 */
    double distance; /* of a lattice: an integer */
    double frequency, period; /* of a lattice: v / (2 pi distance), periods per unit of y; and 1 over it */
    const double *loss, *weight; /* of atoms: weights are tilted to c and sum to one */
    int64_t atoms;
    double weight_err; /* relative error of the weights */
} acct_line_part;

/* A complex number, a bound on its error, and one on the modulus of the truth */
typedef struct {
    double re, im, err, most;
} acct_line_value;

/* a product of two such */
acct_line_value acct_line_times(acct_line_value x, acct_line_value y);

/* one to the power of `runs`: the error is that of every run, and of the squarings; `most` of x is not read */
acct_line_value acct_line_power(acct_line_value x, double runs);

/* Nodes y = k * step that count: the product is (re, im), off by at most err; |truth| <= most */
typedef struct {
    double *y, *re, *im, *err, *most;
    int64_t room, kept;
    int64_t pruned; /* nodes left out, where the modulus of the product is below ACCT_LINE_CUT */
} acct_line_nodes;

#define ACCT_LINE_CUT 4e-18

/* sets      nodes->kept, nodes->pruned and the arrays, for k = 0 .. last; with `first`, of these parts times its
 *           product, whose nodes are k = 0 .. first->kept - 1 (y not read), and which is below ACCT_LINE_CUT beyond
 * requires  c > 1, step a double of few digits, so that k * step is exact; parts that decay first
 * returns   a status: ACCT_EPRECISION where more nodes count than there is room for, or where the
 *           round-off of the nodes is not small */
int acct_line_product(const acct_line_part *parts, int64_t count, double c, double step,
                      int64_t last, const acct_line_nodes *first, acct_line_nodes *nodes);

#endif
