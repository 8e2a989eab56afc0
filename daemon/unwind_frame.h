/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One frame of a walk up a stack, and the copied bytes that it is read from. */

#include "arch_x86_64.h"
#include "sample.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The half of the address space that no stack of a user's is in. */
#define UNWIND_KERNEL_HALF (UINT64_C(1) << 63)

struct unwind_memory {
    uint64_t start; /* the address of bytes[0] */
    const uint8_t *bytes;
    size_t size_bytes;
    bool cut;       /* there may be more above them */
    bool elsewhere; /* the walk has come to another stack, of which nothing was copied */
};

struct unwind_frame {
    uint64_t pc;
    uint64_t registers[ARCH_REGISTERS_COUNT]; /* by DWARF number; rsp is the CFA of the callee */
    uint32_t known;                           /* a bit for each: the others hold nothing */
};

static inline bool unwind_frame_knows(const struct unwind_frame *frame, unsigned int number)
{
    return (frame->known >> number & 1) != 0;
}

/* Becomes the caller's. Beside rsp `known` says which of rbp and rbx hold something. In place: the
 * other registers are left behind, unknown. */
static inline void unwind_frame_set(struct unwind_frame *frame, uint64_t pc, uint64_t sp,
                                    uint64_t bp, uint64_t bx, uint32_t known)
{
    frame->pc = pc;
    frame->registers[ARCH_DWARF_SP] = sp;
    frame->registers[ARCH_DWARF_BP] = bp;
    frame->registers[ARCH_DWARF_BX] = bx;
    frame->known = known | 1U << ARCH_DWARF_SP;
}

/* Reads a word. Returns STACK_NONE, or what a stack that needs it ends with. */
static inline enum stack_quality unwind_memory_read(const struct unwind_memory *memory,
                                                    uint64_t address, uint64_t *ret)
{
    if (address >= memory->start && memory->size_bytes >= sizeof *ret &&
        address - memory->start <= memory->size_bytes - sizeof *ret) {
        memcpy(ret, memory->bytes + (address - memory->start), sizeof *ret);
        return STACK_NONE;
    }
    bool may_be_above = memory->cut && address >= memory->start;
    bool may_be_stack = (may_be_above || memory->elsewhere) && address < UNWIND_KERNEL_HALF;
    return may_be_stack ? STACK_SHORT_COPY : STACK_BAD_MEMORY;
}
