/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The functions that the recording names, by module (segment, build-id and name) and the module's
 * own addresses. They come as lines of JSON,
 *     {"build_id":"0a1b...","module":"/path","start":4096,"size":32,"name":"main"}
 * in which `start` and `size` are numbers, or above 2^53, where JSON's readers lose digits, texts
 * such as "0xffffffff81000000". First all are added, then the table is sealed, then looked up in.
 */

#include "demangle.h"
#include "intern.h"
#include "recording.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The table knows fewer modules than this. */
#define SYMBOLS_MODULES_MAX (UINT32_C(1) << 30)

struct symbol_entry {
    uint32_t module; /* what symbols_module() gave */
    uint32_t order;
    uint32_t name;  /* number of a text in `texts` */
    uint32_t outer; /* once sealed: the nearest entry before it that ends later, or itself */
    uint32_t jump;  /* an entry that `outer`, once or several times over, leads to */
    uint32_t depth; /* how many entries `outer` leads to */
    uint64_t start;
    uint64_t size_bytes;
};

/* All zero is an empty table. */
struct symbols {
    struct intern modules;        /* segment, colon, build-id, colon, name */
    struct symbol_entry *entries; /* owned */
    size_t capacity;
    size_t count;
    uint64_t malformed_count;   /* lines that could not be read */
    struct demangler demangler; /* of the names; to be set before any is added */
};

void symbols_done(struct symbols *table);

/* Adds the functions in a segment's lines of JSON; names go into `texts`. A line that is malformed
 * is counted; a function of no bytes is passed over. Returns 0, or -ENOMEM. */
int symbols_add_lines(struct symbols *table, struct intern *texts, uint32_t segment,
                      const struct fxt_data *data);
void symbols_seal(struct symbols *table);

/* The number under which the table knows a segment's module, whether it has functions or not.
 * `identity` is its build-id in lower-case hex, a colon, and its name. Returns 0, or -ENOMEM. */
int symbols_module(struct symbols *table, uint32_t segment, const char *identity,
                   uint32_t *ret_module);

/* The number that it has already, or INTERN_NONE. */
uint32_t symbols_find_module(const struct symbols *table, uint32_t segment, const char *build_id,
                             const char *name);

/* The function of a module that holds `address`, or NULL; borrowed. Where two do, the one with the
 * higher start, then the later in the file. */
const struct symbol_entry *symbols_find(const struct symbols *table, uint32_t module,
                                        uint64_t address);

/* Whether the table, once sealed, has any function of the module. */
bool symbols_know(const struct symbols *table, uint32_t module);
