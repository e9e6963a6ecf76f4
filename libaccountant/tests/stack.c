/* Asks every public function on a thread whose stack holds 64 kB: the least that any platform gives has twice that.
 * Every answer must be the one that the program's own stack gives. */
#include "accountant.h"

#include <pthread.h>
#include <string.h>

#include "drive.h"

/* code that sanitizers watch takes several times the stack */
#if defined(__SANITIZE_ADDRESS__)
#define STACK ((size_t)1 << 20)
#else
#define STACK ((size_t)1 << 16)
#endif

enum { ANSWERS = 64 };

typedef struct {
    int count, status[ANSWERS];
    accountant_bounds found[ANSWERS];
    const char *text[2];
} answers;

/* where the next answer goes */
static accountant_bounds *next(answers *a) { return &a->found[a->count]; }
static void keep(answers *a, int status) { a->status[a->count++] = status; }

/* one shift, few draws and little noise: lines, rare events and what is tried where these end */
static void ask_steps(answers *a, int direction) {
    static const double steps[][3] = {{0.01, 1.0, 100.0}, {0.9995, 1.1, 1400.0}, {1e-5, 0.5, 1e4}, {1e-290, 1.0, 10.0}};
    for (size_t i = 0; i < COUNT(steps); i++) {
        const double q = steps[i][0], sigma = steps[i][1], n = steps[i][2];
        keep(a, accountant_epsilon_bounds(q, sigma, n, 1e-6, direction, next(a)));
        keep(a, accountant_delta_bounds(q, sigma, n, 2.4, direction, next(a)));
        keep(a, accountant_renyi_bounds(q, sigma, 300.0, direction, next(a)));
        keep(a, accountant_epsilon_renyi_upper(q, sigma, n, 1e-6, &next(a)->lower, &next(a)->upper));
    }
    keep(a, accountant_gaussian_epsilon_bounds(1.1, 1e-5, next(a)));
    keep(a, accountant_gaussian_delta_bounds(1.1, 2.4, next(a)));
}

static void ask_shifts(answers *a, int direction) {
    double shift[ACCOUNTANT_MOST_SHIFTS], weight[ACCOUNTANT_MOST_SHIFTS];
    for (int j = 0; j < ACCOUNTANT_MOST_SHIFTS; j++) {
        shift[j] = 0.05 * (j + 1);
        weight[j] = 1e-3 / (j + 1.0);
    }
    const accountant_shifts few = {.count = 3, .shift = shift, .weight = weight};
    const accountant_shifts most = {.count = ACCOUNTANT_MOST_SHIFTS, .shift = shift, .weight = weight};
    keep(a, accountant_mixture_epsilon_bounds(&few, 1.0, 20.0, 1e-5, direction, next(a)));
    keep(a, accountant_mixture_delta_bounds(&most, 8.0, 2.0, 0.5, direction, next(a)));
    const accountant_part parts[] = {{0.01, 1.0, 100.0, NULL}, {0.02, 2.0, 10.0, NULL}, {0.0, 1.0, 5.0, &few}};
    keep(a, accountant_composition_epsilon_bounds(parts, COUNT(parts), 1e-5, direction, next(a)));
    keep(a, accountant_composition_delta_bounds(parts, COUNT(parts), 1.0, direction, next(a)));
}

static void *ask(void *to) {
    answers *a = to;
    a->text[0] = accountant_version();
    a->text[1] = accountant_status_message(ACCOUNTANT_ENOMEM);
    for (int direction = ACCOUNTANT_REMOVE; direction <= ACCOUNTANT_EITHER; direction++) {
        if (direction != ACCOUNTANT_ADD) ask_steps(a, direction);
        ask_shifts(a, direction);
    }
    keep(a, accountant_calibrate_sigma(1.0, 1e-5, 0.01, 100.0, &next(a)->upper));
    keep(a, accountant_calibrate_steps(1.0, 1e-5, 0.01, 1.0, &next(a)->upper));
    keep(a, accountant_calibrate_q(1.0, 1e-5, 1.0, 100.0, &next(a)->upper));
    return NULL;
}

static answers usual, small;

int main(void) {
    pthread_t thread;
    pthread_attr_t attributes;
    ask(&usual);
    REQUIRE(pthread_attr_init(&attributes) == 0, "no attributes");
    REQUIRE(pthread_attr_setstacksize(&attributes, STACK) == 0, "no stack of %zu bytes", STACK);
    REQUIRE(pthread_create(&thread, &attributes, ask, &small) == 0, "no thread");
    pthread_join(thread, NULL);
    for (int i = 0; i < usual.count; i++)
        REQUIRE(usual.status[i] == ACCOUNTANT_OK, "question %d: status %d", i, usual.status[i]);
    REQUIRE(memcmp(&usual, &small, sizeof usual) == 0, "another answer than on the usual stack");
    printf("stack: %d answers on %zu kB\n", usual.count, STACK >> 10);
    return 0;
}
