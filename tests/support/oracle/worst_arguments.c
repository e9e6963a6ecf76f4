/* Looks for the arguments at which this machine's mathematics library errs most: random arguments, then small
 * steps around the worst.  The truth is the library's own long double, which must be wider than double.
 *
 *     cc -O2 worst_arguments.c -o worst_arguments -lm && ./worst_arguments 3000000 1 > arguments.txt
 *
 * generate_elementary.py takes the lines (function, argument, error in units of roundoff). */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEPT 64
#define STEPS 20000

typedef enum { EXPONENT, POSITIVE, ABOVE_MINUS_ONE, ANGLE, TAIL } range;
typedef struct {
    const char *name;
    double (*value)(double);
    long double (*truth)(long double);
    range range;
} function;
typedef struct {
    double x, error;
} argument;

static const function FUNCTIONS[] = {
    {"exp", exp, expl, EXPONENT},          {"expm1", expm1, expm1l, EXPONENT}, {"log", log, logl, POSITIVE},
    {"log1p", log1p, log1pl, ABOVE_MINUS_ONE}, {"sin", sin, sinl, ANGLE},      {"cos", cos, cosl, ANGLE},
    {"erf", erf, erfl, TAIL},
    {"erfc", erfc, erfcl, TAIL},
};

static uint64_t state;

static uint64_t word(void) {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

static double uniform(double low, double high) { return low + (high - low) * ((word() >> 11) * 0x1p-53); }

static double log_uniform(double low, double high) { return exp(uniform(log(low), log(high))); }

static double sign(void) { return word() & 1 ? 1.0 : -1.0; }

static double draw(range range) {
    const int way = word() % 4;
    switch (range) {
    case EXPONENT: return way == 0 ? uniform(-700, 709) : way == 1 ? sign() * log_uniform(1e-10, 2) : uniform(-2, 2);
    case POSITIVE:
        return way == 0 ? log_uniform(1e-300, 1e300) : way == 1 ? uniform(0.5, 2) : 1 + sign() * log_uniform(1e-15, 0.4);
    case ABOVE_MINUS_ONE:
        return way == 0   ? log_uniform(0.1, 1e300)
               : way == 1 ? sign() * log_uniform(1e-20, 0.9)
               : way == 2 ? expm1(uniform(-36, 0))
                          : uniform(-0.9, 3);
    case ANGLE: return way == 0 ? sign() * log_uniform(1e-20, 1) : uniform(-1, 1) * (way == 1 ? 6.3 : way == 2 ? 1e3 : 1e9);
    default: return way == 0 ? uniform(0, 26) : way == 1 ? uniform(-1, 3) : way == 2 ? uniform(0.8, 1.25) : uniform(-6, 0);
    }
}

static int inside(range range, double x) {
    switch (range) {
    case EXPONENT: return x > -700 && x < 709 && x != 0;
    case POSITIVE: return x > 1e-300 && x < 1e300 && x != 1;
    case ABOVE_MINUS_ONE: return x > -1 && x < 1e300 && x != 0;
    case ANGLE: return fabs(x) < 1e9 && x != 0;
    default: return x > -26 && x < 26;
    }
}

static double error(const function *f, double x) {
    const long double truth = f->truth(x);
    return (double)(fabsl((f->value(x) - truth) / truth) * 0x1p53L);
}

/* a step of up to 2^39 doubles to either side replaces the argument where the error is larger */
static void climb(const function *f, argument *best) {
    uint64_t bits;
    double x;
    const int width = word() % 40;
    memcpy(&bits, &best->x, sizeof bits);
    bits += (word() % (UINT64_C(2) << width)) - (UINT64_C(1) << width);
    memcpy(&x, &bits, sizeof x);
    if (!inside(f->range, x)) return;
    const double found = error(f, x);
    if (found > best->error) *best = (argument){x, found};
}

int main(int count, char **words) {
    if (count != 3) return 2;
    const long draws = atol(words[1]);
    state = UINT64_C(88172645463325252) ^ (UINT64_C(0x9e3779b97f4a7c15) * strtoull(words[2], NULL, 10));
    for (size_t i = 0; i < sizeof FUNCTIONS / sizeof *FUNCTIONS; i++) {
        const function *f = &FUNCTIONS[i];
        argument best[KEPT] = {{0.0, 0.0}};
        for (long j = 0; j < draws; j++) {
            const double x = draw(f->range);
            argument *least = best;
            if (!inside(f->range, x)) continue;
            for (argument *a = best; a < best + KEPT; a++)
                if (a->error < least->error) least = a;
            const double found = error(f, x);
            if (found > least->error) *least = (argument){x, found};
        }
        for (argument *a = best; a < best + KEPT; a++) {
            for (int k = 0; k < STEPS; k++) climb(f, a);
            printf("%s %a %.4f\n", f->name, a->x, a->error);
        }
    }
    return 0;
}
