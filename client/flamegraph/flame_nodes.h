/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The tree of all stacks: millions of nodes, each of which is known by its parent and its function.
 */

#include <stddef.h>
#include <stdint.h>

/* Nodes stand behind their parents, and new ones in the order of the samples. Node 0 is the root,
 * which has no function. */
struct flame_node {
    uint32_t parent;
    uint32_t function;
};

/* Which node has the hash. */
struct flame_node_slot {
    uint32_t hash;
    uint32_t node; /* 0, which is the root, and never looked for: the slot is free */
};

/* All zero is a tree without a root. */
struct flame_nodes {
    struct flame_node *nodes; /* owned */
    size_t capacity;
    size_t count;
    struct flame_node_slot *slots; /* owned */
    size_t slot_count;
};

void flame_nodes_done(struct flame_nodes *tree);

/* Makes the root. Returns 0, or -ENOMEM. */
int flame_nodes_begin(struct flame_nodes *tree);

/* The node of a function below another one, made when it is first met. Returns 0, or -ENOMEM. */
int flame_nodes_add(struct flame_nodes *tree, uint32_t parent, uint32_t function,
                    uint32_t *ret_node);
