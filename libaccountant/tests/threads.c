/* Many threads ask at the same time: each must get the answers that one alone gets. */
#include "accountant.h"

#include <pthread.h>
#include <string.h>

#include "drive.h"

enum { THREADS = 8, QUESTIONS = 8, ROUNDS = 2 };

typedef struct {
    accountant_bounds epsilon, delta, composed;
    double sigma;
    int status;
} answers;

static void ask(int i, answers *a) {
    const double q = 0.01 * (i + 1), sigma = 0.6 + 0.1 * i, steps = 10.0 * (i + 1);
    const accountant_part parts[] = {{q, sigma, steps, NULL}, {1.0, 30.0, 2.0, NULL}};
    memset(a, 0, sizeof *a);
    a->status = accountant_epsilon_bounds(q, sigma, steps, 1e-6, ACCOUNTANT_EITHER, &a->epsilon) |
                accountant_delta_bounds(q, sigma, steps, 1.0, ACCOUNTANT_EITHER, &a->delta) |
                accountant_composition_epsilon_bounds(parts, 2, 1e-6, ACCOUNTANT_EITHER, &a->composed) |
                accountant_calibrate_sigma(1.0, 1e-6, q, steps, &a->sigma);
}

static answers alone[QUESTIONS];

static void *work(void *first) {
    answers a;
    for (int i = 0; i < QUESTIONS * ROUNDS; i++) {
        const int k = (*(int *)first + i) % QUESTIONS;
        ask(k, &a);
        if (memcmp(&a, &alone[k], sizeof a) != 0) return first;
    }
    return NULL;
}

int main(void) {
    pthread_t thread[THREADS];
    int first[THREADS];
    for (int i = 0; i < QUESTIONS; i++) {
        ask(i, &alone[i]);
        REQUIRE(alone[i].status == ACCOUNTANT_OK, "question %d: %d", i, alone[i].status);
    }
    for (int i = 0; i < THREADS; i++) {
        first[i] = i;
        REQUIRE(pthread_create(&thread[i], NULL, work, &first[i]) == 0, "thread %d", i);
    }
    for (int i = 0; i < THREADS; i++) {
        void *other;
        pthread_join(thread[i], &other);
        REQUIRE(!other, "thread %d: another answer than alone", i);
    }
    printf("threads: %d times %d questions\n", THREADS, QUESTIONS * ROUNDS);
    return 0;
}
