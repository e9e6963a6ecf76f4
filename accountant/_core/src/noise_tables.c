#include "noise_tables.h"

#include <math.h>
#include <stdlib.h>

#include "status.h"

/* fewer parts of one q take no table */
#define LEAST_PARTS 32
/* ends of a table's range of sigma: wider ones take more kinds for each part of the range */
#define LARGEST_RATIO 1.45
/* the work on a part of its own, in parts that are read off a table */
#define ALONE 12

typedef struct {
    double q, precision;
} key;

static int by_key(const void *a, const void *b) {
    const key *x = a, *y = b;
    return x->q != y->q ? (x->q > y->q) - (x->q < y->q)
                        : (x->precision > y->precision) - (x->precision < y->precision);
}

void acct_noise_tables_free(acct_noise_tables *t) {
    for (int i = 0; i < t->count; i++) {
        free(t->table[i]);
        free(t->memory[i]);
    }
    t->count = 0;
}

/* a table for the sorted keys, if it pays */
static int add_table(acct_noise_tables *t, acct_heterogeneous_sum *sums, acct_tilted_law *law,
                     acct_characteristic_sum *cf, const key *first, const key *last) {
    /* of one sigma alone no differences would be left */
    const double ends = first->precision < last[-1].precision * (1.0 - 1e-3) ? 1e-14 : 1e-3;
    acct_noise_table *table = malloc(sizeof *table);
    if (!table) return ACCT_ENOMEM;
    const int kinds = acct_noise_table_plan(table, sums, first->q, first->precision * (1.0 - ends),
                                            last[-1].precision * (1.0 + ends));
    const long parts = last - first;
    double *memory = NULL;
    if (kinds && ALONE * kinds + parts < ALONE * parts) {
        memory = malloc(acct_noise_table_doubles(kinds, table->points, table->levels) * sizeof *memory);
        if (!memory) {
            free(table);
            return ACCT_ENOMEM;
        }
    }
    if (!memory || acct_noise_table_set(table, memory, sums, law, cf)) {
        free(memory);
        free(table);
        return ACCT_OK;
    }
    t->table[t->count] = table;
    t->memory[t->count++] = memory;
    return ACCT_OK;
}

/* tables for the sorted keys of one q */
static int add_run(acct_noise_tables *t, acct_heterogeneous_sum *sums, acct_tilted_law *law,
                   acct_characteristic_sum *cf, const key *first, const key *last) {
    const double range = log(last[-1].precision / first->precision);
    const double pieces = acct_max(ceil(range / log(LARGEST_RATIO)), 1.0);
    int status = ACCT_OK;
    while (first < last && t->count < ACCT_MOST_NOISE_TABLES && !status) {
        const double end = first->precision * exp(range / pieces) * (1.0 + 1e-9);
        const key *next = first;
        while (next < last && next->precision <= end) next++;
        if (next - first >= LEAST_PARTS) status = add_table(t, sums, law, cf, first, next);
        first = next;
    }
    return status;
}

int acct_noise_tables_set(acct_noise_tables *t, acct_heterogeneous_sum *sums, acct_tilted_law *law,
                          acct_characteristic_sum *cf, const acct_part *part, int count) {
    acct_noise_tables_free(t);
    if (count < LEAST_PARTS || sums->plan.count > ACCT_MOST_TABLE_POINTS) return ACCT_OK;
    key *keys = malloc((size_t)count * sizeof *keys);
    if (!keys) return ACCT_ENOMEM;
    int used = 0, status = ACCT_OK;
    for (int i = 0; i < count; i++)
        if (!part[i].mixture && part[i].q < 1.0) keys[used++] = (key){part[i].q, 1.0 / part[i].sigma};
    qsort(keys, (size_t)used, sizeof *keys, by_key);
    for (int i = 0, j; i < used && !status; i = j) {
        for (j = i + 1; j < used && keys[j].q == keys[i].q; j++) continue;
        if (j - i >= LEAST_PARTS) status = add_run(t, sums, law, cf, keys + i, keys + j);
    }
    free(keys);
    return status;
}

const acct_noise_table *acct_noise_tables_find(const acct_noise_tables *t, const acct_part *part) {
    for (int i = 0; i < t->count; i++)
        if (acct_noise_table_holds(t->table[i], part)) return t->table[i];
    return NULL;
}
