/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A sweep over the runs by address. A run's first piece is its rank: where runs overlap, the lowest
 * rank wins. Runs that reach the current address wait in a heap. A piece that was written, or that
 * a better run covers, is removed from its run, so the sweep visits each piece once, and ranks keep
 * their order: all pieces of a run were added before those of the next. Where there is no run, the
 * rows of the settled table are copied.
 *
 * The runs are of foreign files: no order of them costs more than n log n.
 */
#include "cfi_sweep.h"

#include "array.h"
#include "extremes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Makes room for more rows. The builder refuses what the last growth allows beyond the limit. */
static int grow_rows(struct cfi_sweep *sweep, size_t count)
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

static inline int append_row(struct cfi_sweep *sweep, uint16_t low, uint16_t rule)
{
    int r = sweep->row_count == sweep->row_capacity ? grow_rows(sweep, 1) : 0;
    if (r == 0) {
        sweep->rows[sweep->row_count++] = (struct cfi_row){low, rule};
    }
    return r;
}

/* Says where the next page begins, and the last one ends. */
static int note_page(struct cfi_sweep *sweep)
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
static int append_page(struct cfi_sweep *sweep, uint16_t rule)
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

static uint16_t current_rule(const struct cfi_sweep *sweep)
{
    return sweep->row_count == 0 ? CFI_SWEEP_RULE_NONE : sweep->rows[sweep->row_count - 1].rule;
}

/* Carries the rule in force over to every page that begins before `address`. */
static inline int carry_over(struct cfi_sweep *sweep, uint64_t address)
{
    uint64_t wanted = (address - sweep->base + CFI_PAGE_BYTES - 1) >> CFI_PAGE_SHIFT;
    int r = 0;
    while (r == 0 && sweep->page_count < wanted) {
        r = append_page(sweep, current_rule(sweep));
    }
    return r;
}

/* From `address` on, and up to the next call, this rule holds. */
static inline int write_row(struct cfi_sweep *sweep, uint64_t address, uint16_t rule)
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
static void consume(struct cfi_sweep *sweep, struct cfi_run *run, uint64_t bytes)
{
    struct cfi_piece *piece = &sweep->pieces[run->first_piece];
    piece->size_bytes -= (uint32_t)bytes;
    run->first_piece += piece->size_bytes == 0;
    run->start += bytes;
    run->size_bytes -= (uint32_t)bytes;
}

/* Writes the best waiting run from `*at` on, up to its end or to `limit`, where another begins. */
static int write_best(struct cfi_sweep *sweep, uint64_t limit, uint64_t *at)
{
    struct cfi_run *run = &sweep->runs[sweep->waiting.entries[0].number];
    while (run->size_bytes > 0 && run->start < *at) {
        consume(sweep, run, min_u64(sweep->pieces[run->first_piece].size_bytes, *at - run->start));
    }
    while (run->size_bytes > 0 && *at < limit) {
        const struct cfi_piece *piece = &sweep->pieces[run->first_piece];
        uint64_t bytes = min_u64(piece->size_bytes, limit - *at);
        int r = write_row(sweep, *at, piece->rule);
        if (r < 0) {
            return r;
        }
        consume(sweep, run, bytes);
        *at += bytes;
    }
    if (run->size_bytes == 0) {
        heap_pop(&sweep->waiting);
    }
    return 0;
}

static int copy_rows(struct cfi_sweep *sweep, const struct cfi_row *rows, size_t count)
{
    int r = grow_rows(sweep, count);
    if (r == 0) {
        memcpy(&sweep->rows[sweep->row_count], rows, count * sizeof *rows);
        sweep->row_count += count;
    }
    return r;
}

/* Copies what the settled table says of `*at` up to `limit`, page by page. */
static int write_settled(struct cfi_sweep *sweep, uint64_t limit, uint64_t *at)
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

static int write_runs(struct cfi_sweep *sweep)
{
    const struct cfi_table *settled = sweep->settled;
    uint64_t settled_end = settled->base + settled->page_count * CFI_PAGE_BYTES;
    uint64_t at = sweep->run_count == 0 ? settled->base : sweep->runs[0].start;
    at = settled->page_count == 0 ? at : min_u64(at, settled->base);
    sweep->base = at & ~(CFI_PAGE_BYTES - 1);
    size_t next = 0;
    int r = 0;
    while (r == 0 && (next < sweep->run_count || sweep->waiting.count > 0)) {
        if (sweep->waiting.count == 0) {
            r = write_settled(sweep, sweep->runs[next].start, &at);
        }
        while (next < sweep->run_count && sweep->runs[next].start <= at) {
            heap_push(&sweep->waiting, sweep->runs[next].first_piece, (uint32_t)next);
            next++;
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
        r = write_row(sweep, at, CFI_SWEEP_RULE_NONE);
    }
    return r < 0 ? r : note_page(sweep);
}

int cfi_sweep_run(struct cfi_sweep *sweep)
{
    int r = heap_init(&sweep->waiting, sweep->run_count);
    if (r < 0) {
        return r;
    }
    r = array_sort_by_number(sweep->runs, sweep->run_count, sizeof *sweep->runs, NULL, NULL);
    return r < 0 ? r : write_runs(sweep);
}

void cfi_sweep_done(struct cfi_sweep *sweep)
{
    heap_done(&sweep->waiting);
    free(sweep->rows);
    free(sweep->pages);
}
