/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The pair of records that says what is mapped where, and the notes that its writers keep of it.
 */

#include "definition_log.h"
#include "trace_symbols.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A definition that stands in the file and may have to be corrected. */
struct shown_mapping {
    int32_t pid;
    uint16_t module_id;
    uint64_t start;
    uint64_t size_bytes;
    uint64_t from_ns;
    uint64_t file_offset;
};

/* The name of a mapping, and the account that pays for it. */
struct definition {
    uint32_t owner;
    enum definition_log_kind kind;
    uint64_t vaddr; /* the module's address of the mapping's start */
    const char *name;
    const uint8_t *build_id;
    size_t build_id_bytes;
};

/* The two records that define a mapping, in one group. False: refused. */
bool trace_definition_write(struct definition_log *log, const struct shown_mapping *shown,
                            const struct definition *definition);

/* The same, of a mapping whose file has been read. */
bool trace_definition_write_scope(struct definition_log *log, const struct shown_mapping *shown,
                                  uint32_t owner, const struct symbol_scope *scope);

/* Makes room for one more element; false when there is no memory or `max` is reached. */
bool trace_notes_grow(void **array, size_t *capacity, size_t count, size_t max,
                      size_t element_bytes);
