/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Corrects rows of the file's own where they do not tell all, and makes rows for the stretches of
 * executable sections that no row covers. A file's own table gets those of small stretches, up to a
 * bound: most programs have a few, which every process runs through as it starts. Rows around a
 * stretch are facts to start from. Each instruction gets the rule that the forward look, from
 * functions' starts, and the backward look, from returns, prove together; or one by which the stack
 * ends there. Code whose analysis does not settle has no rows.
 *
 * The code is foreign. The number of decoded instructions is bounded, and a wrong row affects only
 * stacks of its own module.
 */
#include "code_rows.h"

#include "arch_x86_64.h"
#include "cleanup.h"
#include "code_addresses.h"
#include "code_backward.h"
#include "code_callees.h"
#include "code_decoder.h"
#include "code_doubts.h"
#include "code_forks.h"
#include "code_forward.h"
#include "code_jumps.h"
#include "code_proof.h"
#include "code_region.h"
#include "code_resumers.h"
#include "code_returns.h"
#include "code_starts.h"
#include "code_tables.h"
#include "code_thunks.h"
#include "eh_frame.h"
#include "elf_go.h"
#include "extremes.h"
#include "kept_registers.h"
#include "segments.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Rows before and behind a stretch that are looked at with it. Within a function, where only some
 * rows cannot be followed, the ways lead far. */
#define AROUND_BYTES        128
#define AROUND_INSIDE_BYTES 8192

#define REGION_BYTES ((size_t)16 << 10)
#define WINDOW_BYTES ((size_t)1 << 20)
#define STEP_BYTES   ((size_t)16 << 10)
#define PARTS_MAX    64

/* Beyond so many small stretches of a file, or bytes in them, the others are left to the table of
 * all rows. */
#define SMALL_COUNT_MAX 1024
#define SMALL_SUM_MAX   ((uint64_t)64 << 10)

/* Of a file no more than this is looked through for calls. */
#define CALLS_BYTES_MAX ((uint64_t)64 << 20)

/* Code that lies in one executable section; in a file without sections, in one segment: that has
 * constants, too, with some linkers. */
struct code_part {
    uint64_t start, end;
    uint64_t offset; /* in the file */
};

struct code_rows {
    const struct elf_file *file;
    struct cfi_builder *builder;
    const struct cfi_table *table;
    struct code_pointers *pointers;
    struct code_starts *starts;
    struct code_callees *callees;
    struct kept_registers *kept;
    struct code_doubts *doubts;
    bool keeps_frames;    /* Go's code does: what is not proved is left to the frame pointer */
    bool is_all_read;     /* no code without rows was left out so far */
    bool has_large;       /* there is more than the small stretches */
    uint64_t left_visits; /* as code_region_visit() counts them */
    uint64_t left_bytes;  /* that may be looked through for calls */
    struct code_stretch *small; /* SMALL_COUNT_MAX of them */
    size_t small_count;
    uint64_t small_bytes;
    size_t step_bytes; /* so many are read at once, at least */
    uint8_t *window;   /* a part of the file's code, WINDOW_BYTES at most */
    uint64_t window_start;
    size_t window_bytes;
    struct code_part parts[PARTS_MAX];
    size_t part_count;
    uint8_t *kinds; /* of each rule of the table: KIND_COVERS and so on */
};

/* A region that is looked at: from `start`, where rows begin that lead to the code without them. */
struct extent {
    uint64_t start;
    uint64_t at; /* up to which rows are known; it goes on from here */
    uint64_t end;
    bool is_cut; /* within a function, or where one may begin */
};

/* What a row's rule is, as cfi_table_stretch() is told. */
#define KIND_COVERS 1
#define KIND_ODD    2 /* it does not, and yet says something */
#define KIND_RESTS  4 /* the CFA rests on a register of which only a row of the callee can tell */
#define KIND_SIGNAL 8 /* of a signal's trampoline */

/* Whether a CFA rests on a register of which only a row of the callee can tell. */
static bool rests_on_kept(const struct cfi_rule *rule)
{
    return rule->kind == CFI_OFFSET && (CFI_KEPT_REGISTERS >> rule->cfa_register & 1) != 0;
}

static uint8_t *make_kinds(const struct cfi_table *table)
{
    uint8_t *kinds = malloc(table->rule_count);
    for (size_t i = 0; kinds != NULL && i < table->rule_count; i++) {
        const struct cfi_rule *rule = &table->rules[i];
        kinds[i] = cfi_rule_covers(rule) ? KIND_COVERS : rule->kind != CFI_NONE ? KIND_ODD : 0;
        kinds[i] |= rests_on_kept(rule) ? KIND_RESTS : 0;
        kinds[i] |= rule->signal_frame != 0 ? KIND_SIGNAL : 0;
    }
    return kinds;
}

/* Where rows begin that lead up to `at`, at most so many bytes before it. */
static uint64_t rows_before(const struct cfi_table *table, uint64_t at, uint64_t bytes_max,
                            uint64_t limit)
{
    uint64_t start = at;
    for (uint64_t to = at; to > limit;) {
        struct cfi_span span = cfi_table_span(table, to - 1);
        if (span.rule->kind == CFI_NONE || span.start < limit || at - span.start > bytes_max) {
            break;
        }
        to = span.start;
        start = span.carried ? start : to;
    }
    return start;
}

static bool is_inside(const struct cfi_table *table, uint64_t at)
{
    return cfi_table_find(table, at)->kind != CFI_NONE;
}

/* Whether a byte of code is neither the file's own word's nor the first of a function. */
static bool is_unclaimed(const struct code_rows *rows, uint64_t address)
{
    return segments_find(rows->table->segments, rows->table->segment_count, address) != NULL &&
           !cfi_rule_covers(cfi_table_find(rows->table, address)) &&
           code_starts_find(rows->starts, address) == CODE_START_NONE;
}

/* The bytes for which the rule of an instruction holds: a trampoline's also before and behind it,
 * as far as nothing is proved there. */
static struct code_stretch rule_stretch(const struct code_rows *rows,
                                        const struct code_region *region, size_t number,
                                        const struct cfi_rule *rule)
{
    const struct code_site *site = &region->sites[number];
    struct code_stretch stretch = {.start = region->start + site->at};
    stretch.end = stretch.start + site->effect.bytes;
    if (!region->has_syscall) {
        return stretch;
    }
    if (rule->kind == CFI_END) {
        stretch.start += number > 0 && code_forks_is_late(region, number - 1);
        stretch.end -= number + 1 < region->site_count && code_forks_is_early(region, number + 1);
    } else {
        stretch.start -=
            code_forks_is_early(region, number) && is_unclaimed(rows, stretch.start - 1);
        stretch.end += code_forks_is_late(region, number) && is_unclaimed(rows, stretch.end);
    }
    return stretch;
}

/*
 * Whether a frame that goes on behind an instruction does not have its rule. The rule of a caller
 * is looked up by the byte before its return address, which is a call's. Where code returns to
 * another place, that it has put on the stack itself, it is the last byte of an instruction that
 * moved the stack pointer, or after which nothing goes on. Of one byte, it is no other than the
 * first, where the rule holds.
 */
static bool is_apart_behind(const struct code_effect *effect)
{
    bool moves = effect->action == CODE_PUSH || effect->action == CODE_POP ||
                 effect->action == CODE_MOVE || effect->action == CODE_LEAVE ||
                 ((effect->action == CODE_COPY || effect->action == CODE_LOAD) &&
                  effect->to == ARCH_DWARF_SP) ||
                 (effect->changes >> ARCH_DWARF_SP & 1) != 0;
    bool goes_on = effect->flow == CODE_NEXT || effect->flow == CODE_BRANCH;
    return effect->bytes > 1 && effect->flow != CODE_CALL && (moves || !goes_on);
}

/* Rules that were made for code without a gap between them, and are the same: they are added as
 * one, since much of a function has one rule. */
struct same_rules {
    struct code_stretch stretch; /* empty: there are none */
    struct cfi_rule rule;
};

static int add_same(const struct code_rows *rows, struct same_rules *same)
{
    const struct code_stretch stretch = same->stretch;
    same->stretch.end = stretch.start;
    return cfi_builder_add(rows->builder, stretch.start, stretch.end, &same->rule);
}

/* Adds the rule of a stretch, or keeps it for the next. */
static int add_next(const struct code_rows *rows, struct same_rules *same,
                    struct code_stretch stretch, const struct cfi_rule *rule)
{
    bool is_same = same->stretch.start < same->stretch.end && same->stretch.end == stretch.start &&
                   stretch.start < stretch.end && memcmp(&same->rule, rule, sizeof *rule) == 0;
    if (is_same) {
        same->stretch.end = stretch.end;
        return 0;
    }
    int r = add_same(rows, same);
    same->stretch = stretch;
    same->rule = *rule;
    return r;
}

/* Ends stacks at the last byte of an instruction behind which no frame goes on with its rule, and
 * leaves that byte out of its stretch. */
static int add_apart(const struct code_rows *rows, struct same_rules *same,
                     const struct code_effect *effect, const struct cfi_rule *rule,
                     struct code_stretch *stretch)
{
    const struct cfi_rule end = {.kind = CFI_END};
    if (rule->kind == CFI_END || stretch->end - stretch->start != effect->bytes ||
        !is_apart_behind(effect)) {
        return 0;
    }
    stretch->end--;
    return add_next(rows, same, (struct code_stretch){stretch->end, stretch->end + 1}, &end);
}

/* Keeps the rule of a function that only a symbol shows to be called until all code is read. */
static int keep_rule(const struct code_rows *rows, const struct code_region *region,
                     const struct code_site *site, struct code_stretch stretch,
                     const struct cfi_rule *rule)
{
    uint64_t function = region->start + site->function;
    bool is_pointed = code_region_function(region, site)->is_pointed;
    int r = is_pointed ? code_doubts_point(rows->doubts, function) : 0;
    return r < 0 ? r : code_doubts_add(rows->doubts, stretch.start, stretch.end, rule, function);
}

/* Adds the rule of one instruction. */
static int add_rule(const struct code_rows *rows, const struct code_region *region, size_t number,
                    struct same_rules *same, struct cfi_rule *rule, bool by_symbol)
{
    const struct code_site *site = &region->sites[number];
    bool is_kept = by_symbol && code_doubts_has_room(rows->doubts);
    if (by_symbol && !is_kept) {
        *rule = (struct cfi_rule){.kind = cfi_rule_is_framed(rule) ? CFI_NONE : CFI_END};
    }
    if (rule->kind == CFI_NONE || (rule->kind == CFI_END && rows->keeps_frames)) {
        return 0;
    }
    struct code_stretch stretch = rule_stretch(rows, region, number, rule);
    int r = add_apart(rows, same, &site->effect, rule, &stretch);
    if (r < 0) {
        return r;
    }
    rule->kept =
        rule->kind == CFI_OFFSET ? kept_registers_find(rows->kept, region->start + site->at) : 0;
    return is_kept ? keep_rule(rows, region, site, stretch, rule)
                   : add_next(rows, same, stretch, rule);
}

/* Gives each of the first instructions that no row covers its rule. */
static int add_rules(const struct code_rows *rows, const struct code_region *region,
                     const struct code_forward *forward, const struct code_backward *backward,
                     size_t site_count)
{
    int r = code_jumps_note(region, site_count, forward, backward, rows->doubts);
    struct same_rules same = {.stretch = {0, 0}};
    code_proof_prepare(region, forward, backward);
    for (size_t i = 0; r == 0 && i < site_count; i++) {
        if (!cfi_rule_covers(region->sites[i].row)) {
            bool by_symbol = false;
            struct cfi_rule rule =
                code_forks_rule(region, i, &forward[i], &backward[i], &by_symbol);
            r = add_rule(rows, region, i, &same, &rule, by_symbol);
        }
    }
    return r < 0 ? r : add_same(rows, &same);
}

/* The code (borrowed until the next call) that is mapped at an address, as far as the file has it:
 * `*bytes` (at most half a window) becomes less. */
static const uint8_t *read_code(struct code_rows *rows, const struct code_part *part,
                                uint64_t address, size_t *bytes)
{
    uint64_t end = part->end;
    bool is_there = address >= rows->window_start &&
                    address - rows->window_start <= rows->window_bytes &&
                    *bytes <= rows->window_bytes - (address - rows->window_start);
    if (!is_there) {
        size_t step = *bytes < rows->step_bytes ? rows->step_bytes : *bytes;
        size_t wanted = end - address < step ? end - address : step;
        rows->window_start = address;
        rows->window_bytes =
            elf_file_read(rows->file, part->offset + (address - part->start), rows->window, wanted);
    }
    size_t there = rows->window_bytes - (address - rows->window_start);
    *bytes = *bytes < there ? *bytes : there;
    return rows->window + (address - rows->window_start);
}

/* How many of a region's instructions get their rules with it. Where the region is cut within a
 * function, those that follow the last that begins one belong to the next region. */
static size_t count_settled(const struct code_region *region, const struct code_backward *backward,
                            const struct extent *extent)
{
    for (size_t i = region->site_count; extent->is_cut && i-- > 0;) {
        uint64_t address = region->start + region->sites[i].at;
        if (address < extent->at + REGION_BYTES / 2) {
            return 0;
        }
        if (code_proof_begins_scope(region, i, backward)) {
            return i;
        }
    }
    return region->site_count;
}

/* Nothing is known of the stack behind a call that comes back with another stack pointer. */
static void end_at_odd_calls(const struct code_rows *rows, const struct code_region *region)
{
    for (size_t i = 0; i < region->site_count; i++) {
        struct code_effect *effect = &region->sites[i].effect;
        if (effect->flow == CODE_CALL && code_callees_is_odd(rows->callees, effect->target)) {
            effect->flow = CODE_END;
        }
    }
}

/* Adds the rules of a region. Returns 0 and moves its end to where they end; to where it begins if
 * it has to be larger. */
static int add_region(struct code_rows *rows, const struct code_part *part, struct extent *extent)
{
    struct code_region region;
    uint64_t start = extent->start;
    size_t bytes = extent->end - start;
    const uint8_t *code = read_code(rows, part, start, &bytes);
    int r = code_region_init(&region, code, bytes, start, rows->table, rows->starts);
    if (r < 0) {
        return r;
    }
    region.left_visits = &rows->left_visits;
    end_at_odd_calls(rows, &region);
    r = code_tables_read(&region, rows->file);
    const size_t count = region.site_count + 1;
    cleanup_(freep) struct code_forward *forward = reallocarray(NULL, count, sizeof *forward);
    cleanup_(freep) struct code_backward *backward = reallocarray(NULL, count, sizeof *backward);
    if (r < 0 || forward == NULL || backward == NULL) {
        r = -ENOMEM;
    } else if (code_region_visit(&region, CODE_DECODE_VISITS) &&
               code_backward_run(&region, rows->table, backward) &&
               code_returns_run(&region, rows->table, backward) &&
               code_forward_run(&region, backward, forward)) {
        size_t settled = count_settled(&region, backward, extent);
        extent->end = settled < region.site_count ? start + region.sites[settled].at : extent->end;
        r = add_rules(rows, &region, forward, backward, settled);
    } else {
        rows->is_all_read = false;
    }
    code_region_done(&region);
    return r;
}

/* The number of the next start of a kind, or a better one, from a number on and before a limit; or
 * of what lies behind that. */
static size_t next_start(const struct code_rows *rows, size_t number, enum code_start kind,
                         uint64_t limit)
{
    while (code_starts_address(rows->starts, number) < limit &&
           code_starts_kind(rows->starts, number) < kind) {
        number++;
    }
    return number;
}

static bool is_function_at(const struct code_rows *rows, size_t number, uint64_t limit)
{
    return code_starts_address(rows->starts, number) < limit &&
           code_start_is_function(code_starts_kind(rows->starts, number));
}

/*
 * Cuts a larger region, since every round goes over all of it: at a function, or, if a label comes
 * first, behind the code from that label to the next, which has to show that a function begins at
 * the label.
 */
static void cut_extent(const struct code_rows *rows, struct extent *extent, enum code_start kind)
{
    uint64_t limit = extent->start + CODE_REGION_BYTES_MAX;
    limit = limit < extent->end ? limit : extent->end;
    size_t cut = code_starts_number(rows->starts, extent->at + REGION_BYTES);
    cut = next_start(rows, cut, kind, limit);
    bool is_function = is_function_at(rows, cut, limit);
    if (!is_function && code_starts_address(rows->starts, cut) < limit) {
        cut = next_start(rows, cut + 1, kind, limit);
        is_function = is_function_at(rows, cut, limit);
    }
    uint64_t end = min_u64(code_starts_address(rows->starts, cut), limit);
    extent->is_cut = end < extent->end && !is_function;
    extent->end = end;
}

/* Where a region that must reach `end` ends: behind the rows that follow, and the stretches among
 * them that are as near. */
static uint64_t rows_behind(const struct cfi_table *table, uint64_t end, uint64_t bytes_max,
                            uint64_t limit)
{
    uint64_t at = end;
    while (at < limit && at - end < bytes_max && is_inside(table, at)) {
        at = cfi_table_span(table, at).end;
    }
    return at < limit ? at : limit;
}

static bool is_padding(struct code_rows *rows, const struct code_part *part, uint64_t at,
                       uint64_t end)
{
    size_t bytes = end - at;
    if (bytes > AROUND_BYTES || bytes > rows->left_visits) {
        return false;
    }
    rows->left_visits -= bytes;
    const uint8_t *code = read_code(rows, part, at, &bytes);
    return code_is_padding(code, bytes);
}

/* Adds the rules of a part of a region that others cannot change: up to a label if that shows that
 * a function begins, else up to one behind it, or a function; and if all is too large, of all. */
static int add_settled(struct code_rows *rows, const struct code_part *part, struct extent *extent)
{
    static const enum code_start cuts[] = {CODE_START_LABEL, CODE_START_FUNCTION,
                                           CODE_START_FUNCTION};
    const size_t count = sizeof cuts / sizeof *cuts;
    const struct extent whole = *extent;
    int r = 0;
    extent->end = extent->start;
    for (size_t i = 0; r == 0 && i < count && extent->end == extent->start; i++) {
        *extent = whole;
        cut_extent(rows, extent, cuts[i]);
        extent->is_cut = extent->is_cut && i + 1 < count;
        r = add_region(rows, part, extent);
    }
    return r;
}

/* Takes the stretch without rows from `at` to `end`, which a row may hold that cannot be followed.
 * Returns 0 and where to go on, or an error. */
static int add_stretch(struct code_rows *rows, const struct code_part *part, uint64_t at,
                       uint64_t end, bool is_inside_row, uint64_t *ret_next)
{
    uint64_t around = is_inside_row ? AROUND_INSIDE_BYTES : AROUND_BYTES;
    if (around == AROUND_BYTES && is_padding(rows, part, at, end)) {
        *ret_next = end;
        return 0;
    }
    uint64_t start = rows_before(rows->table, at, around, part->start);
    uint64_t stop = rows_behind(rows->table, end, around, part->end);
    if (rows->left_visits == 0) {
        rows->is_all_read = false;
        *ret_next = part->end;
        return 0;
    }
    struct extent extent = {start, at, stop, false};
    int r = add_settled(rows, part, &extent);
    bool goes_on = extent.end > end && around == AROUND_INSIDE_BYTES;
    *ret_next = goes_on || extent.end < end ? extent.end : end;
    return r;
}

/*
 * While the kernel returns from a signal for a task, that stands behind the trampoline's last
 * instruction, where the file's row has ended.
 */
static int add_behind_trampoline(const struct code_rows *rows, uint64_t at)
{
    const struct cfi_rule *before = cfi_table_find(rows->table, at - 1);
    bool is_end = before->signal_frame != 0 && cfi_rule_covers(before) && is_unclaimed(rows, at);
    return is_end ? cfi_builder_add(rows->builder, at, at + 1, before) : 0;
}

static int add_part(struct code_rows *rows, const struct code_part *part)
{
    struct cfi_stretch stretch = cfi_table_stretch(rows->table, part->start, rows->kinds);
    uint8_t before = KIND_SIGNAL; /* what the rows before the stretch may be */
    int r = 0;
    while (r == 0 && stretch.start < part->end) {
        uint64_t end = min_u64(stretch.end, part->end);
        uint64_t next = end;
        if ((stretch.first & KIND_COVERS) == 0) {
            r = (before & KIND_SIGNAL) != 0 ? add_behind_trampoline(rows, stretch.start) : 0;
            if (r == 0) {
                bool is_inside_row = (stretch.first & KIND_ODD) != 0;
                r = add_stretch(rows, part, stretch.start, end, is_inside_row, &next);
            }
        }
        before = next == stretch.end ? stretch.any : KIND_SIGNAL;
        stretch = next == stretch.end ? cfi_table_stretch_behind(rows->table, &stretch, rows->kinds)
                                      : cfi_table_stretch(rows->table, next, rows->kinds);
    }
    return r;
}

/* What is called from code without rows. A short stretch may be no code. */
static int add_callees(struct code_rows *rows, const struct code_part *part, uint64_t start,
                       uint64_t end)
{
    bool is_long = end - start >= AROUND_BYTES;
    size_t bytes = end - start;
    const uint8_t *code = read_code(rows, part, start, &bytes);
    int r = 0;
    for (size_t at = 0; r == 0 && at < bytes;) {
        uint64_t callee = 0;
        at += code_skip(code + at, bytes - at, start + at, &callee);
        if (callee == 0 || cfi_rule_covers(cfi_table_find(rows->table, callee))) {
            continue;
        }
        r = code_callees_add(rows->callees, callee);
        if (r == 0 && is_long) {
            r = code_starts_add(rows->starts, callee, 0, CODE_START_FUNCTION);
        }
    }
    return r == -E2BIG ? 0 : r;
}

/* The same for a stretch without rows that can be followed. */
static int add_stretch_callees(struct code_rows *rows, const struct code_part *part, uint64_t start,
                               uint64_t end)
{
    int r = 0;
    for (uint64_t at = start; r == 0 && at < end && !cfi_is_padding(at, end);) {
        uint64_t next = end - at < CODE_REGION_BYTES_MAX ? end : at + CODE_REGION_BYTES_MAX;
        if (cfi_table_find(rows->table, at)->kind == CFI_NONE && next - at <= rows->left_bytes) {
            rows->left_bytes -= next - at;
            r = add_callees(rows, part, at, next);
        }
        at = next;
    }
    return r;
}

static int add_part_callees(struct code_rows *rows, const struct code_part *part)
{
    struct cfi_stretch stretch = cfi_table_stretch(rows->table, part->start, rows->kinds);
    int r = 0;
    while (r == 0 && stretch.start < part->end) {
        uint64_t end = min_u64(stretch.end, part->end);
        if ((stretch.first & KIND_COVERS) == 0) {
            r = add_stretch_callees(rows, part, stretch.start, end);
        }
        stretch = cfi_table_stretch_behind(rows->table, &stretch, rows->kinds);
    }
    return r;
}

/* Whether a part lies in one of the segments, which alone are mapped as code. */
static bool is_code(const struct code_rows *rows, uint64_t start, uint64_t bytes)
{
    const struct symbol_segment *segment =
        segments_find(rows->table->segments, rows->table->segment_count, start);
    return segment != NULL && bytes <= segment->size_bytes - (start - segment->vaddr);
}

/* One part behind the other: what begins within the last one is not looked at twice. */
static void note_part(struct code_rows *rows, uint64_t start, uint64_t bytes, uint64_t offset)
{
    const struct code_part *last =
        rows->part_count == 0 ? NULL : &rows->parts[rows->part_count - 1];
    const struct symbol_segment segment = {.offset = offset, .vaddr = start, .size_bytes = bytes};
    if (rows->part_count < PARTS_MAX && segment_is_valid(&segment) && is_code(rows, start, bytes) &&
        elf_file_has(rows->file, offset, bytes) && (last == NULL || start >= last->end)) {
        rows->parts[rows->part_count++] = (struct code_part){start, start + bytes, offset};
    }
}

static void find_parts(struct code_rows *rows)
{
    Elf_Scn *section = NULL;
    while ((section = elf_nextscn(rows->file->elf, section)) != NULL) {
        GElf_Shdr header;
        if (gelf_getshdr(section, &header) != NULL && header.sh_type == SHT_PROGBITS &&
            (header.sh_flags & SHF_EXECINSTR) != 0) {
            note_part(rows, header.sh_addr, header.sh_size, header.sh_offset);
        }
    }
    bool has_sections = rows->part_count > 0;
    for (size_t i = 0; !has_sections && i < rows->table->segment_count; i++) {
        const struct symbol_segment *segment = &rows->table->segments[i];
        note_part(rows, segment->vaddr, segment->size_bytes, segment->offset);
    }
}

/* The part of the file's code that a function lies in, or NULL. */
static const struct code_part *find_part(const struct code_rows *rows, uint64_t start, uint64_t end)
{
    for (size_t i = 0; i < rows->part_count; i++) {
        if (start >= rows->parts[i].start && end <= rows->parts[i].end) {
            return &rows->parts[i];
        }
    }
    return NULL;
}

/* The return of a thunk through which functions return has a frame of a word less than its row
 * says, which begins before it. */
static int add_return_thunk(const struct code_rows *rows, const uint8_t *code, size_t bytes,
                            uint64_t start)
{
    const size_t before = CODE_THUNKS_RETURN_AT;
    if (bytes < before || !code_thunks_is_return(code + before, bytes - before)) {
        return 0;
    }
    uint64_t at = start + before + CODE_THUNKS_RETURN_BYTES - 1;
    struct cfi_rule rule = *cfi_table_find(rows->table, at);
    rule.cfa_offset -= CODE_WORD_BYTES;
    return cfi_builder_add(rows->builder, at, start + bytes, &rule);
}

/* The functions of which the file's own rows do not tell all. */
static int add_resumers(struct code_rows *rows)
{
    uint64_t start = 0;
    uint64_t end = 0;
    int r = 0;
    for (size_t i = 0; r == 0 && cfi_builder_find_resumer(rows->builder, i, &start, &end); i++) {
        const struct code_part *part = find_part(rows, start, end);
        size_t bytes = end - start;
        if (part == NULL || bytes > CODE_REGION_BYTES_MAX ||
            bytes * CODE_DECODE_VISITS > rows->left_visits) {
            continue;
        }
        rows->left_visits -= bytes * CODE_DECODE_VISITS;
        rows->window_bytes = 0;
        const uint8_t *code = read_code(rows, part, start, &bytes);
        r = code_resumers_add(code, bytes, start, rows->builder);
        r = r == 0 ? add_return_thunk(rows, code, bytes, start) : r;
    }
    return r;
}

/* Notes what is called from `start` to `end`, where the CFA rests on this register. */
static void want_callees(struct code_rows *rows, const struct code_part *part, uint64_t start,
                         uint64_t end, unsigned int number)
{
    size_t bytes = end - start;
    if (bytes > CODE_REGION_BYTES_MAX || bytes > rows->left_bytes) {
        return;
    }
    rows->left_bytes -= bytes;
    const uint8_t *code = read_code(rows, part, start, &bytes);
    for (size_t at = 0; at < bytes;) {
        uint64_t callee = 0;
        at += code_skip(code + at, bytes - at, start + at, &callee);
        if (callee != 0) {
            kept_registers_want(rows->kept, callee, number);
        }
    }
}

/* Notes a stretch of a part without rows if it is small. Between two rows padding is left out,
 * except behind a signal's trampoline; `before` are the kinds of the rows before it. */
static void note_stretch(struct code_rows *rows, const struct code_part *part, uint64_t start,
                         uint64_t end, uint8_t before)
{
    bool is_between = start > part->start && end < part->end;
    bool is_left_out =
        is_between && cfi_is_padding(start, end) &&
        ((before & KIND_SIGNAL) == 0 || cfi_table_find(rows->table, start - 1)->signal_frame == 0);
    if (is_left_out) {
        return;
    }
    if (end - start > CFI_SMALL_BYTES) {
        rows->has_large = true;
        return;
    }
    if (rows->small_count == SMALL_COUNT_MAX || rows->small_bytes + (end - start) > SMALL_SUM_MAX) {
        rows->has_large = true;
        cfi_builder_lacks_small(rows->builder);
        return;
    }
    rows->small[rows->small_count++] = (struct code_stretch){start, end};
    rows->small_bytes += end - start;
}

/* Notes what is called from a stretch with rows, where a CFA rests on a register that the callee
 * keeps. */
static void look_at_rows(struct code_rows *rows, const struct code_part *part, uint64_t start,
                         uint64_t end)
{
    struct cfi_span span = cfi_table_span(rows->table, start);
    for (uint64_t at = start; at < end; at = span.start) {
        if (rests_on_kept(span.rule)) {
            want_callees(rows, part, at, min_u64(span.end, end), span.rule->cfa_register);
        }
        if (span.end >= end) {
            break;
        }
        span = cfi_table_span_behind(rows->table, &span);
    }
}

/* Goes once through the stretches of a part, with rows and without. Notes what is called where a
 * CFA rests on a register that the callee keeps, and small stretches without rows. A stretch beside
 * rows that cannot be followed belongs to these, and is left to the table of all rows. */
static void look_through(struct code_rows *rows, const struct code_part *part)
{
    struct cfi_stretch stretch = cfi_table_stretch(rows->table, part->start, rows->kinds);
    uint8_t before = KIND_SIGNAL;
    while (stretch.start < part->end) {
        uint64_t end = min_u64(stretch.end, part->end);
        if ((stretch.any & KIND_RESTS) != 0) {
            look_at_rows(rows, part, stretch.start, end);
        }
        if ((stretch.any & (KIND_COVERS | KIND_ODD)) == 0) {
            note_stretch(rows, part, stretch.start, end, before);
        }
        before = stretch.any;
        stretch = cfi_table_stretch_behind(rows->table, &stretch, rows->kinds);
    }
}

/* Functions that keep a register on which their caller's CFA rests. */
static int add_kept(struct code_rows *rows)
{
    uint64_t callee = 0;
    int r = kept_registers_sort_callees(rows->kept);
    for (size_t i = 0; r == 0 && kept_registers_find_callee(rows->kept, i, &callee); i++) {
        const struct code_part *part = find_part(rows, callee, callee + 1);
        if (part == NULL || rows->left_visits < KEPT_INSTRUCTIONS_MAX * CODE_DECODE_VISITS) {
            continue;
        }
        size_t bytes = part->end - callee;
        bytes = bytes < KEPT_BYTES_MAX ? bytes : KEPT_BYTES_MAX;
        rows->window_bytes = 0;
        const uint8_t *code = read_code(rows, part, callee, &bytes);
        rows->left_visits -= kept_registers_follow(rows->kept, i, code, bytes) * CODE_DECODE_VISITS;
    }
    if (r == 0) {
        r = kept_registers_sort(rows->kept);
    }
    return r < 0 ? r : kept_registers_add_rows(rows->kept, rows->table, rows->builder);
}

/* Notes of which functions code has the address, if that matters. */
static int note_addresses(struct code_rows *rows, const struct code_part *part)
{
    bool is_fixed = elf_file_is_fixed(rows->file);
    int r = 0;
    rows->window_bytes = 0;
    for (uint64_t at = part->start; r == 0 && at < part->end;) {
        size_t bytes = part->end - at < WINDOW_BYTES / 2 ? part->end - at : WINDOW_BYTES / 2;
        if (bytes > rows->left_bytes) {
            return code_doubts_jump(rows->doubts, CODE_DOUBTS_ANYWHERE);
        }
        rows->left_bytes -= bytes;
        uint64_t end = at + bytes;
        const uint8_t *code = read_code(rows, part, at, &bytes);
        r = code_addresses_note(code, bytes, at, is_fixed, rows->table, rows->doubts);
        at = end == part->end ? end : end - CODE_ADDRESSES_SHARED_BYTES;
    }
    return r;
}

/* Settles what was kept, once all code was read. */
static int settle_doubts(struct code_rows *rows)
{
    int r = 0;
    rows->left_bytes = CALLS_BYTES_MAX;
    for (size_t i = 0; r == 0 && i < rows->part_count; i++) {
        r = code_doubts_asks_for_pointers(rows->doubts) ? note_addresses(rows, &rows->parts[i]) : 0;
    }
    return r < 0 ? r : code_doubts_settle(rows->doubts, rows->builder);
}

/* Rows for the code that no row covers. */
static int add_uncovered(struct code_rows *rows)
{
    rows->step_bytes = WINDOW_BYTES;
    int r = code_starts_read(rows->starts, rows->file, rows->table, NULL, 0, rows->pointers);
    rows->is_all_read =
        rows->is_all_read && r == 0; /* else there are pointers that are not known */
    for (size_t i = 0; (r == 0 || r == -E2BIG) && i < rows->part_count; i++) {
        rows->window_bytes = 0;
        r = add_part_callees(rows, &rows->parts[i]);
    }
    if (r == 0 || r == -E2BIG) {
        r = code_starts_sort(rows->starts);
    }
    if (r == 0) {
        r = code_callees_read(rows->callees, rows->file, &rows->left_visits);
    }
    for (size_t i = 0; r == 0 && i < rows->part_count; i++) {
        rows->window_bytes = 0;
        r = add_part(rows, &rows->parts[i]);
    }
    if (r == 0 && !rows->is_all_read) {
        r = code_doubts_jump(rows->doubts, CODE_DOUBTS_ANYWHERE);
    }
    return r < 0 ? r : settle_doubts(rows);
}

/* Rows for small stretches of code that no row covers. */
static int add_small(struct code_rows *rows)
{
    int r = rows->small_count == 0
                ? 0
                : code_starts_read(rows->starts, rows->file, rows->table, rows->small,
                                   rows->small_count, rows->pointers);
    rows->is_all_read = rows->is_all_read && r == 0;
    for (size_t i = 0; (r == 0 || r == -E2BIG) && i < rows->small_count; i++) {
        const struct code_stretch *stretch = &rows->small[i];
        const struct code_part *part = find_part(rows, stretch->start, stretch->end);
        if (part != NULL) {
            r = add_callees(rows, part, stretch->start, stretch->end);
        }
    }
    if (r == 0 || r == -E2BIG) {
        r = code_starts_sort(rows->starts);
    }
    if (r == 0) {
        r = code_callees_read(rows->callees, rows->file, &rows->left_visits);
    }
    for (size_t i = 0; r == 0 && i < rows->small_count; i++) {
        struct code_stretch stretch = rows->small[i];
        const struct code_part *part = find_part(rows, stretch.start, stretch.end);
        r = add_behind_trampoline(rows, stretch.start);
        while (r == 0 && part != NULL && stretch.start < stretch.end) {
            r = add_stretch(rows, part, stretch.start, stretch.end, false, &stretch.start);
        }
    }
    if (r == 0 && (rows->has_large || !rows->is_all_read)) {
        if (code_doubts_has_rows(rows->doubts)) {
            cfi_builder_lacks_small(rows->builder);
        }
        return 0;
    }
    return r < 0 ? r : settle_doubts(rows);
}

/* Rows of the extent: those that correct the file's own come first. */
static int add_extent(struct code_rows *rows, enum code_rows_extent extent)
{
    find_parts(rows);
    int r = 0;
    for (size_t i = 0; r == 0 && i < rows->part_count; i++) {
        rows->window_bytes = 0;
        look_through(rows, &rows->parts[i]);
    }
    if (r == 0) {
        r = add_resumers(rows);
    }
    if (r == 0) {
        r = add_kept(rows);
    }
    if (r == 0) {
        rows->window_bytes = 0;
        r = extent == CODE_ROWS_ALL ? add_uncovered(rows) : add_small(rows);
    }
    return r;
}

/* Adds to what the builder's table has already, and nothing else. */
static int add_to_table(const struct elf_file *file, enum code_rows_extent extent,
                        const struct cfi_table *table, struct code_pointers *pointers,
                        struct cfi_builder *builder)
{
    cleanup_(freep) uint8_t *window = malloc(WINDOW_BYTES);
    cleanup_(freep) struct code_stretch *small = calloc(SMALL_COUNT_MAX, sizeof *small);
    cleanup_(freep) uint8_t *kinds = make_kinds(table);
    struct code_rows rows = {
        .file = file,
        .builder = builder,
        .table = table,
        .pointers = pointers,
        .starts = code_starts_new(),
        .callees = code_callees_new(),
        .kept = kept_registers_new(),
        .doubts = code_doubts_new(),
        .keeps_frames = elf_go_is_linked(file),
        .is_all_read = true,
        .left_visits = CODE_ROWS_VISITS_MAX,
        .left_bytes = CALLS_BYTES_MAX,
        .small = small,
        .step_bytes = STEP_BYTES,
        .window = window,
        .kinds = kinds,
    };
    bool has_memory = window != NULL && small != NULL && kinds != NULL && rows.starts != NULL &&
                      rows.callees != NULL && rows.kept != NULL && rows.doubts != NULL;
    int r = has_memory ? add_extent(&rows, extent) : -ENOMEM;
    (void)code_starts_free(rows.starts);
    (void)code_callees_free(rows.callees);
    (void)kept_registers_free(rows.kept);
    (void)code_doubts_free(rows.doubts);
    return r;
}

static int add_noting(const struct elf_file *file, enum code_rows_extent extent,
                      struct code_pointers *pointers, struct cfi_builder *builder)
{
    const struct cfi_table *table = NULL;
    int r = cfi_builder_settle(builder, &table);
    return r < 0 ? r : add_to_table(file, extent, table, pointers, builder);
}

int code_rows_add(const struct elf_file *file, enum code_rows_extent extent,
                  struct cfi_builder *builder)
{
    struct code_pointers pointers = {0};
    int r = add_noting(file, extent, &pointers, builder);
    code_pointers_done(&pointers);
    return r;
}

int code_rows_read_first(int fd, enum code_rows_extent extent, struct code_pointers *pointers,
                         struct cfi_builder *builder)
{
    struct elf_file file;
    int r = elf_file_init(&file, fd);
    if (r < 0) {
        return r;
    }
    r = eh_frame_add(&file, builder);
    if (r == 0 && elf_file_machine(&file) == ELF_MACHINE_X86_64) {
        r = add_noting(&file, extent, pointers, builder);
    }
    elf_file_done(&file);
    return r;
}

int code_rows_read(int fd, enum code_rows_extent extent, struct cfi_builder *builder)
{
    struct code_pointers pointers = {0};
    int r = code_rows_read_first(fd, extent, &pointers, builder);
    code_pointers_done(&pointers);
    return r;
}

int code_rows_read_again(int fd, enum code_rows_extent extent, const struct cfi_table *table,
                         struct code_pointers *pointers, struct cfi_builder *builder)
{
    struct elf_file file;
    int r = elf_file_init(&file, fd);
    if (r == 0) {
        r = add_to_table(&file, extent, table, pointers, builder);
        elf_file_done(&file);
    }
    return r;
}
