/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A rule gives the CFA, and from it where the caller's registers were put. Only rsp, rbp and rbx
 * live on: they are what rules of callers rest on. The CFA rises with each step, but not with the
 * one out of a signal frame, since handlers have stacks of their own. Whether the return address
 * is one is left to the caller, who knows the mappings.
 *
 * Compilers do not describe the pops before a return: the rule still names the place on the stack,
 * which by then lies below rsp, and is in no copy; the register has its value again. A leaf that
 * saved registers in its red zone would look the same, but compilers do not do that.
 */
#include "unwind_cfi.h"

#define CFI_INDEX_BYTES 8
#define PLT_SLOT_MASK   UINT64_C(15)
#define PLT_PUSH_BYTES  8

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
    case CFI_SWITCH:
        quality = rule->ra_saved == CFI_AT_CFA ? STACK_NONE : STACK_NO_RULE;
        break;
    case CFI_DEREF_INDEX:
        if (!unwind_frame_knows(frame, rule->cfa_index)) {
            return STACK_NO_RULE;
        }
        cfa += frame->registers[rule->cfa_index] * CFI_INDEX_BYTES;
        quality = unwind_memory_read(memory, cfa, &cfa);
        cfa = add_offset(cfa, rule->cfa_addend);
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

static void keep(const struct unwind_frame *frame, unsigned int number, struct unwind_frame *caller)
{
    caller->registers[number] = frame->registers[number];
    caller->known |= frame->known & 1U << number;
}

static void load(const struct unwind_memory *memory, const struct unwind_frame *frame,
                 unsigned int number, uint64_t address, struct unwind_frame *caller)
{
    if (address < frame->registers[ARCH_DWARF_SP]) {
        keep(frame, number, caller);
    } else if (unwind_memory_read(memory, address, &caller->registers[number]) == STACK_NONE) {
        caller->known |= 1U << number;
    }
}

/* Gives `caller` its value of a register, where one can be had. */
static void restore(const struct unwind_memory *memory, const struct unwind_frame *frame,
                    unsigned int number, uint8_t saved, int32_t offset, struct unwind_frame *caller)
{
    switch ((enum cfi_saved)saved) {
    case CFI_SAME:
        keep(frame, number, caller);
        break;
    case CFI_AT_CFA:
        load(memory, frame, number, add_offset(caller->registers[ARCH_DWARF_SP], offset), caller);
        break;
    case CFI_AT_SP:
        load(memory, frame, number, add_offset(frame->registers[ARCH_DWARF_SP], offset), caller);
        break;
    case CFI_AT_BP:
        if (unwind_frame_knows(frame, ARCH_DWARF_BP)) {
            load(memory, frame, number, add_offset(frame->registers[ARCH_DWARF_BP], offset),
                 caller);
        }
        break;
    case CFI_LOST:
        break;
    }
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
    uint64_t base = rule->ra_saved == CFI_AT_SP ? frame->registers[ARCH_DWARF_SP] : cfa;
    quality = unwind_memory_read(memory, add_offset(base, rule->ra_offset), &caller.pc);
    if (quality != STACK_NONE) {
        return quality;
    }
    if (caller.pc == 0) {
        return STACK_NO_RULE;
    }
    caller.registers[ARCH_DWARF_SP] = cfa;
    restore(memory, frame, ARCH_DWARF_BP, rule->bp_saved, rule->bp_offset, &caller);
    restore(memory, frame, ARCH_DWARF_BX, rule->bx_saved, rule->bx_offset, &caller);
    *frame = caller;
    return STACK_NONE;
}
