/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Functions that end by a jump to the next: only the running one of a, b and c is in the stack.
 * Before its jump `a` calls through a frame; `c` calls the leaf.
 */
#include "step.h"

TRUTH_FUNCTION uint64_t leaf(uint64_t count);
TRUTH_FUNCTION uint64_t leaf(uint64_t count)
{
    return truth_spin(count);
}

TRUTH_FUNCTION uint64_t tail_c(uint64_t count);
TRUTH_FUNCTION uint64_t tail_c(uint64_t count)
{
    uint64_t result = leaf(count);
    TRUTH_STAY();
    return result;
}

TRUTH_FUNCTION uint64_t tail_b(uint64_t count);
TRUTH_FUNCTION uint64_t tail_b(uint64_t count)
{
    return tail_c(count + 1);
}

TRUTH_CALLER(framed, leaf)

TRUTH_FUNCTION uint64_t tail_a(uint64_t count);
TRUTH_FUNCTION uint64_t tail_a(uint64_t count)
{
    uint64_t value = truth_values[3];
    return tail_b(framed(count) + value);
}

static uint64_t (*volatile through)(uint64_t) = tail_a;

/* By way of a pointer. */
TRUTH_FUNCTION uint64_t tail_0(uint64_t count);
TRUTH_FUNCTION uint64_t tail_0(uint64_t count)
{
    return through(count);
}

int main(void)
{
    truth_step_prepare();
    truth_begin();
    truth_step();
    for (;;) {
        (void)tail_0(TRUTH_COUNT(100000));
    }
}
