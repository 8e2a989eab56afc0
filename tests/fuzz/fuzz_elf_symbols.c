/* SPDX-License-Identifier: Apache-2.0 */

/* Any file is refused, or gives a table that symbol_table_open() accepts. */
#include "elf_symbols.h"
#include "fuzz_target.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static void read_file(int fd)
{
    struct symbol_builder *builder = symbol_builder_new();
    struct symbol_table table;
    void *bytes = NULL;
    size_t size_bytes = 0;
    if (builder != NULL && elf_symbols_read(fd, -1, builder) == 0 &&
        symbol_builder_finish(builder, &bytes, &size_bytes) == 0 &&
        symbol_table_open(bytes, size_bytes, &table) < 0) {
        abort();
    }
    free(bytes);
    symbol_builder_free(builder);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0) {
        return 0;
    }
    if (write(fd, bytes, size) == (ssize_t)size) {
        read_file(fd);
    }
    (void)close(fd);
    return 0;
}
