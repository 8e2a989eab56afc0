/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A flat table of the functions of one module that two processes can share: the worker builds it;
 * the daemon checks every offset once and then only looks symbols up. Addresses are the module's
 * own (ELF) addresses. The layout is private to one build of the program and is never stored.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SYMBOL_TABLE_BYTES_MAX    ((size_t)128 << 20)
#define SYMBOL_TABLE_SPARE_BYTES  ((size_t)64 << 10)
#define SYMBOL_TABLE_SEGMENTS_MAX 64
#define SYMBOL_NAME_BYTES_MAX     4096
#define SYMBOL_BUILD_ID_BYTES_MAX 64

/* The bytes that the table of a file of this size may have. A symbol is smaller in the table than
 * in the file, and its name as long, so twice the file's size is more than any linker's output
 * needs. */
static inline size_t symbol_table_limit(uint64_t file_bytes)
{
    return file_bytes < (SYMBOL_TABLE_BYTES_MAX - SYMBOL_TABLE_SPARE_BYTES) / 2
               ? (size_t)file_bytes * 2 + SYMBOL_TABLE_SPARE_BYTES
               : SYMBOL_TABLE_BYTES_MAX;
}

/* An executable PT_LOAD: file bytes [offset, offset + size) are at [vaddr, vaddr + size). */
struct symbol_segment {
    uint64_t offset;
    uint64_t vaddr;
    uint64_t size_bytes;
};

struct symbol {
    uint64_t start;
    uint32_t size_bytes; /* never 0, and no symbol reaches into the next one */
    uint32_t name;       /* offset into the names; several may share one */
};

struct symbol_table {
    const struct symbol *symbols; /* symbol_count, by rising start */
    size_t symbol_count;
    const uint32_t *claims; /* of a perf map (perf_map.h): one for each symbol; else NULL */
    const struct symbol_segment *segments;
    size_t segment_count;
    const char *names; /* NUL-terminated valid UTF-8 strings */
    size_t names_bytes;
    const uint8_t *build_id; /* as found in the file; build_id_bytes 0: it has none */
    size_t build_id_bytes;
};

/*
 * Makes `ret` a view of serialised bytes (borrowed, 8-byte aligned), after checking all of them:
 * sizes, order, overlaps, every name's offset and end. Returns 0, or -EBADMSG.
 */
int symbol_table_open(const void *bytes, size_t size_bytes, struct symbol_table *ret);

/* The symbol that holds `vaddr`, as an index, or -1. */
ptrdiff_t symbol_table_find(const struct symbol_table *table, uint64_t vaddr);
const char *symbol_table_name(const struct symbol_table *table, size_t index);

/* The module's address of a file offset, if an executable segment has it. */
bool symbol_table_vaddr(const struct symbol_table *table, uint64_t file_offset,
                        uint64_t *ret_vaddr);

/*
 * Collects symbols and serialises them: sorts, picks one name for each address (of a known size
 * before sizeless, global before weak before local before a label, then the one with fewer leading
 * underscores, then the shorter, then alphabetical), cuts what overlaps, gives sizeless ones the
 * room to the next (at most SYMBOL_SIZELESS_BYTES_MAX), makes names valid UTF-8 (U+FFFD) of at most
 * SYMBOL_NAME_BYTES_MAX. A sizeless symbol inside one that has a size is a label of that one and
 * goes. Equal names are mostly kept once. All returns: 0, -ENOMEM, or -E2BIG past the builder's
 * limit or another of the table.
 */
#define SYMBOL_SIZELESS_BYTES_MAX ((uint64_t)65536)

struct symbol_builder;
struct symbol_builder *symbol_builder_new(void);
struct symbol_builder *symbol_builder_free(struct symbol_builder *builder);
/* What it takes from a file of this size, and gives, stays below symbol_table_limit(). Before this,
 * the limit is SYMBOL_TABLE_BYTES_MAX. */
void symbol_builder_limit(struct symbol_builder *builder, uint64_t file_bytes);
/* An empty segment, or one that wraps around the end of the address space, is left out. */
int symbol_builder_segment(struct symbol_builder *builder, const struct symbol_segment *segment);
int symbol_builder_build_id(struct symbol_builder *builder, const uint8_t *build_id, size_t bytes);
/* `rank` is lower for better names: 0 global, 1 weak, 2 local, 3 no function. `size_bytes` 0:
 * unknown. An empty name is left out. */
int symbol_builder_add(struct symbol_builder *builder, uint64_t start, uint64_t size_bytes,
                       int rank, const char *name);
/* The claim of what is added from now on. A table has claims if this has been called. */
void symbol_builder_claim(struct symbol_builder *builder, uint32_t claim);
/* Something that is no function begins or ends here: no sizeless symbol reaches over it. */
int symbol_builder_barrier(struct symbol_builder *builder, uint64_t address);
/* A function without a name: it has that of another symbol at `start`, with its size if that has
 * none, and otherwise no name, not even of a symbol before it or of a label within it. */
int symbol_builder_nameless(struct symbol_builder *builder, uint64_t start, uint64_t size_bytes);
/* Returned bytes: release with free(). */
int symbol_builder_finish(struct symbol_builder *builder, void **ret_bytes, size_t *ret_size_bytes);
