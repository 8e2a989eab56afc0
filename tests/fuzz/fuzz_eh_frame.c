/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Any file is refused, or gives a table that cfi_table_open() accepts and that speaks of code only.
 */
#include "cfi_table.h"
#include "code_rows.h"
#include "fuzz_target.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static void check_table(const void *bytes, size_t size_bytes)
{
    struct cfi_table table;
    unsigned __int128 code_bytes = 0;
    if (cfi_table_open(bytes, size_bytes, &table) < 0) {
        abort();
    }
    for (size_t i = 0; i < table.segment_count; i++) {
        code_bytes += table.segments[i].size_bytes;
    }
    if (table.stats.covered_bytes + table.stats.unsupported_bytes > code_bytes) {
        abort();
    }
}

static void read_rows(int fd, enum code_rows_extent extent)
{
    struct cfi_builder *builder = cfi_builder_new();
    void *table = NULL;
    size_t table_bytes = 0;
    if (builder != NULL && code_rows_read(fd, extent, builder) == 0 &&
        cfi_builder_finish(builder, &table, &table_bytes) == 0) {
        check_table(table, table_bytes);
    }
    free(table);
    cfi_builder_free(builder);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd >= 0 && write(fd, bytes, size) == (ssize_t)size) {
        read_rows(fd, CODE_ROWS_OWN);
        read_rows(fd, CODE_ROWS_ALL);
    }
    (void)close(fd);
    return 0;
}
