/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A program with call-frame information calls a library without any, which calls the program again.
 * Callers of assembly in codecs and ciphers have such stacks.
 */
#include "step.h"

uint64_t mixed_entry(uint64_t count, uint64_t (*callback)(uint64_t));

TRUTH_FUNCTION uint64_t leaf(uint64_t count);
TRUTH_FUNCTION uint64_t leaf(uint64_t count)
{
    return truth_spin(count);
}

TRUTH_CALLER(callback, leaf)

TRUTH_FUNCTION uint64_t into(uint64_t count);
TRUTH_FUNCTION uint64_t into(uint64_t count)
{
    return mixed_entry(count, callback) + truth_values[1];
}

TRUTH_CALLER(f2, into)
TRUTH_CALLER(f1, f2)

int main(void)
{
    truth_step_prepare();
    truth_begin();
    truth_step();
    for (;;) {
        (void)f1(TRUTH_COUNT(100000));
    }
}
