/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Steps out of a frame by a rule. The rule gives the CFA, and from it the places of the caller's
 * registers. Only rsp, rbp, rbx and the registers that the rule says are kept are known afterwards.
 * The CFA rises with each step, except out of a signal frame, since handlers can have stacks of
 * their own. The caller, which knows the mappings, checks the return address.
 *
 * Compilers do not describe the pops before a return. The rule still has the register's place on
 * the stack, which is then below rsp and in no copy; but the register has the caller's value again.
 * Where a leaf saved the register in its red zone, the rule says that it is lost (dwarf_cfa.c). The
 * two look alike only while the CFA rests on another register than rsp.
 */
#include "unwind_cfi.h"

#define CFI_INDEX_BYTES 8
#define PLT_SLOT_MASK   UINT64_C(15)

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
    case CFI_FORK:
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
            cfa += unwind_memory_word_bytes(memory);
        }
        break;
    case CFI_NONE:
    case CFI_UNSUPPORTED:
    case CFI_ROOT:
    case CFI_END:
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

/* A register as the caller has it. */
struct restored {
    uint64_t value;
    bool known;
};

static struct restored keep(const struct unwind_frame *frame, unsigned int number)
{
    return (struct restored){frame->registers[number], unwind_frame_knows(frame, number)};
}

static struct restored load(const struct unwind_memory *memory, const struct unwind_frame *frame,
                            unsigned int number, uint64_t address)
{
    struct restored restored = {0, false};
    if (address < frame->registers[ARCH_DWARF_SP]) {
        return keep(frame, number);
    }
    restored.known = unwind_memory_read(memory, address, &restored.value) == STACK_NONE;
    return restored;
}

/* The caller's value of a register, where one can be had. */
static struct restored restore(const struct unwind_memory *memory, const struct unwind_frame *frame,
                               uint64_t cfa, unsigned int number, uint8_t saved, int32_t offset)
{
    switch ((enum cfi_saved)saved) {
    case CFI_SAME:
        return keep(frame, number);
    case CFI_AT_CFA:
        return load(memory, frame, number, add_offset(cfa, offset));
    case CFI_AT_SP:
        return load(memory, frame, number, add_offset(frame->registers[ARCH_DWARF_SP], offset));
    case CFI_AT_BP:
        if (unwind_frame_knows(frame, ARCH_DWARF_BP)) {
            return load(memory, frame, number, add_offset(frame->registers[ARCH_DWARF_BP], offset));
        }
        break;
    case CFI_LOST:
        break;
    }
    return (struct restored){0, false};
}

enum stack_quality unwind_cfi_step(const struct cfi_rule *rule, const struct unwind_memory *memory,
                                   struct unwind_frame *frame)
{
    uint64_t cfa = 0;
    uint64_t pc = 0;
    enum stack_quality quality = find_cfa(rule, memory, frame, &cfa);
    if (quality != STACK_NONE) {
        return quality;
    }
    uint64_t base = rule->ra_saved == CFI_AT_SP ? frame->registers[ARCH_DWARF_SP] : cfa;
    quality = unwind_memory_read(memory, add_offset(base, rule->ra_offset), &pc);
    if (quality != STACK_NONE) {
        return quality;
    }
    if (pc == 0) {
        return STACK_NO_RULE;
    }
    struct restored bp =
        restore(memory, frame, cfa, ARCH_DWARF_BP, rule->bp_saved, rule->bp_offset);
    struct restored bx =
        restore(memory, frame, cfa, ARCH_DWARF_BX, rule->bx_saved, rule->bx_offset);
    unwind_frame_set(frame, pc, cfa, bp.value, bx.value,
                     (uint32_t)bp.known << ARCH_DWARF_BP | (uint32_t)bx.known << ARCH_DWARF_BX |
                         (frame->known & rule->kept));
    return STACK_NONE;
}
