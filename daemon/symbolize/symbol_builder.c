/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Collects the functions of one module and writes them as a table. Names are cleaned as they come,
 * so what is kept is what will be written; entries are sorted once, at the end. A barrier is an
 * entry without a name: it ends a sizeless symbol and is never written.
 * The input is foreign and may be made to hurt, which array_sort() withstands.
 */
#include "array.h"
#include "segments.h"
#include "symbol_format.h"
#include "utf8.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BARRIER UINT32_MAX
#define RANK_BARRIER 255
#define REPLACEMENT  "\xef\xbf\xbd"

struct entry {
    uint64_t start;
    uint64_t size_bytes;
    uint32_t name; /* offset into the builder's names, or NAME_BARRIER */
    uint16_t name_bytes;
    uint16_t underscores;
    uint8_t rank;
};

struct symbol_builder {
    struct symbol_header header;
    struct symbol_segment segments[SYMBOL_TABLE_SEGMENTS_MAX];
    struct entry *entries;
    size_t entry_count;
    size_t entry_capacity;
    char *names;
    size_t names_bytes;
    size_t names_capacity;
};

struct symbol_builder *symbol_builder_new(void)
{
    struct symbol_builder *builder = calloc(1, sizeof *builder);
    if (builder != NULL) {
        builder->header.magic = SYMBOL_FORMAT_MAGIC;
    }
    return builder;
}

struct symbol_builder *symbol_builder_free(struct symbol_builder *builder)
{
    if (builder != NULL) {
        free(builder->entries);
        free(builder->names);
        free(builder);
    }
    return NULL;
}

int symbol_builder_segment(struct symbol_builder *builder, const struct symbol_segment *segment)
{
    if (!segment_is_valid(segment)) {
        return 0;
    }
    if (builder->header.segment_count == SYMBOL_TABLE_SEGMENTS_MAX) {
        return -E2BIG;
    }
    builder->segments[builder->header.segment_count++] = *segment;
    return 0;
}

int symbol_builder_build_id(struct symbol_builder *builder, const uint8_t *build_id, size_t bytes)
{
    if (bytes > SYMBOL_BUILD_ID_BYTES_MAX) {
        return -E2BIG;
    }
    memset(builder->header.build_id, 0, sizeof builder->header.build_id);
    memcpy(builder->header.build_id, build_id, bytes);
    builder->header.build_id_bytes = (uint32_t)bytes;
    return 0;
}

static int append_entry(struct symbol_builder *builder, const struct entry *entry)
{
    if (builder->entry_count >= SYMBOL_TABLE_BYTES_MAX / sizeof(struct symbol)) {
        return -E2BIG;
    }
    void *entries = builder->entries;
    int r = array_grow(&entries, &builder->entry_capacity, builder->entry_count + 1, sizeof *entry);
    if (r < 0) {
        return r;
    }
    builder->entries = entries;
    builder->entries[builder->entry_count++] = *entry;
    return 0;
}

/* Copies `name` into `clean` (room for SYMBOL_NAME_BYTES_MAX + 1); gives its length. */
static size_t clean_name(const char *name, char *clean)
{
    size_t left = strnlen(name, SYMBOL_NAME_BYTES_MAX + 1);
    size_t used = 0;
    while (left > 0) {
        size_t sequence = utf8_character(name, left, NULL);
        const char *piece = sequence == 0 ? REPLACEMENT : name;
        size_t piece_bytes = sequence == 0 ? strlen(REPLACEMENT) : sequence;
        if (used + piece_bytes > SYMBOL_NAME_BYTES_MAX) {
            break;
        }
        memcpy(clean + used, piece, piece_bytes);
        used += piece_bytes;
        name += sequence == 0 ? 1 : sequence;
        left -= sequence == 0 ? 1 : sequence;
    }
    clean[used] = '\0';
    return used;
}

int symbol_builder_add(struct symbol_builder *builder, uint64_t start, uint64_t size_bytes,
                       int rank, const char *name)
{
    char clean[SYMBOL_NAME_BYTES_MAX + 1];
    size_t length = clean_name(name, clean);
    if (length == 0) {
        return 0;
    }
    if (builder->names_bytes + length + 1 > SYMBOL_TABLE_BYTES_MAX) {
        return -E2BIG;
    }
    void *names = builder->names;
    int r = array_grow(&names, &builder->names_capacity, builder->names_bytes + length + 1, 1);
    if (r < 0) {
        return r;
    }
    builder->names = names;
    memcpy(builder->names + builder->names_bytes, clean, length + 1);

    r = append_entry(builder, &(struct entry){
                                  .start = start,
                                  .size_bytes = size_bytes,
                                  .name = (uint32_t)builder->names_bytes,
                                  .name_bytes = (uint16_t)length,
                                  .underscores = (uint16_t)strspn(clean, "_"),
                                  .rank = (uint8_t)rank,
                              });
    if (r < 0) {
        return r;
    }
    builder->names_bytes += length + 1;
    return 0;
}

int symbol_builder_barrier(struct symbol_builder *builder, uint64_t address)
{
    return append_entry(
        builder, &(struct entry){.start = address, .name = NAME_BARRIER, .rank = RANK_BARRIER});
}

/* Whether `a` comes before `b`: by address, and at one address the best name first. */
static bool is_before(const void *left, const void *right, const void *userdata)
{
    const struct symbol_builder *builder = userdata;
    const struct entry *a = left;
    const struct entry *b = right;
    if (a->start != b->start) {
        return a->start < b->start;
    }
    if (a->rank != b->rank) {
        return a->rank < b->rank;
    }
    if (a->name == NAME_BARRIER || b->name == NAME_BARRIER) {
        return false;
    }
    if (a->underscores != b->underscores) {
        return a->underscores < b->underscores;
    }
    if (a->name_bytes != b->name_bytes) {
        return a->name_bytes < b->name_bytes;
    }
    int order = memcmp(builder->names + a->name, builder->names + b->name, a->name_bytes);
    return order != 0 ? order < 0 : a->size_bytes > b->size_bytes;
}

static uint64_t add_saturated(uint64_t start, uint64_t bytes)
{
    return start > UINT64_MAX - bytes ? UINT64_MAX : start + bytes;
}

/*
 * Reduces the sorted entries to those that will be written, with their final sizes; gives their
 * count. One step handles the entries of one address: the first is the best name.
 */
static size_t resolve_entries(struct entry *entries, size_t count)
{
    size_t kept = 0;
    uint64_t sized_end = 0; /* how far the functions with a size reach so far */
    for (size_t i = 0, next = 0; i < count; i = next) {
        struct entry best = entries[i];
        uint64_t size = best.size_bytes;
        uint64_t other_size = 0;
        for (next = i; next < count && entries[next].start == best.start; next++) {
            other_size =
                entries[next].size_bytes > other_size ? entries[next].size_bytes : other_size;
        }
        size = size == 0 ? other_size : size;
        if (best.name == NAME_BARRIER || (size == 0 && best.start < sized_end)) {
            continue;
        }

        uint64_t end = add_saturated(best.start, size);
        if (size == 0) {
            uint64_t limit = next < count ? entries[next].start : UINT64_MAX;
            end = add_saturated(best.start, SYMBOL_SIZELESS_BYTES_MAX);
            end = limit < end ? limit : end;
        } else {
            sized_end = end > sized_end ? end : sized_end;
        }
        if (kept > 0 && best.start - entries[kept - 1].start < entries[kept - 1].size_bytes) {
            entries[kept - 1].size_bytes = best.start - entries[kept - 1].start;
        }
        best.size_bytes = end - best.start < UINT32_MAX ? end - best.start : UINT32_MAX;
        if (best.size_bytes > 0) {
            entries[kept++] = best;
        }
    }
    return kept;
}

/* Writes symbols and names; there is room for all of them. */
static void write_symbols(const struct symbol_builder *builder, struct symbol *symbols, char *names)
{
    uint32_t used = 0;
    for (size_t i = 0; i < builder->entry_count; i++) {
        const struct entry *entry = &builder->entries[i];
        symbols[i] = (struct symbol){
            .start = entry->start,
            .size_bytes = (uint32_t)entry->size_bytes,
            .name = used,
        };
        memcpy(names + used, builder->names + entry->name, (size_t)entry->name_bytes + 1);
        used += (uint32_t)entry->name_bytes + 1;
    }
}

int symbol_builder_finish(struct symbol_builder *builder, void **ret_bytes, size_t *ret_size_bytes)
{
    int r = array_sort(builder->entries, builder->entry_count, sizeof *builder->entries, is_before,
                       builder);
    if (r < 0) {
        return r;
    }
    builder->entry_count = resolve_entries(builder->entries, builder->entry_count);

    size_t names_bytes = 0;
    for (size_t i = 0; i < builder->entry_count; i++) {
        names_bytes += (size_t)builder->entries[i].name_bytes + 1;
    }
    size_t segments_bytes = builder->header.segment_count * sizeof(struct symbol_segment);
    size_t symbols_bytes = builder->entry_count * sizeof(struct symbol);
    size_t total = sizeof builder->header + segments_bytes + symbols_bytes + names_bytes;
    if (total > SYMBOL_TABLE_BYTES_MAX) {
        return -E2BIG;
    }
    char *bytes = malloc(total);
    if (bytes == NULL) {
        return -ENOMEM;
    }

    builder->header.symbol_count = (uint32_t)builder->entry_count;
    builder->header.names_bytes = (uint32_t)names_bytes;
    char *segments = bytes + sizeof builder->header;
    memcpy(bytes, &builder->header, sizeof builder->header);
    memcpy(segments, builder->segments, segments_bytes);
    write_symbols(builder, (struct symbol *)(void *)(segments + segments_bytes),
                  segments + segments_bytes + symbols_bytes);
    *ret_bytes = bytes;
    *ret_size_bytes = total;
    return 0;
}
