/* Transforms of steps that differ in sigma only, interpolated in 1/sigma between a few of them (Theorem 19). */
#ifndef ACCT_NOISE_TABLE_H
#define ACCT_NOISE_TABLE_H

#include "heterogeneous_sum.h"

/* How far a polynomial in 1/sigma is from the transform of a step (Theorem 19).
 *
 * In the variable u, e^L = 1 - q + q e^u, only the noise depends on sigma: with beta = 1/sigma it has the density
 *     G(beta, u) = exp(-(u/beta + beta/2)^2 / 2) / (beta sqrt(2 pi)),
 * analytic in beta, so the transform int G e^{sL} du over a fixed window of u is, too: no logarithm is continued,
 * and the bound does not depend on Im s.
 */
/* 1/sigma in [least, most], 0 < least < most; u in [lo, hi] */
typedef struct {
    double q, least, most, lo, hi;
} acct_noise_range;

/* bounds for one real part of s on a few ellipses about [least, most] */
#define ACCT_NOISE_ELLIPSES 6
typedef struct {
    double log_size[ACCT_NOISE_ELLIPSES]; /* log of the transform's modulus on the ellipse; inf: no claim */
    double log_rho[ACCT_NOISE_ELLIPSES];
    double
        log_edge; /* log of the most that moving both ends of the window by 16 u of u changes a transform by */
} acct_noise_bound;

void acct_noise_bound_set(acct_noise_bound *bound, const acct_noise_range *range, double order);

/* ensures  log of the distance of the transform, as a function of 1/sigma, from the nearest polynomial of degree
 *          kinds - 1 is at most the returned value, for every s of that real part */
double acct_noise_remainder(const acct_noise_bound *bound, int kinds);

/* kinds of one table */
#define ACCT_NOISE_KINDS 64

typedef struct {
    acct_noise_range range;
    int kinds, points, levels;
    int stride; /* points up to whole blocks, and a block of real orders: the aliases' and the reverse term's */
    double sigma[ACCT_NOISE_KINDS];   /* decreasing */
    double factor[ACCT_NOISE_KINDS];  /* prod over i != j of sigma_j / (sigma_i - sigma_j), within 2 kinds u */
    double log_mgf[ACCT_NOISE_KINDS]; /* K on the line, at least */
    double size[ACCT_NOISE_KINDS];    /* of A - 1 at y = 0 or dy, which errors are in units of */
    double *re, *im;           /* A - 1, points of one kind after another */
    double *error, *remainder; /* per point: the largest error of a kind, with its round-off, in such units; and that
                                * of a polynomial */
    double *fall;    /* 1 - |phi| is at least this on each level; kinds times (levels + 1) */
} acct_noise_table;

/* adds a part that the table holds; the law is for its tail event; ACCT_EPRECISION where errors are not small */
int acct_noise_table_add(const acct_noise_table *table, acct_heterogeneous_sum *sums, acct_tilted_law *law,
                         const acct_part *part);

/* The tables that serve the parts of one line. */
#define ACCT_MOST_NOISE_TABLES 16

typedef struct {
    int count;
    acct_noise_table *table[ACCT_MOST_NOISE_TABLES];
} acct_noise_tables;

/* Makes tables where many parts share q and are near in sigma; the sum must have been started.  Overwrites the law
 * and cf.  Returns ACCT_ENOMEM or ACCT_OK: parts without a table are added by themselves. */
int acct_noise_tables_set(acct_noise_tables *tables, acct_heterogeneous_sum *sums, acct_tilted_law *law,
                          acct_characteristic_sum *cf, const acct_part *part, int count);

void acct_noise_tables_free(acct_noise_tables *tables);

/* the table that holds the part, or NULL */
const acct_noise_table *acct_noise_tables_find(const acct_noise_tables *tables, const acct_part *part);

#endif
