/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An array of the nodes, and an open-addressing table of their hashes, which is doubled when three
 * quarters of it are taken. A table of texts would take two and a half times as much for each. The
 * hash is seeded, as for all tables that a file fills.
 */
#include "flame_nodes.h"

#include "huge_pages.h"
#include "intern.h"
#include "seeded_hash.h"

#define SLOTS_MIN ((size_t)1024)

void flame_nodes_done(struct flame_nodes *tree)
{
    huge_pages_free(tree->nodes, tree->capacity * sizeof *tree->nodes);
    huge_pages_free(tree->slots, tree->slot_count * sizeof *tree->slots);
    *tree = (struct flame_nodes){0};
}

static uint32_t hash_node(uint32_t parent, uint32_t function)
{
    return (uint32_t)seeded_hash_pair(parent, function);
}

static int double_slots(struct flame_nodes *tree)
{
    size_t count = tree->slot_count == 0 ? SLOTS_MIN : tree->slot_count * 2;
    struct flame_node_slot *slots = huge_pages_new(count * sizeof *slots);
    if (slots == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < tree->slot_count; i++) {
        size_t at = tree->slots[i].hash & (count - 1);
        while (tree->slots[i].node != 0 && slots[at].node != 0) {
            at = (at + 1) & (count - 1);
        }
        if (tree->slots[i].node != 0) {
            slots[at] = tree->slots[i];
        }
    }
    huge_pages_free(tree->slots, tree->slot_count * sizeof *slots);
    tree->slots = slots;
    tree->slot_count = count;
    return 0;
}

static int append(struct flame_nodes *tree, uint32_t parent, uint32_t function)
{
    if (tree->count >= INTERN_NONE ||
        huge_pages_grow(tree->nodes, tree->capacity, tree->count + 1) < 0) {
        return -ENOMEM;
    }
    tree->nodes[tree->count++] = (struct flame_node){parent, function};
    return 0;
}

int flame_nodes_begin(struct flame_nodes *tree)
{
    return tree->count > 0 ? 0 : append(tree, INTERN_NONE, INTERN_NONE);
}

int flame_nodes_add(struct flame_nodes *tree, uint32_t parent, uint32_t function,
                    uint32_t *ret_node)
{
    if (tree->count * 4 >= tree->slot_count * 3 && double_slots(tree) < 0) {
        return -ENOMEM;
    }
    const uint32_t hash = hash_node(parent, function);
    size_t mask = tree->slot_count - 1;
    size_t at = hash & mask;
    for (; tree->slots[at].node != 0; at = (at + 1) & mask) {
        const struct flame_node *node = &tree->nodes[tree->slots[at].node];
        if (tree->slots[at].hash == hash && node->parent == parent && node->function == function) {
            *ret_node = tree->slots[at].node;
            return 0;
        }
    }
    *ret_node = (uint32_t)tree->count;
    int r = append(tree, parent, function);
    if (r == 0) {
        tree->slots[at] = (struct flame_node_slot){hash, *ret_node};
    }
    return r;
}
