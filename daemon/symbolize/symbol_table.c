/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reads a serialised table. A process without rights wrote it, so no byte of it can be trusted:
 * symbol_table_open() checks once every byte that a lookup follows, and the lookups follow without
 * checks. The caller makes sure that the bytes do not change afterwards (a sealed memfd, or its own
 * memory). Pure; symbol_builder.c is the writer.
 */
#include "segments.h"
#include "symbol_format.h"
#include "utf8.h"

#include <errno.h>
#include <string.h>

/* Nearly all names are ASCII, which goes by words. */
static bool is_utf8(const char *text, size_t bytes)
{
    while (bytes > 0) {
        uint64_t word = 0;
        if (bytes >= sizeof word) {
            memcpy(&word, text, sizeof word);
            if ((word & UINT64_C(0x8080808080808080)) == 0) {
                text += sizeof word;
                bytes -= sizeof word;
                continue;
            }
        }
        size_t sequence = utf8_character(text, bytes, NULL);
        if (sequence == 0) {
            return false;
        }
        text += sequence;
        bytes -= sequence;
    }
    return true;
}

/* Not empty strings of bounded length, all of them ended, all of them UTF-8. */
static bool are_names_valid(const char *names, size_t bytes)
{
    while (bytes > 0) {
        const char *end = memchr(names, '\0', bytes);
        size_t length = end == NULL ? 0 : (size_t)(end - names);
        if (length == 0 || length > SYMBOL_NAME_BYTES_MAX || !is_utf8(names, length)) {
            return false;
        }
        names += length + 1;
        bytes -= length + 1;
    }
    return true;
}

static bool are_symbols_valid(const struct symbol_table *table)
{
    uint64_t previous_end = 0;
    for (size_t i = 0; i < table->symbol_count; i++) {
        const struct symbol *symbol = &table->symbols[i];
        if (symbol->size_bytes == 0 || symbol->start < previous_end ||
            symbol->start > UINT64_MAX - symbol->size_bytes) {
            return false;
        }
        if (symbol->name >= table->names_bytes ||
            (symbol->name > 0 && table->names[symbol->name - 1] != '\0')) {
            return false;
        }
        previous_end = symbol->start + symbol->size_bytes;
    }
    return true;
}

static bool is_header_valid(const struct symbol_header *header, size_t size_bytes)
{
    return header->magic == SYMBOL_FORMAT_MAGIC &&
           header->segment_count <= SYMBOL_TABLE_SEGMENTS_MAX &&
           header->build_id_bytes <= SYMBOL_BUILD_ID_BYTES_MAX &&
           header->symbol_count <= SYMBOL_TABLE_BYTES_MAX / sizeof(struct symbol) &&
           (header->claim_count == 0 || header->claim_count == header->symbol_count) &&
           sizeof *header + header->segment_count * sizeof(struct symbol_segment) +
                   header->symbol_count * sizeof(struct symbol) +
                   header->claim_count * sizeof(uint32_t) + header->names_bytes ==
               size_bytes;
}

int symbol_table_open(const void *bytes, size_t size_bytes, struct symbol_table *ret)
{
    const struct symbol_header *header = bytes;
    if (size_bytes < sizeof *header || size_bytes > SYMBOL_TABLE_BYTES_MAX ||
        (uintptr_t)bytes % 8 != 0 || !is_header_valid(header, size_bytes)) {
        return -EBADMSG;
    }

    struct symbol_table table = {
        .segments = (const struct symbol_segment *)(header + 1),
        .segment_count = header->segment_count,
        .symbol_count = header->symbol_count,
        .names_bytes = header->names_bytes,
        .build_id = header->build_id,
        .build_id_bytes = header->build_id_bytes,
    };
    table.symbols = (const struct symbol *)(table.segments + table.segment_count);
    const uint32_t *claims = (const uint32_t *)(table.symbols + table.symbol_count);
    table.claims = header->claim_count == 0 ? NULL : claims;
    table.names = (const char *)(claims + header->claim_count);
    if (!segments_are_valid(table.segments, table.segment_count) ||
        !are_names_valid(table.names, table.names_bytes) || !are_symbols_valid(&table)) {
        return -EBADMSG;
    }
    *ret = table;
    return 0;
}

ptrdiff_t symbol_table_find(const struct symbol_table *table, uint64_t vaddr)
{
    size_t low = 0;
    size_t high = table->symbol_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (table->symbols[middle].start <= vaddr) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == 0) {
        return -1;
    }
    const struct symbol *symbol = &table->symbols[low - 1];
    return vaddr - symbol->start < symbol->size_bytes ? (ptrdiff_t)(low - 1) : -1;
}

const char *symbol_table_name(const struct symbol_table *table, size_t index)
{
    return table->names + table->symbols[index].name;
}

bool symbol_table_vaddr(const struct symbol_table *table, uint64_t file_offset, uint64_t *ret_vaddr)
{
    return segments_vaddr(table->segments, table->segment_count, file_offset, ret_vaddr);
}
