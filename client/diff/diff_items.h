/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the samples of several recordings count for: items, which are the same in all of them. Two
 * functions are one item if their names and the last parts of their modules' paths are, so that a
 * program that was built elsewhere is the same.
 */

#include "diff.h"
#include "intern.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Texts are of `texts`; INTERN_NONE where a member does not apply. Its bytes are a key. */
struct diff_item {
    uint32_t parent; /* of a stack: the item that called it */
    uint32_t name;
    uint32_t module;   /* the last part of its path */
    uint32_t build_id; /* of a function that is called by an address */
};

/* All zero is empty. */
struct diff_items {
    enum diff_by by;
    struct intern texts;
    struct intern items; /* struct diff_item */
    uint32_t *paths;     /* owned; of `texts`, by item: of the module as it was met first */
    size_t path_capacity;
    size_t path_count;
};

void diff_items_done(struct diff_items *items);
const struct diff_item *diff_items_get(const struct diff_items *items, uint32_t item);

/* The stacks of one recording: which items each has, once and innermost first. */
struct diff_stacks {
    uint32_t *of_sample; /* owned; a stack */
    size_t *ends;        /* owned; by stack: where its items end, and those of the next begin */
    uint32_t *items;     /* owned; the innermost first */
    size_t stack_count;
    size_t item_count;
    size_t item_capacity;
};

/* Returns 0, or -ENOMEM. Either way diff_stacks_done() releases it. */
int diff_stacks_find(struct diff_items *items, const struct profile *profile,
                     struct diff_stacks *ret);
void diff_stacks_done(struct diff_stacks *stacks);
