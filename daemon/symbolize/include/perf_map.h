/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "symbol_table.h"

#include <stdbool.h>

/* A larger map is not read; nor are more than this many functions. */
#define PERF_MAP_BYTES_MAX ((size_t)64 << 20)
#define PERF_MAP_LINES_MAX ((size_t)2 << 20)

/* A file's time of change may be this much earlier than the change. */
#define PERF_MAP_SLACK_NS UINT64_C(1000000000)

/*
 * Each function of the table has a claim: the place of its line in the text. A later line has a
 * higher claim, and equal claims of one text are of one line. The bit says that other lines have
 * claimed some of these addresses, too.
 */
#define PERF_MAP_CLAIM_SHARED (UINT32_C(1) << 31)

/* What was read. The table has it in place of a build-id. */
struct perf_map_state {
    uint64_t text_bytes; /* of whole lines */
    uint64_t text_hash;
    uint64_t known_bytes; /* of the text at the reading before; 0: none, or the text is shorter */
    uint64_t known_hash;  /* of as many bytes of this text */
    int64_t changed_s;    /* st_ctim; both 0 when the file was changed meanwhile */
    int64_t changed_ns;
};

/* The state in a table of perf_map_read(); false: it has none. */
bool perf_map_state(const struct symbol_table *table, struct perf_map_state *ret);

/*
 * Adds the functions of a perf map, a text that a runtime appends a line to for each function that
 * it generates: "START SIZE NAME", both numbers hexadecimal, addresses of the process. Runtimes use
 * addresses again, so where functions overlap, the later line holds. A line of another form, or
 * without an end, is left out.
 *
 * Returns 0; -E2BIG, -ENOMEM.
 */
int perf_map_parse(const char *text, size_t bytes, struct symbol_builder *builder);

/* The same for a file (borrowed), by whose size the builder is limited, and with the state.
 * `known_bytes` is the size of the whole lines at the reading before. Also returns -errno of
 * fstat() and read(). */
int perf_map_read(int fd, size_t known_bytes, struct symbol_builder *builder);
