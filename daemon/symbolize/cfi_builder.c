/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Collects the rules of one module and serialises them as a table. Ranges that follow each other
 * without a gap, as those of one function do, are kept as one run of pieces. So runs are sorted and
 * compared for overlaps, not single rows. Pieces are numbered in the order in which they were
 * added. A run's first piece is its rank: where runs overlap, the lowest rank wins.
 *
 * A sweep goes over the runs by address. Runs that reach the current address wait in a heap, the
 * best on top. A piece that was written, or that a better run covers, is removed from its run, so
 * the sweep visits each piece once, and uses the runs up. Where there is no run, the rows of the
 * settled table are copied, if there is one.
 *
 * The input is foreign and may be made to be slow. So all arrays are bounded, the search for an
 * equal rule takes a bounded number of steps, and no order of ranges costs more than n log n.
 */
#include "array.h"
#include "cfi_format.h"
#include "cleanup.h"
#include "extremes.h"
#include "seeded_hash.h"
#include "segments.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RULE_NONE        0
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

struct piece {
    uint32_t size_bytes;
    uint16_t rule;
};

struct run {
    uint64_t start;
    uint32_t size_bytes;  /* the sum of its pieces */
    uint32_t first_piece; /* rising in the order of insertion */
};

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
    struct cfi_table settled;
    struct symbol_segment segments[SYMBOL_TABLE_SEGMENTS_MAX];
    struct cfi_rule *rules;
    size_t rule_count;
    size_t rule_capacity;
    uint16_t *slots;               /* rules by their hash, RULE_NONE where there is none */
    size_t slot_count;             /* a power of 2 */
    uint16_t recent[RECENT_COUNT]; /* rules that were added last, by a sum of their offsets */
    struct piece *pieces;
    size_t piece_count;
    size_t piece_capacity;
    struct run *runs;
    size_t run_count;
    size_t run_capacity;
};

/* What a sweep over the sorted runs has written, and which runs reach where it is. */
struct sweep {
    struct run *runs;
    size_t run_count;
    struct piece *pieces;
    const struct cfi_table *settled; /* its rules have the same numbers */
    uint32_t *waiting;               /* a heap of runs, the one that came first on top */
    size_t waiting_count;
    uint64_t base;
    struct cfi_page *pages; /* and one more, which ends the last */
    size_t page_count;
    size_t page_capacity;
    struct cfi_row *rows;
    size_t row_count;
    size_t row_capacity;
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
    for (size_t i = RULE_UNSUPPORTED + 1; i < builder->rule_count; i++) {
        uint16_t *slot = find_slot(builder, &builder->rules[i]);
        if (slot != NULL) {
            *slot = (uint16_t)i;
        }
    }
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
    int r = array_grow(&runs, &builder->run_capacity, builder->run_count + 1, sizeof(struct run));
    builder->runs = runs;
    if (r < 0) {
        return r;
    }
    void *pieces = builder->pieces;
    r = array_grow(&pieces, &builder->piece_capacity, builder->piece_count + 1,
                   sizeof(struct piece));
    builder->pieces = pieces;
    return r;
}

/* The run that came last, if a range can be its next piece, or NULL. */
static struct run *find_continued(const struct cfi_builder *builder, uint64_t start,
                                  uint32_t size_bytes)
{
    struct run *last = builder->run_count == 0 ? NULL : &builder->runs[builder->run_count - 1];
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

bool cfi_builder_has(const struct cfi_builder *builder, uint64_t address)
{
    for (size_t i = 0; i < builder->run_count; i++) {
        const struct run *run = &builder->runs[i];
        if (address >= run->start && address - run->start < run->size_bytes) {
            return true;
        }
    }
    return false;
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
    struct run *run = find_continued(builder, start, size_bytes);
    if (run != NULL && builder->pieces[builder->piece_count - 1].rule == number) {
        builder->pieces[builder->piece_count - 1].size_bytes += size_bytes;
    } else {
        if (run == NULL) {
            run = &builder->runs[builder->run_count++];
            *run = (struct run){.start = start, .first_piece = (uint32_t)builder->piece_count};
        }
        builder->pieces[builder->piece_count++] = (struct piece){size_bytes, number};
    }
    run->size_bytes += size_bytes;
    return 0;
}

static bool is_before(const void *left, const void *right, const void *userdata)
{
    (void)userdata;
    return ((const struct run *)left)->start < ((const struct run *)right)->start;
}

static bool is_better(const struct sweep *sweep, size_t a, size_t b)
{
    return sweep->runs[sweep->waiting[a]].first_piece < sweep->runs[sweep->waiting[b]].first_piece;
}

static void swap_waiting(struct sweep *sweep, size_t a, size_t b)
{
    uint32_t run = sweep->waiting[a];
    sweep->waiting[a] = sweep->waiting[b];
    sweep->waiting[b] = run;
}

static void push_waiting(struct sweep *sweep, size_t run)
{
    size_t at = sweep->waiting_count++;
    sweep->waiting[at] = (uint32_t)run;
    for (; at > 0 && is_better(sweep, at, (at - 1) / 2); at = (at - 1) / 2) {
        swap_waiting(sweep, at, (at - 1) / 2);
    }
}

static void pop_waiting(struct sweep *sweep)
{
    sweep->waiting[0] = sweep->waiting[--sweep->waiting_count];
    for (size_t at = 0;;) {
        size_t best = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2; child++) {
            best = child < sweep->waiting_count && is_better(sweep, child, best) ? child : best;
        }
        if (best == at) {
            return;
        }
        swap_waiting(sweep, at, best);
        at = best;
    }
}

/* Makes room for more rows. serialise() refuses what the last growth allows beyond the limit. */
static int grow_rows(struct sweep *sweep, size_t count)
{
    if (sweep->row_count + count > CFI_TABLE_BYTES_MAX / sizeof(struct cfi_row)) {
        return -E2BIG;
    }
    void *rows = sweep->rows;
    int r =
        array_grow(&rows, &sweep->row_capacity, sweep->row_count + count, sizeof(struct cfi_row));
    sweep->rows = rows;
    return r;
}

static inline int append_row(struct sweep *sweep, uint16_t low, uint16_t rule)
{
    int r = sweep->row_count == sweep->row_capacity ? grow_rows(sweep, 1) : 0;
    if (r == 0) {
        sweep->rows[sweep->row_count++] = (struct cfi_row){low, rule};
    }
    return r;
}

/* Says where the next page begins, and the last one ends. */
static int note_page(struct sweep *sweep)
{
    void *pages = sweep->pages;
    int r = array_grow(&pages, &sweep->page_capacity, sweep->page_count + 1, sizeof *sweep->pages);
    sweep->pages = pages;
    if (r == 0) {
        sweep->pages[sweep->page_count].first_row = (uint32_t)sweep->row_count;
    }
    return r;
}

/* Begins the next page with a row of this rule. */
static int append_page(struct sweep *sweep, uint16_t rule)
{
    if (sweep->page_count == CFI_PAGE_COUNT_MAX) {
        return -E2BIG;
    }
    int r = note_page(sweep);
    if (r == 0) {
        sweep->page_count++;
        r = append_row(sweep, 0, rule);
    }
    return r;
}

static uint16_t current_rule(const struct sweep *sweep)
{
    return sweep->row_count == 0 ? RULE_NONE : sweep->rows[sweep->row_count - 1].rule;
}

/* Carries the rule in force over to every page that begins before `address`. */
static inline int carry_over(struct sweep *sweep, uint64_t address)
{
    uint64_t wanted = (address - sweep->base + CFI_PAGE_BYTES - 1) >> CFI_PAGE_SHIFT;
    int r = 0;
    while (r == 0 && sweep->page_count < wanted) {
        r = append_page(sweep, current_rule(sweep));
    }
    return r;
}

/* From `address` on, and up to the next call, this rule holds. */
static inline int write_row(struct sweep *sweep, uint64_t address, uint16_t rule)
{
    uint16_t low = (uint16_t)(address - sweep->base);
    if (rule == current_rule(sweep)) {
        return 0;
    }
    int r = carry_over(sweep, address);
    if (r < 0) {
        return r;
    }
    return low == 0 ? append_page(sweep, rule) : append_row(sweep, low, rule);
}

/* Takes bytes off the front of a run, at most the rest of its first piece. */
static void consume(struct sweep *sweep, struct run *run, uint64_t bytes)
{
    struct piece *piece = &sweep->pieces[run->first_piece];
    piece->size_bytes -= (uint32_t)bytes;
    run->first_piece += piece->size_bytes == 0;
    run->start += bytes;
    run->size_bytes -= (uint32_t)bytes;
}

/* Writes the best waiting run from `*at` on, up to its end or to `limit`, where another begins. */
static int write_best(struct sweep *sweep, uint64_t limit, uint64_t *at)
{
    struct run *run = &sweep->runs[sweep->waiting[0]];
    while (run->size_bytes > 0 && run->start < *at) {
        consume(sweep, run, min_u64(sweep->pieces[run->first_piece].size_bytes, *at - run->start));
    }
    while (run->size_bytes > 0 && *at < limit) {
        const struct piece *piece = &sweep->pieces[run->first_piece];
        uint64_t bytes = min_u64(piece->size_bytes, limit - *at);
        int r = write_row(sweep, *at, piece->rule);
        if (r < 0) {
            return r;
        }
        consume(sweep, run, bytes);
        *at += bytes;
    }
    if (run->size_bytes == 0) {
        pop_waiting(sweep);
    }
    return 0;
}

static int copy_rows(struct sweep *sweep, const struct cfi_row *rows, size_t count)
{
    int r = grow_rows(sweep, count);
    if (r == 0) {
        memcpy(&sweep->rows[sweep->row_count], rows, count * sizeof *rows);
        sweep->row_count += count;
    }
    return r;
}

/* Copies what the settled table says of `*at` up to `limit`, page by page. */
static int write_settled(struct sweep *sweep, uint64_t limit, uint64_t *at)
{
    const struct cfi_table *settled = sweep->settled;
    int r = 0;
    while (r == 0 && *at < limit) {
        struct cfi_span first = cfi_table_span(settled, *at);
        bool is_page = first.row != NULL;
        uint64_t end = is_page ? (*at | (CFI_PAGE_BYTES - 1)) + 1 : first.end;
        end = min_u64(end, limit);
        r = write_row(sweep, *at, (uint16_t)(first.rule - settled->rules));
        if (r == 0 && is_page) {
            r = carry_over(sweep, *at + 1);
        }
        if (r == 0 && is_page) {
            struct cfi_span last = cfi_table_span(settled, end - 1);
            r = copy_rows(sweep, first.row + 1, (size_t)(last.row - first.row));
        }
        *at = end;
    }
    return r;
}

static int write_runs(struct sweep *sweep)
{
    const struct cfi_table *settled = sweep->settled;
    uint64_t settled_end = settled->base + settled->page_count * CFI_PAGE_BYTES;
    uint64_t at = sweep->run_count == 0 ? settled->base : sweep->runs[0].start;
    at = settled->page_count == 0 ? at : min_u64(at, settled->base);
    sweep->base = at & ~(CFI_PAGE_BYTES - 1);
    size_t next = 0;
    int r = 0;
    while (r == 0 && (next < sweep->run_count || sweep->waiting_count > 0)) {
        if (sweep->waiting_count == 0) {
            r = write_settled(sweep, sweep->runs[next].start, &at);
        }
        while (next < sweep->run_count && sweep->runs[next].start <= at) {
            push_waiting(sweep, next++);
        }
        if (r == 0) {
            uint64_t limit = next < sweep->run_count ? sweep->runs[next].start : UINT64_MAX;
            r = write_best(sweep, limit, &at);
        }
    }
    if (r == 0) {
        r = write_settled(sweep, settled_end, &at);
    }
    if (r == 0) {
        r = carry_over(sweep, at);
    }
    /* Where the last page is full, nothing follows it, which says the same. */
    if (r == 0 && at % CFI_PAGE_BYTES != 0) {
        r = write_row(sweep, at, RULE_NONE);
    }
    return r < 0 ? r : note_page(sweep);
}

static void *append(void *to, const void *from, size_t bytes)
{
    if (bytes > 0) {
        memcpy(to, from, bytes);
    }
    return (char *)to + bytes;
}

static int serialise(struct cfi_builder *builder, const struct sweep *sweep, void **ret_bytes,
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
    cleanup_(freep) uint32_t *waiting = calloc(builder->run_count + 1, sizeof *waiting);
    if (waiting == NULL) {
        return -ENOMEM;
    }
    struct sweep sweep = {
        .runs = builder->runs,
        .run_count = builder->run_count,
        .pieces = builder->pieces,
        .settled = builder->settled_bytes == NULL ? &nothing : &builder->settled,
        .waiting = waiting,
    };
    int r = array_sort(sweep.runs, sweep.run_count, sizeof *sweep.runs, is_before, NULL);
    if (r == 0) {
        r = write_runs(&sweep);
    }
    if (r == 0) {
        r = serialise(builder, &sweep, ret_bytes, ret_size_bytes);
    }
    free(sweep.rows);
    free(sweep.pages);
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
        r = cfi_table_open(bytes, size_bytes, &builder->settled);
    }
    if (r == 0) {
        *ret = &builder->settled;
    }
    return r;
}
