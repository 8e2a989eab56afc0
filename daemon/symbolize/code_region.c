/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Decodes a stretch of code from one end to the other. Data amid code decodes as instructions that
 * are never executed. Behind data, the decoder is in step again within a few bytes, and at once
 * where a row or a symbol of the file begins.
 */
#include "code_region.h"

#include "array.h"
#include "code_decoder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define STEP_BYTES_MAX 128
#define SITE_BYTES     3   /* of code for an instruction, about; most have more */
#define CUTS_MAX       256 /* by pointers, in a region: behind more nothing is proved */

/* Goes through rows and functions in the order of their addresses. */
struct cursor {
    const struct cfi_table *table;
    const struct code_starts *starts;
    struct cfi_span row;    /* that holds the address, */
    struct cfi_span behind; /* and the one behind it */
    size_t number;          /* of the next function that begins, behind the address once that was */
    uint64_t function;      /* moved to; and where it does */
    enum code_start start;  /* what begins at the address, */
    bool is_pointed;        /* and whether a pointer leads there */
};

static struct cursor cursor_at(const struct cfi_table *table, const struct code_starts *starts,
                               uint64_t address)
{
    struct cursor cursor = {.table = table, .starts = starts};
    cursor.row = cfi_table_span(table, address);
    cursor.behind = cfi_table_span_behind(table, &cursor.row);
    cursor.number = code_starts_number(starts, address);
    cursor.function = code_starts_address(starts, cursor.number);
    return cursor;
}

/* To an address that is not before the last one, nor behind the next function. */
static void move_to(struct cursor *cursor, uint64_t address)
{
    while (address >= cursor->row.end && cursor->row.end < cursor->behind.end) {
        cursor->row = cursor->behind;
        cursor->behind = cfi_table_span_behind(cursor->table, &cursor->row);
    }
    cursor->start = CODE_START_NONE;
    cursor->is_pointed = false;
    if (address == cursor->function) {
        cursor->start = code_starts_kind(cursor->starts, cursor->number);
        cursor->is_pointed = code_starts_is_pointed(cursor->starts, cursor->number);
        cursor->function = code_starts_address(cursor->starts, ++cursor->number);
    }
}

/* Where the next row or function begins, as far as an instruction reaches. */
static uint64_t next_boundary(const struct cursor *cursor)
{
    bool is_function = cursor->behind.carried || cursor->function < cursor->row.end;
    return is_function ? cursor->function : cursor->row.end;
}

/* Whether only a pointer shows that code begins at a boundary. */
static bool is_pointed_label(const struct cursor *cursor, uint64_t boundary)
{
    return boundary == cursor->function &&
           code_starts_kind(cursor->starts, cursor->number) == CODE_START_LABEL &&
           code_starts_is_pointed(cursor->starts, cursor->number);
}

static int add_site(struct code_region *region, size_t *capacity, const struct code_site *site)
{
    int r = 0;
    if (region->site_count == *capacity) {
        void *sites = region->sites;
        r = array_grow(&sites, capacity, region->site_count + 1, sizeof *site);
        region->sites = sites;
    }
    if (r == 0) {
        region->sites[region->site_count++] = *site;
        region->numbers[site->at] = (uint32_t)region->site_count;
    }
    return r;
}

/* The instruction that an address lies in, or NULL. */
static struct code_site *find_holder(const struct code_region *region, uint64_t address)
{
    uint64_t at = address - region->start;
    for (size_t back = 0; at < region->bytes && back <= at; back++) {
        if (region->numbers[at - back] != 0) {
            return &region->sites[region->numbers[at - back] - 1];
        }
    }
    return NULL;
}

/* Notes where direct jumps lead, and which addresses of code the code itself computes. */
static void note_targets(const struct code_region *region)
{
    for (size_t i = 0; i < region->site_count; i++) {
        const struct code_effect *effect = &region->sites[i].effect;
        struct code_site *holder = effect->target == 0 ? NULL : find_holder(region, effect->target);
        if (holder == NULL) {
            continue;
        }
        bool is_first = region->start + holder->at == effect->target;
        bool is_own = holder == &region->sites[i]; /* it computes where it is itself */
        holder->is_split |= !is_first;
        bool is_jump = is_first && effect->flow != CODE_CALL && effect->flow != CODE_NEXT;
        if (is_jump) {
            uint32_t *last = &region->jumps[holder - region->sites].last;
            region->jumps[i].before = *last;
            *last = (uint32_t)i + 1;
        }
        holder->is_target |= is_jump;
        holder->is_ahead |= is_jump && holder > &region->sites[i];
        holder->is_taken |= is_first && !is_own && effect->flow == CODE_NEXT &&
                            !code_start_is_function(holder->start);
    }
}

/*
 * How far the instruction at `at`, into which a pointer leads at `cut`, makes what follows
 * doubtful: up to where both ways to decode it are in step. One of the two may be of no code.
 */
static size_t find_step(const uint8_t *code, size_t bytes, size_t at, size_t cut, size_t whole)
{
    uint64_t callee = 0;
    size_t ahead = at + whole;
    size_t behind = cut;
    while (ahead != behind && behind < bytes && ahead < bytes && ahead - at < STEP_BYTES_MAX) {
        size_t *lower = ahead < behind ? &ahead : &behind;
        *lower += code_skip(code + *lower, bytes - *lower, *lower, &callee);
    }
    return ahead > behind ? ahead : behind;
}

int code_region_init(struct code_region *ret, const uint8_t *code, size_t bytes, uint64_t start,
                     const struct cfi_table *table, const struct code_starts *starts)
{
    struct code_region region = {.start = start, .bytes = bytes};
    size_t capacity = 0;
    uint32_t function = 0;
    size_t split_end = 0; /* what stands before it may be decoded out of step */
    size_t cut_count = 0;
    int r = 0;
    void *sites = NULL;
    region.numbers = calloc(bytes + 1, sizeof *region.numbers);
    if (region.numbers == NULL ||
        array_grow(&sites, &capacity, bytes / SITE_BYTES, sizeof *region.sites) < 0) {
        free(region.numbers);
        return -ENOMEM;
    }
    region.sites = sites;
    struct cursor cursor = cursor_at(table, starts, start);
    for (size_t at = 0; r == 0 && at < bytes;) {
        uint64_t address = start + at;
        move_to(&cursor, address);
        struct code_site site = {
            .effect = code_decode(code + at, bytes - at, address),
            .at = (uint32_t)at,
            .start = (uint8_t)cursor.start,
            .row = cursor.row.rule,
        };
        function = code_start_is_function(site.start) ? site.at : function;
        site.function = function;
        site.is_pointed = cursor.is_pointed;
        uint64_t boundary = next_boundary(&cursor);
        if (boundary - address < site.effect.bytes) {
            if (is_pointed_label(&cursor, boundary)) {
                size_t step = ++cut_count > CUTS_MAX
                                  ? bytes
                                  : find_step(code, bytes, at, boundary - start, site.effect.bytes);
                split_end = step > split_end ? step : split_end;
            }
            site.effect =
                (struct code_effect){.bytes = (uint8_t)(boundary - address), .flow = CODE_END};
        }
        site.is_split = at < split_end;
        at += site.effect.bytes;
        region.has_syscall |= site.effect.sight == CODE_SIGHT_SYSCALL;
        if (site.effect.flow == CODE_CALL) {
            site.goes_on =
                cfi_rule_covers(site.row) || code_starts_is_within(starts, address, start + at);
            site.is_last = !site.goes_on && code_starts_is_within(starts, address, address);
        }
        r = add_site(&region, &capacity, &site);
    }
    region.marks = malloc(region.site_count + 1);
    region.jumps = calloc(region.site_count + 1, sizeof *region.jumps);
    if (r < 0 || region.marks == NULL || region.jumps == NULL) {
        code_region_done(&region);
        return r < 0 ? r : -ENOMEM;
    }
    note_targets(&region);
    *ret = region;
    return 0;
}

void code_region_done(struct code_region *region)
{
    free(region->sites);
    free(region->numbers);
    free(region->marks);
    free(region->jumps);
    free(region->tables);
    free(region->targets);
    region->sites = NULL;
    region->numbers = NULL;
    region->marks = NULL;
    region->jumps = NULL;
    region->tables = NULL;
    region->targets = NULL;
}

enum code_fall code_region_fall(const struct code_site *site, const struct code_site *next)
{
    switch ((enum code_flow)site->effect.flow) {
    case CODE_NEXT:
    case CODE_BRANCH:
        return next != NULL ? CODE_FALL_CERTAIN : CODE_FALL_NONE;
    case CODE_CALL:
        if (next == NULL || site->is_last || code_start_is_function(next->start)) {
            return CODE_FALL_NONE;
        }
        return site->goes_on && !next->is_ahead ? CODE_FALL_CERTAIN : CODE_FALL_DOUBTFUL;
    case CODE_JUMP:
    case CODE_RETURN:
    case CODE_INDIRECT:
    case CODE_END:
        break;
    }
    return CODE_FALL_NONE;
}
