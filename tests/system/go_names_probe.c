/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Prints the functions of each file that it is given as the worker would: a line "FILE ADDRESS SIZE
 * NAME" each, numbers in hexadecimal. Exit status 1 when one cannot be read.
 */
#include "elf_symbols.h"

#include "cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int read_table(int fd, void **ret_bytes, struct symbol_table *ret)
{
    size_t size_bytes = 0;
    struct symbol_builder *builder = symbol_builder_new();
    int r = builder == NULL ? -ENOMEM : elf_symbols_read(fd, -1, builder);
    if (r == 0) {
        r = symbol_builder_finish(builder, ret_bytes, &size_bytes);
    }
    symbol_builder_free(builder);
    return r == 0 ? symbol_table_open(*ret_bytes, size_bytes, ret) : r;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        cleanup_(closep) int fd = open(argv[i], O_RDONLY | O_CLOEXEC);
        cleanup_(freep) void *bytes = NULL;
        struct symbol_table table = {0};
        int r = fd < 0 ? -errno : read_table(fd, &bytes, &table);
        if (r < 0) {
            (void)fprintf(stderr, "%s: %s\n", argv[i], strerror(-r));
            return 1;
        }
        for (size_t j = 0; j < table.symbol_count; j++) {
            printf("%s %" PRIx64 " %" PRIx32 " %s\n", argv[i], table.symbols[j].start,
                   table.symbols[j].size_bytes, symbol_table_name(&table, j));
        }
    }
    return 0;
}
