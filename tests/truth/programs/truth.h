/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The common parts of programs that know their own calls. Each program has a declaration beside it,
 * NAME.truth: the possible stacks from truth_begin() on, which names the process t.TRUTH_NAME.
 * Before that the process has the name of its file, and is not judged. A program runs until it is
 * killed.
 */

#include <stddef.h>
#include <stdint.h>

#define TRUTH_PR_SET_NAME 15
#ifdef __i386__
#define TRUTH_SYS_PRCTL 172
#else
#define TRUTH_SYS_PRCTL 157
#endif

/* A function that the compiler neither inlines, clones nor adapts to its callers. */
#ifdef __clang__
#define TRUTH_FUNCTION __attribute__((noinline, used))
#else
#define TRUTH_FUNCTION __attribute__((noipa, used))
#endif

/* Behind a call: it is then no tail call. */
#define TRUTH_STAY() __asm__ volatile("" ::: "memory")

/* Without libc, which the stack would have in it. */
__attribute__((always_inline)) static inline void truth_name(const char *name)
{
    long result = TRUTH_SYS_PRCTL;
#ifdef __i386__
    __asm__ volatile("int $0x80"
                     : "+a"(result)
                     : "b"(TRUTH_PR_SET_NAME), "c"(name), "d"(0)
                     : "memory");
#else
    __asm__ volatile("syscall"
                     : "+a"(result)
                     : "D"(TRUTH_PR_SET_NAME), "S"(name), "d"(0)
                     : "rcx", "r11", "memory");
#endif
}

/* No other program is called so. */
#define truth_begin() truth_name("t." TRUTH_NAME)

__attribute__((always_inline)) static inline uint64_t truth_spin(uint64_t iterations)
{
    uint64_t value = 1;
    for (uint64_t i = 0; i < iterations; i++) {
        value = value * 6364136223846793005U + 1442695040888963407U;
        __asm__ volatile("" : "+r"(value));
    }
    return value;
}

/* Six values that live across a call of `next`: every register that a callee must save holds one,
 * rbp as well where it is free. None is an address of code or of a stack. */
static volatile uint64_t truth_values[6]
    __attribute__((unused)) = {0x1111, 0x22222222, 0x333333333333, 4, 5, 6};

#define TRUTH_CALLER(name, next)                                                                   \
    TRUTH_FUNCTION uint64_t name(uint64_t count);                                                  \
    TRUTH_FUNCTION uint64_t name(uint64_t count)                                                   \
    {                                                                                              \
        uint64_t a = truth_values[0], b = truth_values[1], c = truth_values[2];                    \
        uint64_t d = truth_values[3], e = truth_values[4], f = truth_values[5];                    \
        uint64_t result = next(count);                                                             \
        truth_values[0] = a;                                                                       \
        truth_values[1] = b;                                                                       \
        truth_values[2] = c;                                                                       \
        truth_values[3] = d;                                                                       \
        truth_values[4] = e;                                                                       \
        truth_values[5] = f;                                                                       \
        return result;                                                                             \
    }

/* A caller that leaves rbp alone. */
#define TRUTH_QUIET_CALLER(name, next)                                                             \
    TRUTH_FUNCTION uint64_t name(uint64_t count);                                                  \
    TRUTH_FUNCTION uint64_t name(uint64_t count)                                                   \
    {                                                                                              \
        uint64_t result = next(count);                                                             \
        TRUTH_STAY();                                                                              \
        return result;                                                                             \
    }

#ifdef TRUTH_QUIET
#define TRUTH_RUNG TRUTH_QUIET_CALLER
#else
#define TRUTH_RUNG TRUTH_CALLER
#endif

/* main;f1;f2;f3;f4;LEAF. With TRUTH_QUIET rbp in the leaf is still that of main(). */
#define TRUTH_LADDER(leaf)                                                                         \
    TRUTH_RUNG(f4, leaf)                                                                           \
    TRUTH_RUNG(f3, f4)                                                                             \
    TRUTH_RUNG(f2, f3)                                                                             \
    TRUTH_RUNG(f1, f2)
