/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The linker removes `removed`, and leaves its entry in .debug_frame with the address 0, from which
 * its length leads over all functions but the part of main() that calls. Its frame is as large as
 * those of f1 to f4, and as that of leaf and work together: so they end on the right word.
 */
#include "step.h"

TRUTH_FUNCTION uint64_t twice(uint64_t value);
TRUTH_FUNCTION uint64_t leaf(uint64_t count);
TRUTH_FUNCTION uint64_t work(uint64_t count);
uint64_t removed(uint64_t count);

static void keep(void *words)
{
    __asm__ volatile("" : : "r"(words) : "memory");
}

uint64_t removed(uint64_t count)
{
    uint64_t words[6];
    keep(words);
    __asm__ volatile(".skip 8192, 0x90");
    return twice(count) + words[3];
}

TRUTH_FUNCTION uint64_t twice(uint64_t value)
{
    return 2 * value;
}

TRUTH_FUNCTION uint64_t leaf(uint64_t count)
{
    uint64_t sum = truth_spin(count);
    return sum + twice(sum);
}

TRUTH_FUNCTION uint64_t work(uint64_t count)
{
    uint64_t words[4];
    keep(words);
    uint64_t sum = leaf(count);
    TRUTH_STAY();
    return sum + words[2];
}

TRUTH_LADDER(work)

__attribute__((section(".text.zmain"))) int main(void)
{
    __asm__ volatile("jmp 1f; .skip 16384, 0x90; 1:");
    truth_begin();
    for (;;) {
        (void)f1(TRUTH_COUNT(100000));
        TRUTH_STAY();
    }
}
