/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Looks at each instruction that leaves its function. Where the return address is on top of the
 * stack it is a tail call: the next function is as if it had been called, if this one was. Else the
 * next one finds something else there. Jumps that stay in the region change the states of its own
 * looks; only those that leave it are noted here. Code of which the file has rows is a compiler's:
 * what it jumps to is called.
 */
#include "code_jumps.h"

#define SWITCH_SITES_MAX 24 /* from where the stack pointer is set to the jump */

struct jumps {
    const struct code_region *region;
    size_t site_count; /* of the region: those behind them belong to the next */
    struct code_doubts *doubts;
};

/* How an instruction leaves. */
enum leave {
    LEAVE_TAIL,      /* as a function that has been called leaves for the next */
    LEAVE_PASS,      /* the same, if it was called: only a symbol says so */
    LEAVE_FRAME,     /* with something else on the stack, or nothing is known */
    LEAVE_ELSEWHERE, /* on a stack that it has changed to, as longjmp() does: behind a call there */
};

/* Whether an instruction gives the stack pointer a value that does not come from itself. */
static bool sets_stack(const struct code_effect *effect)
{
    bool is_copy = effect->action == CODE_COPY && effect->to == ARCH_DWARF_SP &&
                   effect->from != ARCH_DWARF_SP && effect->from != ARCH_DWARF_BP;
    bool is_load =
        (effect->action == CODE_LOAD || effect->action == CODE_POP) && effect->to == ARCH_DWARF_SP;
    return is_copy || is_load || effect->sight == CODE_SIGHT_STACK;
}

/* Whether the code before an instruction has changed to another stack. */
static bool is_switch(const struct code_region *region, size_t number)
{
    for (size_t i = number; i-- > 0 && number - i <= SWITCH_SITES_MAX;) {
        const struct code_effect *effect = &region->sites[i].effect;
        if (sets_stack(effect)) {
            return true;
        }
        if (effect->flow != CODE_NEXT && effect->flow != CODE_BRANCH) {
            break;
        }
    }
    return false;
}

static enum leave how_it_leaves(const struct code_region *region, size_t number,
                                const struct code_forward *forward,
                                const struct code_backward *backward)
{
    int32_t sp = forward->reached ? forward->values[ARCH_DWARF_SP] : CODE_UNKNOWN;
    if (code_backward_is_return(backward)) {
        return LEAVE_TAIL;
    }
    if (sp == -CODE_WORD_BYTES && forward->origin != CODE_ORIGIN_NONE) {
        return forward->origin == CODE_ORIGIN_SYMBOL ? LEAVE_PASS : LEAVE_TAIL;
    }
    return sp == CODE_UNKNOWN && is_switch(region, number) ? LEAVE_ELSEWHERE : LEAVE_FRAME;
}

/* Notes one target, CODE_DOUBTS_ANYWHERE for one that nothing tells. */
static int note_target(const struct jumps *jumps, const struct code_site *site, enum leave leave,
                       uint64_t target)
{
    const struct code_region *region = jumps->region;
    if (leave == LEAVE_PASS) {
        return code_doubts_pass(jumps->doubts, region->start + site->function, target);
    }
    const struct code_site *next = code_region_find(region, target);
    bool leaves_region = next == NULL || code_region_number(region, next) >= jumps->site_count;
    return leave == LEAVE_FRAME && leaves_region ? code_doubts_jump(jumps->doubts, target) : 0;
}

/* Notes a jump with all its targets. */
static int note_jump(const struct jumps *jumps, const struct code_site *site, enum leave leave)
{
    const struct code_table table = code_region_table(jumps->region, site);
    if (site->effect.flow != CODE_INDIRECT) {
        return note_target(jumps, site, leave, site->effect.target);
    }
    int r = table.count > 0 ? 0 : note_target(jumps, site, leave, CODE_DOUBTS_ANYWHERE);
    for (size_t i = 0; r == 0 && i < table.count; i++) {
        r = note_target(jumps, site, leave, jumps->region->targets[table.first + i]);
    }
    return r;
}

/* A return to what the function has pushed is a jump. One that leaves out its own return address is
 * how return thunks return. */
static bool is_pushed_return(const struct code_forward *forward)
{
    int32_t sp = forward->values[ARCH_DWARF_SP];
    return forward->reached == CODE_TRUST_SURE && sp != CODE_UNKNOWN && sp < -CODE_WORD_BYTES;
}

/* A coroutine may begin with a return from the code that goes over to its stack, whatever is on it.
 */
static bool is_switched_return(const struct code_region *region, size_t number,
                               const struct code_forward *forward)
{
    bool knows_stack = forward->reached && forward->values[ARCH_DWARF_SP] != CODE_UNKNOWN;
    return !knows_stack && is_switch(region, number);
}

static int note_site(const struct jumps *jumps, size_t number, const struct code_forward *forward,
                     const struct code_backward *backward)
{
    const struct code_region *region = jumps->region;
    struct code_doubts *doubts = jumps->doubts;
    const struct code_site *site = &region->sites[number];
    bool is_executed = forward->reached == CODE_TRUST_SURE || backward->trust == CODE_TRUST_SURE;
    switch ((enum code_flow)site->effect.flow) {
    case CODE_CALL:
        return is_executed && site->effect.target != 0
                   ? code_doubts_call(doubts, site->effect.target)
                   : 0;
    case CODE_RETURN:
        return is_pushed_return(forward) || is_switched_return(region, number, forward)
                   ? code_doubts_jump(doubts, CODE_DOUBTS_ANYWHERE)
                   : 0;
    case CODE_JUMP:
    case CODE_BRANCH:
    case CODE_INDIRECT:
        return note_jump(jumps, site, how_it_leaves(region, number, forward, backward));
    case CODE_NEXT:
    case CODE_END:
        break;
    }
    return 0;
}

int code_jumps_note(const struct code_region *region, size_t site_count,
                    const struct code_forward *forward, const struct code_backward *backward,
                    struct code_doubts *doubts)
{
    const struct jumps jumps = {region, site_count, doubts};
    int r = 0;
    for (size_t i = 0; r == 0 && i < site_count; i++) {
        if (!code_site_has_row(&region->sites[i])) {
            r = note_site(&jumps, i, &forward[i], &backward[i]);
        }
    }
    return r;
}
