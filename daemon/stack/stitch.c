/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Keeps the newest whole stacks of each thread, in a table with one place for each hash of a
 * thread. Two busy threads with the same place evict each other's stacks: then fewer stacks are
 * completed, and none wrongly. Several stacks are kept, since a thread alternates between a few
 * paths. They contradict each other where the path to a place has changed: then no stack is
 * completed.
 */
#include "stitch.h"

#include "capacity.h"
#include "seeded_hash.h"

#include <stdlib.h>
#include <string.h>

#define THREADS_COUNT CAPACITY((size_t)256) /* a power of two */
#define STACKS_COUNT  ((size_t)16)
#define MATCH_COUNT   ((size_t)2) /* frames that must be the same */

struct known_thread {
    uint64_t generation; /* 0: free */
    int32_t tid;
    uint32_t newest;               /* index into counts */
    uint16_t counts[STACKS_COUNT]; /* frames of each stack; 0: none */
};

struct stitch {
    size_t max_depth;
    struct known_thread threads[THREADS_COUNT];
    uint64_t words[]; /* of each thread's stacks max_depth frames and as many places */
};

struct stitch *stitch_new(size_t max_depth)
{
    size_t word_count = THREADS_COUNT * STACKS_COUNT * 2 * max_depth;
    struct stitch *stitch = calloc(1, sizeof *stitch + word_count * sizeof stitch->words[0]);
    if (stitch != NULL) {
        stitch->max_depth = max_depth;
    }
    return stitch;
}

struct stitch *stitch_free(struct stitch *stitch)
{
    free(stitch);
    return NULL;
}

static size_t find_thread(uint64_t generation, int32_t tid)
{
    return seeded_hash_pair((uint32_t)tid, generation) % THREADS_COUNT;
}

/* A known stack: its frames, then its places. */
static const uint64_t *stack_words(const struct stitch *stitch, size_t thread, size_t stack)
{
    return stitch->words + (thread * STACKS_COUNT + stack) * 2 * stitch->max_depth;
}

static bool is_same(const uint64_t *words, size_t max_depth, const struct stitch_stack *stack)
{
    size_t bytes = stack->count * sizeof *words;
    return memcmp(words, stack->frames, bytes) == 0 &&
           memcmp(words + max_depth, stack->places, bytes) == 0;
}

void stitch_learn(struct stitch *stitch, uint64_t generation, int32_t tid,
                  const struct stitch_stack *stack)
{
    size_t index = find_thread(generation, tid);
    struct known_thread *thread = &stitch->threads[index];
    if (stack->count == 0 || stack->count > stitch->max_depth) {
        return;
    }
    if (thread->generation != generation || thread->tid != tid) {
        *thread = (struct known_thread){.generation = generation, .tid = tid};
    }
    if (thread->counts[thread->newest] == stack->count &&
        is_same(stack_words(stitch, index, thread->newest), stitch->max_depth, stack)) {
        return;
    }
    thread->newest = (thread->newest + 1) % STACKS_COUNT;
    thread->counts[thread->newest] = (uint16_t)stack->count;
    uint64_t *words =
        stitch->words + (index * STACKS_COUNT + thread->newest) * 2 * stitch->max_depth;
    memcpy(words, stack->frames, stack->count * sizeof *words);
    memcpy(words + stitch->max_depth, stack->places, stack->count * sizeof *words);
}

/* Which frame of a known stack is the outermost one of `stack`, or 0. */
static size_t find_match(const uint64_t *frames, const uint64_t *places, size_t count,
                         const struct stitch_stack *stack)
{
    size_t last = stack->count - 1;
    for (size_t i = MATCH_COUNT; i < count; i++) {
        size_t same = 0;
        while (same < MATCH_COUNT && places[i - same] != 0 &&
               places[i - same] == stack->places[last - same] &&
               frames[i - same] == stack->frames[last - same]) {
            same++;
        }
        if (same == MATCH_COUNT) {
            return i;
        }
    }
    return 0;
}

/* What lies above the outermost frame of a stack that is cut. */
struct rest {
    const uint64_t *frames;
    const uint64_t *places;
    size_t count;
};

/* False: the known stacks that match do not agree, or none does. */
static bool find_rest(const struct stitch *stitch, size_t index, const struct stitch_stack *stack,
                      struct rest *ret)
{
    const struct known_thread *thread = &stitch->threads[index];
    struct rest rest = {.frames = NULL};
    for (size_t age = 0; age < STACKS_COUNT; age++) {
        size_t number = (thread->newest + STACKS_COUNT - age) % STACKS_COUNT;
        size_t count = thread->counts[number];
        const uint64_t *frames = stack_words(stitch, index, number);
        const uint64_t *places = frames + stitch->max_depth;
        size_t at = count == 0 ? 0 : find_match(frames, places, count, stack);
        if (at == 0) {
            continue;
        }
        struct rest found = {frames + at + 1, places + at + 1, count - at - 1};
        if (rest.frames == NULL) {
            rest = found;
        } else if (found.count != rest.count ||
                   memcmp(found.frames, rest.frames, found.count * sizeof *found.frames) != 0) {
            return false;
        }
    }
    *ret = rest;
    return rest.frames != NULL;
}

bool stitch_complete(const struct stitch *stitch, uint64_t generation, int32_t tid,
                     struct stitch_stack *stack)
{
    size_t index = find_thread(generation, tid);
    const struct known_thread *thread = &stitch->threads[index];
    struct rest rest;
    if (thread->generation != generation || thread->tid != tid || stack->count <= MATCH_COUNT ||
        !find_rest(stitch, index, stack, &rest) || stack->count + rest.count > stitch->max_depth) {
        return false;
    }
    memcpy(stack->frames + stack->count, rest.frames, rest.count * sizeof *rest.frames);
    memcpy(stack->places + stack->count, rest.places, rest.count * sizeof *rest.places);
    stack->count += rest.count;
    return true;
}
