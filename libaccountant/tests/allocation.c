/* Lets the k-th allocation of every public function fail, for all k: it must say so, and free what it took.
 * Linked with -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free. */
#include "accountant.h"

#include "drive.h"
#include "failing_memory.h"

enum {
    EPSILON,
    DELTA,
    RENYI,
    RENYI_EPSILON,
    MIXTURE_EPSILON,
    MIXTURE_DELTA,
    COMPOSITION_EPSILON,
    COMPOSITION_DELTA,
    SIGMA,
    STEPS,
    Q,
    FUNCTIONS
};

static int ask(int function) {
    static const double shift[] = {1.0, 2.0}, weight[] = {0.01, 0.001};
    const accountant_shifts law = {.count = 2, .shift = shift, .weight = weight};
    const accountant_part parts[] = {{0.01, 1.0, 100.0, NULL},
                                     {0.02, 2.0, 10.0, NULL},
                                     {0.0, 1.0, 5.0, &law}};
    accountant_bounds b;
    double x, y;
    switch (function) {
        case EPSILON:
            return accountant_epsilon_bounds(0.01, 1.0, 100.0, 1e-5, 2, &b);
        case DELTA:
            return accountant_delta_bounds(0.01, 1.0, 100.0, 1.0, 2, &b);
        case RENYI:
            return accountant_renyi_bounds(0.01, 1.0, 8.5, 2, &b);
        case RENYI_EPSILON:
            return accountant_epsilon_renyi_upper(0.01, 1.0, 100.0, 1e-5, &x, &y);
        case MIXTURE_EPSILON:
            return accountant_mixture_epsilon_bounds(&law, 1.0, 100.0, 1e-5, 2, &b);
        case MIXTURE_DELTA:
            return accountant_mixture_delta_bounds(&law, 1.0, 100.0, 1.0, 2, &b);
        case COMPOSITION_EPSILON:
            return accountant_composition_epsilon_bounds(parts, 3, 1e-5, 2, &b);
        case COMPOSITION_DELTA:
            return accountant_composition_delta_bounds(parts, 3, 1.0, 2, &b);
        case SIGMA:
            return accountant_calibrate_sigma(1.0, 1e-5, 0.01, 100.0, &x);
        case STEPS:
            return accountant_calibrate_steps(1.0, 1e-5, 0.01, 1.0, &x);
        default:
            return accountant_calibrate_q(1.0, 1e-5, 1.0, 100.0, &x);
    }
}

int main(void) {
    long tried = 0;
    for (int function = 0; function < FUNCTIONS; function++) {
        fail_no_allocation();
        REQUIRE(ask(function) == ACCOUNTANT_OK, "function %d", function);
        const long needed = taken;
        REQUIRE(needed > 0 && held == 0, "function %d takes %ld allocations and keeps %ld", function, needed,
                held);
        for (long k = 0; k < needed; k++, tried++) {
            fail_allocation(k);
            const int status = ask(function);
            REQUIRE(status == ACCOUNTANT_ENOMEM, "function %d: allocation %ld failed, status %d", function, k,
                    status);
            REQUIRE(held == 0, "function %d: allocation %ld failed, %ld are kept", function, k, held);
        }
    }
    fail_no_allocation();
    printf("allocation: %ld failures injected\n", tried);
    return 0;
}
