/* SPDX-License-Identifier: Apache-2.0 */

/*
 * C frames whose caller is not at a constant distance from the stack pointer. TRUTH_FRAME selects
 * the case; the function is always called framed, and its callee spins.
 */
#include "step.h"

#include <alloca.h>
#include <setjmp.h>
#include <stdlib.h>

#define ALLOCA 1
#define VLA    2
#define DRAP                                                                                       \
    3 /* aligned locals and room of any size: the old stack pointer is kept in another register */
#define ALIGNED 4  /* aligned locals */
#define LARGE   5  /* more than a guard page */
#define JUMPS   6  /* setjmp and longjmp over three functions */
#define DEEP    7  /* deeper than a recording takes */
#define COLD    8  /* a cold part, apart from its function */
#define NESTED  9  /* a function in a function, called through a trampoline on the stack */
#define QSORT   10 /* C, the C library, C */
#define BOTH    11 /* recursion of two functions, as deep as can be recorded */
#define EPILOG  12 /* as DRAP, and rbp leads to the frames of its callers */

TRUTH_FUNCTION uint64_t leaf(uint64_t count);
TRUTH_FUNCTION uint64_t leaf(uint64_t count)
{
    return truth_spin(count);
}

/* As many bytes as no compiler knows: 16 to 4,000. */
static size_t next_size(void)
{
    static size_t size;
    size = (size * 5 + 777) % 3985;
    return size + 16;
}

uint64_t framed(uint64_t count);

#if TRUTH_FRAME == ALLOCA
TRUTH_FUNCTION uint64_t framed(uint64_t count)
{
    volatile char *room = alloca(next_size());
    room[1] = 1;
    return leaf(count) + (uint64_t)room[1];
}
#elif TRUTH_FRAME == VLA
TRUTH_FUNCTION uint64_t framed(uint64_t count)
{
    uint64_t sum = 0;
    for (int i = 0; i < 3; i++) {
        volatile char room[next_size()];
        room[1] = 1;
        sum += leaf(count) + (uint64_t)room[1];
    }
    return sum;
}
#elif TRUTH_FRAME == DRAP
TRUTH_FUNCTION uint64_t framed(uint64_t count)
{
    _Alignas(64) volatile char aligned[128];
    volatile char *room = alloca(next_size());
    aligned[5] = room[1] = 1;
    return leaf(count) + (uint64_t)room[1] + (uint64_t)aligned[5];
}
#elif TRUTH_FRAME == EPILOG
TRUTH_FUNCTION uint64_t inner(uint64_t count);
TRUTH_FUNCTION uint64_t inner(uint64_t count)
{
    _Alignas(64) volatile char aligned[128];
    volatile char *room = alloca(next_size());
    aligned[5] = room[1] = 1;
    return leaf(count) + (uint64_t)room[1] + (uint64_t)aligned[5];
}
TRUTH_FUNCTION uint64_t middle(uint64_t count);
TRUTH_FUNCTION uint64_t middle(uint64_t count)
{
    volatile char *room = alloca(next_size());
    room[1] = 1;
    return inner(count) + (uint64_t)room[1];
}
TRUTH_FUNCTION uint64_t framed(uint64_t count)
{
    volatile char *room = alloca(next_size());
    room[1] = 1;
    return middle(count) + (uint64_t)room[1];
}
#elif TRUTH_FRAME == ALIGNED
TRUTH_FUNCTION uint64_t framed(uint64_t count)
{
    _Alignas(64) volatile char aligned[192];
    aligned[5] = 1;
    return leaf(count) + (uint64_t)aligned[5];
}
#elif TRUTH_FRAME == LARGE
TRUTH_FUNCTION uint64_t framed(uint64_t count)
{
    volatile char room[40000];
    room[count % sizeof room] = 1;
    return leaf(count) + (uint64_t)room[count % sizeof room];
}
#elif TRUTH_FRAME == JUMPS
static jmp_buf back;
TRUTH_FUNCTION uint64_t jumper(uint64_t count);
TRUTH_FUNCTION uint64_t jumper(uint64_t count)
{
    (void)leaf(count);
    longjmp(back, 1);
}
TRUTH_FUNCTION uint64_t between(uint64_t count);
TRUTH_FUNCTION uint64_t between(uint64_t count)
{
    return jumper(count) + truth_values[2];
}
TRUTH_FUNCTION uint64_t framed(uint64_t count)
{
    if (setjmp(back) == 0) {
        (void)between(count);
    }
    return leaf(count);
}
#elif TRUTH_FRAME == DEEP
TRUTH_FUNCTION uint64_t deeper(uint64_t count, uint64_t depth);
TRUTH_FUNCTION uint64_t deeper(uint64_t count, uint64_t depth)
{
    uint64_t result = depth > 0 ? deeper(count, depth - 1) : leaf(count);
    TRUTH_STAY();
    return result;
}
TRUTH_FUNCTION uint64_t framed(uint64_t count)
{
    return deeper(count * 50, 1000) + 1;
}
#elif TRUTH_FRAME == BOTH
TRUTH_FUNCTION uint64_t odd(uint64_t count, uint64_t depth);
TRUTH_FUNCTION uint64_t even(uint64_t count, uint64_t depth);
TRUTH_FUNCTION uint64_t even(uint64_t count, uint64_t depth)
{
    uint64_t result = depth > 0 ? odd(count, depth - 1) : leaf(count);
    TRUTH_STAY();
    return result;
}
TRUTH_FUNCTION uint64_t odd(uint64_t count, uint64_t depth)
{
    volatile uint64_t room[9];
    room[depth % 9] = even(count, depth - 1);
    return room[depth % 9];
}
TRUTH_FUNCTION uint64_t framed(uint64_t count)
{
    return even(count, 6) + 1;
}
#elif TRUTH_FRAME == COLD
TRUTH_FUNCTION __attribute__((cold)) void told(void);
TRUTH_FUNCTION __attribute__((cold)) void told(void)
{
    truth_values[5] = leaf(truth_values[5] % 7 + TRUTH_COUNT(50000));
}
TRUTH_FUNCTION uint64_t framed(uint64_t count)
{
    uint64_t a = truth_values[0], b = truth_values[1];
    uint64_t result = leaf(count);
    if (__builtin_expect(truth_values[2] != 0, 0)) {
        truth_values[3] = a;
        told();
        told();
    }
    return result + a + b;
}
#elif TRUTH_FRAME == NESTED
TRUTH_FUNCTION uint64_t by_pointer(uint64_t (*function)(uint64_t), uint64_t count);
TRUTH_FUNCTION uint64_t by_pointer(uint64_t (*function)(uint64_t), uint64_t count)
{
    return function(count) + 1;
}
TRUTH_FUNCTION uint64_t framed(uint64_t count)
{
    volatile uint64_t sum = 0;
    uint64_t nested(uint64_t inner)
    {
        sum += 1;
        return leaf(inner) + 1;
    }
    return by_pointer(nested, count) + sum;
}
#elif TRUTH_FRAME == QSORT
static int compare(const void *a, const void *b)
{
    (void)leaf(TRUTH_COUNT(20000));
    return *(const int *)a - *(const int *)b;
}
TRUTH_FUNCTION uint64_t framed(uint64_t count)
{
    int numbers[8] = {5, 3, 9, 1, 7, 2, 8, (int)count};
    qsort(numbers, 8, sizeof numbers[0], compare);
    return (uint64_t)numbers[0];
}
#endif

int main(void)
{
    truth_step_prepare();
    truth_begin();
    truth_step();
    (void)next_size();
    for (;;) {
        (void)framed(TRUTH_COUNT(100000));
        TRUTH_STAY();
    }
}
