/* SPDX-License-Identifier: Apache-2.0 */

/*
 * No C library, for 64 bits and for 32: a program from its first instruction on. _start has no
 * call-frame information, as in many a program that is not of C.
 */
#include <stdint.h>

#ifdef __i386__
#define WORD uint32_t
#define BEGIN                                                                                      \
    ".globl _start\n.type _start, @function\n_start:\n xor %ebp, %ebp\n and $-16, %esp\n call first\n hlt\n"
#else
#define WORD uint64_t
#define BEGIN                                                                                      \
    ".globl _start\n.type _start, @function\n_start:\n xor %ebp, %ebp\n and $-16, %rsp\n call first\n hlt\n"
#endif
__asm__(".text\n" BEGIN ".size _start, . - _start\n");

#define FUNCTION __attribute__((noipa, used))

static volatile WORD values[4] = {0x1111, 0x2222, 3, 4};
static const char name[] = "t." TRUTH_NAME;

FUNCTION WORD leaf(WORD count);
FUNCTION WORD leaf(WORD count)
{
    WORD value = 1;
    for (WORD i = 0; i < count; i++) {
        value = value * 1664525 + 1013904223;
        __asm__ volatile("" : "+r"(value));
    }
    return value;
}

/* Four values across the call: rbp, or ebp, holds one. */
#define CALLER(own, next)                                                                          \
    FUNCTION WORD own(WORD count);                                                                 \
    FUNCTION WORD own(WORD count)                                                                  \
    {                                                                                              \
        WORD a = values[0], b = values[1], c = values[2], d = values[3];                           \
        WORD result = next(count);                                                                 \
        values[0] = a;                                                                             \
        values[1] = b;                                                                             \
        values[2] = c;                                                                             \
        values[3] = d;                                                                             \
        return result;                                                                             \
    }

CALLER(f4, leaf)
CALLER(f3, f4)
CALLER(f2, f3)
CALLER(f1, f2)

FUNCTION void first(void);
FUNCTION void first(void)
{
    long result;
#ifdef __i386__
    __asm__ volatile("int $0x80" : "=a"(result) : "0"(172), "b"(15), "c"(name), "d"(0) : "memory");
#else
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "0"(157), "D"(15), "S"(name), "d"(0)
                     : "rcx", "r11", "memory");
#endif
    for (;;) {
        (void)f1(100000);
    }
}
