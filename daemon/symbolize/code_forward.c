/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Derives rows from a function's start, where the return address is on top of the stack. From there
 * each instruction's effect changes the state. Where two ways meet, the state keeps what both agree
 * on. A row of the file itself always holds. States only lose knowledge, so the rounds end.
 *
 * A symbol alone does not prove that a function is called: operations of an interpreter are jumped
 * to. So a state says what has shown it.
 *
 * Code that aligns its stack keeps its frame in a word on the stack. Such a word is followed by its
 * distance from rsp, and compared with writes through rsp.
 */
#include "code_forward.h"

#include <string.h>

#define ROUNDS_MAX 12

static int32_t add_value(int32_t value, int32_t offset)
{
    if (value == CODE_UNKNOWN) {
        return CODE_UNKNOWN;
    }
    int64_t sum = (int64_t)value + offset;
    return code_is_near(sum) ? (int32_t)sum : CODE_UNKNOWN;
}

static void forget_slot(struct code_forward *state)
{
    state->slot_offset = CODE_UNKNOWN;
}

static void forget_all(struct code_forward *state)
{
    *state = (struct code_forward){.slot_offset = CODE_UNKNOWN,
                                   .reached = state->reached,
                                   .broken = state->broken,
                                   .origin = state->origin};
    for (size_t i = 0; i < ARCH_REGISTERS_COUNT; i++) {
        state->values[i] = CODE_UNKNOWN;
    }
    for (size_t i = 0; i < CODE_KEPT_COUNT; i++) {
        state->saved[i] = CODE_UNKNOWN;
    }
}

static void forget_own(struct code_forward *state, unsigned int number)
{
    for (size_t i = 0; i < CODE_KEPT_COUNT; i++) {
        state->own[i] = state->own[i] && number != code_kept_register(i);
    }
}

static void set_register(struct code_forward *state, unsigned int number, int32_t value)
{
    if (number == CODE_REGISTER_NONE) {
        return;
    }
    if (number == ARCH_DWARF_SP) {
        forget_slot(state);
    }
    forget_own(state, number);
    state->values[number] = value;
}

/* What lies below the stack pointer does not last. */
static void forget_below(struct code_forward *state)
{
    int32_t sp = state->values[ARCH_DWARF_SP];
    for (size_t i = 0; sp != CODE_UNKNOWN && i < CODE_KEPT_COUNT; i++) {
        if (state->saved[i] < sp) {
            state->saved[i] = CODE_UNKNOWN;
        }
    }
}

static void copy(struct code_forward *state, unsigned int to, unsigned int from, int32_t offset)
{
    int32_t slot = state->slot_offset;
    set_register(state, to, add_value(state->values[from], offset));
    if (to == ARCH_DWARF_SP && from == ARCH_DWARF_SP) {
        state->slot_offset = add_value(slot, -offset);
    }
}

static void load(struct code_forward *state, unsigned int to, unsigned int from, int32_t offset)
{
    int32_t at = add_value(state->values[from], offset);
    int32_t value = CODE_UNKNOWN;
    if (from == ARCH_DWARF_SP && state->slot_offset == offset && offset != CODE_UNKNOWN) {
        value = -state->slot_addend;
    }
    set_register(state, to, value);
    for (size_t i = 0; i < CODE_KEPT_COUNT; i++) {
        if (to == code_kept_register(i) && at != CODE_UNKNOWN && at == state->saved[i]) {
            state->own[i] = 1;
        }
    }
}

static void store(struct code_forward *state, unsigned int to, int32_t offset, unsigned int from,
                  int32_t bytes)
{
    int32_t at = add_value(state->values[to], offset);
    bool is_word = from != CODE_REGISTER_NONE && bytes == CODE_WORD_BYTES;
    if (at != CODE_UNKNOWN && code_overlaps(at, bytes, -CODE_WORD_BYTES, CODE_WORD_BYTES)) {
        state->broken = 1;
        forget_all(state);
        return;
    }
    for (size_t i = 0; at != CODE_UNKNOWN && i < CODE_KEPT_COUNT; i++) {
        bool is_save = is_word && from == code_kept_register(i) && state->own[i];
        if (is_save && state->saved[i] == CODE_UNKNOWN) {
            state->saved[i] = at;
        } else if (!is_save && state->saved[i] != CODE_UNKNOWN &&
                   code_overlaps(at, bytes, state->saved[i], CODE_WORD_BYTES)) {
            state->saved[i] = CODE_UNKNOWN;
        }
    }
    if (to != ARCH_DWARF_SP) {
        return;
    }
    if (state->slot_offset != CODE_UNKNOWN &&
        code_overlaps(offset, bytes, state->slot_offset, CODE_WORD_BYTES)) {
        forget_slot(state);
    }
    if (is_word && state->values[from] != CODE_UNKNOWN && from != ARCH_DWARF_SP) {
        state->slot_offset = offset;
        state->slot_addend = -state->values[from];
    }
}

static void push(struct code_forward *state, unsigned int from)
{
    /* What push writes of rsp is its value from before, and leads nowhere from behind it. */
    copy(state, ARCH_DWARF_SP, ARCH_DWARF_SP, -CODE_WORD_BYTES);
    store(state, ARCH_DWARF_SP, 0, from == ARCH_DWARF_SP ? CODE_REGISTER_NONE : from,
          CODE_WORD_BYTES);
}

static void pop(struct code_forward *state, unsigned int to)
{
    if (to != CODE_REGISTER_NONE) {
        load(state, to, ARCH_DWARF_SP, 0);
    }
    if (to != ARCH_DWARF_SP) {
        copy(state, ARCH_DWARF_SP, ARCH_DWARF_SP, CODE_WORD_BYTES);
    }
}

/* These registers have values that nothing tells. */
static void change(struct code_forward *state, uint32_t registers)
{
    if ((registers >> ARCH_DWARF_SP & 1) != 0) {
        forget_slot(state);
    }
    for (size_t i = 0; i < CODE_KEPT_COUNT; i++) {
        state->own[i] = state->own[i] && (registers >> code_kept_register(i) & 1) == 0;
    }
    for (; registers != 0; registers &= registers - 1) {
        state->values[__builtin_ctz(registers)] = CODE_UNKNOWN;
    }
}

/* What holds behind an instruction, of what held before it. */
static void execute(struct code_forward *state, const struct code_effect *effect)
{
    switch ((enum code_action)effect->action) {
    case CODE_NOTHING:
        break;
    case CODE_COPY:
        copy(state, effect->to, effect->from, effect->offset);
        break;
    case CODE_LOAD:
        load(state, effect->to, effect->from, effect->offset);
        break;
    case CODE_STORE:
        store(state, effect->to, effect->offset, effect->from, effect->store_bytes);
        break;
    case CODE_PUSH:
        push(state, effect->from);
        break;
    case CODE_POP:
        pop(state, effect->to);
        break;
    case CODE_MOVE:
        pop(state, CODE_REGISTER_NONE);
        store(state, effect->to, effect->offset, CODE_REGISTER_NONE, effect->store_bytes);
        break;
    case CODE_LEAVE:
        copy(state, ARCH_DWARF_SP, ARCH_DWARF_BP, 0);
        pop(state, ARCH_DWARF_BP);
        break;
    }
    change(state, effect->changes);
    if (effect->flow == CODE_CALL) {
        change(state, CODE_CALLER_SAVED);
    }
    forget_below(state);
}

/* Leaves of `*value` what both agree on. Returns whether that changed it. */
static bool agree(int32_t *value, int32_t other)
{
    int32_t met = *value == other ? other : CODE_UNKNOWN;
    bool changed = met != *value;
    *value = met;
    return changed;
}

/* Another way, of the same trust, leads to `state`, which was reached. Returns whether that changed
 * it. */
static bool meet(struct code_forward *state, const struct code_forward *other)
{
    bool changed = false;
    for (size_t i = 0; i < ARCH_REGISTERS_COUNT; i++) {
        changed |= agree(&state->values[i], other->values[i]);
    }
    for (size_t i = 0; i < CODE_KEPT_COUNT; i++) {
        changed |= agree(&state->saved[i], other->saved[i]);
        changed |= state->own[i] > other->own[i];
        state->own[i] &= other->own[i];
    }
    if (state->slot_offset != other->slot_offset || state->slot_addend != other->slot_addend) {
        changed |= state->slot_offset != CODE_UNKNOWN || state->slot_addend != 0;
        forget_slot(state);
        state->slot_addend = 0;
    }
    changed |= state->broken < other->broken || state->origin > other->origin;
    state->broken |= other->broken;
    state->origin = state->origin < other->origin ? state->origin : other->origin;
    return changed;
}

static struct code_forward start_state(void)
{
    struct code_forward state = {.reached = CODE_TRUST_SURE};
    forget_all(&state);
    state.values[ARCH_DWARF_SP] = -CODE_WORD_BYTES;
    for (size_t i = 0; i < CODE_KEPT_COUNT; i++) {
        state.own[i] = 1;
    }
    return state;
}

static void take_saved(struct code_forward *state, size_t kept, uint8_t saved, int32_t offset)
{
    if (state->own[kept] || state->saved[kept] != CODE_UNKNOWN) {
        return;
    }
    state->own[kept] = saved == CFI_SAME;
    state->saved[kept] = saved == CFI_AT_CFA ? offset : CODE_UNKNOWN;
}

/* What a row of the file says, beside what is known already. */
static void take_row(struct code_forward *state, const struct cfi_rule *row)
{
    if (!code_row_is_call(row)) {
        return;
    }
    if (!state->reached) {
        state->reached = CODE_TRUST_SURE;
        state->origin = CODE_ORIGIN_CALL;
        forget_all(state);
    }
    if (row->kind == CFI_OFFSET && state->values[row->cfa_register] == CODE_UNKNOWN) {
        state->values[row->cfa_register] = add_value(0, -row->cfa_offset);
    }
    bool has_slot = state->slot_offset != CODE_UNKNOWN && state->slot_offset >= 0;
    if (row->kind == CFI_DEREF && row->cfa_register == ARCH_DWARF_SP && !has_slot) {
        state->slot_offset = row->cfa_offset;
        state->slot_addend = row->cfa_addend;
    }
    take_saved(state, CODE_KEPT_BP, row->bp_saved, row->bp_offset);
    take_saved(state, CODE_KEPT_BX, row->bx_saved, row->bx_offset);
}

/* What the look back is sure of, where nothing else is known. */
static void take_backward(struct code_forward *state, const struct code_backward *backward)
{
    state->reached = CODE_TRUST_SURE;
    state->origin = CODE_ORIGIN_CALL;
    forget_all(state);
    if (backward->expression == CODE_OFFSET) {
        state->values[backward->base] = -backward->offset;
    } else if (backward->base == ARCH_DWARF_SP) {
        state->slot_offset = backward->offset;
        state->slot_addend = backward->addend;
    }
    for (size_t i = 0; i < CODE_KEPT_COUNT; i++) {
        const struct code_place *place = &backward->kept[i];
        bool is_in_frame = place->kind == CODE_PLACE_STACK && backward->expression == CODE_OFFSET &&
                           place->base == backward->base;
        state->own[i] = place->kind == CODE_PLACE_OWN;
        state->saved[i] = is_in_frame ? add_value(place->offset, -backward->offset) : CODE_UNKNOWN;
    }
}

/* At a label that its own return shows to be a start: a jump may have led there instead, with
 * registers of the caller's elsewhere. */
static void keep_own(struct code_forward *state, const struct code_backward *backward)
{
    for (size_t i = 0; i < CODE_KEPT_COUNT; i++) {
        state->own[i] = backward->kept[i].kind == CODE_PLACE_OWN;
    }
}

/* Whether what follows shows that a function begins; where a pointer leads to it, for certain. */
static bool is_shown(const struct code_site *site, const struct code_backward *backward)
{
    bool is_certain = backward->trust == CODE_TRUST_SURE;
    return code_backward_is_return(backward) && (is_certain || !site->is_pointed);
}

/* Before the first round: what no other instruction has to say. A label is a function's start if
 * its own return says so. */
static void begin(const struct code_region *region, const struct code_backward *backward,
                  struct code_forward *states)
{
    for (size_t i = 0; i < region->site_count; i++) {
        enum code_start start = region->sites[i].start;
        bool returns = is_shown(&region->sites[i], &backward[i]);
        states[i] = (struct code_forward){.slot_offset = CODE_UNKNOWN};
        bool is_label = start == CODE_START_LABEL && backward[i].trust == CODE_TRUST_SURE;
        if (code_start_is_function(start) || (is_label && returns)) {
            states[i] = start_state();
            states[i].origin = start == CODE_START_CALLED ? CODE_ORIGIN_CERTAIN
                               : returns                  ? CODE_ORIGIN_CALL
                                                          : CODE_ORIGIN_SYMBOL;
            if (is_label) {
                keep_own(&states[i], &backward[i]);
            }
        }
    }
}

struct forward {
    const struct code_region *region;
    const struct code_backward *backward;
    struct code_forward *states;
    enum code_trust trust; /* of the flow that is followed in this round */
    bool takes_backward;   /* and where it may begin */
};

/* Whether it changes what holds at a function's start that another function goes on there: where
 * the stack is not as at a call, the start is none. */
static bool enter(struct code_forward *known, const struct code_forward *from)
{
    bool is_call =
        from->values[ARCH_DWARF_SP] == -CODE_WORD_BYTES && from->origin != CODE_ORIGIN_NONE;
    bool changed =
        from->reached == CODE_TRUST_SURE && !is_call && known->origin != CODE_ORIGIN_NONE;
    known->origin = changed ? CODE_ORIGIN_NONE : known->origin;
    return changed;
}

/* Whether what flows from one place to another changes what holds there. A function's start knows
 * what is on its stack, unless the function itself comes back to it; and what a callee might not
 * return to is not asked where something surer is known. */
static bool flow_to(const struct forward *run, const struct code_site *site,
                    const struct code_site *to, const struct code_forward *from, bool behind_call)
{
    if (to == NULL) {
        return false;
    }
    struct code_forward *known = &run->states[code_region_number(run->region, to)];
    uint8_t *mark = &run->region->marks[code_region_number(run->region, to)];
    if (code_start_is_function(to->start) && to->function != site->function) {
        bool changed = enter(known, from);
        *mark |= changed;
        return changed;
    }
    if (known->reached == CODE_TRUST_SURE && behind_call) {
        return false;
    }
    bool changed = true;
    if (known->reached != CODE_TRUST_NONE) {
        changed = meet(known, from);
    } else {
        *known = *from;
        known->reached = behind_call ? CODE_TRUST_DOUBTFUL : from->reached;
    }
    *mark |= changed;
    return changed;
}

static bool run_site(const struct forward *run, const struct code_site *site)
{
    struct code_forward state = run->states[code_region_number(run->region, site)];
    const struct code_backward *backward = &run->backward[code_region_number(run->region, site)];
    if (site->is_taken && !code_backward_is_return(backward)) {
        state.origin = CODE_ORIGIN_NONE;
    }
    take_row(&state, site->row);
    if (!state.reached && run->takes_backward && backward->trust == CODE_TRUST_SURE &&
        backward->returns != 0) {
        take_backward(&state, backward);
        run->states[code_region_number(run->region, site)] = state;
    }
    bool overwrites = backward->overwrites != 0 && backward->trust == CODE_TRUST_SURE;
    if (!state.reached && run->takes_backward && overwrites) {
        state.reached = CODE_TRUST_SURE;
        forget_all(&state);
    }
    if (!state.reached) {
        return false;
    }
    const struct code_site *next = code_region_next(run->region, site);
    enum code_fall fall = code_region_fall(site, next);
    bool changed = false;
    execute(&state, &site->effect);
    state.broken = state.broken || overwrites;
    if (fall == CODE_FALL_CERTAIN ||
        (fall == CODE_FALL_DOUBTFUL && run->trust == CODE_TRUST_DOUBTFUL)) {
        changed = flow_to(run, site, next, &state, fall == CODE_FALL_DOUBTFUL);
    }
    if (site->effect.flow == CODE_JUMP || site->effect.flow == CODE_BRANCH) {
        changed |=
            flow_to(run, site, code_region_find(run->region, site->effect.target), &state, false);
    }
    const struct code_table table = code_region_table(run->region, site);
    for (size_t i = 0; i < table.count; i++) {
        uint64_t target = run->region->targets[table.first + i];
        changed |= flow_to(run, site, code_region_find(run->region, target), &state, false);
    }
    return changed;
}

/* Marks what may say something else than it did before this kind of flow was followed. */
static void mark_new(const struct forward *run)
{
    for (size_t i = 0; i < run->region->site_count; i++) {
        const struct code_site *site = &run->region->sites[i];
        bool is_new = run->trust == CODE_TRUST_DOUBTFUL
                          ? site->effect.flow == CODE_CALL
                          : !run->takes_backward || !run->states[i].reached;
        run->region->marks[i] = is_new || site->is_taken;
    }
}

/* Rounds until nothing changes. An instruction before which nothing has changed since it was looked
 * at, which has no mark, has nothing new to say. */
static bool settle(const struct forward *run)
{
    bool changed = true;
    uint8_t *marks = run->region->marks;
    mark_new(run);
    for (size_t round = 0; changed && round < ROUNDS_MAX; round++) {
        if (!code_region_visit(run->region, 1)) {
            return false;
        }
        changed = false;
        for (size_t i = 0; i < run->region->site_count; i++) {
            if (marks[i] != 0) {
                marks[i] = 0;
                changed |= run_site(run, &run->region->sites[i]);
            }
        }
    }
    return !changed;
}

bool code_forward_run(const struct code_region *region, const struct code_backward *backward,
                      struct code_forward *states)
{
    struct forward run = {region, backward, states, CODE_TRUST_SURE, false};
    begin(region, backward, states);
    if (!settle(&run)) {
        return false;
    }
    run.takes_backward = true;
    if (!settle(&run)) {
        return false;
    }
    run.trust = CODE_TRUST_DOUBTFUL;
    return settle(&run);
}

/* The register, beside rsp and rbp, that leads to the CFA; or CODE_REGISTER_NONE. */
static unsigned int other_register(const struct code_forward *state)
{
    unsigned int number = ARCH_DWARF_BX;
    if (state->values[number] != CODE_UNKNOWN) {
        return number;
    }
    for (number = 0; number < ARCH_REGISTERS_COUNT; number++) {
        if (state->values[number] != CODE_UNKNOWN) {
            break;
        }
    }
    return number;
}

static void set_saved(const struct code_forward *state, size_t kept, uint8_t *ret_saved,
                      int32_t *ret_offset)
{
    *ret_saved = CFI_LOST;
    *ret_offset = 0;
    if (state->own[kept]) {
        *ret_saved = CFI_SAME;
    } else if (state->saved[kept] != CODE_UNKNOWN) {
        *ret_saved = CFI_AT_CFA;
        *ret_offset = state->saved[kept];
    }
}

static void set_cfa(struct cfi_rule *rule, unsigned int number, int32_t value)
{
    rule->kind = CFI_OFFSET;
    rule->cfa_register = (uint8_t)number;
    rule->cfa_offset = -value;
}

struct cfi_rule code_forward_rule(const struct code_forward *state)
{
    struct cfi_rule rule = {
        .kind = CFI_NONE, .ra_saved = CFI_AT_CFA, .ra_offset = -CODE_WORD_BYTES};
    const int32_t *values = state->values;
    unsigned int other = CODE_REGISTER_NONE;
    if (!state->reached) {
        return (struct cfi_rule){.kind = CFI_NONE};
    }
    set_saved(state, CODE_KEPT_BP, &rule.bp_saved, &rule.bp_offset);
    set_saved(state, CODE_KEPT_BX, &rule.bx_saved, &rule.bx_offset);
    bool is_frame_pointer = values[ARCH_DWARF_BP] == -ARCH_FRAME_CFA_OFFSET &&
                            state->saved[CODE_KEPT_BP] == -ARCH_FRAME_CFA_OFFSET;
    if (values[ARCH_DWARF_SP] != CODE_UNKNOWN && !is_frame_pointer) {
        set_cfa(&rule, ARCH_DWARF_SP, values[ARCH_DWARF_SP]);
    } else if (values[ARCH_DWARF_BP] != CODE_UNKNOWN) {
        set_cfa(&rule, ARCH_DWARF_BP, values[ARCH_DWARF_BP]);
    } else if (state->slot_offset != CODE_UNKNOWN && state->slot_offset >= 0) {
        rule.kind = CFI_DEREF;
        rule.cfa_register = ARCH_DWARF_SP;
        rule.cfa_offset = state->slot_offset;
        rule.cfa_addend = state->slot_addend;
    } else if ((other = other_register(state)) != CODE_REGISTER_NONE) {
        set_cfa(&rule, other, values[other]);
    }
    bool is_above = rule.kind != CFI_OFFSET || rule.cfa_register != ARCH_DWARF_SP ||
                    rule.cfa_offset >= CODE_WORD_BYTES;
    return rule.kind != CFI_NONE && is_above ? rule : (struct cfi_rule){.kind = CFI_NONE};
}
