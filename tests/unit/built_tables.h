/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The way from a builder to a table that is asked, and files in memory to read one from. */

#include "cfi_table.h"
#include "cleanup.h"
#include "symbol_table.h"
#include "unit_test.h"

#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* A table, which is a view of the bytes: cleanup_(free_symbols). */
struct made_symbols {
    struct symbol_table table;
    void *bytes;
};

static inline void free_symbols(struct made_symbols *made)
{
    free(made->bytes);
}

/* Finishes and frees `builder`. */
static inline struct made_symbols finish_symbols(struct symbol_builder *builder)
{
    struct made_symbols made;
    size_t size_bytes = 0;
    assert_int_equal(symbol_builder_finish(builder, &made.bytes, &size_bytes), 0);
    assert_int_equal(symbol_table_open(made.bytes, size_bytes, &made.table), 0);
    symbol_builder_free(builder);
    return made;
}

/* The same with call frames: cleanup_(free_cfi). */
struct made_cfi {
    struct cfi_table table;
    void *bytes;
    size_t size_bytes;
};

static inline void free_cfi(struct made_cfi *made)
{
    free(made->bytes);
}

static inline struct made_cfi finish_cfi(struct cfi_builder *builder)
{
    struct made_cfi made;
    assert_int_equal(cfi_builder_finish(builder, &made.bytes, &made.size_bytes), 0);
    cfi_builder_free(builder);
    assert_int_equal(cfi_table_open(made.bytes, made.size_bytes, &made.table), 0);
    return made;
}

/* The name of an address; "" if it has none. */
static inline const char *symbol_at(const struct symbol_table *table, uint64_t address)
{
    ptrdiff_t index = symbol_table_find(table, address);
    return index < 0 ? "" : symbol_table_name(table, (size_t)index);
}

/* A file in memory, as long as its descriptor is: close it. */
static inline int memory_file(const void *bytes, size_t size_bytes)
{
    int fd = memfd_create("test", MFD_CLOEXEC);
    assert_int_equal(write(fd, bytes, size_bytes), size_bytes);
    return fd;
}

static inline int open_self(void)
{
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

/* This program's own file: free() it. */
static inline uint8_t *read_self(size_t *ret_size)
{
    struct stat status;
    cleanup_(closep) int fd = open_self();
    assert_int_equal(fstat(fd, &status), 0);
    uint8_t *bytes = malloc((size_t)status.st_size);
    assert_int_equal(read(fd, bytes, (size_t)status.st_size), status.st_size);
    *ret_size = (size_t)status.st_size;
    return bytes;
}

static inline int find_libc(struct dl_phdr_info *info, size_t size, void *userdata)
{
    (void)size;
    const char **path = userdata;
    if (strstr(info->dlpi_name, "/libc.so") == NULL) {
        return 0;
    }
    *path = info->dlpi_name;
    return 1;
}

static inline const char *libc_path(void)
{
    const char *path = NULL;
    (void)dl_iterate_phdr(find_libc, &path);
    assert_non_null(path);
    return path;
}
