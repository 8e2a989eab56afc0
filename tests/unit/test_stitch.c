/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A stack that is cut is completed from whole ones of its thread that agree, and from nothing else.
 */
#include "stitch.h"
#include "unit_test.h"

#include <stdbool.h>

#define DEPTH_MAX  8
#define GENERATION 7
#define TID        42

struct frames {
    uint64_t frames[DEPTH_MAX];
    uint64_t places[DEPTH_MAX];
    size_t count;
};

/* leaf first; the outermost two of `cut` are the fourth and third from the root */
static const struct frames whole = {
    {0x10, 0x20, 0x30, 0x40, 0x50, 0x60}, {100, 200, 300, 400, 500, 600}, 6};
static const struct frames cut = {{0x11, 0x30, 0x40}, {150, 300, 400}, 3};

static void learn(struct stitch *stitch, uint64_t generation, int32_t tid, struct frames frames)
{
    struct stitch_stack stack = {frames.frames, frames.places, frames.count};
    stitch_learn(stitch, generation, tid, &stack);
}

/* Whether `frames` is completed; it is left alone if not. */
static bool completes(const struct stitch *stitch, uint64_t generation, int32_t tid,
                      struct frames *frames)
{
    struct frames before = *frames;
    struct stitch_stack stack = {frames->frames, frames->places, frames->count};
    bool done = stitch_complete(stitch, generation, tid, &stack);
    if (!done) {
        assert_memory_equal(frames, &before, sizeof before);
        assert_int_equal(stack.count, before.count);
    }
    frames->count = stack.count;
    return done;
}

#define STORY(name) TEST_MADE(struct stitch *stitch, name, stitch_new(DEPTH_MAX), stitch_free)

STORY(completes_from_a_whole_stack)
{
    struct frames stack = cut;
    assert_false(completes(stitch, GENERATION, TID, &stack));
    learn(stitch, GENERATION, TID, whole);
    assert_true(completes(stitch, GENERATION, TID, &stack));
    static const struct frames expected = {
        {0x11, 0x30, 0x40, 0x50, 0x60}, {150, 300, 400, 500, 600}, 5};
    assert_memory_equal(&stack, &expected, sizeof expected);
}

STORY(needs_the_same_process_and_thread)
{
    struct frames stack = cut;
    learn(stitch, GENERATION, TID, whole);
    assert_false(completes(stitch, GENERATION + 1, TID, &stack));
    assert_false(completes(stitch, GENERATION, TID + 1, &stack));
    assert_true(completes(stitch, GENERATION, TID, &stack));
}

STORY(needs_two_frames_with_their_places)
{
    learn(stitch, GENERATION, TID, whole);
    static const struct frames others[] = {
        {{0x11, 0x30, 0x41}, {150, 300, 400}, 3}, /* another outermost frame */
        {{0x11, 0x31, 0x40}, {150, 300, 400}, 3}, /* another one below it */
        {{0x11, 0x30, 0x40}, {150, 300, 408}, 3}, /* at another place */
        {{0x11, 0x30, 0x40}, {150, 308, 400}, 3},
        {{0x11, 0x30, 0x40}, {150, 0, 0}, 3}, /* it is not known where */
        {{0x30, 0x40}, {300, 400}, 2},        /* the sampled one has no caller yet */
        {{0x40}, {400}, 1},
        {{0}, {0}, 0},
    };
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        struct frames stack = others[i];
        assert_false(completes(stitch, GENERATION, TID, &stack));
    }
}

STORY(never_matches_unknown_places)
{
    struct frames known = whole;
    memset(known.places, 0, sizeof known.places);
    struct frames stack = {{0x11, 0x30, 0x40}, {150, 0, 0}, 3};
    learn(stitch, GENERATION, TID, known);
    assert_false(completes(stitch, GENERATION, TID, &stack));
}

STORY(does_nothing_where_whole_stacks_disagree)
{
    struct frames other = whole;
    struct frames stack = cut;
    other.frames[5] = 0x61;
    learn(stitch, GENERATION, TID, whole);
    learn(stitch, GENERATION, TID, other);
    assert_false(completes(stitch, GENERATION, TID, &stack));
    /* Until the older one is forgotten. */
    for (uint64_t i = 0; i < 15; i++) {
        other.frames[0] = 0x1000 + i;
        learn(stitch, GENERATION, TID, other);
    }
    assert_true(completes(stitch, GENERATION, TID, &stack));
    assert_int_equal(stack.frames[4], 0x61);
}

STORY(keeps_a_way_that_stands_beside_others)
{
    struct frames stack = cut;
    learn(stitch, GENERATION, TID, whole);
    for (uint64_t i = 0; i < 15; i++) {
        struct frames other = {{0x10, 0x20, 0x70 + i}, {100, 200, 300}, 3};
        learn(stitch, GENERATION, TID, other);
        learn(stitch, GENERATION, TID, other); /* again: takes no room */
    }
    assert_true(completes(stitch, GENERATION, TID, &stack));
}

STORY(keeps_to_the_depth)
{
    struct frames stack = {{1, 2, 3, 4, 0x30, 0x40}, {50, 60, 70, 80, 300, 400}, 6};
    learn(stitch, GENERATION, TID, whole);
    assert_true(completes(stitch, GENERATION, TID, &stack));
    assert_int_equal(stack.count, DEPTH_MAX);
    struct frames deeper = {{1, 2, 3, 4, 5, 0x30, 0x40}, {50, 60, 70, 80, 90, 300, 400}, 7};
    assert_false(completes(stitch, GENERATION, TID, &deeper));
}
