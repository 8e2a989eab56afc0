/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What is particular to x86-64: how DWARF (System V ABI, table 3.36) and the kernel
 * (<asm/perf_regs.h>) number the registers, and where a frame pointer's neighbours are. A 32-bit
 * task has the same machine: the first eight registers by the same numbers here, and other words.
 */

#include <stdint.h>

#define ARCH_WORD_BYTES       8 /* of the stack: a return address, a saved register */
#define ARCH_WORD_BYTES_32BIT 4 /* the same of a 32-bit task */

#define ARCH_REGISTERS_COUNT 16 /* the general ones, by DWARF's numbers */
#define ARCH_DWARF_AX        0
#define ARCH_DWARF_DX        1
#define ARCH_DWARF_BX        3
#define ARCH_DWARF_BP        6
#define ARCH_DWARF_SP        7
#define ARCH_DWARF_RA        16 /* the column of the return address */

/* A bit for each register that the kernel sets for a signal's handler: rax, rdx, rsi, rdi. */
#define ARCH_HANDLER_REGISTERS UINT32_C(0x33)

/* attr.sample_regs_user: AX to IP, and R8 to R15. The words come in the order of the bits. */
#define ARCH_PERF_REGS_MASK  (UINT64_C(0x1ff) | UINT64_C(0xff) << 16)
#define ARCH_PERF_REGS_COUNT 17
#define ARCH_PERF_IP_WORD    8 /* the word that holds the instruction pointer */

/* The word of PERF_SAMPLE_REGS_USER that holds the register with this DWARF number. */
static const uint8_t arch_perf_word[ARCH_REGISTERS_COUNT] = {
    0, 3, 2, 1, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 16,
};

#define ARCH_REGISTERS_COUNT_32BIT 8 /* those that a 32-bit task has, the first ones */

/* The number here of a register that DWARF of 32 bits (System V ABI for Intel386, table 2.14)
 * numbers otherwise: eax, ecx, edx, ebx, esp, ebp, esi, edi, and the return address. */
#define ARCH_DWARF_COUNT_32BIT 9
static const uint8_t arch_dwarf_32bit[ARCH_DWARF_COUNT_32BIT] = {
    0, 2, 1, 3, ARCH_DWARF_SP, ARCH_DWARF_BP, 4, 5, ARCH_DWARF_RA,
};

/* From where the frame pointer points: the caller's frame pointer and, a word further on, the
 * return address; the CFA is above both. */
#define ARCH_FRAME_BP_OFFSET  0
#define ARCH_FRAME_CFA_OFFSET 16

/* From a struct ucontext: what a signal interrupted (<asm/ucontext.h>, <asm/sigcontext.h>). */
#define ARCH_UCONTEXT_BP_OFFSET 120
#define ARCH_UCONTEXT_BX_OFFSET 128
#define ARCH_UCONTEXT_SP_OFFSET 160
#define ARCH_UCONTEXT_IP_OFFSET 168
/* And what the kernel writes into every one of a 64-bit task: flags of three kinds, no other
 * context behind it, and the code segment, with others in one word. */
#define ARCH_UCONTEXT_FLAGS_MAX       7
#define ARCH_UCONTEXT_LINK_OFFSET     8
#define ARCH_UCONTEXT_SEGMENTS_OFFSET 184
#define ARCH_USER_CODE_SEGMENT        0x33

/* An entry of a procedure linkage table: jmp *DISTANCE(%rip), 32 bits of distance from the next
 * instruction; and the relocations (psABI, table 4.9) that fill the slots it jumps through. */
#define ARCH_JUMP_THROUGH_SLOT                                                                     \
    {                                                                                              \
        0xff, 0x25                                                                                 \
    }
#define ARCH_RELOC_GLOB_DAT  6
#define ARCH_RELOC_JUMP_SLOT 7

/* The one that needs nothing but where its module is. */
#define ARCH_RELOC_RELATIVE 8

/* The instruction that fills the room between two functions, and is never run. */
#define ARCH_PADDING 0xcc
