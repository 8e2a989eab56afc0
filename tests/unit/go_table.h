/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Tables of functions as Go's linker writes them, made by hand after the descriptions of each
 * version. Parts that no reader of names needs are left out.
 */

#include "unit_test.h"

#include <stdbool.h>
#include <string.h>

#define GO_TABLE_BYTES_MAX 2048
#define GO_TABLE_HOLE      UINT32_MAX /* for the place of a record that is nowhere */

enum go_version {
    GO_1_2,
    GO_1_16,
    GO_1_18,
    GO_1_20,
    GO_VERSIONS
};

struct go_table_function {
    uint64_t start;   /* from the beginning of the text */
    const char *name; /* NULL: there is a hole here */
    uint8_t flags;
};

/* What is made, and where its parts came to lie. */
struct go_table {
    uint8_t bytes[GO_TABLE_BYTES_MAX];
    size_t size_bytes;
    size_t index;        /* of the functions */
    size_t records;      /* what their places count from, */
    size_t first_record; /* where the first one is, */
    size_t record_bytes; /* and each after another */
    size_t names;
    size_t field_bytes;
};

static inline void go_table_put(struct go_table *table, size_t at, uint64_t value, size_t bytes)
{
    assert_true(at <= sizeof table->bytes - bytes);
    memcpy(table->bytes + at, &value, bytes);
    table->size_bytes = at + bytes > table->size_bytes ? at + bytes : table->size_bytes;
}

static inline void go_table_header(struct go_table *table, enum go_version version, uint64_t count,
                                   uint64_t text)
{
    static const uint32_t magics[GO_VERSIONS] = {0xfffffffb, 0xfffffffa, 0xfffffff0, 0xfffffff1};
    size_t at = 8;
    go_table_put(table, 0, magics[version], 4);
    go_table_put(table, 4, 0x08010000, 4);
    go_table_put(table, at, count, 8);
    if (version == GO_1_2) {
        return;
    }
    go_table_put(table, at += 8, 1, 8); /* files */
    if (version >= GO_1_18) {
        go_table_put(table, at += 8, text, 8);
    }
    go_table_put(table, at += 8, table->names, 8);
    for (int i = 0; i < 3; i++) {
        go_table_put(table, at += 8, 0, 8); /* units, files, lines */
    }
    go_table_put(table, at + 8, table->records, 8);
}

/* A table of functions by rising address; the last one ends at `end`. */
static inline struct go_table go_table_make(enum go_version version,
                                            const struct go_table_function *functions, size_t count,
                                            uint64_t end, uint64_t text)
{
    static const size_t record_bytes[GO_VERSIONS] = {40, 44, 40, 44};
    static const size_t flags_at[GO_VERSIONS] = {0, 41, 37, 41};
    struct go_table table = {
        .field_bytes = version < GO_1_18 ? 8 : 4,
        .record_bytes = record_bytes[version],
        .names = version == GO_1_2 ? 0 : 96,
    };
    uint64_t base = version < GO_1_18 ? text : 0; /* the older ones have whole addresses */
    size_t name = 400;
    table.records = version == GO_1_2 ? 0 : 800;
    table.index = version == GO_1_2 ? 16 : table.records;
    table.first_record = 1200;
    go_table_header(&table, version, count, text);
    for (size_t i = 0; i < count; i++) {
        size_t record = table.first_record + i * table.record_bytes;
        size_t entry = table.index + 2 * i * table.field_bytes;
        bool is_hole = functions[i].name == NULL;
        go_table_put(&table, entry, base + functions[i].start, table.field_bytes);
        go_table_put(&table, entry + table.field_bytes,
                     is_hole ? GO_TABLE_HOLE : record - table.records, table.field_bytes);
        go_table_put(&table, record, base + functions[i].start, table.field_bytes);
        go_table_put(&table, record + table.field_bytes, name - table.names, 4);
        if (flags_at[version] > 0) {
            go_table_put(&table, record + flags_at[version], functions[i].flags, 1);
        }
        go_table_put(&table, record + table.record_bytes - 1, 0, 1);
        for (const char *text_at = is_hole ? "" : functions[i].name; *text_at != '\0'; text_at++) {
            go_table_put(&table, name++, (uint8_t)*text_at, 1);
        }
        go_table_put(&table, name++, 0, 1);
    }
    assert_true(name <= 800 && (2 * count + 1) * table.field_bytes <= 384);
    go_table_put(&table, table.index + 2 * count * table.field_bytes, base + end,
                 table.field_bytes);
    return table;
}
