/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Joins what the forward and the backward look know of one instruction. It adds what flow alone
 * does not show: behind the system call that makes a thread the same instructions run on two
 * stacks. The child, for which the call returns 0, has no caller. The child's way is recognised by
 * its end: a row that is a root, or the instruction that clears rbp, with which the ABI marks the
 * first frame.
 */
#include "code_forks.h"

#define FORK_SITES_MAX  6  /* from the system call to the branch */
#define CHILD_SITES_MAX 16 /* from there to the end of what the child does by itself */

static bool is_nothing_known(const struct code_backward *state)
{
    return state->expression == CODE_OPEN || state->expression == CODE_NOWHERE;
}

/* Whether the two looks say what cannot be both. */
static bool do_contradict(const struct code_forward *forward, const struct code_backward *backward)
{
    if (!forward->reached || is_nothing_known(backward)) {
        return false;
    }
    int32_t value = forward->values[backward->base];
    if (backward->expression == CODE_OFFSET) {
        return value != CODE_UNKNOWN && value != -backward->offset;
    }
    return backward->base == ARCH_DWARF_SP && backward->offset == forward->slot_offset &&
           backward->addend != forward->slot_addend;
}

/* What only the other one knows of the caller's registers. */
static void complete(struct cfi_rule *rule, const struct cfi_rule *other)
{
    if (rule->bp_saved == CFI_LOST && other->bp_saved != CFI_AT_BP) {
        rule->bp_saved = other->bp_saved;
        rule->bp_offset = other->bp_offset;
    }
    if (rule->bx_saved == CFI_LOST && other->bx_saved != CFI_AT_BP) {
        rule->bx_saved = other->bx_saved;
        rule->bx_offset = other->bx_offset;
    }
}

/* The surer of the two counts; of two that are as sure, none where they contradict each other; and
 * what is doubtful counts only if both say it. */
static struct cfi_rule join(const struct code_forward *forward,
                            const struct code_backward *backward)
{
    const struct cfi_rule none = {.kind = CFI_NONE};
    struct cfi_rule before = code_forward_rule(forward);
    struct cfi_rule behind = code_backward_rule(backward);
    bool contradict = do_contradict(forward, backward);
    bool both = before.kind != CFI_NONE && behind.kind != CFI_NONE;
    enum code_trust before_trust = before.kind == CFI_NONE ? CODE_TRUST_NONE : forward->reached;
    enum code_trust behind_trust = behind.kind == CFI_NONE ? CODE_TRUST_NONE : backward->trust;
    if (forward->broken) {
        return none;
    }
    if (before_trust == behind_trust && (contradict || before_trust == CODE_TRUST_NONE)) {
        return none;
    }
    if (before_trust != CODE_TRUST_SURE && behind_trust != CODE_TRUST_SURE && !both) {
        return none;
    }
    if (both && !contradict) {
        complete(&before, &behind);
        return before;
    }
    return before_trust > behind_trust ? before : behind;
}

static bool begins_stack(const struct code_site *site)
{
    return site != NULL &&
           (site->row->kind == CFI_ROOT || site->effect.sight == CODE_SIGHT_CLEAR_FP);
}

/* Where the child of the fork goes whose branch is `branch`, or NULL: it is no such branch. */
static const struct code_site *child_of(const struct code_region *region,
                                        const struct code_site *branch)
{
    const struct code_site *child = NULL;
    if (branch->effect.sight == CODE_SIGHT_IF_ZERO) {
        child = code_region_find(region, branch->effect.target);
    } else if (branch->effect.sight == CODE_SIGHT_IF_NOT_ZERO) {
        child = code_region_next(region, branch);
    }
    return begins_stack(child) ? child : NULL;
}

/* Whether the instruction stands between a system call and the branch at which its child leaves. */
static bool is_in_fork(const struct code_region *region, size_t number)
{
    size_t first = number;
    size_t last = number;
    for (size_t i = 0; i < FORK_SITES_MAX && first > 0; i++) {
        if (region->sites[first - 1].effect.sight == CODE_SIGHT_SYSCALL) {
            break;
        }
        first--;
    }
    if (first == 0 || region->sites[first - 1].effect.sight != CODE_SIGHT_SYSCALL ||
        region->sites[first].effect.sight != CODE_SIGHT_TEST_RESULT) {
        return false;
    }
    while (last < region->site_count && last - first < FORK_SITES_MAX) {
        const struct code_effect *effect = &region->sites[last].effect;
        if (child_of(region, &region->sites[last]) != NULL) {
            return true;
        }
        if (effect->flow != CODE_NEXT && effect->flow != CODE_BRANCH) {
            break;
        }
        last++;
    }
    return false;
}

/* Whether the child of a fork begins with this instruction. */
static bool is_first_of_child(const struct code_region *region, size_t number)
{
    for (size_t i = number; i-- > 0 && number - i <= CHILD_SITES_MAX;) {
        if (child_of(region, &region->sites[i]) == &region->sites[number] &&
            is_in_fork(region, i)) {
            return true;
        }
    }
    return false;
}

static bool is_end_of_child(const struct code_effect *effect)
{
    return effect->flow == CODE_RETURN || effect->flow == CODE_END || effect->flow == CODE_JUMP ||
           effect->sight == CODE_SIGHT_SYSCALL;
}

/* Whether it is what the child of a fork does by itself, before and behind its one call. */
static bool is_child(const struct code_region *region, size_t number)
{
    for (size_t i = 0; i < CHILD_SITES_MAX && i <= number; i++) {
        const struct code_effect *effect = &region->sites[number - i].effect;
        if (effect->sight == CODE_SIGHT_CLEAR_FP) {
            return is_first_of_child(region, number - i);
        }
        if (i > 0 && is_end_of_child(effect)) {
            return false;
        }
    }
    return false;
}

/* Whether it is one of the two instructions of a signal trampoline. */
static bool is_trampoline(const struct code_region *region, size_t number)
{
    size_t first = region->sites[number].effect.sight == CODE_SIGHT_SYSCALL && number > 0
                       ? number - 1
                       : number;
    return region->sites[first].effect.sight == CODE_SIGHT_SIGRETURN &&
           first + 1 < region->site_count &&
           region->sites[first + 1].effect.sight == CODE_SIGHT_SYSCALL;
}

bool code_forks_is_late(const struct code_region *region, size_t number)
{
    return region->sites[number].effect.sight == CODE_SIGHT_SYSCALL &&
           is_trampoline(region, number);
}

bool code_forks_is_early(const struct code_region *region, size_t number)
{
    return region->sites[number].effect.sight == CODE_SIGHT_SIGRETURN &&
           is_trampoline(region, number);
}

/* The kernel has put a struct ucontext on top of the stack. */
static struct cfi_rule trampoline_rule(void)
{
    return (struct cfi_rule){
        .kind = CFI_DEREF,
        .cfa_register = ARCH_DWARF_SP,
        .cfa_offset = ARCH_UCONTEXT_SP_OFFSET,
        .signal_frame = 1,
        .ra_saved = CFI_AT_SP,
        .ra_offset = ARCH_UCONTEXT_IP_OFFSET,
        .bp_saved = CFI_AT_SP,
        .bp_offset = ARCH_UCONTEXT_BP_OFFSET,
        .bx_saved = CFI_AT_SP,
        .bx_offset = ARCH_UCONTEXT_BX_OFFSET,
    };
}

struct cfi_rule code_forks_rule(const struct code_region *region, size_t number,
                                const struct code_forward *forward,
                                const struct code_backward *backward)
{
    struct cfi_rule rule = join(forward, backward);
    if (is_trampoline(region, number)) {
        return trampoline_rule();
    }
    if (is_in_fork(region, number)) {
        bool is_plain = rule.kind == CFI_OFFSET && rule.cfa_register == ARCH_DWARF_SP;
        rule.kind = is_plain ? CFI_FORK : CFI_NONE;
    } else if (is_child(region, number)) {
        rule = (struct cfi_rule){.kind = CFI_ROOT};
    }
    return rule;
}
