/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Addresses in files of which the recording names no function. Resolving adds them; a reader of
 * the files says which function has each, and when samples are resolved again each such
 * function is one frame instead of one for each address.
 */

#include "inlines.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Its code, by the module's own addresses. */
struct unnamed_function {
    uint64_t start;
    uint64_t end; /* not above `start` where none is known */
};

/* All zero is an empty table. */
struct unnamed {
    struct intern addresses;            /* struct inline_address */
    struct unnamed_function *functions; /* owned; by item of `addresses` */
    size_t capacity;
};

void unnamed_done(struct unnamed *table);

/* Adds an address, if it is new. `*ret` is the function that has it (borrowed), or NULL: none is
 * known yet. Returns 0, or -ENOMEM. */
int unnamed_add(struct unnamed *table, uint32_t module, uint64_t vaddr,
                const struct unnamed_function **ret);

/* The function that has an address, or NULL where none is known. Borrowed. */
const struct unnamed_function *unnamed_find(const struct unnamed *table, uint32_t module,
                                            uint64_t vaddr);

/* Whether a frame is called by its module's `basename` and an address, for want of a name. */
static inline bool unnamed_is_name(const char *name, const char *basename)
{
    size_t basename_bytes = strlen(basename);
    return strncmp(name, basename, basename_bytes) == 0 &&
           strncmp(name + basename_bytes, "+0x", 3) == 0;
}
