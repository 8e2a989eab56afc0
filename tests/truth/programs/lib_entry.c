/* SPDX-License-Identifier: Apache-2.0 */
/* The library's first function is its ELF entry, as old linkers have it, and has no call frames. */
#include "truth.h"
#ifdef TRUTH_LIBRARY
uint64_t work(uint64_t count);
uint64_t work(uint64_t count)
{
    return truth_spin(count);
}
#else
uint64_t work(uint64_t count);
TRUTH_LADDER(work)
int main(void)
{
    truth_begin();
    for (;;) {
        (void)f1(100000);
        TRUTH_STAY();
    }
}
#endif
