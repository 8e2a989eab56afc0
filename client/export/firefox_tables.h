/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The tables that all threads of a Firefox profile share: strings, functions, frames, and the tree
 * of stacks. Each row is made when a stack first needs it. Strings are the profile's `texts` under
 * the same numbers, and two more behind them.
 */

#include "call_nodes.h"
#include "json_out.h"
#include "locations.h"

#include <stddef.h>
#include <stdint.h>

/* Categories, by their place in meta.categories. */
enum firefox_category {
    FIREFOX_OTHER,
    FIREFOX_USER,
    FIREFOX_KERNEL,
    FIREFOX_MADE
};

struct firefox_tables {
    const struct profile *profile; /* borrowed */
    struct locations locations;    /* without its stacks */
    struct chain_keys stacks;      /* what a sample's stack depends on */
    uint32_t *node_of;             /* owned; by item of `stacks`: its row */
    size_t node_of_capacity;
    struct intern functions; /* struct firefox_function */
    struct intern frames;    /* struct firefox_frame */
    struct call_nodes nodes; /* of frames */
    struct intern sources;   /* uint32_t: texts */
    uint32_t *frame_of; /* owned; by location of one frame: its row; INTERN_NONE: not made yet */
    size_t frame_of_capacity;
    size_t frame_of_count;
};

void firefox_tables_done(struct firefox_tables *tables);

/* The row of the stack table that is a sample's stack. Returns 0, or -ENOMEM. */
int firefox_tables_add(struct firefox_tables *tables, const struct profile_sample *sample,
                       uint32_t *ret_node);

/* The same for the stack of the one frame "[lost]". */
int firefox_tables_add_lost(struct firefox_tables *tables, uint32_t *ret_node);

/* Prints the member "shared", and "libs" before it. */
void firefox_tables_print(const struct firefox_tables *tables, struct json_out *out);
