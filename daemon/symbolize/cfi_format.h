/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How cfi_builder.c and cfi_sweep.c write a table and cfi_table.c reads it; no other file includes
 * this. Behind the header: the segments, the rules, the pages and one more page that ends the last,
 * the rows, without gaps and with nothing after them.
 *
 * A row holds from its address to the next row's. Rows know the lower half of their address only:
 * each page begins with a row of its own, which carries over the rule that is in force, and so
 * costs a module at most four bytes for each 64 KiB of code.
 */

#include "cfi_table.h"

#define CFI_FORMAT_MAGIC UINT64_C(0x3130656d61726663)

#define CFI_PAGE_SHIFT     16
#define CFI_PAGE_BYTES     (UINT64_C(1) << CFI_PAGE_SHIFT)
#define CFI_PAGE_COUNT_MAX ((size_t)65536)
#define CFI_RULE_COUNT_MAX ((size_t)65535)

struct cfi_row {
    uint16_t low; /* of the address, from the page's start */
    uint16_t rule;
};

struct cfi_page {
    uint32_t first_row;
};

struct cfi_header {
    uint64_t magic;
    uint64_t base;
    uint32_t segment_count;
    uint32_t rule_count;
    uint32_t page_count; /* without the one that ends the last */
    uint32_t row_count;
    uint32_t build_id_bytes;
    uint16_t is_32bit;    /* 0 or 1 */
    uint16_t lacks_small; /* 0 or 1 */
    uint8_t build_id[SYMBOL_BUILD_ID_BYTES_MAX];
};

/* No sum of these can wrap: all counts have 32 bits. */
static inline size_t cfi_format_bytes(const struct cfi_header *header)
{
    return sizeof *header + header->segment_count * sizeof(struct symbol_segment) +
           header->rule_count * sizeof(struct cfi_rule) +
           ((size_t)header->page_count + 1) * sizeof(struct cfi_page) +
           header->row_count * sizeof(struct cfi_row);
}

_Static_assert(sizeof(size_t) == 8, "counts of 32 bits cannot wrap it");
_Static_assert(sizeof(struct cfi_header) % 8 == 0, "the segments are aligned");
_Static_assert(sizeof(struct cfi_rule) == 32, "no padding, and pages and rows are aligned");
