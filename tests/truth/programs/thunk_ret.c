/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Functions that return through GCC's thunk, below one that never does: where the thunk's call
 * frames err by a word, the caller of that one takes its place. It is executed one instruction at
 * a time.
 */
#include "step.h"

static volatile uint64_t turns;

TRUTH_FUNCTION void leaf(void);
TRUTH_FUNCTION void leaf(void)
{
    turns++;
}

TRUTH_FUNCTION __attribute__((noreturn)) void middle(void);
TRUTH_FUNCTION void middle(void)
{
    for (;;) {
        leaf();
        TRUTH_STAY();
    }
}

TRUTH_FUNCTION void above(void);
TRUTH_FUNCTION void above(void)
{
    middle();
}

int main(void)
{
    truth_step_prepare();
    truth_begin();
    truth_step();
    above();
    TRUTH_STAY();
    return 0;
}
