/* What the certificates and the reproducible training assume of the compiler: a build that breaks it ends with a
 * sentence.  The environment at run time is environment.h's. */
#ifndef ACCT_FLOATING_POINT_H
#define ACCT_FLOATING_POINT_H

#include <float.h>
#include <stdint.h>

/* GCC says 0 where an option contradicts IEEE 754: any part of -ffast-math, and contraction under -std=c11 */
#if defined(__FAST_MATH__) || defined(_M_FP_FAST) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__) || \
    (defined(__GCC_IEC_559) && !__GCC_IEC_559)
#error "Error bounds are counted operation by operation, with infinities, NaNs and division by zero as in IEEE 754: compile without -ffast-math, any of its parts, and -ffp-contract=fast."
#endif

/* Under -std=gnu11 GCC contracts unless told not to, and does not say. */
#if defined(__GNUC__) && !defined(__clang__) && !defined(__STRICT_ANSI__) && defined(__FP_FAST_FMA)
#error "On a machine with fused multiply-adds GCC must be told not to form them: compile with -std=c11 -ffp-contract=off."
#endif
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(_MSC_VER)
#pragma fp_contract(off)
#endif

#if FLT_EVAL_METHOD != 0
#error "Every operation must round to its own type (FLT_EVAL_METHOD 0), not to a wider one: on 32-bit x86 compile with -msse2 -mfpmath=sse."
#endif

#if FLT_RADIX != 2 || DBL_MANT_DIG != 53 || DBL_MAX_EXP != 1024 || DBL_MIN_EXP != -1021 || \
    (defined(DBL_HAS_SUBNORM) && !DBL_HAS_SUBNORM)
#error "A double must be IEEE 754's binary64: 53 bits, exponents of 11 bits, subnormal numbers."
#endif

_Static_assert(sizeof(double) == sizeof(uint64_t) && sizeof(float) == sizeof(uint32_t) && sizeof(int) >= 4,
               "doubles must be as wide as 64-bit integers, floats as 32-bit ones, and int must hold 32 bits");
_Static_assert((-1 & 3) == 3 && -1 >> 1 == -1,
               "negative integers must be in two's complement, and shifted with their sign");

#endif
