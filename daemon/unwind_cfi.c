/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A rule gives the CFA, and from it where the caller's registers were put. Only rsp, rbp and rbx
 * live on: they are what rules of callers rest on. The CFA rises with each step, but not with the
 * one out of a signal frame, since handlers have stacks of their own. Whether the return address
 * is one is left to the caller, who knows the mappings.
 */
#include "unwind_cfi.h"

#define PLT_SLOT_MASK  UINT64_C(15)
#define PLT_PUSH_BYTES 8

static uint64_t add_offset(uint64_t base, int32_t offset)
{
    return base + (uint64_t)(int64_t)offset;
}

static enum stack_quality find_cfa(const struct cfi_rule *rule, const struct unwind_memory *memory,
                                   const struct unwind_frame *frame, uint64_t *ret)
{
    if (!unwind_frame_knows(frame, rule->cfa_register)) {
        return STACK_NO_RULE;
    }
    uint64_t cfa = add_offset(frame->registers[rule->cfa_register], rule->cfa_offset);
    enum stack_quality quality = STACK_NONE;
    switch ((enum cfi_kind)rule->kind) {
    case CFI_OFFSET:
        break;
    case CFI_DEREF:
        quality = unwind_memory_read(memory, cfa, &cfa);
        cfa = add_offset(cfa, rule->cfa_addend);
        break;
    case CFI_PLT:
        if ((int64_t)(frame->pc & PLT_SLOT_MASK) >= rule->cfa_addend) {
            cfa += PLT_PUSH_BYTES;
        }
        break;
    case CFI_NONE:
    case CFI_UNSUPPORTED:
    case CFI_ROOT:
        return STACK_NO_RULE;
    }
    if (quality != STACK_NONE) {
        return quality;
    }
    if (cfa <= frame->registers[ARCH_DWARF_SP] && rule->signal_frame == 0) {
        return STACK_BAD_MEMORY;
    }
    *ret = cfa;
    return STACK_NONE;
}

/* The caller's value of a register other than rsp: not known in `caller` if it cannot be read. */
static void restore(const struct unwind_memory *memory, const struct unwind_frame *frame,
                    unsigned int number, uint8_t saved, uint64_t address,
                    struct unwind_frame *caller)
{
    bool known = false;
    switch ((enum cfi_saved)saved) {
    case CFI_SAME:
        caller->registers[number] = frame->registers[number];
        known = unwind_frame_knows(frame, number);
        break;
    case CFI_AT_CFA:
    case CFI_AT_SP:
        known = unwind_memory_read(memory, address, &caller->registers[number]) == STACK_NONE;
        break;
    case CFI_LOST:
        break;
    }
    caller->known |= (uint32_t)known << number;
}

static uint64_t saved_address(const struct unwind_frame *frame, uint64_t cfa, uint8_t saved,
                              int32_t offset)
{
    return add_offset(saved == CFI_AT_SP ? frame->registers[ARCH_DWARF_SP] : cfa, offset);
}

enum stack_quality unwind_cfi_step(const struct cfi_rule *rule, const struct unwind_memory *memory,
                                   struct unwind_frame *frame)
{
    struct unwind_frame caller = {.known = 1U << ARCH_DWARF_SP};
    uint64_t cfa = 0;
    enum stack_quality quality = find_cfa(rule, memory, frame, &cfa);
    if (quality != STACK_NONE) {
        return quality;
    }
    uint64_t address = saved_address(frame, cfa, rule->ra_saved, rule->ra_offset);
    quality = unwind_memory_read(memory, address, &caller.pc);
    if (quality != STACK_NONE) {
        return quality;
    }
    if (caller.pc == 0) {
        return STACK_NO_RULE;
    }
    caller.registers[ARCH_DWARF_SP] = cfa;
    restore(memory, frame, ARCH_DWARF_BP, rule->bp_saved,
            saved_address(frame, cfa, rule->bp_saved, rule->bp_offset), &caller);
    restore(memory, frame, ARCH_DWARF_BX, rule->bx_saved,
            saved_address(frame, cfa, rule->bx_saved, rule->bx_offset), &caller);
    *frame = caller;
    return STACK_NONE;
}
