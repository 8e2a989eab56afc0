/* SPDX-License-Identifier: Apache-2.0 */

/* Any table is refused, or gives functions with a name of their own and a size. */
#include "fuzz_target.h"
#include "go_functions.h"

#include <stdlib.h>
#include <string.h>

static int on_function(const struct go_function *function, void *userdata)
{
    const struct go_functions *table = userdata;
    const uint8_t *name = (const uint8_t *)function->name;
    size_t at = (size_t)(name - table->bytes);
    if (function->start >= function->end || at >= table->size_bytes || *name == '\0' ||
        memchr(name, '\0', table->size_bytes - at) == NULL) {
        abort();
    }
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct go_functions table;
    uint64_t first = 0;
    uint64_t end = 0;
    if (go_functions_open(bytes, size, &table) == 0) {
        go_functions_range(&table, &first, &end);
        (void)go_functions_walk(&table, on_function, &table);
    }
    return 0;
}
