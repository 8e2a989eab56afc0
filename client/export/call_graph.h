/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What functions cost, and which called which: what samples stand for. A function is a name in a
 * file of a module. Of a call that stands several times in one stack each sample counts once.
 */

#include "profile.h"

#include <stddef.h>
#include <stdint.h>

/* INTERN_NONE where a member is not known. The function without a name stands for the callers that
 * truncated stacks lack. */
struct graph_function {
    uint32_t name;   /* of the profile's `texts`, as `file` */
    uint32_t file;   /* the source's */
    uint32_t module; /* of the profile's `modules` */
};

struct graph_place {
    uint32_t function; /* of `functions` */
    uint32_t line;
};

struct graph_call {
    struct graph_place from;
    uint32_t callee; /* of `functions` */
};

/* All zero is an empty graph. */
struct call_graph {
    const struct profile *profile; /* borrowed */
    struct intern functions;       /* struct graph_function */
    struct intern places;          /* struct graph_place */
    struct intern calls;           /* struct graph_call */
    uint32_t *function_of;         /* owned; by frame of the profile */
    uint64_t *self;                /* owned; by item of `places` */
    size_t self_capacity;
    uint64_t *inclusive; /* owned; by item of `calls` */
    size_t inclusive_capacity;
    uint64_t *seen; /* owned; by item of `calls`: the number of the last stack that had it */
    size_t seen_capacity;
};

/* `graph` is all zero. Returns 0, or -ENOMEM. */
int call_graph_build(struct call_graph *graph, const struct profile *profile);
void call_graph_done(struct call_graph *graph);

const struct graph_function *call_graph_function(const struct call_graph *graph, uint32_t item);
const struct graph_place *call_graph_place(const struct call_graph *graph, uint32_t item);
const struct graph_call *call_graph_call(const struct call_graph *graph, uint32_t item);
