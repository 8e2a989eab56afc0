/* SPDX-License-Identifier: Apache-2.0 */
/* Stripped: an exported function in assembly without a size, and C without a symbol behind it. */
#include "truth.h"
uint64_t asm_leaf(uint64_t count);
__asm__(
    ".text\n.globl asm_leaf\n.type asm_leaf, @function\nasm_leaf:\n .cfi_startproc\n 1: dec %rdi\n jnz 1b\n ret\n .cfi_endproc\n");
__attribute__((noipa, used)) static uint64_t hidden(uint64_t count)
{
    return truth_spin(count);
}
TRUTH_FUNCTION uint64_t both(uint64_t count);
TRUTH_FUNCTION uint64_t both(uint64_t count)
{
    uint64_t result = hidden(count);
    TRUTH_STAY();
    return result;
}
int main(void)
{
    truth_begin();
    for (;;) {
        (void)both(100000);
        TRUTH_STAY();
    }
}
