/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Samples and the chains that belong to them: one by one, and in hundreds of arrangements over
 * rounds and CPUs, each of which must give what the events in the order of their time give.
 */
#include "deferred_match.h"
#include "unit_test.h"

#include "core_dump.h"

#define CPU_COUNT 2
#define COOKIE    UINT64_C(0x18900000001)

/* A chain of two frames, the first of which is `leaf`. */
static void add_chain(struct deferred_match *deferred, int32_t tid, uint64_t cookie,
                      uint64_t exec_ns, uint64_t leaf)
{
    uint64_t frames[] = {leaf, 0x4000};
    deferred_match_add_chain(deferred, &(struct deferred_match_chain){
                                           .tid = tid,
                                           .cookie = cookie,
                                           .exec_ns = exec_ns,
                                           .expected = true,
                                           .frames = frames,
                                           .count = 2,
                                       });
}

static void wait_for(struct deferred_match *deferred, size_t cpu_index, int32_t tid,
                     uint64_t cookie, uint64_t time_ns, uint64_t id)
{
    assert_int_equal(
        deferred_match_wait(deferred, &(struct deferred_match_open){.cpu_index = cpu_index,
                                                                    .tid = tid,
                                                                    .cookie = cookie,
                                                                    .id = id,
                                                                    .first_ns = time_ns}),
        0);
}

/* The leaf that a sample finds; 0: it has to wait. */
static uint64_t find_leaf(struct deferred_match *deferred, int32_t tid, uint64_t cookie,
                          uint64_t time_ns)
{
    struct deferred_match_chain chain;
    return deferred_match_find_chain(deferred, tid, cookie, time_ns, &chain) ? chain.frames[0] : 0;
}

#define STORY(name)                                                                                \
    TEST_MADE(struct deferred_match *deferred, name, deferred_match_new(CPU_COUNT),                \
              deferred_match_free)

STORY(a_chain_stays_for_a_sample_that_is_a_round_late)
{
    add_chain(deferred, 70, COOKIE, 0, 0x1000);
    add_chain(deferred, 70, COOKIE + 2, 0, 0x2000);
    deferred_match_end_round(deferred);
    assert_int_equal(find_leaf(deferred, 70, COOKIE, 10), 0x1000);
    add_chain(deferred, 70, COOKIE + 4, 0, 0x3000);
    deferred_match_end_round(deferred);
    assert_int_equal(find_leaf(deferred, 70, COOKIE, 10), 0);
    assert_int_equal(find_leaf(deferred, 70, COOKIE + 4, 10), 0x3000);
    assert_int_equal(deferred_match_orphan_count(deferred), 1);
}

/* A chain may be words of somebody's stack. */
STORY(a_chain_that_is_dropped_is_wiped)
{
    struct deferred_match_chain chain;
    add_chain(deferred, 70, COOKIE, 0, 0x1000);
    add_chain(deferred, 71, COOKIE, 0, 0x2000);
    assert_true(deferred_match_find_chain(deferred, 71, COOKIE, 10, &chain));
    const uint64_t *frames = chain.frames;
    assert_int_equal(frames[0], 0x2000);
    assert_false(is_in_core_dump(frames));
    deferred_match_end_round(deferred);
    assert_int_equal(frames[0], 0x2000);
    deferred_match_end_round(deferred);
    assert_int_equal(frames[0], 0);
    assert_int_equal(frames[1], 0);
}

STORY(a_chain_that_nobody_is_expected_to_want_is_no_orphan)
{
    uint64_t leaf = 0x1000;
    deferred_match_add_chain(
        deferred,
        &(struct deferred_match_chain){.tid = 70, .cookie = COOKIE, .frames = &leaf, .count = 1});
    assert_int_equal(find_leaf(deferred, 70, COOKIE, 10), 0x1000);
    deferred_match_add_chain(
        deferred,
        &(struct deferred_match_chain){.tid = 71, .cookie = COOKIE, .frames = &leaf, .count = 1});
    deferred_match_end_round(deferred);
    deferred_match_end_round(deferred);
    assert_int_equal(deferred_match_orphan_count(deferred), 0);
}

STORY(a_second_chain_of_a_cookie_is_nobodys)
{
    add_chain(deferred, 70, COOKIE, 0, 0x1000);
    add_chain(deferred, 70, COOKIE, 0, 0x2000);
    assert_int_equal(find_leaf(deferred, 70, COOKIE, 10), 0x1000);
    assert_int_equal(deferred_match_orphan_count(deferred), 1);
}

/* More than there are buckets, first of one cookie, then of one task. */
STORY(each_of_many_chains_is_found_by_its_own_key)
{
    for (int32_t tid = 1; tid <= 20000; tid++) {
        add_chain(deferred, tid, COOKIE, 0, 100000 + (uint64_t)tid);
        add_chain(deferred, 70, (uint64_t)tid, 0, 200000 + (uint64_t)tid);
    }
    for (int32_t tid = 1; tid <= 20000; tid++) {
        assert_int_equal(find_leaf(deferred, tid, COOKIE, 1), 100000 + tid);
        assert_int_equal(find_leaf(deferred, 70, (uint64_t)tid, 1), 200000 + tid);
    }
}

STORY(another_id_replaces_what_waited)
{
    struct deferred_match_open open = {.tid = 70, .cookie = COOKIE, .id = 1001, .first_ns = 30};
    wait_for(deferred, 0, 70, COOKIE, 10, 1000);
    wait_for(deferred, 0, 70, COOKIE, 20, 1000);
    assert_int_equal(deferred_match_wait(deferred, &open), 2);
    assert_int_equal(deferred_match_open_id(deferred, 0, 70, COOKIE), 1001);
    assert_true(deferred_match_take_expired(deferred, UINT64_MAX, &open));
    assert_int_equal(open.sample_count, 1);
    assert_int_equal(open.first_ns, 30);
    assert_int_equal(deferred_match_open_count(deferred), 0);
}

STORY(a_full_cpu_gives_up_its_oldest)
{
    struct deferred_match_open open;
    wait_for(deferred, 1, 1, COOKIE, 1, 9);
    for (int32_t i = 0; i < DEFERRED_MATCH_OPEN_MAX; i++) {
        assert_false(deferred_match_take_excess(deferred, 0, &open));
        wait_for(deferred, 0, 100 + i, COOKIE, 10, 1 + (uint64_t)i);
    }
    assert_true(deferred_match_take_excess(deferred, 0, &open));
    assert_int_equal(open.id, 1);
    assert_int_equal(open.tid, 100);
    assert_false(deferred_match_take_excess(deferred, 0, &open));
    assert_false(deferred_match_take_excess(deferred, 1, &open));
    wait_for(deferred, 0, 7, COOKIE, 11, 7777);
    assert_true(deferred_match_take_excess(deferred, 0, &open));
    assert_int_equal(open.id, 2);
    assert_int_equal(deferred_match_open_count(deferred), DEFERRED_MATCH_OPEN_MAX);
}

STORY(what_waits_too_long_is_given_up)
{
    struct deferred_match_open open;
    wait_for(deferred, 0, 70, COOKIE, 10, 1000);
    wait_for(deferred, 0, 71, COOKIE, 30, 1001);
    wait_for(deferred, 1, 72, COOKIE, 20, 2000);
    assert_false(deferred_match_take_expired(deferred, 9, &open));
    assert_true(deferred_match_take_expired(deferred, 20, &open));
    assert_int_equal(open.id, 1000);
    assert_true(deferred_match_take_expired(deferred, 20, &open));
    assert_int_equal(open.id, 2000);
    assert_false(deferred_match_take_expired(deferred, 20, &open));
    assert_true(deferred_match_take_expired(deferred, UINT64_MAX, &open));
    assert_int_equal(open.id, 1001);
    assert_int_equal(deferred_match_open_count(deferred), 0);
}

STORY(chains_beyond_the_room_are_left_out_and_the_rest_stay)
{
    static uint64_t frames[510];
    uint64_t added = 0;
    frames[0] = 0x5000;
    do {
        deferred_match_add_chain(deferred,
                                 &(struct deferred_match_chain){
                                     .tid = 70, .cookie = added++, .frames = frames, .count = 510});
        assert_in_range(added, 1, 4096);
    } while (find_leaf(deferred, 70, added - 1, 1) != 0);
    assert_in_range(added, 1024, 4096);
    assert_int_equal(find_leaf(deferred, 70, 0, 1), 0x5000);
    assert_int_equal(find_leaf(deferred, 70, added - 2, 1), 0x5000);
    deferred_match_end_round(deferred);
    deferred_match_end_round(deferred);
    add_chain(deferred, 70, COOKIE, 0, 0x1000);
    assert_int_equal(find_leaf(deferred, 70, COOKIE, 1), 0x1000);
}

/*
 * A story: tasks that enter the kernel, are sampled there, perhaps execute another program, and
 * return, or never do. What each sample's stack must be follows from the times alone.
 */
#define ENTRIES     64
#define SAMPLES     512
#define ROUNDS      12
#define EMPTY_STACK UINT64_C(0)

struct entry_story {
    int32_t tid;
    uint64_t cookie;
    uint64_t leaf;
    uint64_t exec_ns; /* 0: none */
    size_t return_round;
    bool returns;
};

struct sample_story {
    size_t entry;
    size_t cpu_index;
    size_t round;
    uint64_t time_ns;
    uint64_t id; /* 0: it was whole */
    uint64_t stack;
    bool settled;
};

struct story {
    struct entry_story entries[ENTRIES];
    struct sample_story samples[SAMPLES];
    uint64_t next_id;
    uint64_t random;
};

/* A sample may be handled a round later than its chain, and any number of rounds earlier. */
static void tell_story(struct story *story, uint32_t seed)
{
    *story = (struct story){.random = seed, .next_id = 1};
    for (size_t i = 0; i < ENTRIES; i++) {
        story->entries[i] = (struct entry_story){
            .tid = 100 + (int32_t)draw_below(&story->random, 8),
            .cookie = 1 + 2 * i,
            .leaf = 0x1000 + i,
            .exec_ns =
                draw_below(&story->random, 4) == 0 ? 1 + draw_below(&story->random, 1000) : 0,
            .return_round = draw_below(&story->random, ROUNDS - 1),
            .returns = draw_below(&story->random, 8) != 0,
        };
    }
    for (size_t i = 0; i < SAMPLES; i++) {
        size_t entry = draw_below(&story->random, ENTRIES);
        story->samples[i] = (struct sample_story){
            .entry = entry,
            .cpu_index = draw_below(&story->random, CPU_COUNT),
            .round = draw_below(&story->random, story->entries[entry].return_round + 2),
            .time_ns = draw_below(&story->random, 1000),
        };
    }
}

/* What waited says what its samples are. */
static void settle_id(struct story *story, const struct deferred_match_open *open, uint64_t stack)
{
    uint64_t count = 0;
    uint64_t first_ns = UINT64_MAX;
    for (size_t i = 0; i < SAMPLES; i++) {
        struct sample_story *sample = &story->samples[i];
        if (sample->id == open->id) {
            assert_false(sample->settled);
            assert_int_equal(open->tid, story->entries[sample->entry].tid);
            assert_int_equal(open->cpu_index, sample->cpu_index);
            sample->settled = true;
            sample->stack = stack;
            first_ns = sample->time_ns < first_ns ? sample->time_ns : first_ns;
            count++;
        }
    }
    assert_int_equal(open->sample_count, count);
    assert_int_equal(open->first_ns, first_ns);
}

static void handle_sample(struct deferred_match *deferred, struct story *story,
                          struct sample_story *sample)
{
    const struct entry_story *entry = &story->entries[sample->entry];
    uint64_t leaf = find_leaf(deferred, entry->tid, entry->cookie, sample->time_ns);
    sample->id = deferred_match_open_id(deferred, sample->cpu_index, entry->tid, entry->cookie);
    if (leaf != 0) {
        sample->id = 0;
        sample->settled = true;
        sample->stack = leaf;
        return;
    }
    if (sample->id == 0) {
        sample->id = story->next_id++;
    }
    wait_for(deferred, sample->cpu_index, entry->tid, entry->cookie, sample->time_ns, sample->id);
}

static void end_round(struct deferred_match *deferred, struct story *story)
{
    struct deferred_match_open open;
    struct deferred_match_chain chain;
    bool exec = false;
    while (deferred_match_take_done(deferred, &open, &chain, &exec)) {
        assert_int_equal(chain.count, exec ? 0 : 2);
        settle_id(story, &open, exec ? EMPTY_STACK : chain.frames[0]);
    }
    deferred_match_end_round(deferred);
}

/* One round: what happens in it, in an order drawn by lot. */
static void play_round(struct deferred_match *deferred, struct story *story, size_t round)
{
    uint32_t offset = (uint32_t)draw_below(&story->random, ENTRIES + SAMPLES);
    for (uint32_t i = 0; i < ENTRIES + SAMPLES; i++) {
        /* 25 has no divisor in common with 576: every place is met once. */
        uint32_t at = (offset + i * 25) % (ENTRIES + SAMPLES);
        const struct entry_story *entry = &story->entries[at % ENTRIES];
        if (at < ENTRIES && entry->returns && entry->return_round == round) {
            add_chain(deferred, entry->tid, entry->cookie, entry->exec_ns, entry->leaf);
        } else if (at >= ENTRIES && story->samples[at - ENTRIES].round == round) {
            handle_sample(deferred, story, &story->samples[at - ENTRIES]);
        }
    }
    end_round(deferred, story);
}

/* An id on one CPU is discarded as a whole when an exec came after its first sample. */
static uint64_t expected_stack(const struct story *story, const struct sample_story *sample)
{
    const struct entry_story *entry = &story->entries[sample->entry];
    uint64_t first_ns = sample->time_ns;
    for (size_t i = 0; sample->id != 0 && i < SAMPLES; i++) {
        if (story->samples[i].id == sample->id && story->samples[i].time_ns < first_ns) {
            first_ns = story->samples[i].time_ns;
        }
    }
    return !entry->returns || first_ns < entry->exec_ns ? EMPTY_STACK : entry->leaf;
}

TEST(any_arrangement_gives_the_stacks_of_the_ordered_stream)
{
    static struct story story;
    for (uint32_t seed = 1; seed <= 300; seed++) {
        struct deferred_match *deferred = deferred_match_new(CPU_COUNT);
        struct deferred_match_open open;
        assert_non_null(deferred);
        tell_story(&story, seed);
        for (size_t round = 0; round < ROUNDS; round++) {
            play_round(deferred, &story, round);
        }
        while (deferred_match_take_expired(deferred, UINT64_MAX, &open)) {
            settle_id(&story, &open, EMPTY_STACK);
        }
        assert_int_equal(deferred_match_open_count(deferred), 0);
        for (size_t i = 0; i < SAMPLES; i++) {
            assert_true(story.samples[i].settled);
            assert_int_equal(story.samples[i].stack, expected_stack(&story, &story.samples[i]));
        }
        (void)deferred_match_free(deferred);
    }
}
