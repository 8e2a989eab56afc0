/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reads a serialised table. A process without rights wrote it, so no byte of it can be trusted:
 * cfi_table_open() checks once every byte that a lookup or an unwinder follows, and the lookups
 * follow without checks. The caller makes sure that the bytes do not change afterwards (a sealed
 * memfd, or its own memory). Pure; cfi_builder.c is the writer.
 *
 * cfi_table_find() is called for addresses that were not met before, so its rows are in no cache,
 * and what it costs is the cache lines that it touches. It finds the page by its number. Rows lie
 * in a page almost evenly: the search begins where the row would be if they did, and goes on from
 * there in strides that double.
 */
#include "arch_x86_64.h"
#include "cfi_format.h"
#include "segments.h"

#include <errno.h>

#define FIRST_STRIDE ((size_t)8) /* half a cache line */

/* Whether an unwinder goes from here to a caller, and so needs to know how. */
static bool has_caller(const struct cfi_rule *rule)
{
    return rule->kind == CFI_OFFSET || rule->kind == CFI_DEREF || rule->kind == CFI_DEREF_INDEX ||
           rule->kind == CFI_PLT || rule->kind == CFI_FORK;
}

/* An unwinder that follows the rule finds a meaning in every member that it looks at. */
static bool is_rule_valid(const struct cfi_rule *rule)
{
    return rule->kind <= CFI_END && rule->cfa_register < ARCH_REGISTERS_COUNT &&
           rule->cfa_index < ARCH_REGISTERS_COUNT && rule->signal_frame <= 1 &&
           rule->keeps_fp <= 1 && (rule->kept & ~CFI_KEPT_REGISTERS) == 0 &&
           rule->ra_saved <= CFI_LOST && rule->bp_saved <= CFI_LOST && rule->bx_saved <= CFI_LOST &&
           (!has_caller(rule) || rule->ra_saved == CFI_AT_CFA || rule->ra_saved == CFI_AT_SP);
}

static bool are_rules_valid(const struct cfi_table *table)
{
    for (size_t i = 0; i < table->rule_count; i++) {
        if (!is_rule_valid(&table->rules[i])) {
            return false;
        }
    }
    return table->rule_count > 0 && table->rules[0].kind == CFI_NONE;
}

static void count_bytes(struct cfi_stats *stats, const struct cfi_rule *rule, uint64_t bytes)
{
    bool is_end = rule->kind == CFI_ROOT || rule->kind == CFI_SWITCH || rule->kind == CFI_END;
    stats->covered_bytes += has_caller(rule) || is_end ? bytes : 0;
    stats->end_bytes += rule->kind == CFI_END ? bytes : 0;
    stats->unsupported_bytes += rule->kind == CFI_UNSUPPORTED ? bytes : 0;
}

/* The rows of one page: they begin at its start and rise. Counts what they cover. */
static bool is_page_valid(struct cfi_table *table, size_t page)
{
    size_t first = table->pages[page].first_row;
    size_t end = table->pages[page + 1].first_row;
    if (first >= end || end > table->row_count || table->rows[first].low != 0) {
        return false;
    }
    for (size_t i = first; i < end; i++) {
        uint64_t low = table->rows[i].low;
        uint64_t next = i + 1 < end ? table->rows[i + 1].low : CFI_PAGE_BYTES;
        if (next <= low || table->rows[i].rule >= table->rule_count) {
            return false;
        }
        count_bytes(&table->stats, &table->rules[table->rows[i].rule], next - low);
    }
    return true;
}

static bool are_pages_valid(struct cfi_table *table)
{
    for (size_t i = 0; i < table->page_count; i++) {
        if (!is_page_valid(table, i)) {
            return false;
        }
    }
    return table->pages[0].first_row == 0 &&
           table->pages[table->page_count].first_row == table->row_count;
}

static bool is_header_valid(const struct cfi_header *header, size_t size_bytes)
{
    return header->magic == CFI_FORMAT_MAGIC &&
           header->segment_count <= SYMBOL_TABLE_SEGMENTS_MAX &&
           header->build_id_bytes <= SYMBOL_BUILD_ID_BYTES_MAX &&
           header->rule_count <= CFI_RULE_COUNT_MAX && header->page_count <= CFI_PAGE_COUNT_MAX &&
           header->base % CFI_PAGE_BYTES == 0 && header->is_32bit <= 1 &&
           header->lacks_small <= 1 &&
           header->base <= UINT64_MAX - header->page_count * CFI_PAGE_BYTES &&
           cfi_format_bytes(header) == size_bytes;
}

int cfi_table_open(const void *bytes, size_t size_bytes, struct cfi_table *ret)
{
    const struct cfi_header *header = bytes;
    if (size_bytes < sizeof *header || size_bytes > CFI_TABLE_BYTES_MAX ||
        (uintptr_t)bytes % 8 != 0 || !is_header_valid(header, size_bytes)) {
        return -EBADMSG;
    }

    struct cfi_table table = {
        .base = header->base,
        .segments = (const struct symbol_segment *)(header + 1),
        .segment_count = header->segment_count,
        .rule_count = header->rule_count,
        .page_count = header->page_count,
        .row_count = header->row_count,
        .build_id = header->build_id,
        .build_id_bytes = header->build_id_bytes,
        .is_32bit = header->is_32bit != 0,
        .lacks_small = header->lacks_small != 0,
        .stats = {.row_count = header->row_count, .rule_count = header->rule_count},
    };
    table.rules = (const struct cfi_rule *)(table.segments + table.segment_count);
    table.pages = (const struct cfi_page *)(table.rules + table.rule_count);
    table.rows = (const struct cfi_row *)(table.pages + table.page_count + 1);
    if (!segments_are_valid(table.segments, table.segment_count) || !are_rules_valid(&table) ||
        !are_pages_valid(&table)) {
        return -EBADMSG;
    }
    *ret = table;
    return 0;
}

/* The row in force at an offset from the base, which is on one of the pages. */
static inline const struct cfi_row *find_row(const struct cfi_table *table, uint64_t offset)
{
    uint64_t page = offset >> CFI_PAGE_SHIFT;
    const struct cfi_row *rows = &table->rows[table->pages[page].first_row];
    const size_t count = table->pages[page + 1].first_row - table->pages[page].first_row;
    const uint16_t low = (uint16_t)offset;
    /* It is one of [first, end): the first row of a page is at its start. */
    size_t first = count * low >> CFI_PAGE_SHIFT;
    size_t end = first;
    size_t stride = FIRST_STRIDE;
    if (rows[first].low <= low) {
        for (end += stride; end < count && rows[end].low <= low; end += stride) {
            first = end;
            stride *= 2;
        }
        end = end < count ? end : count;
    } else {
        for (first -= first < stride ? first : stride; rows[first].low > low;
             first -= first < stride ? first : stride) {
            end = first;
            stride *= 2;
        }
    }
    while (end - first > 1) {
        size_t middle = first + (end - first) / 2;
        if (rows[middle].low <= low) {
            first = middle;
        } else {
            end = middle;
        }
    }
    return &rows[first];
}

const struct cfi_rule *cfi_table_find(const struct cfi_table *table, uint64_t vaddr)
{
    uint64_t offset = vaddr - table->base;
    if (offset >> CFI_PAGE_SHIFT >= table->page_count) {
        return &table->rules[0];
    }
    return &table->rules[find_row(table, offset)->rule];
}

static struct cfi_span row_span(const struct cfi_table *table, uint64_t page,
                                const struct cfi_row *row)
{
    uint64_t page_start = table->base + page * CFI_PAGE_BYTES;
    bool is_last = row + 1 == &table->rows[table->pages[page + 1].first_row];
    return (struct cfi_span){
        .start = page_start + row->low,
        .end = page_start + (is_last ? CFI_PAGE_BYTES : row[1].low),
        .rule = &table->rules[row->rule],
        .carried = row->low == 0 && row > table->rows && row[-1].rule == row->rule,
        .row = row,
    };
}

static struct cfi_span span_behind_pages(const struct cfi_table *table)
{
    return (struct cfi_span){.start = table->base + table->page_count * CFI_PAGE_BYTES,
                             .end = UINT64_MAX,
                             .rule = &table->rules[0]};
}

struct cfi_span cfi_table_span(const struct cfi_table *table, uint64_t vaddr)
{
    uint64_t offset = vaddr - table->base;
    uint64_t page = offset >> CFI_PAGE_SHIFT;
    if (vaddr < table->base) {
        return (struct cfi_span){.end = table->base, .rule = &table->rules[0]};
    }
    return page < table->page_count ? row_span(table, page, find_row(table, offset))
                                    : span_behind_pages(table);
}

struct cfi_span cfi_table_span_behind(const struct cfi_table *table, const struct cfi_span *span)
{
    if (span->row == NULL) {
        return cfi_table_span(table, span->end);
    }
    /* Pages have a row each, at least, and lie one behind the other, as their rows do. */
    uint64_t page = (span->end - table->base) >> CFI_PAGE_SHIFT;
    return page < table->page_count ? row_span(table, page, span->row + 1)
                                    : span_behind_pages(table);
}

/* The stretch from `start` on, whose first row has `first`, and the row behind which is `row`. */
static struct cfi_stretch make_stretch(const struct cfi_table *table, uint64_t start, uint8_t first,
                                       uint64_t page, const struct cfi_row *row,
                                       const uint8_t *kinds)
{
    struct cfi_stretch stretch = {.start = start, .first = first, .any = first};
    for (; page < table->page_count; page++) {
        const struct cfi_row *end = &table->rows[table->pages[page + 1].first_row];
        for (; row < end; row++) {
            uint8_t kind = kinds[row->rule];
            if (((kind ^ first) & 1) != 0) {
                stretch.end = table->base + (page << CFI_PAGE_SHIFT) + row->low;
                stretch.page = page;
                stretch.row = row;
                return stretch;
            }
            stretch.any |= kind;
        }
    }
    bool is_alike = ((kinds[0] ^ first) & 1) == 0;
    stretch.any |= is_alike ? kinds[0] : 0;
    stretch.end = is_alike ? UINT64_MAX : table->base + (page << CFI_PAGE_SHIFT);
    stretch.page = page;
    return stretch;
}

struct cfi_stretch cfi_table_stretch(const struct cfi_table *table, uint64_t vaddr,
                                     const uint8_t *kinds)
{
    const struct cfi_span span = cfi_table_span(table, vaddr);
    const uint8_t first = kinds[span.rule - table->rules];
    if (span.row == NULL) {
        uint64_t page = vaddr < table->base ? 0 : table->page_count;
        return make_stretch(table, vaddr, first, page, table->rows, kinds);
    }
    uint64_t page = (span.start - table->base) >> CFI_PAGE_SHIFT;
    return make_stretch(table, vaddr, first, page, span.row + 1, kinds);
}

struct cfi_stretch cfi_table_stretch_behind(const struct cfi_table *table,
                                            const struct cfi_stretch *stretch, const uint8_t *kinds)
{
    if (stretch->page >= table->page_count) {
        return make_stretch(table, stretch->end, kinds[0], table->page_count, NULL, kinds);
    }
    return make_stretch(table, stretch->end, kinds[stretch->row->rule], stretch->page,
                        stretch->row + 1, kinds);
}

bool cfi_table_is_settled(const struct cfi_table *table, uint64_t vaddr)
{
    struct cfi_span span = cfi_table_span(table, vaddr);
    uint64_t start = span.start;
    if (table->lacks_small || span.rule->kind != CFI_NONE || span.end - start > CFI_SMALL_BYTES) {
        return false;
    }
    /* A page that begins amid the stretch has a row of its own there. */
    if (span.carried) {
        start = cfi_table_span(table, start - 1).start;
    }
    struct cfi_span behind = cfi_table_span_behind(table, &span);
    if (behind.carried) {
        span = behind;
        behind = cfi_table_span_behind(table, &span);
    }
    return span.end - start <= CFI_SMALL_BYTES && !cfi_is_padding(start, span.end) &&
           cfi_rule_covers(behind.rule) && start > 0 &&
           cfi_rule_covers(cfi_table_find(table, start - 1));
}

bool cfi_table_vaddr(const struct cfi_table *table, uint64_t file_offset, uint64_t *ret_vaddr)
{
    return segments_vaddr(table->segments, table->segment_count, file_offset, ret_vaddr);
}
