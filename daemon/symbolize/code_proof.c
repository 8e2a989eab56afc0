/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Joins what the forward and the backward look know of one instruction. A rule is proved by one of
 * these:
 *
 * - The backward look is sure: from here the flow comes to a return, whatever led here.
 * - Both looks say the same, and the function has no jump whose target only a register tells, and
 * no pointer leads to it where only a symbol says that it is called. If a call on the way did not
 *   return, or took words off the stack, or the start were none, they would differ. A frame pointer
 *   holds for all ways into the function.
 * - The forward look begins where a function is called for certain, and nothing else leads into the
 *   function: it has no such jump either. Where only a symbol says that it is called, the jumps of
 *   all other code count, too (code_doubts.h).
 *
 * Elsewhere the rule is CFI_END: a guess would show callers that are none, and so would the frame
 * pointer, which such code seldom has. But where the function makes rbp its frame pointer, there is
 * no rule: the frame pointer is followed, and such a stack is called not proved.
 */
#include "code_proof.h"

#include <string.h>

/* Whether the two looks say what cannot be both. Where the look forward knows the stack pointer, a
 * word or a register of which it knows nothing leads elsewhere: to a stack that the code changes
 * to. */
static bool do_contradict(const struct code_forward *forward, const struct code_backward *backward)
{
    if (!forward->reached || !code_backward_is_known(backward)) {
        return false;
    }
    bool knows_stack =
        forward->reached == CODE_TRUST_SURE && forward->values[ARCH_DWARF_SP] != CODE_UNKNOWN;
    int32_t value = forward->values[backward->base];
    if (backward->expression == CODE_OFFSET) {
        return value == CODE_UNKNOWN ? knows_stack : value != -backward->offset;
    }
    bool is_slot = backward->base == ARCH_DWARF_SP && backward->offset == forward->slot_offset;
    return is_slot ? backward->addend != forward->slot_addend : knows_stack;
}

/* Whether each of them leads to the same CFA. */
static bool do_agree(const struct code_forward *forward, const struct code_backward *backward)
{
    if (!forward->reached) {
        return false;
    }
    if (backward->expression == CODE_OFFSET) {
        return forward->values[backward->base] == -backward->offset;
    }
    return backward->expression == CODE_DEREF && backward->base == ARCH_DWARF_SP &&
           backward->offset == forward->slot_offset && backward->addend == forward->slot_addend;
}

/* Whether the look back can tell where a register of the caller is: not in a word that is saved
 * later, below the stack pointer, nor by rbp, which may lead elsewhere in a frame that is not a
 * leaf's. */
static bool is_there(uint8_t saved, int32_t offset, int32_t sp)
{
    return saved != CFI_LOST && saved != CFI_AT_BP && (saved != CFI_AT_CFA || offset >= sp);
}

/* Of two rules for one frame: what is restored behind an instruction is the caller's, whatever was
 * saved before it. */
static void take_restored(struct cfi_rule *rule, const struct cfi_rule *behind, int32_t sp)
{
    if (is_there(behind->bp_saved, behind->bp_offset, sp)) {
        rule->bp_saved = behind->bp_saved;
        rule->bp_offset = behind->bp_offset;
    }
    if (is_there(behind->bx_saved, behind->bx_offset, sp)) {
        rule->bx_saved = behind->bx_saved;
        rule->bx_offset = behind->bx_offset;
    }
}

/* And what was saved before it, where nothing is known to be restored. */
static void take_saved(struct cfi_rule *rule, const struct cfi_rule *before, int32_t sp)
{
    if (!is_there(rule->bp_saved, rule->bp_offset, sp)) {
        rule->bp_saved = before->bp_saved;
        rule->bp_offset = before->bp_offset;
    }
    if (!is_there(rule->bx_saved, rule->bx_offset, sp)) {
        rule->bx_saved = before->bx_saved;
        rule->bx_offset = before->bx_offset;
    }
}

/* Whether it jumps to where nothing tells, with a frame. */
static bool is_wild(const struct code_site *site, const struct code_forward *forward)
{
    bool is_tail = forward->reached && forward->values[ARCH_DWARF_SP] == -CODE_WORD_BYTES;
    return site->effect.flow == CODE_INDIRECT && site->table == 0 && !code_site_has_row(site) &&
           !is_tail;
}

bool code_proof_begins_scope(const struct code_region *region, size_t number,
                             const struct code_backward *backward)
{
    const struct code_site *site = &region->sites[number];
    bool is_shown = backward[number].trust == CODE_TRUST_SURE && backward[number].returns != 0 &&
                    code_backward_is_return(&backward[number]);
    return code_start_is_function(site->start) || (site->is_pointed && is_shown);
}

void code_proof_prepare(const struct code_region *region, const struct code_forward *forward,
                        const struct code_backward *backward)
{
    size_t first = 0;
    bool is_any_wild = false;
    for (size_t i = 0; i < region->site_count; i++) {
        if (code_proof_begins_scope(region, i, backward)) {
            memset(region->marks + first, is_any_wild, i - first);
            first = i;
            is_any_wild = false;
        }
        is_any_wild = is_any_wild || is_wild(&region->sites[i], &forward[i]);
    }
    memset(region->marks + first, is_any_wild, region->site_count - first);
}

/* Whether a jump of its scope may lead to it from where nothing tells. */
static bool is_open(const struct code_region *region, const struct code_site *site)
{
    return !code_site_has_row(site) && region->marks[code_region_number(region, site)] != 0;
}

/* Whether a jump through a pointer may have entered its function, with any stack: only a symbol
 * says that it was called. */
static bool is_entered(const struct code_region *region, const struct code_site *site,
                       const struct code_forward *forward)
{
    return forward->origin == CODE_ORIGIN_SYMBOL && code_region_function(region, site)->is_pointed;
}

/* What the forward look alone proves, as the origin of its ways. */
static enum code_origin proof_of_forward(const struct code_region *region,
                                         const struct code_site *site,
                                         const struct code_forward *forward,
                                         const struct code_backward *backward)
{
    bool is_reached = site->is_taken && !code_backward_is_return(backward);
    return forward->reached == CODE_TRUST_SURE && !is_reached && !is_open(region, site)
               ? (enum code_origin)forward->origin
               : CODE_ORIGIN_NONE;
}

struct cfi_rule code_proof_rule(const struct code_region *region, size_t number,
                                const struct code_forward *forward,
                                const struct code_backward *backward, bool *ret_by_symbol)
{
    const struct code_site *site = &region->sites[number];
    struct cfi_rule before = code_forward_rule(forward);
    const struct cfi_rule unproved = {.kind = cfi_rule_is_framed(&before) ? CFI_NONE : CFI_END};
    struct cfi_rule behind = code_backward_rule(backward);
    bool returns = backward->returns != 0;
    bool is_sure = behind.kind != CFI_NONE && backward->trust == CODE_TRUST_SURE && returns;
    bool contradict = do_contradict(forward, backward);
    bool agree = do_agree(forward, backward);
    *ret_by_symbol = false;
    bool is_certain =
        !is_sure && forward->origin == CODE_ORIGIN_CERTAIN && forward->reached == CODE_TRUST_SURE;
    if (site->is_split || forward->broken ||
        (contradict && !is_certain && (forward->reached == CODE_TRUST_SURE || !is_sure))) {
        return unproved;
    }
    if (is_sure) {
        if (agree && !is_open(region, site)) {
            take_saved(&behind, &before, forward->values[ARCH_DWARF_SP]);
        }
        return behind;
    }
    bool is_proved =
        agree && returns && !is_open(region, site) && !is_entered(region, site, forward);
    enum code_origin origin =
        is_proved ? CODE_ORIGIN_CALL : proof_of_forward(region, site, forward, backward);
    if (before.kind == CFI_NONE || origin == CODE_ORIGIN_NONE) {
        return unproved;
    }
    bool is_frame = behind.kind == CFI_OFFSET &&
                    (behind.cfa_register == ARCH_DWARF_BP || behind.cfa_register == ARCH_DWARF_BX);
    if (agree && returns && is_frame) {
        take_saved(&behind, &before, forward->values[ARCH_DWARF_SP]);
        before = behind;
    } else if (agree) {
        take_restored(&before, &behind, forward->values[ARCH_DWARF_SP]);
    }
    *ret_by_symbol = origin == CODE_ORIGIN_SYMBOL;
    return before;
}
