/* How loops become vector code: one definition for the whole core. */
#ifndef ACCT_CLONES_H
#define ACCT_CLONES_H

#include "floating_point.h"

/* A function marked so is compiled once for each instruction set; the loader picks the widest that the
 * processor has.  Every clone performs the same operations in the same order, and setup.py forbids
 * fused multiply-adds, so the results are the same to the last bit.
 * ACCT_CLONES is for arithmetic on values in registers, which AVX-512 makes a tenth faster;
 * ACCT_CLONES_MEMORY for loops over rows and words in memory, which it makes no faster. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__linux__)
#define ACCT_CLONES_FOR(...) __attribute__((target_clones("default", __VA_ARGS__)))
#else
#define ACCT_CLONES_FOR(...)
#endif
#define ACCT_CLONES ACCT_CLONES_FOR("avx2", "avx512f")
#define ACCT_CLONES_MEMORY ACCT_CLONES_FOR("avx2")

#if defined(__GNUC__)
#define ACCT_INLINE static inline __attribute__((always_inline))
#else
#define ACCT_INLINE static inline
#endif

/* Sums over nodes and points run in this many interleaved partial sums; it divides every node count. */
#define ACCT_LANES 4

/* Stands before a loop over the lanes inside a loop over nodes or points: GCC would unroll so short a loop before it
 * looks for vectors, of which it then finds half, or none.  The results are the same to the last bit. */
#if defined(__GNUC__) && !defined(__clang__)
#define ACCT_EACH_LANE _Pragma("GCC unroll 1")
#else
#define ACCT_EACH_LANE
#endif

/* The hottest of such loops take one register of AVX-512 at a time, of arrays that are filled up with zeros. */
#define ACCT_WIDE (2 * ACCT_LANES)
static inline int acct_to_wide(int n) { return (n + ACCT_WIDE - 1) / ACCT_WIDE * ACCT_WIDE; }

/* the total of such partial sums */
ACCT_INLINE double acct_lanes_total(const double s[ACCT_LANES]) { return (s[0] + s[1]) + (s[2] + s[3]); }
ACCT_INLINE double acct_wide_total(const double s[ACCT_WIDE]) {
    return acct_lanes_total(s) + acct_lanes_total(s + ACCT_LANES);
}

#endif
