/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Finds the address of a file offset, and the segment of an address. A module has at most
 * SYMBOL_TABLE_SEGMENTS_MAX segments and nearly always one, so the search is linear. Pure.
 */
#include "segments.h"

#define VADDR_MAX ((uint64_t)1 << 63)

bool segment_is_valid(const struct symbol_segment *segment)
{
    return segment->size_bytes > 0 && segment->offset <= UINT64_MAX - segment->size_bytes &&
           segment->vaddr < VADDR_MAX && segment->size_bytes <= VADDR_MAX - segment->vaddr;
}

bool segments_are_valid(const struct symbol_segment *segments, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!segment_is_valid(&segments[i])) {
            return false;
        }
    }
    return true;
}

bool segments_vaddr(const struct symbol_segment *segments, size_t count, uint64_t file_offset,
                    uint64_t *ret_vaddr)
{
    for (size_t i = 0; i < count; i++) {
        const struct symbol_segment *segment = &segments[i];
        if (file_offset >= segment->offset && file_offset - segment->offset < segment->size_bytes) {
            *ret_vaddr = segment->vaddr + (file_offset - segment->offset);
            return true;
        }
    }
    return false;
}

const struct symbol_segment *segments_find(const struct symbol_segment *segments, size_t count,
                                           uint64_t vaddr)
{
    for (size_t i = 0; i < count; i++) {
        const struct symbol_segment *segment = &segments[i];
        if (vaddr >= segment->vaddr && vaddr - segment->vaddr < segment->size_bytes) {
            return segment;
        }
    }
    return NULL;
}
