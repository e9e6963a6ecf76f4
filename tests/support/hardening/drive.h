/* What the programs that drive the native core share: random and extreme arguments, and a check
 * that ends the program with a message. */
#ifndef DRIVE_H
#define DRIVE_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t state;

/* splitmix64 (Steele, Lea and Flood 2014) */
static inline uint64_t word(void) {
    uint64_t z = (state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static inline uint64_t below(uint64_t n) { return word() % n; }
static inline int chance(unsigned n) { return below(n) == 0; }
static inline double unit(void) { return (double)(word() >> 11) * 0x1p-53; }
static inline double log_uniform(double low, double high) {
    return exp(log(low) + unit() * (log(high) - log(low)));
}

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define PICK(a) ((a)[below(COUNT(a))])

/* any double at all: every bit pattern, so NaN, infinities and subnormals too */
static inline double any_double(void) {
    static const double corners[] = {0.0,  -0.0,     1.0,      -1.0,     INFINITY, -INFINITY, NAN,
                                     2.0,  0.5,      0x1p-1074, 0x1p-1022, 0x1p1023, 0x1p53,   0x1p-53,
                                     1e-9, 0x1.fffffffffffffp1023, 0x1.fffffffffffffp-1};
    if (chance(2)) return PICK(corners);
    const union { uint64_t bits; double value; } any = {word()};
    return any.value;
}

static inline double probability(void) {
    static const double corners[] = {0.0,    0x1p-1074, 0x1p-1022, 1e-300, 1e-17, 0x1p-53, 1e-9, 0.5,
                                     0.9999, 0x1.fffffffffffffp-1, 1.0};
    if (chance(4)) return PICK(corners);
    if (chance(8)) return 1.0 - log_uniform(1e-16, 0.5);
    return chance(3) ? unit() : log_uniform(1e-12, 1.0);
}

static inline double deviation(void) {
    static const double corners[] = {0x1p-1074, 1e-200, 1e-20, 0.01, 0.1, 0.3, 1.0, 1e3, 1e20, 1e200, INFINITY};
    if (chance(5)) return PICK(corners);
    return chance(3) ? log_uniform(1e-4, 1e8) : log_uniform(0.2, 20.0);
}

static inline double repetitions(void) {
    static const double corners[] = {0.0, 1.0, 2.0, 3.0, 1e6, 1e12, 0x1p53};
    if (chance(5)) return PICK(corners);
    return floor(chance(3) ? log_uniform(1.0, 1e15) : log_uniform(1.0, 1e6));
}

static inline double loss(void) {
    static const double corners[] = {0.0, 0x1p-1074, 1e-300, 1e-9, 1.0, 700.0, 745.2, 1e6, 1e300};
    return chance(4) ? PICK(corners) : log_uniform(1e-6, 1e3);
}

static inline double tail(void) {
    static const double corners[] = {0x1p-1074, 1e-300, 1e-100, 1e-17, 0.5, 0x1.fffffffffffffp-1};
    return chance(4) ? PICK(corners) : log_uniform(1e-20, 1.0) * (1.0 - 0x1p-53);
}

#define REQUIRE(condition, ...)                              \
    do {                                                     \
        if (!(condition)) {                                  \
            fprintf(stderr, "violated: %s: ", #condition);   \
            fprintf(stderr, __VA_ARGS__);                    \
            fputc('\n', stderr);                             \
            exit(1);                                         \
        }                                                    \
    } while (0)

/* memory of exactly this size, so that a tool notices the first element beyond */
static inline void *exactly(size_t count, size_t size) {
    void *memory = malloc(count > 0 && size > 0 ? count * size : 1);
    if (!memory) exit(2);
    return memory;
}

static inline double *doubles(size_t count) { return exactly(count, sizeof(double)); }

#endif
