/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What debugging information says of the addresses of a recording: which functions were inlined
 * there, and the lines. With `is_wanted`, resolve_samples() adds
 * the addresses of samples; the reader of debugging information gives them chains; then
 * resolve_samples() makes frames of these. Else it is empty.
 */

#include "intern.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct inline_address {
    uint64_t vaddr;  /* the module's own; of a caller one less than where it goes on */
    uint32_t module; /* of the profile */
    uint32_t zero;
};

/* INTERN_NONE and 0 where a member is not known. */
struct inline_frame {
    uint32_t name; /* of the profile's `texts`, as both that follow */
    uint32_t file;
    uint32_t line;
};

/* What is known of a module's debugging information. */
enum inlines_source {
    INLINES_NOT_ASKED, /* not looked for */
    INLINES_FOUND,
    INLINES_NO_BUILD_ID, /* the recording has no build-id of the module, so no file is known as its
                          */
    INLINES_NO_FILE,
    INLINES_BROKEN, /* it cannot be read */
};

/* The innermost function first, the one that the others were inlined into last. */
struct inline_chain {
    uint32_t first; /* of `frames` */
    uint32_t count; /* 0: nothing is known */
};

/* All zero is an empty table. */
struct inlines {
    bool is_wanted;
    bool has_lines;              /* else no frame has a file or a line */
    struct intern addresses;     /* struct inline_address */
    struct inline_chain *chains; /* owned; by item of `addresses` */
    size_t chain_capacity;
    size_t chain_count;
    struct inline_frame *frames; /* owned */
    size_t frame_capacity;
    size_t frame_count;
};

void inlines_done(struct inlines *table);

/* Adds an address of which nothing is known yet, if it is new. Returns 0, or -ENOMEM. */
int inlines_add(struct inlines *table, uint32_t module, uint64_t vaddr);

/* The chain of an address; NULL and 0 where nothing is known. Borrowed. */
const struct inline_frame *inlines_find(const struct inlines *table, uint32_t module,
                                        uint64_t vaddr, size_t *ret_count);
