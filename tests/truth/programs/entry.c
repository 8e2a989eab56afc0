/* SPDX-License-Identifier: Apache-2.0 */
/* No C library. The entry, of 15 bytes without call frames, and the leaf behind it, without any
 * either. */
#include "truth.h"
#ifndef TRUTH_ENTRY
#define TRUTH_ENTRY "_start"
#endif
__asm__(
    ".text\n.globl " TRUTH_ENTRY "\n" TRUTH_ENTRY
    ":\n xor %ebp, %ebp\n and $-16, %rsp\n call begin_c\n ud2\n"
    ".globl asm_leaf\n.type asm_leaf, @function\nasm_leaf:\n 1: dec %rdi\n jnz 1b\n ret\n .size asm_leaf, . - asm_leaf\n");
uint64_t asm_leaf(uint64_t count);
TRUTH_LADDER(asm_leaf)
TRUTH_FUNCTION void begin_c(void);
TRUTH_FUNCTION void begin_c(void)
{
    truth_begin();
    for (;;) {
        (void)f1(100000);
        TRUTH_STAY();
    }
}
