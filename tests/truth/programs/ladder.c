/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Four callers and a leaf that spins. Built with every compiler, linker and option that makes such
 * a stack another one in memory.
 */
#include "step.h"

TRUTH_FUNCTION uint64_t leaf(uint64_t count);
TRUTH_FUNCTION uint64_t leaf(uint64_t count)
{
    return truth_spin(count);
}

TRUTH_LADDER(leaf)

int main(void)
{
    truth_step_prepare();
    truth_begin();
    truth_step();
    for (;;) {
        (void)f1(TRUTH_COUNT(100000));
    }
}
