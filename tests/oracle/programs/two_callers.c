/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The same deep recursion from two callers in turn, whose frames lie at the same places: the inner
 * part of a stack does not tell which of them it came from.
 */
#include <stdint.h>

#define NOINLINE        __attribute__((noinline, noclone))
#define RECURSION_DEPTH 60

static volatile uint64_t sink;

static NOINLINE uint64_t recurse(unsigned int depth)
{
    volatile uint64_t room[16] = {depth};
    if (depth == 0) {
        for (uint64_t i = 0; i < 20000; i++) {
            sink = sink * 31 + i;
        }
        return sink;
    }
    return recurse(depth - 1) + room[depth % 16];
}

static NOINLINE uint64_t call_left(void)
{
    return recurse(RECURSION_DEPTH) + 1;
}

static NOINLINE uint64_t call_right(void)
{
    return recurse(RECURSION_DEPTH) + 2;
}

int main(void)
{
    for (;;) {
        sink += call_left();
        sink += call_right();
    }
}
