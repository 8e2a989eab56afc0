/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Derives rows from a function's returns, where its CFA is rsp + 8. Going back over an instruction,
 * an expression by the registers behind it becomes one by the registers before it. A register whose
 * new value is unknown ends the expression. Where the flow parts, both ways must agree. A jump to
 * code with a row of the file counts as a return, and so does one to a function's start, unless
 * that function's own returns say otherwise. From round to round knowledge is only lost, so the
 * rounds end.
 */
#include "code_backward.h"

#include <string.h>

#define ROUNDS_MAX 12

static const struct code_place lost = {.kind = CODE_PLACE_LOST};

static bool add_offset(int32_t *offset, int32_t more)
{
    int64_t sum = (int64_t)*offset + more;
    if (!code_is_near(sum)) {
        return false;
    }
    *offset = (int32_t)sum;
    return true;
}

static void give_up(struct code_backward *state)
{
    *state = (struct code_backward){
        .expression = CODE_NOWHERE, .trust = state->trust, .kept = {lost, lost}};
}

static bool is_on(const struct code_backward *state, unsigned int number)
{
    return code_backward_is_known(state) && state->base == number;
}

/* Behind it, `to` was `from` + offset. */
static void copy(struct code_backward *state, unsigned int to, unsigned int from, int32_t offset)
{
    for (size_t i = 0; i < CODE_KEPT_COUNT; i++) {
        struct code_place *place = &state->kept[i];
        if ((place->kind == CODE_PLACE_OWN && code_kept_register(i) == to) ||
            (place->kind == CODE_PLACE_STACK && place->base == to &&
             !add_offset(&place->offset, offset))) {
            *place = lost;
        } else if (place->kind == CODE_PLACE_STACK && place->base == to) {
            place->base = (uint8_t)from;
        }
    }
    if (is_on(state, to)) {
        state->base = (uint8_t)from;
        if (!add_offset(&state->offset, offset)) {
            give_up(state);
        }
    }
}

/* Behind it, these registers have values that nothing before it gives. */
static void change(struct code_backward *state, uint32_t registers)
{
    for (size_t i = 0; i < CODE_KEPT_COUNT; i++) {
        struct code_place *place = &state->kept[i];
        if ((place->kind == CODE_PLACE_OWN && (registers >> code_kept_register(i) & 1) != 0) ||
            (place->kind == CODE_PLACE_STACK && (registers >> place->base & 1) != 0)) {
            *place = lost;
        }
    }
    if (code_backward_is_known(state) && (registers >> state->base & 1) != 0) {
        give_up(state);
    }
}

/* Behind it, `to` was *(from + offset). */
static void load(struct code_backward *state, unsigned int to, unsigned int from, int32_t offset)
{
    bool is_restored[CODE_KEPT_COUNT];
    bool is_frame = state->expression == CODE_OFFSET && state->base == to;
    int32_t addend = state->offset;
    for (size_t i = 0; i < CODE_KEPT_COUNT; i++) {
        is_restored[i] = state->kept[i].kind == CODE_PLACE_OWN && code_kept_register(i) == to;
    }
    if (is_frame) {
        state->expression = CODE_OPEN;
    }
    change(state, 1U << to);
    if (is_frame) {
        state->expression = CODE_DEREF;
        state->base = (uint8_t)from;
        state->offset = offset;
        state->addend = addend;
    }
    for (size_t i = 0; i < CODE_KEPT_COUNT; i++) {
        if (is_restored[i]) {
            state->kept[i] = (struct code_place){CODE_PLACE_STACK, (uint8_t)from, 0, offset};
        }
    }
}

/* Behind it, *(to + offset) was `from`. */
static void store(struct code_backward *state, unsigned int to, int32_t offset, unsigned int from,
                  int32_t bytes)
{
    bool is_word = from != CODE_REGISTER_NONE && bytes == CODE_WORD_BYTES;
    for (size_t i = 0; i < CODE_KEPT_COUNT; i++) {
        struct code_place *place = &state->kept[i];
        if (place->kind != CODE_PLACE_STACK || place->base != to ||
            !code_overlaps(offset, bytes, place->offset, CODE_WORD_BYTES)) {
            continue;
        }
        bool is_own = is_word && place->offset == offset && from == code_kept_register(i);
        *place = is_own ? (struct code_place){.kind = CODE_PLACE_OWN} : lost;
    }
    if (!is_on(state, to)) {
        return;
    }
    bool is_return = state->expression == CODE_OFFSET &&
                     code_overlaps(offset, bytes, state->offset - CODE_WORD_BYTES, CODE_WORD_BYTES);
    bool is_slot = state->expression == CODE_DEREF &&
                   code_overlaps(offset, bytes, state->offset, CODE_WORD_BYTES);
    if (is_slot && is_word && state->offset == offset) {
        state->expression = CODE_OFFSET;
        state->base = (uint8_t)from;
        state->offset = state->addend;
    } else if (is_return || is_slot) {
        give_up(state);
        state->overwrites = is_return;
    }
}

static void push(struct code_backward *state, unsigned int from)
{
    /* What push writes of rsp is its value from before. */
    store(state, ARCH_DWARF_SP, 0, from == ARCH_DWARF_SP ? CODE_REGISTER_NONE : from,
          CODE_WORD_BYTES);
    copy(state, ARCH_DWARF_SP, ARCH_DWARF_SP, -CODE_WORD_BYTES);
}

static void pop(struct code_backward *state, unsigned int to)
{
    if (to == ARCH_DWARF_SP) {
        load(state, ARCH_DWARF_SP, ARCH_DWARF_SP, 0);
        return;
    }
    copy(state, ARCH_DWARF_SP, ARCH_DWARF_SP, CODE_WORD_BYTES);
    if (to != CODE_REGISTER_NONE) {
        load(state, to, ARCH_DWARF_SP, 0);
    }
}

/* What holds before an instruction, of what holds behind it. */
static void undo(struct code_backward *state, const struct code_effect *effect)
{
    if (state->expression == CODE_OPEN) {
        return;
    }
    change(state, effect->changes);
    if (effect->flow == CODE_CALL) {
        change(state, CODE_CALLER_SAVED);
    }
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
        store(state, effect->to, effect->offset, CODE_REGISTER_NONE, effect->store_bytes);
        pop(state, CODE_REGISTER_NONE);
        break;
    case CODE_LEAVE:
        pop(state, ARCH_DWARF_BP);
        copy(state, ARCH_DWARF_SP, ARCH_DWARF_BP, 0);
        break;
    }
}

static bool is_same_expression(const struct code_backward *a, const struct code_backward *b)
{
    return a->expression == b->expression && a->base == b->base && a->offset == b->offset &&
           a->addend == b->addend;
}

/* Flow may go on with `other`, too. What is known for sure is not asked for what may be. */
static void meet(struct code_backward *state, const struct code_backward *other)
{
    if (other->expression == CODE_OPEN || other->trust < state->trust) {
        return;
    }
    if (state->expression == CODE_OPEN || state->trust < other->trust) {
        *state = *other;
        return;
    }
    if (!is_same_expression(state, other)) {
        give_up(state);
        return;
    }
    for (size_t i = 0; i < CODE_KEPT_COUNT; i++) {
        if (memcmp(&state->kept[i], &other->kept[i], sizeof state->kept[i]) != 0) {
            state->kept[i] = lost;
        }
    }
}

static struct code_backward return_state(void)
{
    return (struct code_backward){
        .expression = CODE_OFFSET,
        .base = ARCH_DWARF_SP,
        .trust = CODE_TRUST_SURE,
        .offset = CODE_WORD_BYTES,
        .kept = {{.kind = CODE_PLACE_OWN}, {.kind = CODE_PLACE_OWN}},
    };
}

static struct code_place row_place(const struct cfi_rule *row, uint8_t saved, int32_t offset)
{
    if (saved == CFI_SAME) {
        return (struct code_place){.kind = CODE_PLACE_OWN};
    }
    if (saved == CFI_AT_CFA && row->kind == CFI_OFFSET && add_offset(&offset, row->cfa_offset)) {
        return (struct code_place){CODE_PLACE_STACK, row->cfa_register, 0, offset};
    }
    return lost;
}

/* What a row of the file says. */
static struct code_backward row_state(const struct cfi_rule *row)
{
    struct code_backward state = {.expression = CODE_OPEN};
    if (code_row_is_call(row)) {
        state = (struct code_backward){
            .expression = row->kind == CFI_OFFSET ? CODE_OFFSET : CODE_DEREF,
            .base = row->cfa_register,
            .trust = CODE_TRUST_SURE,
            .offset = row->cfa_offset,
            .addend = row->kind == CFI_OFFSET ? 0 : row->cfa_addend,
            .kept = {row_place(row, row->bp_saved, row->bp_offset),
                     row_place(row, row->bx_saved, row->bx_offset)},
        };
    }
    return state;
}

struct backward {
    const struct code_region *region;
    const struct cfi_table *table;
    struct code_backward *states;
    enum code_trust trust; /* of the flow that is followed in this round */
};

/* What holds where flow goes on: at another function's start, what holds at its call, unless its
 * instructions say otherwise. */
static struct code_backward state_at(const struct backward *run, const struct code_site *from,
                                     const struct code_site *site)
{
    if (code_site_has_row(site)) {
        struct code_backward state = row_state(site->row);
        if (state.expression != CODE_OPEN) {
            return state;
        }
    }
    const struct code_backward *own = &run->states[code_region_number(run->region, site)];
    bool is_other = code_start_is_function(site->start) && site->function != from->function;
    return is_other && !code_backward_is_known(own) ? return_state() : *own;
}

static struct code_backward state_behind(const struct backward *run, const struct code_site *site)
{
    struct code_backward behind = {.expression = CODE_OPEN};
    const struct code_site *next = code_region_next(run->region, site);
    const struct code_site *target = code_region_find(run->region, site->effect.target);
    if (site->effect.flow == CODE_RETURN) {
        return return_state();
    }
    enum code_fall fall = code_region_fall(site, next);
    /* What stands behind a call that does not return may be reached otherwise, of the same function
     * or not, and says nothing of what stands before it. */
    if (fall == CODE_FALL_CERTAIN && site->effect.flow == CODE_CALL) {
        fall = CODE_FALL_DOUBTFUL;
    }
    if (fall == CODE_FALL_CERTAIN ||
        (fall == CODE_FALL_DOUBTFUL && run->trust == CODE_TRUST_DOUBTFUL)) {
        struct code_backward there = state_at(run, site, next);
        there.trust = fall == CODE_FALL_DOUBTFUL ? CODE_TRUST_DOUBTFUL : there.trust;
        meet(&behind, &there);
    }
    if (site->effect.flow == CODE_JUMP || site->effect.flow == CODE_BRANCH) {
        struct code_backward there =
            target != NULL ? state_at(run, site, target)
                           : row_state(cfi_table_find(run->table, site->effect.target));
        meet(&behind, &there);
    }
    const struct code_table table = code_region_table(run->region, site);
    for (size_t i = 0; i < table.count; i++) {
        uint64_t to = run->region->targets[table.first + i];
        target = code_region_find(run->region, to);
        struct code_backward there = target != NULL ? state_at(run, site, target)
                                                    : row_state(cfi_table_find(run->table, to));
        meet(&behind, &there);
    }
    return behind;
}

/* Marks those whose state may be another at first: all, and when callees are taken to return,
 * calls. What goes through a table is looked at in every round. */
static void mark_new(const struct backward *run)
{
    for (size_t i = 0; i < run->region->site_count; i++) {
        const struct code_site *site = &run->region->sites[i];
        run->region->marks[i] =
            run->trust == CODE_TRUST_SURE || site->effect.flow == CODE_CALL || site->table != 0;
    }
}

/* Marks those from which the flow comes to an instruction whose state has changed. */
static void mark_before(const struct backward *run, size_t number)
{
    const struct code_jump_list *jumps = run->region->jumps;
    if (number > 0) {
        run->region->marks[number - 1] = 1;
    }
    for (uint32_t jump = jumps[number].last; jump != 0; jump = jumps[jump - 1].before) {
        run->region->marks[jump - 1] = 1;
    }
}

/* Looks at one instruction again. Returns whether that changed its state. */
static bool run_site(const struct backward *run, size_t number)
{
    const struct code_site *site = &run->region->sites[number];
    struct code_backward *state = &run->states[number];
    bool is_settled = state->trust == CODE_TRUST_SURE && run->trust == CODE_TRUST_DOUBTFUL;
    run->region->marks[number] = site->table != 0;
    if (state->expression == CODE_NOWHERE || is_settled) {
        return false;
    }
    struct code_backward before = state_behind(run, site);
    undo(&before, &site->effect);
    /* What was known in an earlier round and is not so any more is nowhere. */
    meet(&before, state);
    if (memcmp(&before, state, sizeof before) == 0) {
        return false;
    }
    *state = before;
    mark_before(run, number);
    return true;
}

/* Rounds until nothing changes. An instruction without a mark has nothing new to say. */
static bool settle(const struct backward *run)
{
    bool changed = true;
    const uint8_t *marks = run->region->marks;
    mark_new(run);
    for (size_t round = 0; changed && round < ROUNDS_MAX; round++) {
        if (!code_region_visit(run->region, 1)) {
            return false;
        }
        changed = false;
        for (size_t i = run->region->site_count; i-- > 0;) {
            changed |= marks[i] != 0 && run_site(run, i);
        }
    }
    return !changed;
}

bool code_backward_run(const struct code_region *region, const struct cfi_table *table,
                       struct code_backward *states)
{
    struct backward run = {region, table, states, CODE_TRUST_SURE};
    memset(states, 0, region->site_count * sizeof *states);
    if (!settle(&run)) {
        return false;
    }
    run.trust = CODE_TRUST_DOUBTFUL;
    return settle(&run);
}

static void set_saved(const struct code_backward *state, size_t kept, uint8_t *ret_saved,
                      int32_t *ret_offset)
{
    const struct code_place *place = &state->kept[kept];
    *ret_saved = place->kind == CODE_PLACE_OWN ? CFI_SAME : CFI_LOST;
    *ret_offset = 0;
    if (place->kind != CODE_PLACE_STACK) {
        return;
    }
    if (state->expression == CODE_OFFSET && place->base == state->base) {
        *ret_saved = CFI_AT_CFA;
        *ret_offset = place->offset - state->offset;
    } else if (place->base == ARCH_DWARF_SP || place->base == ARCH_DWARF_BP) {
        *ret_saved = place->base == ARCH_DWARF_SP ? CFI_AT_SP : CFI_AT_BP;
        *ret_offset = place->offset;
    }
}

struct cfi_rule code_backward_rule(const struct code_backward *state)
{
    struct cfi_rule rule = {.kind = CFI_NONE};
    bool is_offset = state->expression == CODE_OFFSET;
    bool is_above = state->base != ARCH_DWARF_SP ||
                    (is_offset ? state->offset >= CODE_WORD_BYTES : state->offset >= 0);
    if ((!is_offset && state->expression != CODE_DEREF) || !is_above) {
        return rule;
    }
    rule.kind = is_offset ? CFI_OFFSET : CFI_DEREF;
    rule.cfa_register = state->base;
    rule.cfa_offset = state->offset;
    rule.cfa_addend = is_offset ? 0 : state->addend;
    rule.ra_saved = CFI_AT_CFA;
    rule.ra_offset = -CODE_WORD_BYTES;
    set_saved(state, CODE_KEPT_BP, &rule.bp_saved, &rule.bp_offset);
    set_saved(state, CODE_KEPT_BX, &rule.bx_saved, &rule.bx_offset);
    return rule;
}
