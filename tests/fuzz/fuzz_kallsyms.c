/* SPDX-License-Identifier: Apache-2.0 */

/* Any text is refused, or gives a table that symbol_table_open() accepts, without an address 0. */
#include "fuzz_target.h"
#include "kallsyms.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct symbol_builder *builder = symbol_builder_new();
    struct symbol_table table;
    void *serialised = NULL;
    size_t serialised_bytes = 0;
    if (builder != NULL && kallsyms_parse((const char *)bytes, size, builder) == 0 &&
        symbol_builder_finish(builder, &serialised, &serialised_bytes) == 0 &&
        (symbol_table_open(serialised, serialised_bytes, &table) < 0 ||
         symbol_table_find(&table, 0) >= 0)) {
        abort();
    }
    free(serialised);
    symbol_builder_free(builder);
    return 0;
}
