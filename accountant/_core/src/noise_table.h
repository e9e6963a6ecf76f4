/* Transforms of steps that differ in sigma only, interpolated in 1/sigma between a few of them (Theorem 19). */
#ifndef ACCT_NOISE_TABLE_H
#define ACCT_NOISE_TABLE_H

#include "heterogeneous_sum.h"
#include "noise_remainder.h"

/* kinds of one table */
#define ACCT_NOISE_KINDS 64
/* real orders beside the line's: those of the aliases and of the reverse term */
enum { ACCT_NOISE_RIGHT, ACCT_NOISE_LEFT, ACCT_NOISE_REVERSE, ACCT_NOISE_ORDERS };

/* a real order: A - 1 at every kind, what each may be off by, and the remainder */
typedef struct {
    double value[ACCT_NOISE_KINDS], error[ACCT_NOISE_KINDS], remainder;
} acct_noise_order;

typedef struct {
    acct_noise_range range;
    int kinds, points, levels;
    int stride; /* points up to whole blocks */
    double sigma[ACCT_NOISE_KINDS]; /* decreasing */
    double factor[ACCT_NOISE_KINDS]; /* prod over i != j of sigma_j / (sigma_i - sigma_j), within 4 u */
    double scale; /* the power of 2 next below 1/sigma */
    double log_mgf[ACCT_NOISE_KINDS]; /* K on the line, at least */
    acct_noise_order order[ACCT_NOISE_ORDERS];
    double remainder; /* of the points */
    double *re, *im; /* A(c + iy_k) - 1, points of one kind after another */
    double *error_of, *size_of; /* what each may be off by, and its modulus */
    double *error, *size; /* per point: the largest error of a kind, and the largest modulus */
    double error_share[ACCT_NOISE_KINDS],
        size_share[ACCT_NOISE_KINDS]; /* a kind's are at most these shares of both */
    double *fall; /* 1 - |phi| is at least this on each level; kinds times (levels + 1) */
} acct_noise_table;

/* doubles that a table takes in the caller's memory */
size_t acct_noise_table_doubles(int kinds, int points, int levels);

/* sets the kinds, their number and the remainders for the orders of the started sum; returns the number of
 * kinds, 0 where too many would be needed */
int acct_noise_table_plan(acct_noise_table *table, const acct_heterogeneous_sum *sums, double q, double least,
                          double most);

/* evaluates the kinds of a planned table into memory */
int acct_noise_table_set(acct_noise_table *table, double *memory, acct_heterogeneous_sum *sums,
                         acct_tilted_law *law, acct_characteristic_sum *cf);

/* whether the part's q and sigma are the table's */
int acct_noise_table_holds(const acct_noise_table *table, const acct_part *part);

/* adds a part that the table holds; the law is for its tail event; ACCT_EPRECISION where errors are not small */
int acct_noise_table_add(const acct_noise_table *table, acct_heterogeneous_sum *sums, acct_tilted_law *law,
                         const acct_part *part);

#endif
