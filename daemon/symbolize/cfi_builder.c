/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Collects the rules of one module and serialises them as a table. Ranges that follow each other
 * without a gap, as those of one function do, are kept as one run of pieces; cfi_sweep.c makes rows
 * of the runs.
 *
 * The input is foreign and may be made to be slow. So all arrays are bounded, and the search for an
 * equal rule takes a bounded number of steps.
 */
#include "array.h"
#include "cfi_format.h"
#include "cfi_sweep.h"
#include "seeded_hash.h"
#include "segments.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RULE_NONE        CFI_SWEEP_RULE_NONE
#define RULE_UNSUPPORTED 1

/* As many as rows of the largest table, and functions with 16 bytes of .eh_frame for each row. */
#define PIECE_COUNT_MAX (CFI_TABLE_BYTES_MAX / sizeof(struct cfi_row))
#define RUN_COUNT_MAX   (PIECE_COUNT_MAX / 4)

/* Four slots for a rule, so that honest ones meet within a few steps. */
#define SLOT_COUNT_MIN ((size_t)1 << 10)
#define SLOTS_A_RULE   4
#define SLOT_STEPS_MAX 256

/* Most ranges have a rule that a range shortly before them had. */
#define RECENT_COUNT 256

/* A program has a handful of them, each once. */
#define SWITCH_COUNT_MAX  32
#define RESUMER_COUNT_MAX 32

struct function {
    uint64_t start, end;
};

struct cfi_builder {
    struct cfi_header header;
    struct function switches[SWITCH_COUNT_MAX];
    size_t switch_count;
    struct function resumers[RESUMER_COUNT_MAX];
    size_t resumer_count;
    void *settled_bytes; /* NULL: none */
    size_t settled_size_bytes;
    struct cfi_table settled;
    struct symbol_segment segments[SYMBOL_TABLE_SEGMENTS_MAX];
    struct cfi_rule *rules;
    size_t rule_count;
    size_t rule_capacity;
    uint16_t *slots;               /* rules by their hash, RULE_NONE where there is none */
    size_t slot_count;             /* a power of 2 */
    uint16_t recent[RECENT_COUNT]; /* rules that were added last, by a sum of their offsets */
    struct cfi_piece *pieces;
    size_t piece_count;
    size_t piece_capacity;
    struct cfi_run *runs;
    size_t run_count;
    size_t run_capacity;
};

struct cfi_builder *cfi_builder_new(void)
{
    struct cfi_builder *builder = calloc(1, sizeof *builder);
    if (builder == NULL) {
        return NULL;
    }
    builder->header.magic = CFI_FORMAT_MAGIC;
    builder->slots = calloc(SLOT_COUNT_MIN, sizeof *builder->slots);
    builder->slot_count = SLOT_COUNT_MIN;
    void *rules = NULL;
    int r = array_grow(&rules, &builder->rule_capacity, 2, sizeof *builder->rules);
    builder->rules = rules;
    if (builder->slots == NULL || r < 0) {
        return cfi_builder_free(builder);
    }
    builder->rules[RULE_NONE] = (struct cfi_rule){.kind = CFI_NONE};
    builder->rules[RULE_UNSUPPORTED] = (struct cfi_rule){.kind = CFI_UNSUPPORTED};
    builder->rule_count = 2;
    return builder;
}

struct cfi_builder *cfi_builder_free(struct cfi_builder *builder)
{
    if (builder != NULL) {
        free(builder->rules);
        free(builder->slots);
        free(builder->pieces);
        free(builder->runs);
        free(builder->settled_bytes);
        free(builder);
    }
    return NULL;
}

int cfi_builder_segment(struct cfi_builder *builder, const struct symbol_segment *segment)
{
    if (!segment_is_valid(segment)) {
        return 0;
    }
    if (builder->header.segment_count == SYMBOL_TABLE_SEGMENTS_MAX) {
        return -E2BIG;
    }
    builder->segments[builder->header.segment_count++] = *segment;
    return 0;
}

int cfi_builder_build_id(struct cfi_builder *builder, const uint8_t *build_id, size_t bytes)
{
    if (bytes > SYMBOL_BUILD_ID_BYTES_MAX) {
        return -E2BIG;
    }
    memset(builder->header.build_id, 0, sizeof builder->header.build_id);
    memcpy(builder->header.build_id, build_id, bytes);
    builder->header.build_id_bytes = (uint32_t)bytes;
    return 0;
}

void cfi_builder_32bit(struct cfi_builder *builder)
{
    builder->header.is_32bit = 1;
}

void cfi_builder_lacks_small(struct cfi_builder *builder)
{
    builder->header.lacks_small = 1;
}

static uint64_t hash_rule(const struct cfi_rule *rule)
{
    uint64_t words[sizeof *rule / sizeof(uint64_t)];
    _Static_assert(sizeof words == sizeof *rule, "a rule has nothing behind its last word");
    memcpy(words, rule, sizeof words);
    uint64_t hash = words[0];
    for (size_t i = 1; i < sizeof words / sizeof words[0]; i++) {
        hash = seeded_hash_pair(hash, words[i]);
    }
    return hash;
}

/* The slot of a rule, or the free one that it would have. NULL: there are too many others. */
static uint16_t *find_slot(struct cfi_builder *builder, const struct cfi_rule *rule)
{
    size_t hash = (size_t)hash_rule(rule);
    for (size_t step = 0; step < SLOT_STEPS_MAX; step++) {
        uint16_t *slot = &builder->slots[(hash + step) & (builder->slot_count - 1)];
        if (*slot == RULE_NONE || memcmp(&builder->rules[*slot], rule, sizeof *rule) == 0) {
            return slot;
        }
    }
    return NULL;
}

/* Gives each rule its slot, where all are free. */
static void fill_slots(struct cfi_builder *builder)
{
    for (size_t i = RULE_UNSUPPORTED + 1; i < builder->rule_count; i++) {
        uint16_t *slot = find_slot(builder, &builder->rules[i]);
        if (slot != NULL) {
            *slot = (uint16_t)i;
        }
    }
}

static int grow_slots(struct cfi_builder *builder)
{
    size_t count = SLOTS_A_RULE * builder->slot_count;
    uint16_t *slots = calloc(count, sizeof *slots);
    if (slots == NULL) {
        return -ENOMEM;
    }
    free(builder->slots);
    builder->slots = slots;
    builder->slot_count = count;
    fill_slots(builder);
    return 0;
}

/* The number of a rule among all, a new one if it must be; RULE_UNSUPPORTED when there is no room
 * for it. */
static int intern_among_all(struct cfi_builder *builder, const struct cfi_rule *rule, uint16_t *ret)
{
    int r = SLOTS_A_RULE * builder->rule_count > builder->slot_count ? grow_slots(builder) : 0;
    if (r < 0) {
        return r;
    }
    uint16_t *slot = find_slot(builder, rule);
    bool is_new = slot != NULL && *slot == RULE_NONE;
    if (slot == NULL || (is_new && builder->rule_count == CFI_RULE_COUNT_MAX)) {
        *ret = RULE_UNSUPPORTED;
        return 0;
    }
    if (is_new) {
        void *rules = builder->rules;
        r = array_grow(&rules, &builder->rule_capacity, builder->rule_count + 1, sizeof *rule);
        if (r < 0) {
            return r;
        }
        builder->rules = rules;
        builder->rules[builder->rule_count] = *rule;
        *slot = (uint16_t)builder->rule_count++;
    }
    *ret = *slot;
    return 0;
}

/* The same, from the rules that were added last where that is possible. */
static int intern_rule(struct cfi_builder *builder, const struct cfi_rule *rule, uint16_t *ret)
{
    uint32_t mixed = (uint32_t)rule->cfa_offset * 7 + (uint32_t)rule->bp_offset * 5 +
                     (uint32_t)rule->bx_offset * 3 + rule->cfa_register + rule->bx_saved;
    uint16_t *recent = &builder->recent[(mixed ^ mixed >> 3) % RECENT_COUNT];
    if (*recent != RULE_NONE && memcmp(&builder->rules[*recent], rule, sizeof *rule) == 0) {
        *ret = *recent;
        return 0;
    }
    int r = intern_among_all(builder, rule, recent);
    *ret = *recent;
    return r;
}

static int find_rule(struct cfi_builder *builder, const struct cfi_rule *rule, uint16_t *ret)
{
    switch ((enum cfi_kind)rule->kind) {
    case CFI_NONE:
        *ret = RULE_NONE;
        return 0;
    case CFI_UNSUPPORTED:
        *ret = RULE_UNSUPPORTED;
        return 0;
    case CFI_ROOT:
    case CFI_END:
        return intern_rule(builder, &(struct cfi_rule){.kind = rule->kind}, ret);
    case CFI_OFFSET:
    case CFI_DEREF:
    case CFI_DEREF_INDEX:
    case CFI_PLT:
    case CFI_SWITCH:
    case CFI_FORK:
        break;
    }
    return intern_rule(builder, rule, ret);
}

/* Makes sure that a run and a piece more can be kept. */
static int reserve(struct cfi_builder *builder)
{
    if (builder->run_count == RUN_COUNT_MAX || builder->piece_count == PIECE_COUNT_MAX) {
        return -E2BIG;
    }
    if (builder->run_count < builder->run_capacity &&
        builder->piece_count < builder->piece_capacity) {
        return 0;
    }
    void *runs = builder->runs;
    int r =
        array_grow(&runs, &builder->run_capacity, builder->run_count + 1, sizeof(struct cfi_run));
    builder->runs = runs;
    if (r < 0) {
        return r;
    }
    void *pieces = builder->pieces;
    r = array_grow(&pieces, &builder->piece_capacity, builder->piece_count + 1,
                   sizeof(struct cfi_piece));
    builder->pieces = pieces;
    return r;
}

/* The run that came last, if a range can be its next piece, or NULL. */
static struct cfi_run *find_continued(const struct cfi_builder *builder, uint64_t start,
                                      uint32_t size_bytes)
{
    struct cfi_run *last = builder->run_count == 0 ? NULL : &builder->runs[builder->run_count - 1];
    bool is_next = last != NULL && start == last->start + last->size_bytes &&
                   size_bytes <= UINT32_MAX - last->size_bytes;
    return is_next ? last : NULL;
}

void cfi_builder_switch(struct cfi_builder *builder, uint64_t start, uint64_t end)
{
    if (builder->switch_count < SWITCH_COUNT_MAX) {
        builder->switches[builder->switch_count++] = (struct function){start, end};
    }
}

void cfi_builder_resumer(struct cfi_builder *builder, uint64_t start, uint64_t end)
{
    if (builder->resumer_count < RESUMER_COUNT_MAX) {
        builder->resumers[builder->resumer_count++] = (struct function){start, end};
    }
}

bool cfi_builder_find_resumer(const struct cfi_builder *builder, size_t number, uint64_t *ret_start,
                              uint64_t *ret_end)
{
    if (number >= builder->resumer_count) {
        return false;
    }
    *ret_start = builder->resumers[number].start;
    *ret_end = builder->resumers[number].end;
    return true;
}

static bool is_in_switch(const struct cfi_builder *builder, uint64_t address)
{
    for (size_t i = 0; i < builder->switch_count; i++) {
        if (address >= builder->switches[i].start && address < builder->switches[i].end) {
            return true;
        }
    }
    return false;
}

uint64_t cfi_builder_next(const struct cfi_builder *builder, uint64_t address)
{
    uint64_t next = UINT64_MAX;
    for (size_t i = 0; i < builder->run_count; i++) {
        const struct cfi_run *run = &builder->runs[i];
        if (address >= run->start && address - run->start < run->size_bytes) {
            return address;
        }
        next = run->start > address && run->start < next ? run->start : next;
    }
    return next;
}

/* The same rule for a function that goes over to another stack. */
static struct cfi_rule make_switch(const struct cfi_rule *rule)
{
    struct cfi_rule made = {.kind = CFI_SWITCH, .ra_saved = CFI_LOST};
    if (rule->kind == CFI_OFFSET && rule->ra_saved == CFI_AT_CFA) {
        made = *rule;
        made.kind = CFI_SWITCH;
    }
    return made;
}

int cfi_builder_add(struct cfi_builder *builder, uint64_t start, uint64_t end,
                    const struct cfi_rule *rule)
{
    uint16_t number = 0;
    if (start >= end) {
        return 0;
    }
    struct cfi_rule made;
    if (is_in_switch(builder, start)) {
        made = make_switch(rule);
        rule = &made;
    }
    if (end - start > UINT32_MAX || end > UINT64_MAX - CFI_PAGE_BYTES) {
        return -E2BIG;
    }
    int r = reserve(builder);
    if (r == 0) {
        r = find_rule(builder, rule, &number);
    }
    if (r < 0) {
        return r;
    }

    uint32_t size_bytes = (uint32_t)(end - start);
    struct cfi_run *run = find_continued(builder, start, size_bytes);
    if (run != NULL && builder->pieces[builder->piece_count - 1].rule == number) {
        builder->pieces[builder->piece_count - 1].size_bytes += size_bytes;
    } else {
        if (run == NULL) {
            run = &builder->runs[builder->run_count++];
            *run = (struct cfi_run){.start = start, .first_piece = (uint32_t)builder->piece_count};
        }
        builder->pieces[builder->piece_count++] = (struct cfi_piece){size_bytes, number};
    }
    run->size_bytes += size_bytes;
    return 0;
}

static void *append(void *to, const void *from, size_t bytes)
{
    if (bytes > 0) {
        memcpy(to, from, bytes);
    }
    return (char *)to + bytes;
}

static int serialise(struct cfi_builder *builder, const struct cfi_sweep *sweep, void **ret_bytes,
                     size_t *ret_size_bytes)
{
    struct cfi_header *header = &builder->header;
    header->base = sweep->base;
    header->rule_count = (uint32_t)builder->rule_count;
    header->page_count = (uint32_t)sweep->page_count;
    header->row_count = (uint32_t)sweep->row_count;
    size_t size_bytes = cfi_format_bytes(header);
    if (size_bytes > CFI_TABLE_BYTES_MAX) {
        return -E2BIG;
    }
    void *bytes = malloc(size_bytes);
    if (bytes == NULL) {
        return -ENOMEM;
    }
    void *to = append(bytes, header, sizeof *header);
    to = append(to, builder->segments, header->segment_count * sizeof *builder->segments);
    to = append(to, builder->rules, builder->rule_count * sizeof *builder->rules);
    to = append(to, sweep->pages, (sweep->page_count + 1) * sizeof *sweep->pages);
    (void)append(to, sweep->rows, sweep->row_count * sizeof *sweep->rows);
    *ret_bytes = bytes;
    *ret_size_bytes = size_bytes;
    return 0;
}

int cfi_builder_finish(struct cfi_builder *builder, void **ret_bytes, size_t *ret_size_bytes)
{
    const struct cfi_table nothing = {.rules = builder->rules};
    struct cfi_sweep sweep = {
        .runs = builder->runs,
        .run_count = builder->run_count,
        .pieces = builder->pieces,
        .settled = builder->settled_bytes == NULL ? &nothing : &builder->settled,
    };
    int r = cfi_sweep_run(&sweep);
    if (r == 0) {
        r = serialise(builder, &sweep, ret_bytes, ret_size_bytes);
    }
    cfi_sweep_done(&sweep);
    builder->run_count = 0;
    builder->piece_count = 0;
    return r;
}

int cfi_builder_settle(struct cfi_builder *builder, const struct cfi_table **ret)
{
    void *bytes = NULL;
    size_t size_bytes = 0;
    int r = cfi_builder_finish(builder, &bytes, &size_bytes);
    if (r == 0) {
        free(builder->settled_bytes);
        builder->settled_bytes = bytes;
        builder->settled_size_bytes = size_bytes;
        r = cfi_table_open(bytes, size_bytes, &builder->settled);
    }
    if (r == 0) {
        *ret = &builder->settled;
    }
    return r;
}

const struct cfi_table *cfi_builder_rewind(struct cfi_builder *builder)
{
    if (builder->settled_bytes == NULL) {
        return NULL;
    }
    free(builder->pieces);
    free(builder->runs);
    builder->pieces = NULL;
    builder->runs = NULL;
    builder->piece_count = builder->piece_capacity = 0;
    builder->run_count = builder->run_capacity = 0;
    builder->header.lacks_small = builder->settled.lacks_small;
    builder->rule_count = builder->settled.rule_count;
    memset(builder->recent, 0, sizeof builder->recent);
    memset(builder->slots, 0, builder->slot_count * sizeof *builder->slots);
    fill_slots(builder);
    return &builder->settled;
}

size_t cfi_builder_bytes(const struct cfi_builder *builder)
{
    return sizeof *builder + builder->settled_size_bytes +
           builder->rule_capacity * sizeof *builder->rules +
           builder->slot_count * sizeof *builder->slots;
}
