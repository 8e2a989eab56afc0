/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Stacks put together as a tree: from the root inward, from the leaves outward, or from a function
 * to those that it called, or that called it. A sample counts once, along one path, so of each node
 *
 *     total = ending + cut_samples + the totals of the nodes below it
 *
 * A function that calls itself is a node below itself. The callees of a function are those of its
 * outermost call in a stack, the callers those of its innermost one; so a sample is there once,
 * and a path has all that lies beyond on that side. A stack that does not reach its root has
 * "[truncated]" where its root would be.
 */

#include "profile.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tree_view {
    TREE_FROM_ROOT,
    TREE_FROM_LEAVES,
    TREE_CALLERS, /* of `function` */
    TREE_CALLEES,
};

struct tree_request {
    enum tree_view view;
    const char *function; /* borrowed: a name, or, where no function has it, a glob of names */
    double min_percent;   /* of all samples; nodes with fewer are cut, and counted as cut */
};

/* Texts are the profile's; INTERN_NONE where a member does not apply. */
struct tree_node {
    uint64_t number;   /* of the node: 0, 1, 2 as they come */
    uint64_t parent;   /* its number; of node 0 0 */
    uint32_t depth;    /* 0: all samples of the view */
    uint32_t forks;    /* how many nodes on the way here have siblings that are not cut */
    bool is_forked;    /* this one has */
    bool is_truncated; /* "[truncated]", without any text */
    uint32_t name;     /* as the next, also INTERN_NONE at depth 0 */
    uint32_t module;
    uint32_t build_id; /* of the module, in hex; of a function without a name */
    uint32_t file;
    uint32_t line; /* 0: not known */
    uint64_t total;
    uint64_t ending; /* of them, the path ends here: at the leaf or, outward, at the root */
    uint64_t cut_samples;
    uint64_t cut_count; /* nodes below this one that had too few samples */
};

/* `node` is borrowed for the call. */
typedef void tree_on_node_fn(const struct tree_node *node, void *userdata);

/*
 * Calls `on_node` for all nodes, each before those below it, siblings by total and then by name.
 * Returns 0, -ENOMEM, or TREE_NO_FUNCTION and calls it for none.
 */
#define TREE_NO_FUNCTION 1
int tree_walk(const struct profile *profile, const struct tree_request *request,
              tree_on_node_fn *on_node, void *userdata);

/* Whether nodes outward from leaves or a function's callers are asked for. */
static inline bool tree_is_outward(enum tree_view view)
{
    return view == TREE_FROM_LEAVES || view == TREE_CALLERS;
}

/* "root", "leaves", "callers", "callees". */
const char *tree_view_name(enum tree_view view);
