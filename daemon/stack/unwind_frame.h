/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One frame of a walk up a stack, and the copied bytes that it is read from. */

#include "arch_x86_64.h"
#include "sample.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Where no stack of a user's is: from half of the address space on, or beyond 32 bits. */
#define UNWIND_KERNEL_HALF (UINT64_C(1) << 63)
#define UNWIND_END_32BIT   (UINT64_C(1) << 32)

/* The kernel's copy ends at a page that is not in memory. Within a stack that is one that the
 * program has never written; a frame with such a page is not larger than this. */
#define UNWIND_PAGE_BYTES    UINT64_C(4096)
#define UNWIND_GAP_BYTES_MAX (UINT64_C(1) << 20)

struct unwind_memory {
    uint64_t start; /* the address of bytes[0] */
    const uint8_t *bytes;
    size_t size_bytes;
    bool cut;       /* there may be more above them */
    bool elsewhere; /* the walk has come to another stack, of which nothing was copied */
    bool is_32bit;  /* its words have 4 bytes, not 8 */
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

/* Becomes the caller's. Beside rsp `known` says which registers hold something. In place: those
 * without an argument hold what they held. */
static inline void unwind_frame_set(struct unwind_frame *frame, uint64_t pc, uint64_t sp,
                                    uint64_t bp, uint64_t bx, uint32_t known)
{
    frame->pc = pc;
    frame->registers[ARCH_DWARF_SP] = sp;
    frame->registers[ARCH_DWARF_BP] = bp;
    frame->registers[ARCH_DWARF_BX] = bx;
    frame->known = known | 1U << ARCH_DWARF_SP;
}

static inline size_t unwind_memory_word_bytes(const struct unwind_memory *memory)
{
    return memory->is_32bit ? ARCH_WORD_BYTES_32BIT : ARCH_WORD_BYTES;
}

/* Whether the stack may go on at an address above the copy. */
static inline bool unwind_memory_may_go_on(const struct unwind_memory *memory, uint64_t address)
{
    bool ends_at_page = (memory->start + memory->size_bytes) % UNWIND_PAGE_BYTES == 0;
    return address >= memory->start &&
           (memory->cut ||
            (ends_at_page && address - memory->start < memory->size_bytes + UNWIND_GAP_BYTES_MAX));
}

/* Reads a word. Returns STACK_NONE, or what a stack that needs it ends with. */
static inline enum stack_quality unwind_memory_read(const struct unwind_memory *memory,
                                                    uint64_t address, uint64_t *ret)
{
    const size_t word_bytes = unwind_memory_word_bytes(memory);
    if (address >= memory->start && memory->size_bytes >= word_bytes &&
        address - memory->start <= memory->size_bytes - word_bytes) {
        const uint8_t *bytes = memory->bytes + (address - memory->start);
        uint32_t half = 0;
        if (memory->is_32bit) {
            memcpy(&half, bytes, sizeof half);
            *ret = half;
        } else {
            memcpy(ret, bytes, sizeof *ret);
        }
        return STACK_NONE;
    }
    bool may_be_stack = (unwind_memory_may_go_on(memory, address) || memory->elsewhere) &&
                        address < (memory->is_32bit ? UNWIND_END_32BIT : UNWIND_KERNEL_HALF);
    return may_be_stack ? STACK_SHORT_COPY : STACK_BAD_MEMORY;
}
