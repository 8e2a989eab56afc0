/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A tree of stacks as rows: a frame below another row. Stacks that begin alike share their rows. A
 * recording may have millions, so a row takes 8 bytes, and 8 to 16 more to be found by.
 */

#include <stddef.h>
#include <stdint.h>

struct call_node {
    uint32_t parent; /* a row before this one; CALL_NODE_NONE: it is a root */
    uint32_t frame;  /* the caller's number */
};
#define CALL_NODE_NONE UINT32_MAX

/* All zero is empty. */
struct call_nodes {
    struct call_node *rows; /* owned; from 0 upward in the order in which they came */
    size_t capacity;
    size_t count;
    uint32_t *slots; /* owned; 1 + the row, by its hash; 0: free */
    size_t slot_count;
};

void call_nodes_done(struct call_nodes *table);

/* The row with these members, new or not. Returns 0, or -ENOMEM. */
int call_nodes_add(struct call_nodes *table, const struct call_node *node, uint32_t *ret_row);
