/* SPDX-License-Identifier: Apache-2.0 */

/* Any bytes are refused, or make a table in which every lookup stays inside and agrees with it. */
#include "fuzz_target.h"
#include "symbol_table.h"

#include <stdlib.h>
#include <string.h>

static volatile uint32_t claims_sum; /* so that each is read */

static void check_symbol(const struct symbol_table *table, size_t i)
{
    const struct symbol *symbol = &table->symbols[i];
    size_t left = table->names_bytes - symbol->name;
    if (symbol_table_find(table, symbol->start) != (ptrdiff_t)i ||
        symbol_table_find(table, symbol->start + symbol->size_bytes - 1) != (ptrdiff_t)i ||
        strnlen(symbol_table_name(table, i), left) >= left) {
        abort();
    }
    if (table->claims != NULL) {
        claims_sum += table->claims[i];
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct symbol_table table;
    uint64_t vaddr = 0;
    uint8_t *aligned = malloc(size + 1);
    if (aligned == NULL) {
        return 0;
    }
    memcpy(aligned, bytes, size);
    if (symbol_table_open(aligned, size, &table) == 0) {
        for (size_t i = 0; i < table.symbol_count; i++) {
            check_symbol(&table, i);
        }
        for (size_t i = 0; i < table.segment_count; i++) {
            if (!symbol_table_vaddr(&table, table.segments[i].offset, &vaddr)) {
                abort();
            }
        }
        (void)symbol_table_find(&table, 0);
        (void)symbol_table_find(&table, UINT64_MAX);
    }
    free(aligned);
    return 0;
}
