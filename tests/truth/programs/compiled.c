/* SPDX-License-Identifier: Apache-2.0 */

/*
 * C as compilers really compile it, without call frames, by the number TRUTH_CASE.
 */
#include "step.h"

#include <alloca.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

uint64_t work(uint64_t kind, uint64_t count);
TRUTH_FUNCTION uint64_t callback(uint64_t count);
TRUTH_FUNCTION uint64_t callback(uint64_t count)
{
    return truth_spin(count);
}
uint64_t (*volatile pointer)(uint64_t) = callback;
volatile uint64_t stored[64];

__attribute__((noreturn)) TRUTH_FUNCTION void panic(uint64_t a, uint64_t b, uint64_t c, uint64_t d,
                                                    uint64_t e, uint64_t f, uint64_t g, uint64_t h);
TRUTH_FUNCTION void panic(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f,
                          uint64_t g, uint64_t h)
{
    (void)truth_spin(a + b + c + d + e + f + g + h);
    abort();
}
void (*volatile panic_pointer)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                               uint64_t) __attribute__((noreturn)) = panic;
#define DIE(x)   panic((x), 2, 3, 4, 5, 6, (x), 8)
#define DIE_P(x) panic_pointer((x), 2, 3, 4, 5, 6, (x), 8)

#define SWITCH_MASK   1 /* switch (kind & 7), cases that do not return between others */
#define SWITCH_BIASED 2
#define SWITCH_SIGNED 3
#define SWITCH_SPARSE 4
#define GOTO          5 /* computed goto */
#define NESTED        6
#define DRAP          7
#define BIG           8 /* a large frame */
#define ALLOCA_LOOP   9
#define VARIADIC      10
#define SETJMP        11
#define COLD          12
#define TAIL_POINTER  13
#define BYTES         14
#define UNREACHABLE   15
#define INNER_COMPARE 16
#define SHRINK        17
#define ENUM_SMALL    18
#define MASK_COMPARE  19 /* another comparison near a switch without one */
#define CALLEE_POPS   20 /* clang's swiftasynccall: the callee takes its arguments off */
#define FORKED        21 /* clone() as fork(), inlined, with a counter in rbp */

#if TRUTH_CASE == SWITCH_MASK
TRUTH_FUNCTION uint64_t work(uint64_t kind, uint64_t count)
{
    uint64_t r = truth_values[0];
    switch (kind & 7) {
    case 0:
        r += callback(count);
        break;
    case 1:
        DIE_P(kind);
    case 2:
        r ^= callback(count + 1);
        break;
    case 3:
        DIE_P(count);
    case 4:
        r += callback(count) * 3;
        break;
    case 5:
        r -= callback(count);
        stored[3] = r;
        break;
    case 6:
        DIE_P(r);
    case 7:
        r += pointer(count);
        stored[2] = r;
        break;
    }
    return r;
}
#elif TRUTH_CASE == SWITCH_BIASED || TRUTH_CASE == SWITCH_SIGNED || TRUTH_CASE == ENUM_SMALL
#if TRUTH_CASE == SWITCH_BIASED
#define FROM 100
#define TYPE unsigned
#elif TRUTH_CASE == SWITCH_SIGNED
#define FROM (-3)
#define TYPE int
#else
#define FROM 0
#define TYPE unsigned char
#endif
TRUTH_FUNCTION uint64_t work(uint64_t kind, uint64_t count)
{
    uint64_t r = truth_values[0];
    TYPE k = (TYPE)(FROM + (int)(kind & 7));
    __asm__ volatile("" : "+r"(k));
    switch ((int)k) {
    case FROM:
        r += callback(count);
        break;
    case FROM + 1:
        DIE_P(kind);
    case FROM + 2:
        r ^= callback(count + 1);
        break;
    case FROM + 3:
        DIE_P(count);
    case FROM + 4:
        r += callback(count) * 3;
        break;
    case FROM + 5:
        r -= callback(count);
        stored[3] = r;
        break;
    case FROM + 6:
        DIE_P(r);
    case FROM + 7:
        r += pointer(count);
        stored[2] = r;
        break;
    default:
        DIE(r);
    }
    return r;
}
#elif TRUTH_CASE == SWITCH_SPARSE
TRUTH_FUNCTION uint64_t work(uint64_t kind, uint64_t count)
{
    uint64_t r = truth_values[0];
    switch (kind * 1000) {
    case 0:
        r += callback(count);
        break;
    case 1000:
        DIE_P(kind);
    case 2000:
        r ^= callback(count + 1);
        break;
    case 3000:
        DIE_P(count);
    case 4000:
        r += callback(count) * 3;
        break;
    case 5000:
        r -= callback(count);
        stored[3] = r;
        break;
    case 6000:
        DIE_P(r);
    case 7000:
        r += pointer(count);
        stored[2] = r;
        break;
    default:
        DIE(r);
    }
    return r;
}
#elif TRUTH_CASE == GOTO
TRUTH_FUNCTION uint64_t work(uint64_t kind, uint64_t count)
{
    static const void *const labels[] = {&&a, &&b, &&c, &&d, &&e, &&f, &&g, &&h};
    uint64_t r = truth_values[0];
    goto *labels[kind & 7];
b:
    DIE_P(kind);
a:
    r += callback(count);
    stored[1] = r;
    goto *labels[6 + (r & 1)];
d:
    DIE_P(count);
c:
    r ^= callback(count + 1);
    return r;
e:
    r += callback(count) * 3;
    return r;
f:
    r -= callback(count);
    stored[3] = r;
    return r + 1;
g:
    r += 5;
    return r;
h:
    r += pointer(count);
    stored[2] = r;
    return r;
}
#elif TRUTH_CASE == NESTED
TRUTH_FUNCTION uint64_t work(uint64_t kind, uint64_t count)
{
    uint64_t r = truth_values[0];
    if (kind > 7)
        DIE(kind);
    switch (kind) {
    case 0:
        r += callback(count);
        break;
    case 1:
        switch (count & 3) {
        case 0:
            DIE_P(kind);
        case 1:
            r += callback(count);
            break;
        case 2:
            r--;
            break;
        case 3:
            r += pointer(4);
        }
        break;
    case 2:
        r ^= callback(count + 1);
        break;
    case 3:
        switch (r % 6) {
        case 0:
            DIE_P(kind);
        case 1:
            r += callback(count);
            break;
        case 2:
            r--;
            break;
        case 3:
            r += pointer(4);
            break;
        case 4:
            r = 7;
            break;
        case 5:
            r = callback(count) * 5;
        }
        break;
    case 4:
        r += callback(count) * 3;
        break;
    case 5:
        r -= callback(count);
        stored[3] = r;
        break;
    case 6:
        DIE_P(r);
    case 7:
        r += pointer(count);
        stored[2] = r;
        break;
    }
    return r;
}
#elif TRUTH_CASE == DRAP
typedef double v4 __attribute__((vector_size(32)));
TRUTH_FUNCTION void touch(void *p);
TRUTH_FUNCTION void touch(void *p)
{
    __asm__ volatile("" ::"r"(p) : "memory");
}
TRUTH_FUNCTION uint64_t work(uint64_t kind, uint64_t count)
{
    uint64_t r = truth_values[0], s = truth_values[1];
    for (uint64_t i = 0; i < (kind & 3) + 1; i++) {
        char *room = alloca(64 + kind);
        v4 v[2];
        touch(v);
        touch(room);
        r += callback(count) + s;
    }
    return r;
}
#elif TRUTH_CASE == BIG
TRUTH_FUNCTION void touch(void *p);
TRUTH_FUNCTION void touch(void *p)
{
    __asm__ volatile("" ::"r"(p) : "memory");
}
TRUTH_FUNCTION uint64_t work(uint64_t kind, uint64_t count)
{
    char room[2000];
    touch(room);
    uint64_t r = callback(count);
    touch(room);
    return r + kind + (uint64_t)room[kind & 7];
}
#elif TRUTH_CASE == ALLOCA_LOOP
TRUTH_FUNCTION void touch(void *p);
TRUTH_FUNCTION void touch(void *p)
{
    __asm__ volatile("" ::"r"(p) : "memory");
}
TRUTH_FUNCTION uint64_t work(uint64_t kind, uint64_t count)
{
    uint64_t r = truth_values[0];
    for (uint64_t i = 0; i <= (kind & 7); i++) {
        char *room = alloca(16 + i * 8);
        touch(room);
        r += callback(count / 4);
        if (r == 77)
            DIE_P(r);
    }
    return r;
}
#elif TRUTH_CASE == VARIADIC
TRUTH_FUNCTION uint64_t sum(uint64_t n, ...);
TRUTH_FUNCTION uint64_t sum(uint64_t n, ...)
{
    va_list l;
    va_start(l, n);
    uint64_t r = 0;
    for (uint64_t i = 0; i < n; i++)
        r += va_arg(l, uint64_t);
    r += callback(r);
    va_end(l);
    return r;
}
TRUTH_FUNCTION uint64_t work(uint64_t kind, uint64_t count)
{
    uint64_t r = sum(9, count, 1UL, 2UL, 3UL, 4UL, 5UL, 6UL, 7UL, kind);
    return r + sum(2, count, kind);
}
#elif TRUTH_CASE == SETJMP
static jmp_buf back;
TRUTH_FUNCTION uint64_t thrower(uint64_t count);
TRUTH_FUNCTION uint64_t thrower(uint64_t count)
{
    uint64_t r = callback(count);
    stored[1] = r;
    longjmp(back, 2);
}
TRUTH_FUNCTION uint64_t work(uint64_t kind, uint64_t count)
{
    if (setjmp(back) == 0) {
        uint64_t r = thrower(count);
        stored[2] = r;
        return r;
    }
    uint64_t r = callback(count);
    stored[3] = r + kind;
    return r;
}
#elif TRUTH_CASE == COLD || TRUTH_CASE == SHRINK
TRUTH_FUNCTION uint64_t work(uint64_t kind, uint64_t count)
{
    if (__builtin_expect(kind > 7, 0)) {
        DIE(kind);
    }
    if (kind == 0)
        return count;
    uint64_t a = truth_values[0], b = truth_values[1];
    uint64_t r = callback(count);
    if (__builtin_expect(r == 0x77, 0)) {
        stored[1] = a;
        DIE_P(r);
    }
    if (__builtin_expect(kind == 3, 0)) {
        stored[2] = callback(count);
        stored[3] = a;
    }
    for (uint64_t i = 0; i < count / 2; i++) {
        __asm__ volatile("" : "+r"(r));
    }
    if (__builtin_expect(r == 0x78, 0)) {
        DIE(b);
    }
    return r + a + b;
}
#elif TRUTH_CASE == TAIL_POINTER
TRUTH_FUNCTION uint64_t work(uint64_t kind, uint64_t count)
{
    for (uint64_t i = 0; i < count / 2; i++) {
        __asm__ volatile("" : "+r"(kind));
    }
    switch (kind & 3) {
    case 0:
        DIE_P(kind);
    case 1:
        for (uint64_t i = 0; i < count; i++) {
            __asm__ volatile("" : "+r"(kind));
        }
        return pointer(count);
    case 2:
        for (uint64_t i = 0; i < count; i++) {
            __asm__ volatile("" : "+r"(kind));
        }
        return pointer(count + 1);
    case 3:
        stored[5] = kind;
        for (uint64_t i = 0; i < count; i++) {
            __asm__ volatile("" : "+r"(kind));
        }
        return pointer(count + 3);
    }
    return 0;
}
#elif TRUTH_CASE == BYTES
TRUTH_FUNCTION uint64_t work(uint64_t kind, uint64_t count)
{
    static const unsigned char two[16] = {0, 1, 2, 3, 4, 5, 6, 7, 1, 2, 3, 4, 5, 6, 7, 0};
    uint64_t r = truth_values[0];
    switch (two[kind & 15]) {
    case 0:
        r += callback(count);
        break;
    case 1:
        DIE_P(kind);
    case 2:
        r ^= callback(count + 1);
        break;
    case 3:
        DIE_P(count);
    case 4:
        r += callback(count) * 3;
        break;
    case 5:
        r -= callback(count);
        stored[3] = r;
        break;
    case 6:
        DIE_P(r);
    case 7:
        r += pointer(count);
        stored[2] = r;
        break;
    }
    return r;
}
#elif TRUTH_CASE == UNREACHABLE
TRUTH_FUNCTION uint64_t work(uint64_t kind, uint64_t count)
{
    uint64_t r = truth_values[0];
    switch (kind) {
    case 0:
        r += callback(count);
        break;
    case 1:
        DIE_P(kind);
    case 2:
        r ^= callback(count + 1);
        break;
    case 3:
        DIE_P(count);
    case 4:
        r += callback(count) * 3;
        break;
    case 5:
        r -= callback(count);
        stored[3] = r;
        break;
    case 6:
        DIE_P(r);
    case 7:
        r += pointer(count);
        stored[2] = r;
        break;
    default:
        __builtin_unreachable();
    }
    return r;
}
#elif TRUTH_CASE == INNER_COMPARE
TRUTH_FUNCTION uint64_t work(uint64_t kind, uint64_t count)
{
    uint64_t r = truth_values[0];
    if (kind > 7)
        return r;
    stored[7] = count == 2 ? 5 : stored[6];
    if (stored[8] == 3)
        stored[9]++;
    switch (kind) {
    case 0:
        r += 3;
        break;
    case 1:
        r = 77;
        stored[1] = 3;
        break;
    case 2:
        r ^= stored[3] * 4;
        break;
    case 3:
        r = 4;
        stored[3] = 7;
        break;
    case 4:
        r += callback(count) * 3;
        break;
    case 5:
        r -= callback(count);
        stored[3] = r;
        break;
    case 6:
        DIE_P(r);
    case 7:
        r += pointer(count);
        stored[2] = r;
        break;
    }
    return r;
}
#elif TRUTH_CASE == MASK_COMPARE
TRUTH_FUNCTION uint64_t work(uint64_t kind, uint64_t count)
{
    uint64_t r = truth_values[0];
    if (count == 3)
        stored[9]++;
    switch (kind & 7) {
    case 0:
        r += 3;
        stored[1] = r;
        break;
    case 1:
        r += 77;
        stored[1] = 3;
        break;
    case 2:
        r ^= stored[3] * 4;
        break;
    case 6:
        r += 4;
        stored[3] = 7;
        break;
    case 3:
        DIE_P(r);
    case 4:
    case 5:
        r -= callback(count);
        stored[3] = r;
        r += callback(count);
        break;
    case 7:
        r += 5;
        stored[2] = r;
        break;
    }
    return r;
}
#elif TRUTH_CASE == CALLEE_POPS
__attribute__((swiftasynccall)) TRUTH_FUNCTION void many(uint64_t a, uint64_t b, uint64_t c,
                                                         uint64_t d, uint64_t e, uint64_t f,
                                                         uint64_t g, uint64_t h, uint64_t i,
                                                         uint64_t j);
__attribute__((swiftasynccall)) TRUTH_FUNCTION void many(uint64_t a, uint64_t b, uint64_t c,
                                                         uint64_t d, uint64_t e, uint64_t f,
                                                         uint64_t g, uint64_t h, uint64_t i,
                                                         uint64_t j)
{
    stored[1] = a + b + c + d + e + f + g + h + i + j;
}
TRUTH_FUNCTION uint64_t work(uint64_t kind, uint64_t count)
{
    many(1, 2, 3, 4, 5, 6, 7, 8, kind, count);
    uint64_t r = callback(count);
    TRUTH_STAY();
    return r + callback(count);
}
#elif TRUTH_CASE == FORKED
#include <sys/wait.h>
TRUTH_FUNCTION uint64_t work(uint64_t kind, uint64_t count)
{
    long pid = 56;
    uint64_t limit = count * 100;
    __asm__ volatile("" : "+r"(limit));
    __asm__ volatile("mov $56, %%eax\n\txor %%r10d, %%r10d\n\txor %%r8d, %%r8d\n\tsyscall"
                     : "=a"(pid)
                     : "D"(17), "S"(0), "d"(0)
                     : "rcx", "r11", "r8", "r10", "memory");
    if (pid == 0) {
        uint64_t i = 0;
        register uint64_t j __asm__("rbp") = 0;
        for (; j < limit; j++)
            __asm__ volatile("" : "+r"(j));
        _Exit((int)i);
    }
    (void)waitpid((pid_t)pid, NULL, 0);
    return kind;
}
#endif

#if TRUTH_CASE == DRAP || TRUTH_CASE == ALLOCA_LOOP || TRUTH_CASE == COLD || TRUTH_CASE == BIG
#endif

TRUTH_FUNCTION uint64_t enter(uint64_t count);
TRUTH_FUNCTION uint64_t enter(uint64_t count)
{
    static const unsigned char safe[8] = {0, 2, 4, 5, 7, 4, 5, 7};
    static uint64_t turn;
    uint64_t kind = safe[turn++ & 7];
#if TRUTH_CASE == TAIL_POINTER
    kind = turn % 3 + 1;
#endif
#if TRUTH_CASE == CALLEE_POPS
    uint64_t (*volatile functions[16])(uint64_t) = {
        callback, callback, callback, callback, callback, callback, callback, callback,
        callback, callback, callback, callback, callback, callback, callback, callback};
    count += functions[kind & 15] == NULL;
#endif
    uint64_t result = work(kind, count);
    TRUTH_STAY();
    return result;
}

TRUTH_LADDER(enter)

int main(void)
{
    truth_step_prepare();
    truth_begin();
    truth_step();
    for (;;) {
        (void)f1(TRUTH_COUNT(100000));
        TRUTH_STAY();
    }
}
