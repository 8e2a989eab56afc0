/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Walks ELF notes: three words (name size, descriptor size, type), the name, the descriptor, both
 * padded. The bytes are foreign: each step is checked against the bytes that are left, and a note
 * that does not fit ends the walk. Pure.
 */
#include "build_id.h"

#include "symbol_table.h"

#include <elf.h>
#include <string.h>

/* How many of `left` bytes a field of `bytes` takes with its padding; more than `left`: broken. */
static size_t padded(uint32_t bytes, size_t align)
{
    return ((size_t)bytes + align - 1) & ~(align - 1);
}

bool build_id_find(const uint8_t *notes, size_t bytes, uint64_t align, const uint8_t **ret_id,
                   size_t *ret_id_bytes)
{
    static const char gnu[] = "GNU";
    size_t padding = align == 8 ? 8 : 4;
    while (bytes >= sizeof(Elf64_Nhdr)) {
        Elf64_Nhdr header; /* the same words in both classes */
        memcpy(&header, notes, sizeof header);
        notes += sizeof header;
        bytes -= sizeof header;

        size_t name_bytes = padded(header.n_namesz, 4);
        if (padding == 8) {
            name_bytes = padded(header.n_namesz + (uint32_t)sizeof header, 8) - sizeof header;
        }
        if (header.n_namesz > bytes || name_bytes > bytes || header.n_descsz > bytes - name_bytes) {
            return false;
        }
        const uint8_t *description = notes + name_bytes;
        if (header.n_type == NT_GNU_BUILD_ID && header.n_namesz == sizeof gnu &&
            memcmp(notes, gnu, sizeof gnu) == 0 && header.n_descsz > 0 &&
            header.n_descsz <= SYMBOL_BUILD_ID_BYTES_MAX) {
            *ret_id = description;
            *ret_id_bytes = header.n_descsz;
            return true;
        }

        size_t step = name_bytes + padded(header.n_descsz, padding);
        if (step > bytes) {
            return false;
        }
        notes += step;
        bytes -= step;
    }
    return false;
}
