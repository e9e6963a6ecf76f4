/* The floating-point environment that the certificates assume: round to nearest, with subnormal
 * numbers, no traps.  A caller may have changed it (fesetround, a library built with -ffast-math
 * that sets FTZ and DAZ), for its thread alone.  Every native entry is run between
 *
 *     acct_environment saved;
 *     acct_enter(&saved);
 *     ...
 *     acct_leave(&saved);
 *
 * which costs a few nanoseconds where there is nothing to change.  The numerics are in other
 * translation units, so that no operation is moved across the calls.
 */
#ifndef ACCT_ENVIRONMENT_H
#define ACCT_ENVIRONMENT_H

#include <fenv.h>
#include <stdint.h>

#if defined(__x86_64__) || defined(_M_X64)

#include <xmmintrin.h>

/* MXCSR: FTZ, rounding, masks of the exceptions, DAZ; and their values after reset */
#define ACCT_CONTROL_BITS 0xFFC0u
#define ACCT_CONTROL_DEFAULT 0x1F80u

static inline uint64_t acct_control(void) { return _mm_getcsr(); }
static inline void acct_set_control(uint64_t control) { _mm_setcsr((unsigned)control); }

#elif defined(__aarch64__) && (defined(__GNUC__) || defined(__clang__))

/* FPCR: FIZ, AH, NEP, traps, FZ16, rounding, FZ, DN; all 0 after reset */
#define ACCT_CONTROL_BITS 0x3C89F07u
#define ACCT_CONTROL_DEFAULT 0u

static inline uint64_t acct_control(void) {
    uint64_t control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    return control;
}
static inline void acct_set_control(uint64_t control) {
    __asm__ volatile("msr fpcr, %0" : : "r"(control) : "memory");
}

#else /* what the C library knows: the rounding direction */

#define ACCT_CONTROL_BITS (~UINT64_C(0))
#define ACCT_CONTROL_DEFAULT ((uint64_t)FE_TONEAREST)

static inline uint64_t acct_control(void) { return (uint64_t)fegetround(); }
static inline void acct_set_control(uint64_t control) { (void)fesetround((int)control); }

#endif

typedef struct {
    uint64_t control;
    int changed;
    fenv_t rest; /* what else the C library keeps, such as the x87 control word */
} acct_environment;

static inline void acct_enter(acct_environment *saved) {
    saved->control = acct_control();
    saved->changed = (saved->control & ACCT_CONTROL_BITS) != ACCT_CONTROL_DEFAULT;
    if (!saved->changed) return;
    fegetenv(&saved->rest);
    fesetenv(FE_DFL_ENV);
    acct_set_control((saved->control & ~(uint64_t)ACCT_CONTROL_BITS) | ACCT_CONTROL_DEFAULT);
}

static inline void acct_leave(const acct_environment *saved) {
    if (!saved->changed) return;
    fesetenv(&saved->rest);
    acct_set_control(saved->control);
}

#endif
