#include <limits.h>
#include <stdint.h>
#include <stdlib.h>

#include "accountant.h"
#include "domain.h"
#include "guard.h"
#include "heterogeneous.h"
#include "loss.h"
#include "random_shifts.h"

/* Noise below this has exponents that the core does not compute with. */
#define LEAST_SIGMA 1e-100
/* More bytes than the workspace takes for a part: beyond SIZE_MAX over this there is no memory. */
#define MOST_BYTES 131072

/* the parts that release something, in the core's terms */
typedef struct {
    acct_part *part;
    acct_mixture *mixture;
    int count;
    int bounded;  /* whether the noise is large enough for a finite answer */
    int resolved; /* whether no sampling probability was rounded up: lower ends hold */
} composition;

static void release(composition *c) {
    free(c->part);
    free(c->mixture);
}

static int add_part(composition *c, const accountant_part *given, acct_mixture *room) {
    acct_part *part = &c->part[c->count];
    if (!acct_valid_steps(given->steps)) return ACCT_EDOMAIN;
    if (given->shifts) {
        acct_mixture_part law;
        if (!(given->sigma > LEAST_SIGMA && given->sigma < 1e100)) return ACCT_EDOMAIN;
        if (!acct_random_shifts(given->shifts, given->sigma, &law)) return ACCT_EDOMAIN;
        const int status = acct_part_set_mixture(part, room, &law, given->steps);
        if (status) return status;
        c->count += given->steps > 0.0;
        return ACCT_OK;
    }
    if (!acct_valid_noise(given->q, given->sigma)) return ACCT_EDOMAIN;
    if (given->q == 0.0 || given->steps == 0.0 || given->sigma == INFINITY) return ACCT_OK;
    if (given->sigma <= LEAST_SIGMA) c->bounded = 0;
    if (given->q < ACCT_LEAST_Q) c->resolved = 0;
    *part = (acct_part){acct_max(given->q, ACCT_LEAST_Q), given->sigma, given->steps, NULL};
    c->count++;
    return ACCT_OK;
}

static int gather(composition *c, const accountant_part *given, size_t count) {
    size_t mixed = 0;
    double steps = 0.0;
    *c = (composition){.bounded = 1, .resolved = 1};
    if (count == 0) return ACCT_OK;
    if (!given || count > INT_MAX) return ACCT_EDOMAIN;
    if (count > SIZE_MAX / MOST_BYTES) return ACCT_ENOMEM;
    for (size_t i = 0; i < count; i++) mixed += given[i].shifts != NULL;
    c->part = malloc(count * sizeof *c->part);
    c->mixture = mixed ? malloc(mixed * sizeof *c->mixture) : NULL;
    int status = c->part && (c->mixture || !mixed) ? ACCT_OK : ACCT_ENOMEM;
    mixed = 0;
    for (size_t i = 0; i < count && !status; i++) {
        status = add_part(c, &given[i], c->mixture ? &c->mixture[mixed] : NULL);
        mixed += given[i].shifts != NULL;
    }
    for (int i = 0; i < c->count; i++) steps += c->part[i].steps;
    if (!status && !(steps <= ACCT_MOST_STEPS)) status = ACCT_EDOMAIN;
    if (status) release(c);
    return status;
}

typedef int profile(const acct_part *parts, int count, double given, int direction, acct_bounds *out);

static int bracket(profile *question, const accountant_part *parts, size_t count, double given,
                   int given_is_valid, int direction, acct_bounds nothing, accountant_bounds *out) {
    acct_environment saved;
    composition c;
    acct_bounds found = nothing;
    if (!out) return ACCOUNTANT_EDOMAIN;
    acct_enter(&saved);
    int status = given_is_valid && acct_valid_direction(direction) ? gather(&c, parts, count) : ACCT_EDOMAIN;
    if (!status) {
        if (c.count == 0)
            found.upper = 0.0;
        else if (c.bounded)
            status = question(c.part, c.count, given, direction, &found);
        if (!c.resolved) found.lower = 0.0;
        release(&c);
    }
    acct_leave(&saved);
    return guard_bracket(status, found, nothing, out);
}

int accountant_composition_epsilon_bounds(const accountant_part *parts, size_t count, double delta,
                                          int direction, accountant_bounds *epsilon) {
    return bracket(acct_heterogeneous_epsilon, parts, count, delta, acct_valid_delta(delta), direction,
                   NO_EPSILON, epsilon);
}

int accountant_composition_delta_bounds(const accountant_part *parts, size_t count, double epsilon,
                                        int direction, accountant_bounds *delta) {
    return bracket(acct_heterogeneous_delta, parts, count, epsilon, acct_valid_epsilon(epsilon), direction,
                   NO_DELTA, delta);
}
