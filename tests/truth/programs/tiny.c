/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A loop that calls tiny functions, so that most samples fall into a prologue, an epilogue or a
 * call. Their frames differ: none, a few registers, all of them, a large one, one that is made on
 * one of two ways only.
 */
#include "step.h"

#include <stdarg.h>

static volatile uint64_t sink;
static volatile uint64_t rarely;

TRUTH_FUNCTION uint64_t t_none(uint64_t a);
TRUTH_FUNCTION uint64_t t_none(uint64_t a)
{
    return a * 3 + 1;
}

TRUTH_FUNCTION uint64_t t_inner(uint64_t a);
TRUTH_FUNCTION uint64_t t_inner(uint64_t a)
{
    return a ^ 5;
}

TRUTH_FUNCTION uint64_t t_one(uint64_t a);
TRUTH_FUNCTION uint64_t t_one(uint64_t a)
{
    return t_inner(a) + a;
}

TRUTH_CALLER(t_all, t_inner)

TRUTH_FUNCTION uint64_t t_large(uint64_t a);
TRUTH_FUNCTION uint64_t t_large(uint64_t a)
{
    volatile uint64_t room[700];
    room[a % 700] = a;
    return t_inner(room[a % 700]) + 1;
}

/* The frame is made behind the test. */
TRUTH_FUNCTION uint64_t t_shrunk(uint64_t a);
TRUTH_FUNCTION uint64_t t_shrunk(uint64_t a)
{
    if (a % 2 == 0) {
        return a;
    }
    uint64_t b = truth_values[0], c = truth_values[1];
    uint64_t result = t_inner(a) + t_inner(b);
    return result + b + c;
}

TRUTH_FUNCTION uint64_t t_variadic(unsigned int count, ...);
TRUTH_FUNCTION uint64_t t_variadic(unsigned int count, ...)
{
    va_list list;
    uint64_t sum = 0;
    va_start(list, count);
    for (unsigned int i = 0; i < count; i++) {
        sum += va_arg(list, uint64_t);
    }
    va_end(list);
    return sum;
}

struct t_wide {
    uint64_t values[9];
};

TRUTH_FUNCTION struct t_wide t_struct(struct t_wide in);
TRUTH_FUNCTION struct t_wide t_struct(struct t_wide in)
{
    in.values[3] += t_inner(in.values[2]);
    return in;
}

/* A table of jumps, to places with and without a frame. */
TRUTH_FUNCTION uint64_t t_switch(uint64_t a);
TRUTH_FUNCTION uint64_t t_switch(uint64_t a)
{
    uint64_t b = truth_values[0];
    switch (a % 8) {
    case 0:
        return a + 3;
    case 1:
        return t_inner(a) + b;
    case 2:
        return t_inner(t_inner(b)) * 5 + a;
    case 3:
        truth_values[1] = b + t_inner(a);
        return b;
    case 4:
        return a * 77 + b;
    case 5:
        truth_values[2] = a;
        return t_inner(a + 1) + 1;
    case 6:
        return b / (a + 1) + t_inner(b);
    default:
        return b;
    }
}

/* More arguments than there are registers: pushed for the call, and popped behind it. */
TRUTH_FUNCTION uint64_t t_arguments(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
                                    uint64_t f, uint64_t g, uint64_t h, uint64_t i);
TRUTH_FUNCTION uint64_t t_arguments(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
                                    uint64_t f, uint64_t g, uint64_t h, uint64_t i)
{
    return a + b * c + d * e + f * g + h * i;
}

TRUTH_FUNCTION void loop(uint64_t turns);
TRUTH_FUNCTION void loop(uint64_t turns)
{
    struct t_wide wide = {{0}};
    for (uint64_t i = 0; i < turns; i++) {
        sink = t_none(i);
        sink = t_one(i);
        sink = t_all(i);
        sink = t_large(i);
        sink = t_shrunk(i);
        sink = t_switch(i);
        sink = t_variadic(3, i, i, i);
        wide = t_struct(wide);
        sink = t_arguments(i, i, i, i, i, i, i, i, rarely);
    }
}

int main(void)
{
    truth_step_prepare();
    truth_begin();
    truth_step();
    for (;;) {
        loop(TRUTH_COUNT(10000) + 1);
        TRUTH_STAY();
    }
}
