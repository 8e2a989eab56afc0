/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * From the runs that cfi_builder.c has collected to the rows of a table. Where runs overlap, the
 * piece that was added first wins.
 */

#include "cfi_format.h"
#include "heap.h"

/* The number of the rule that says nothing. */
#define CFI_SWEEP_RULE_NONE 0

struct cfi_piece {
    uint32_t size_bytes;
    uint16_t rule; /* its number */
};

/* Pieces one behind the other, without a gap. */
struct cfi_run {
    uint64_t start;       /* first: they are sorted by it */
    uint32_t size_bytes;  /* the sum of its pieces */
    uint32_t first_piece; /* rising in the order of insertion */
};

struct cfi_sweep {
    struct cfi_run *runs; /* borrowed, in any order, and used up, as are their pieces */
    size_t run_count;
    struct cfi_piece *pieces;
    const struct cfi_table *settled; /* borrowed; rows for where there is no run. Its rules have the
                                        same numbers */
    uint64_t base;                   /* set, and all that follows */
    struct cfi_page *pages;          /* owned; and one more, which ends the last */
    size_t page_count;
    size_t page_capacity;
    struct cfi_row *rows; /* owned */
    size_t row_count;
    size_t row_capacity;
    struct heap waiting; /* of cfi_sweep.c: the runs that reach where it is */
};

/* Makes the rows. Returns 0, -ENOMEM, or -E2BIG: more than a table holds. In any case, release with
 * cfi_sweep_done(). */
int cfi_sweep_run(struct cfi_sweep *sweep);
void cfi_sweep_done(struct cfi_sweep *sweep);
