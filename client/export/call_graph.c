/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Counts a profile's stacks into a graph of calls. Samples are counted by stack first, so each
 * different stack is walked once, however many samples have it.
 */
#include "call_graph.h"

#include "cleanup.h"
#include "grow.h"

#include <stdbool.h>

void call_graph_done(struct call_graph *graph)
{
    intern_done(&graph->functions);
    intern_done(&graph->places);
    intern_done(&graph->calls);
    free(graph->function_of);
    free(graph->self);
    free(graph->inclusive);
    free(graph->seen);
    *graph = (struct call_graph){0};
}

static int find_functions(struct call_graph *graph)
{
    const struct profile *profile = graph->profile;
    int r = 0;
    graph->function_of = calloc(profile->frames.item_count + 1, sizeof *graph->function_of);
    if (graph->function_of == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < profile->frames.item_count && r == 0; i++) {
        const struct profile_frame *frame = profile_frame(profile, (uint32_t)i);
        const struct graph_function function = {
            .name = frame->name, .file = frame->file, .module = frame->module};
        r = intern_add(&graph->functions, &function, sizeof function, &graph->function_of[i]);
    }
    return r;
}

static int add_self(struct call_graph *graph, const struct graph_place *place, uint64_t samples)
{
    uint32_t item = 0;
    size_t known_count = graph->places.item_count;
    if (intern_add(&graph->places, place, sizeof *place, &item) < 0 ||
        grow(graph->self, graph->self_capacity, (size_t)item + 1) < 0) {
        return -ENOMEM;
    }
    graph->self[item] = (item == known_count ? 0 : graph->self[item]) + samples;
    return 0;
}

/* `stack` is the number of the stack at hand, from 1. */
static int add_call(struct call_graph *graph, const struct graph_call *call, uint64_t stack,
                    uint64_t samples)
{
    uint32_t item = 0;
    size_t known_count = graph->calls.item_count;
    if (intern_add(&graph->calls, call, sizeof *call, &item) < 0 ||
        grow(graph->inclusive, graph->inclusive_capacity, (size_t)item + 1) < 0 ||
        grow(graph->seen, graph->seen_capacity, (size_t)item + 1) < 0) {
        return -ENOMEM;
    }
    if (item == known_count) {
        graph->inclusive[item] = 0;
        graph->seen[item] = 0;
    }
    graph->inclusive[item] += graph->seen[item] == stack ? 0 : samples;
    graph->seen[item] = stack;
    return 0;
}

static struct graph_place place_of(const struct call_graph *graph, uint32_t frame)
{
    return (struct graph_place){.function = graph->function_of[frame],
                                .line = profile_frame(graph->profile, frame)->line};
}

/* The function that stands for what called a stack which does not reach its root. */
static int add_truncated(struct call_graph *graph, uint32_t outermost, uint64_t stack,
                         uint64_t samples)
{
    const struct graph_function truncated = {INTERN_NONE, INTERN_NONE, INTERN_NONE};
    struct graph_call call = {.callee = outermost};
    int r = intern_add(&graph->functions, &truncated, sizeof truncated, &call.from.function);
    return r < 0 ? r : add_call(graph, &call, stack, samples);
}

static int add_stack(struct call_graph *graph, uint32_t chain, bool is_truncated, uint64_t stack,
                     uint64_t samples)
{
    size_t count = 0;
    const uint32_t *frames = profile_chain(graph->profile, chain, &count);
    struct graph_place callee = place_of(graph, frames[0]);
    int r = add_self(graph, &callee, samples);
    for (size_t i = 1; i < count && r == 0; i++) {
        const struct graph_call call = {place_of(graph, frames[i]), callee.function};
        r = add_call(graph, &call, stack, samples);
        callee = call.from;
    }
    return r == 0 && is_truncated ? add_truncated(graph, callee.function, stack, samples) : r;
}

int call_graph_build(struct call_graph *graph, const struct profile *profile)
{
    size_t chain_count = profile->chains.item_count;
    /* By chain, and behind these those of truncated stacks. */
    cleanup_(freep) uint64_t *samples = calloc(2 * chain_count + 1, sizeof *samples);
    graph->profile = profile;
    int r = samples == NULL ? -ENOMEM : find_functions(graph);
    for (size_t i = 0; i < profile->sample_count && r == 0; i++) {
        bool is_truncated = profile_rooted(&profile->samples[i]) == PROFILE_STACK_TRUNCATED;
        samples[profile->samples[i].chain + (is_truncated ? chain_count : 0)] +=
            profile_value(profile, i);
    }
    for (size_t i = 0; i < 2 * chain_count && r == 0; i++) {
        if (samples[i] > 0) {
            r = add_stack(graph, (uint32_t)(i % chain_count), i >= chain_count, i + 1, samples[i]);
        }
    }
    return r;
}

const struct graph_function *call_graph_function(const struct call_graph *graph, uint32_t item)
{
    size_t size_bytes = 0;
    return intern_bytes(&graph->functions, item, &size_bytes);
}

const struct graph_place *call_graph_place(const struct call_graph *graph, uint32_t item)
{
    size_t size_bytes = 0;
    return intern_bytes(&graph->places, item, &size_bytes);
}

const struct graph_call *call_graph_call(const struct call_graph *graph, uint32_t item)
{
    size_t size_bytes = 0;
    return intern_bytes(&graph->calls, item, &size_bytes);
}
