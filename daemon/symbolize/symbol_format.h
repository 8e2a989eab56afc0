/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How symbol_builder.c writes a table and symbol_table.c reads it; no other file includes this.
 * Behind the header: the segments, the symbols, their claims, the names, without gaps and with
 * nothing after them.
 */

#include "symbol_table.h"

#define SYMBOL_FORMAT_MAGIC UINT64_C(0x31306c6f626d7973)

struct symbol_header {
    uint64_t magic;
    uint32_t segment_count;
    uint32_t symbol_count;
    uint32_t names_bytes;
    uint32_t build_id_bytes;
    uint32_t claim_count; /* 0, or as many as symbols */
    uint32_t zero;
    uint8_t build_id[SYMBOL_BUILD_ID_BYTES_MAX];
};

_Static_assert(sizeof(struct symbol_header) % 8 == 0, "the segments are aligned");
_Static_assert(sizeof(struct symbol_segment) % 8 == 0, "the symbols are aligned");
_Static_assert(sizeof(struct symbol) == 16, "no padding");
