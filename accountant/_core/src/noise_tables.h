/* The tables that serve the parts of one line. */
#ifndef ACCT_NOISE_TABLES_H
#define ACCT_NOISE_TABLES_H

#include "noise_table.h"

#define ACCT_MOST_NOISE_TABLES 16
/* longer lines are for few steps, and take no table */
#define ACCT_MOST_TABLE_POINTS 2048

typedef struct {
    int count;
    acct_noise_table *table[ACCT_MOST_NOISE_TABLES];
    double *memory[ACCT_MOST_NOISE_TABLES];
} acct_noise_tables;

/* Makes tables where many parts share q and are near in sigma; the sum must have been started.  Overwrites the law
 * and cf.  Returns ACCT_ENOMEM or ACCT_OK: parts without a table are added by themselves. */
int acct_noise_tables_set(acct_noise_tables *tables, acct_heterogeneous_sum *sums, acct_tilted_law *law,
                          acct_characteristic_sum *cf, const acct_part *part, int count);

void acct_noise_tables_free(acct_noise_tables *tables);

/* the table that holds the part, or NULL */
const acct_noise_table *acct_noise_tables_find(const acct_noise_tables *tables, const acct_part *part);

#endif
