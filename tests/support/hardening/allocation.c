/* Lets the k-th allocation of every entry point fail, for all k: the entry must say so, and free what
 * it took. Link with -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free.
 * Usage: allocation CALLS SEED */
#include "drive.h"
#include "failing_memory.h"
#include "heterogeneous.h"
#include "bounds.h"
#include "subsampled_gaussian.h"

enum { DELTA, EPSILON, RENYI, EPSILON_RENYI, MIX_DELTA, MIX_EPSILON, MIX_ODOMETER, ENTRIES };

enum { PARTS = 3 };

typedef struct {
    double q, sigma, steps, epsilon, delta, order;
    int direction;
    acct_part parts[PARTS];
} problem;

static int ask(int entry, const problem *p) {
    acct_bounds b = {0.0, 0.0}, each[PARTS];
    double epsilon, order;
    switch (entry) {
        case DELTA: return acct_psg_delta(p->q, p->sigma, p->steps, p->epsilon, p->direction, &b);
        case EPSILON: return acct_psg_epsilon(p->q, p->sigma, p->steps, p->delta, p->direction, &b);
        case RENYI: return acct_psg_renyi(p->q, p->sigma, p->order, p->direction, &b);
        case EPSILON_RENYI: return acct_psg_epsilon_renyi(p->q, p->sigma, p->steps, p->delta, &epsilon, &order);
        case MIX_DELTA: return acct_heterogeneous_delta(p->parts, PARTS, p->epsilon, p->direction, &b);
        case MIX_EPSILON: return acct_heterogeneous_epsilon(p->parts, PARTS, p->delta, p->direction, &b);
        default: return acct_heterogeneous_odometer(p->parts, PARTS, p->delta, p->direction == ACCT_ADD, 0.0, 0, PARTS,
                                                    each);
    }
}

int main(int argc, char **argv) {
    const long calls = argc > 1 ? atol(argv[1]) : 20;
    state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    long tried = 0, seen[ENTRIES] = {0};
    for (long i = 0; i < calls; i++) {
        problem p = {.q = probability(), .sigma = deviation(), .steps = repetitions(), .epsilon = loss(),
                     .delta = tail(), .order = 1.0 + log_uniform(1e-3, 1e3), .direction = (int)below(3)};
        if (i == 0) p = (problem){.q = 0.01, .sigma = 1.0, .steps = 100.0, .epsilon = 1.0, .delta = 1e-5, .order = 8.5};
        for (int k = 0; k < PARTS; k++)
            p.parts[k] = (acct_part){.q = fmax(probability(), ACCT_LEAST_Q), .sigma = fmin(deviation(), 1e200),
                                     .steps = fmax(1.0, floor(repetitions() / 8.0))};
        for (int entry = 0; entry < ENTRIES; entry++) {
            fail_no_allocation();
            ask(entry, &p);
            const long needed = taken;
            REQUIRE(held == 0, "entry %d keeps %ld allocations", entry, held);
            seen[entry] += needed;
            for (long k = 0; k < needed; k++, tried++) {
                fail_allocation(k);
                const int status = ask(entry, &p);
                REQUIRE(status == ACCT_ENOMEM, "entry %d: allocation %ld failed, status %d", entry, k, status);
                REQUIRE(held == 0, "entry %d: allocation %ld failed, %ld are kept", entry, k, held);
            }
        }
    }
    for (int entry = 0; entry < ENTRIES; entry++) REQUIRE(seen[entry] > 0, "entry %d never allocated", entry);
    fail_no_allocation();
    printf("allocation: %ld failures injected\n", tried);
    return 0;
}
