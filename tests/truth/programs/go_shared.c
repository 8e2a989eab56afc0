/* SPDX-License-Identifier: Apache-2.0 */
/* C with a function that has the name of one of Go's, and a library of Go's that really has it. */
#include "truth.h"

void Begin(void); /* the library's */

TRUTH_FUNCTION uint64_t leaf(uint64_t count);
TRUTH_FUNCTION uint64_t leaf(uint64_t count)
{
    return truth_spin(count);
}

uint64_t mcall(uint64_t count) __asm__("runtime.mcall");
TRUTH_CALLER(mcall, leaf)

TRUTH_LADDER(mcall)

int main(void)
{
    Begin();
    truth_begin();
    for (;;) {
        (void)f1(100000);
        TRUTH_STAY();
    }
}
