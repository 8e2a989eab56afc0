/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "symbol_table.h"

/* A module's executable segments, as both kinds of table use them. */

/* True when a table may hold the segment: it is not empty, and lies in the lower half of all
 * addresses, where programs are. So no sum of one of its addresses and a size wraps around. */
bool segment_is_valid(const struct symbol_segment *segment);
bool segments_are_valid(const struct symbol_segment *segments, size_t count);

/* The address of a file offset, if one of the segments has it. */
bool segments_vaddr(const struct symbol_segment *segments, size_t count, uint64_t file_offset,
                    uint64_t *ret_vaddr);

/* The segment (borrowed) that holds an address, or NULL. */
const struct symbol_segment *segments_find(const struct symbol_segment *segments, size_t count,
                                           uint64_t vaddr);
