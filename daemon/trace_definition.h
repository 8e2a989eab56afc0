/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The pair of records that says what is mapped where, and the notes that its writers keep of it.
 */

#include "trace_buffer.h"

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

/* The two records that define a mapping, in one group; `vaddr` is the module's address of its
 * start. False: no room. */
bool trace_definition_write(struct trace_buffer *buffer, const struct shown_mapping *shown,
                            uint64_t vaddr, const char *name, const uint8_t *build_id,
                            size_t build_id_bytes);

/* Makes room for one more element; false when there is no memory or `max` is reached. */
bool trace_notes_grow(void **array, size_t *capacity, size_t count, size_t max,
                      size_t element_bytes);
