/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Where code keeps a frame pointer, it points to the caller's, and the return address is above. The
 * kernel walks this chain to its end, further than the bytes that it copies, but it skips the
 * caller of a function that has not made its frame yet, and follows a register that is no frame
 * pointer into nonsense. So an entry of its chain is taken for the return address of a frame only
 * when the kernel is known to have read it from that very frame.
 */
#include "unwind_fp.h"

/* From where the frame pointer points; the caller's frame pointer is there. */
static uint64_t ra_offset(const struct unwind_memory *memory)
{
    return unwind_memory_word_bytes(memory);
}

static uint64_t cfa_offset(const struct unwind_memory *memory)
{
    return 2 * unwind_memory_word_bytes(memory);
}

static bool is_aligned(const struct unwind_memory *memory, uint64_t bp)
{
    return (bp & (unwind_memory_word_bytes(memory) - 1)) == 0;
}

static bool is_plausible(const struct unwind_memory *memory, const struct unwind_frame *frame)
{
    uint64_t bp = frame->registers[ARCH_DWARF_BP];
    return unwind_frame_knows(frame, ARCH_DWARF_BP) && bp >= frame->registers[ARCH_DWARF_SP] &&
           is_aligned(memory, bp) && bp <= UINT64_MAX - cfa_offset(memory);
}

enum stack_quality unwind_fp_step(const struct unwind_memory *memory, struct unwind_frame *frame)
{
    uint64_t pc = 0;
    uint64_t caller_bp = 0;
    uint64_t bp = frame->registers[ARCH_DWARF_BP];
    if (!unwind_frame_knows(frame, ARCH_DWARF_BP) || bp == 0) {
        return STACK_NO_RULE;
    }
    if (!is_plausible(memory, frame)) {
        return STACK_BAD_MEMORY;
    }
    enum stack_quality quality = unwind_memory_read(memory, bp + ra_offset(memory), &pc);
    if (quality == STACK_NONE) {
        quality = unwind_memory_read(memory, bp + ARCH_FRAME_BP_OFFSET, &caller_bp);
    }
    if (quality != STACK_NONE) {
        return quality;
    }
    if (pc == 0) {
        return STACK_NO_RULE;
    }
    unwind_frame_set(frame, pc, bp + cfa_offset(memory), caller_bp, 0, 1U << ARCH_DWARF_BP);
    return STACK_NONE;
}

bool unwind_fp_is_rule(const struct unwind_memory *memory, const struct cfi_rule *rule)
{
    const int32_t word_bytes = (int32_t)unwind_memory_word_bytes(memory);
    if (rule->keeps_fp != 0) {
        return rule->kind == CFI_OFFSET && rule->cfa_register == ARCH_DWARF_SP;
    }
    return rule->kind == CFI_OFFSET && rule->cfa_register == ARCH_DWARF_BP &&
           rule->cfa_offset == 2 * word_bytes && rule->signal_frame == 0 &&
           rule->ra_saved == CFI_AT_CFA && rule->ra_offset == -word_bytes &&
           rule->bp_saved == CFI_AT_CFA && rule->bp_offset == -2 * word_bytes;
}

bool unwind_fp_value(const struct unwind_memory *memory, const struct cfi_rule *rule,
                     const struct unwind_frame *frame, uint64_t *ret)
{
    struct unwind_frame own = *frame;
    if (rule != NULL && rule->keeps_fp != 0) {
        own.registers[ARCH_DWARF_BP] = frame->registers[ARCH_DWARF_SP] +
                                       (uint64_t)(int64_t)rule->cfa_offset - cfa_offset(memory);
        own.known |= 1U << ARCH_DWARF_BP;
    }
    if (!is_plausible(memory, &own)) {
        return false;
    }
    *ret = own.registers[ARCH_DWARF_BP];
    return true;
}

size_t unwind_fp_find(const struct unwind_memory *memory, const uint64_t *chain, size_t count,
                      uint64_t first, uint64_t target)
{
    uint64_t bp = first;
    for (size_t next = 1; next <= count; next++) {
        uint64_t word = 0;
        bool seen = unwind_memory_read(memory, bp + ra_offset(memory), &word) == STACK_NONE;
        if (seen && (next == count || word != chain[next])) {
            return 0;
        }
        if (bp == target) {
            return next;
        }
        if (unwind_memory_read(memory, bp + ARCH_FRAME_BP_OFFSET, &bp) != STACK_NONE) {
            return 0;
        }
    }
    return 0;
}

/* Whether a frame pointer points to a frame that a walk which is at `frame` has left behind. */
static bool is_behind(const struct unwind_memory *memory, const struct unwind_frame *frame,
                      uint64_t bp)
{
    return bp >= memory->start && bp - memory->start < memory->size_bytes &&
           (memory->elsewhere || bp < frame->registers[ARCH_DWARF_SP]);
}

size_t unwind_fp_find_across(const struct unwind_memory *memory, const uint64_t *chain,
                             size_t count, uint64_t first, const struct unwind_frame *frame,
                             uint64_t callee)
{
    uint64_t bp = frame->registers[ARCH_DWARF_BP];
    bool is_saved = !unwind_frame_knows(frame, ARCH_DWARF_BP);
    if (is_saved && unwind_memory_read(memory, callee + ARCH_FRAME_BP_OFFSET, &bp) != STACK_NONE) {
        return 0;
    }
    if (!is_aligned(memory, bp) || is_behind(memory, frame, bp)) {
        return 0;
    }
    size_t next = unwind_fp_find(memory, chain, count, first, is_saved ? callee : bp);
    return is_saved && next != 0 ? next + 1 : next;
}
