/* SPDX-License-Identifier: Apache-2.0 */

/* Any bytes are refused, or make a table in which every row is found, and none beside the pages.
 * Only what has no row is settled. */
#include "cfi_format.h"
#include "fuzz_target.h"

#include <stdlib.h>
#include <string.h>

static void check_page(const struct cfi_table *table, size_t page)
{
    uint64_t start = table->base + page * CFI_PAGE_BYTES;
    for (size_t i = table->pages[page].first_row; i < table->pages[page + 1].first_row; i++) {
        const struct cfi_rule *rule = &table->rules[table->rows[i].rule];
        bool is_last = i + 1 == table->pages[page + 1].first_row;
        uint64_t end = is_last ? CFI_PAGE_BYTES : table->rows[i + 1].low;
        if (cfi_table_find(table, start + table->rows[i].low) != rule ||
            cfi_table_find(table, start + end - 1) != rule ||
            (rule->kind != CFI_NONE && cfi_table_is_settled(table, start + end - 1))) {
            abort();
        }
        (void)cfi_table_is_settled(table, start + table->rows[i].low);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct cfi_table table;
    uint64_t vaddr = 0;
    uint8_t *aligned = malloc(size + 1);
    if (aligned == NULL) {
        return 0;
    }
    memcpy(aligned, bytes, size);
    if (cfi_table_open(aligned, size, &table) == 0) {
        for (size_t i = 0; i < table.page_count; i++) {
            check_page(&table, i);
        }
        for (size_t i = 0; i < table.segment_count; i++) {
            if (!cfi_table_vaddr(&table, table.segments[i].offset, &vaddr)) {
                abort();
            }
        }
        if (cfi_table_find(&table, table.base - 1)->kind != CFI_NONE ||
            cfi_table_find(&table, UINT64_MAX)->kind != CFI_NONE ||
            cfi_table_is_settled(&table, 0) || cfi_table_is_settled(&table, UINT64_MAX)) {
            abort();
        }
    }
    free(aligned);
    return 0;
}
