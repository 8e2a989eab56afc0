/* SPDX-License-Identifier: Apache-2.0 */
/* No C library. The entry, without call frames, and the leaf right behind it, without any either.
 * With TRUTH_BARE_CALL nothing but the leaf's return tells that the entry's call does not return.
 * With TRUTH_NEXT the entry calls what stands right behind it, as musl's does. */
#include "truth.h"
#ifndef TRUTH_ENTRY
#define TRUTH_ENTRY "_start"
#endif
#if defined(TRUTH_BARE_CALL)
#define CALL " call begin_c\n"
#elif defined(TRUTH_NEXT)
/* Another call says that a function begins there: it counts in a stretch that is not too small. */
#define CALL                                                                                       \
    " call begin_asm\n .p2align 4\nbegin_asm:\n sub $8, %rsp\n call begin_c\n ud2\n"               \
    "begin_again:\n call begin_asm\n ud2\n .skip 128, 0x90\n"
#else
#define CALL " call begin_c\n ud2\n"
#endif
__asm__(
    ".text\n.globl " TRUTH_ENTRY "\n" TRUTH_ENTRY ":\n xor %ebp, %ebp\n and $-16, %rsp\n" CALL
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
