/* SPDX-License-Identifier: Apache-2.0 */

/* Any text gives a table that symbol_table_open() accepts, or is refused for its size. */
#include "fuzz_target.h"
#include "perf_map.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct symbol_builder *builder = symbol_builder_new();
    struct symbol_table table;
    void *made = NULL;
    size_t made_bytes = 0;
    if (builder != NULL && perf_map_parse((const char *)bytes, size, builder) == 0 &&
        symbol_builder_finish(builder, &made, &made_bytes) == 0 &&
        symbol_table_open(made, made_bytes, &table) < 0) {
        abort();
    }
    free(made);
    symbol_builder_free(builder);
    return 0;
}
