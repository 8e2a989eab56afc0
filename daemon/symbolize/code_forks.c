/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Adds what flow alone does not show: behind the system call that makes a thread the same
 * instructions run on two stacks. The child, for which the call returns 0, has no caller. The call
 * is recognised by its number, which a constant of the code has to be, and the child's way by its
 * end: a row that is a root, or the instruction that clears rbp, with which the ABI marks the first
 * frame.
 */
#include "code_forks.h"

#include "code_proof.h"

#define NUMBER_SITES_MAX 24 /* from where the call's number is set to the system call */
#define FORK_SITES_MAX   6  /* from the system call to the branch */
#define CHILD_SITES_MAX  16 /* from there to the end of what the child does by itself */

static bool begins_stack(const struct code_site *site)
{
    return site != NULL &&
           (site->row->kind == CFI_ROOT || site->effect.sight == CODE_SIGHT_CLEAR_FP);
}

/* Whether what the child does by itself comes to the call of the function that it was given. A
 * child that goes on in its parent's function may be on its parent's stack, or on a copy of it. */
static bool calls_function(const struct code_region *region, const struct code_site *child)
{
    for (size_t i = 0; child != NULL && i < CHILD_SITES_MAX; i++) {
        if (child->row->kind == CFI_ROOT) {
            return true;
        }
        if (child->effect.flow != CODE_NEXT) {
            return child->effect.flow == CODE_CALL && child->effect.target == 0;
        }
        child = code_region_next(region, child);
    }
    return false;
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
    return begins_stack(child) && calls_function(region, child) ? child : NULL;
}

static bool changes_number(const struct code_effect *effect)
{
    bool is_result = (effect->action == CODE_COPY || effect->action == CODE_LOAD ||
                      effect->action == CODE_POP) &&
                     effect->to == ARCH_DWARF_AX;
    return is_result || (effect->changes >> ARCH_DWARF_AX & 1) != 0;
}

/* Whether a system call is one that makes a thread, by what sets its number. */
static bool is_clone(const struct code_region *region, size_t number)
{
    for (size_t i = number; i-- > 0 && number - i <= NUMBER_SITES_MAX;) {
        const struct code_effect *effect = &region->sites[i].effect;
        if (effect->sight == CODE_SIGHT_CLONE) {
            return true;
        }
        if (effect->flow != CODE_NEXT || changes_number(effect)) {
            break;
        }
    }
    return false;
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
        region->sites[first].effect.sight != CODE_SIGHT_TEST_RESULT ||
        !is_clone(region, first - 1)) {
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
    return effect->flow == CODE_RETURN || effect->flow == CODE_END ||
           effect->flow == CODE_INDIRECT || effect->flow == CODE_JUMP ||
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

/* Whether it is one of the two instructions of a signal trampoline. Where something else leads to
 * the system call, its number may be another one. */
static bool is_trampoline(const struct code_region *region, size_t number)
{
    size_t first = region->sites[number].effect.sight == CODE_SIGHT_SYSCALL && number > 0
                       ? number - 1
                       : number;
    return region->sites[first].effect.sight == CODE_SIGHT_SIGRETURN &&
           first + 1 < region->site_count &&
           region->sites[first + 1].effect.sight == CODE_SIGHT_SYSCALL &&
           !region->sites[first + 1].is_target && !region->sites[first + 1].is_taken &&
           region->sites[first + 1].start == CODE_START_NONE;
}

bool code_forks_is_late(const struct code_region *region, size_t number)
{
    return region->sites[number].effect.sight == CODE_SIGHT_SYSCALL &&
           is_trampoline(region, number);
}

bool code_forks_is_early(const struct code_region *region, size_t number)
{
    bool is_behind_call = number > 0 && region->sites[number - 1].effect.flow == CODE_CALL;
    return region->sites[number].effect.sight == CODE_SIGHT_SIGRETURN && !is_behind_call &&
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
                                const struct code_backward *backward, bool *ret_by_symbol)
{
    struct cfi_rule rule = code_proof_rule(region, number, forward, backward, ret_by_symbol);
    if (!region->has_syscall) {
        return rule;
    }
    if (is_trampoline(region, number)) {
        *ret_by_symbol = false;
        return trampoline_rule();
    }
    if (is_in_fork(region, number)) {
        bool is_plain = rule.kind == CFI_OFFSET && rule.cfa_register == ARCH_DWARF_SP;
        rule.kind = is_plain ? CFI_FORK : CFI_END;
    } else if (is_child(region, number)) {
        *ret_by_symbol = false;
        rule = (struct cfi_rule){.kind = CFI_ROOT};
    }
    return rule;
}
