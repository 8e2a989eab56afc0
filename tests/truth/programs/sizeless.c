/* SPDX-License-Identifier: Apache-2.0 */
/* Stripped: an exported function in assembly without a size, and C without a symbol behind it. The
 * one has call frames, or with TRUTH_BARE the other. */
#include "truth.h"
#ifdef TRUTH_BARE
#define BEGIN ""
#define END   ""
#else
#define BEGIN " .cfi_startproc\n"
#define END   " .cfi_endproc\n"
#endif
uint64_t asm_leaf(uint64_t count);
__asm__(".text\n.globl asm_leaf\n.type asm_leaf, @function\nasm_leaf:\n" BEGIN
        " 1: dec %rdi\n jnz 1b\n ret\n" END);
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
