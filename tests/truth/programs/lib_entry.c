/* SPDX-License-Identifier: Apache-2.0 */
/* The library's first function is its ELF entry, as old linkers have it, and has no call frames.
 * With TRUTH_LONG it is longer than any entry, so that its return is not seen. */
#include "truth.h"
#ifdef TRUTH_LIBRARY
uint64_t work(uint64_t count);
uint64_t work(uint64_t count)
{
#ifdef TRUTH_LONG
    for (uint64_t i = 0; i < count; i++) {
        __asm__ volatile(".rept 200\n nop\n .endr");
    }
    return count;
#else
    return truth_spin(count);
#endif
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
