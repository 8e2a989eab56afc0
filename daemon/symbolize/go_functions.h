/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The table of functions that every Go program carries for its own runtime (.gopclntab), whatever
 * was stripped off it: as Go 1.2, 1.16, 1.18 and 1.20 write it on x86-64, each up to the next. The
 * bytes are foreign; relocations that fall into them have to be applied already.
 */
struct go_functions {
    const uint8_t
        *bytes; /* borrowed: from the table's first one on, and perhaps more than it has */
    size_t size_bytes;
    const struct go_layout *layout;
    uint64_t count;
    uint64_t text;       /* what is added to the addresses in the table; 0 before Go 1.18 */
    bool is_text_needed; /* from Go 1.26 on: it is not in the table, the caller has to set `text` */
    size_t index_offset; /* where the addresses and the places of the functions are, */
    size_t records_offset;
    size_t names_offset;
    size_t names_end; /* the last NUL */
};

struct go_function {
    uint64_t start;   /* an address of the module */
    uint64_t end;     /* of the next function, always more */
    const char *name; /* borrowed */
    bool writes_sp;   /* it sets the stack pointer, as what goes over to another stack does; false
                         before Go 1.17, where this is not known */
};

#define GO_FUNCTIONS_MAGIC_BYTES 8

/* Whether a table can begin here; there have to be GO_FUNCTIONS_MAGIC_BYTES. */
bool go_functions_begin(const void *bytes);

/* Checks the header (bytes borrowed). Returns 0, or -EBADMSG: this is no such table. */
int go_functions_open(const void *bytes, size_t size_bytes, struct go_functions *ret);

/* Where the first function begins and the last one ends, as the table has it: without `text`. */
void go_functions_range(const struct go_functions *table, uint64_t *ret_first, uint64_t *ret_end);

/*
 * Calls for each function that has a name, by rising address in a table that is not broken. What
 * the table says of a function twice must agree; one of which that is not true, or that is empty,
 * is left out. A callback that returns < 0 ends it. Returns 0, or what the callback did.
 */
typedef int (*go_function_fn)(const struct go_function *function, void *userdata);
int go_functions_walk(const struct go_functions *table, go_function_fn on_function, void *userdata);
