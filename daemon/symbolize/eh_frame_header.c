/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reads .eh_frame_hdr. A table is one of pairs of four bytes, relative to the header, as all
 * linkers write it; another one is none. The file says that the table is in order: in one that is
 * not, a search ends at some entry of it or at none.
 */
#include "eh_frame_header.h"

#include "cleanup.h"
#include "dwarf_cursor.h"

#include <stdlib.h>
#include <string.h>

#define HEADER_BYTES_MAX 24 /* four bytes, the longest pointer and the longest count */
#define TABLE_BYTES_MAX  ((uint64_t)64 << 20)

#define COUNT_ENCODING 0x03 /* DW_EH_PE_udata4 */
#define TABLE_ENCODING 0x3b /* DW_EH_PE_datarel | DW_EH_PE_sdata4 */

/* A pair of the table, as it is written. */
struct pair {
    int32_t function;
    int32_t entry;
};

/* What follows the pointer to .eh_frame. */
static void read_table(struct dwarf_cursor *cursor, const uint8_t encodings[2],
                       const GElf_Phdr *segment, struct eh_frame_header *ret)
{
    uint64_t count = 0;
    uint64_t skipped = cursor->address + 4 - segment->p_vaddr;
    if (encodings[0] == COUNT_ENCODING && encodings[1] == TABLE_ENCODING &&
        dwarf_read_unsigned(cursor, 4, &count) && skipped <= segment->p_filesz &&
        count <= (segment->p_filesz - skipped) / sizeof(struct pair) &&
        count <= TABLE_BYTES_MAX / sizeof(struct pair)) {
        ret->table_offset = segment->p_offset + skipped;
        ret->function_count = count;
    }
}

bool eh_frame_header_read(const struct elf_file *file, struct eh_frame_header *ret)
{
    GElf_Phdr segment;
    uint8_t bytes[HEADER_BYTES_MAX];
    uint8_t version = 0;
    uint8_t encoding = 0;
    uint8_t encodings[2]; /* of the count and of the table */
    *ret = (struct eh_frame_header){0};
    if (!elf_file_segment(file, PT_GNU_EH_FRAME, 0, &segment) ||
        !elf_file_has(file, segment.p_offset, segment.p_filesz)) {
        return false;
    }
    struct dwarf_cursor cursor = {
        .bytes = bytes,
        .left = elf_file_read(file, segment.p_offset, bytes, sizeof bytes),
        .address = segment.p_vaddr,
        .is_32bit = elf_file_machine(file) == ELF_MACHINE_X86_32BIT,
    };
    ret->address = segment.p_vaddr;
    if (!dwarf_read_u8(&cursor, &version) || version != 1 || !dwarf_read_u8(&cursor, &encoding) ||
        !dwarf_read_u8(&cursor, &encodings[0]) || !dwarf_read_u8(&cursor, &encodings[1]) ||
        !dwarf_read_pointer(&cursor, encoding, segment.p_vaddr, &ret->frames_address)) {
        return false;
    }
    read_table(&cursor, encodings, &segment, ret);
    return true;
}

uint8_t *eh_frame_header_table(const struct elf_file *file, const struct eh_frame_header *header)
{
    size_t bytes = header->function_count * sizeof(struct pair);
    cleanup_(freep) uint8_t *table = bytes == 0 ? NULL : malloc(bytes);
    return table == NULL || elf_file_read(file, header->table_offset, table, bytes) < bytes
               ? NULL
               : take_ptr(table);
}

static struct pair pair_at(const uint8_t *table, size_t i)
{
    struct pair pair;
    memcpy(&pair, table + i * sizeof pair, sizeof pair);
    return pair;
}

uint64_t eh_frame_header_find(const struct eh_frame_header *header, const uint8_t *table,
                              uint64_t address)
{
    size_t low = 0;
    size_t high = header->function_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (header->address + (uint64_t)(int64_t)pair_at(table, middle).function <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low == 0 ? 0 : header->address + (uint64_t)(int64_t)pair_at(table, low - 1).entry;
}
