/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Switch records on their way into the ticks: in time with the samples, and never silent about
 * what is lost. The ring is filled by hand as the kernel fills it; ticks of 1000 ns stand at 1000
 * k.
 */
#include "switch_feed.h"
#include "unit_test.h"

#include <linux/perf_event.h>

#define RING_BYTES   4096
#define RECORD_BYTES 32
#define PERIOD       1000

struct world {
    struct perf_event_mmap_page page;
    uint64_t data[RING_BYTES / 8];
    uint8_t bounce[PERF_RING_BOUNCE_BYTES];
    struct perf_ring ring;
    struct perf_record_layout layout;
    struct ticks ticks;
    struct switch_feed feed;
};

static int set_up(void **state)
{
    struct world *world = calloc(1, sizeof *world);
    perf_ring_init(&world->ring, &world->page, (const uint8_t *)world->data, RING_BYTES,
                   world->bounce);
    world->layout = perf_record_layout_make(PERF_SAMPLE_TID | PERF_SAMPLE_TIME, 0);
    ticks_init(&world->ticks, PERIOD);
    switch_feed_init(&world->feed, &world->ring, &world->layout, &world->ticks);
    ticks_start(&world->ticks, 0, true);
    switch_feed_start(&world->feed, 0);
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    free(*state);
    return 0;
}

static void put(struct world *world, uint32_t type, uint16_t misc, const uint64_t *words,
                size_t word_count)
{
    struct perf_event_header header = {
        .type = type, .misc = misc, .size = (uint16_t)(8 + 8 * word_count)};
    uint64_t at = world->page.data_head / 8;
    memcpy(&world->data[at++ % (RING_BYTES / 8)], &header, sizeof header);
    for (size_t i = 0; i < word_count; i++) {
        world->data[at++ % (RING_BYTES / 8)] = words[i];
    }
    world->page.data_head += header.size;
}

static void put_half(struct world *world, uint64_t time_ns, uint16_t misc, uint32_t self,
                     uint32_t other)
{
    uint64_t words[] = {(uint64_t)other << 32 | other, (uint64_t)self << 32 | self, time_ns};
    put(world, PERF_RECORD_SWITCH_CPU_WIDE, misc, words, 3);
}

/* A switch from one pid to another has two records. */
static void put_switch(struct world *world, uint64_t time_ns, uint32_t from, uint32_t to)
{
    put_half(world, time_ns, PERF_RECORD_MISC_SWITCH_OUT, from, to);
    put_half(world, time_ns + 1, 0, to, from);
}

static void put_lost(struct world *world, uint64_t time_ns, uint64_t count)
{
    uint64_t words[] = {1, count, 0, time_ns};
    put(world, PERF_RECORD_LOST, 0, words, 4);
}

static void samples(struct world *world, uint64_t first, uint64_t last)
{
    for (uint64_t tick = first; tick <= last; tick++) {
        switch_feed_until(&world->feed, tick * PERIOD + 5);
        ticks_sample(&world->ticks, tick * PERIOD + 5);
    }
}

#define STORY(name) TEST_OF(struct world *world, name, set_up, tear_down)

STORY(records_wait_for_their_time)
{
    put_switch(world, 2500, 7, 0);
    put_switch(world, 5500, 0, 8);
    put_switch(world, 6500, 8, 7); /* between tasks */
    put_switch(world, 7500, 7, 0);
    switch_feed_refresh(&world->feed);
    samples(world, 1, 2);
    assert_int_equal(ticks_counts(&world->ticks).idle, 0);
    samples(world, 6, 7);
    assert_int_equal(ticks_counts(&world->ticks).idle, 3);
    switch_feed_until(&world->feed, UINT64_MAX);
    switch_feed_publish(&world->feed);
    assert_int_equal(world->page.data_tail, world->page.data_head);
    ticks_advance(&world->ticks, 9900);
    assert_int_equal(ticks_counts(&world->ticks).idle, 5);
    assert_int_equal(ticks_counts(&world->ticks).missed, 0);
}

STORY(a_loss_darkens_the_time_since_the_record_before_it)
{
    put_switch(world, 2500, 7, 0);
    put_lost(world, 8500, 5);
    put_switch(world, 8500, 7, 0);
    switch_feed_refresh(&world->feed);
    samples(world, 1, 2);
    samples(world, 5, 5); /* it was not idle all the time */
    switch_feed_until(&world->feed, UINT64_MAX);
    ticks_advance(&world->ticks, 10500);
    struct tick_counts counts = ticks_counts(&world->ticks);
    assert_int_equal(counts.blind, 2 + 3); /* 3, 4 and 6 to 8 */
    assert_int_equal(counts.idle, 2);      /* 9, 10 */
    assert_int_equal(counts.missed, 0);
}

STORY(a_full_ring_may_have_lost_what_no_record_tells_of)
{
    for (uint64_t i = 0; i < RING_BYTES / RECORD_BYTES / 2; i++) {
        put_switch(world, 1200 + 10 * i, i % 2 == 0 ? 7 : 0, i % 2 == 0 ? 0 : 7);
    }
    switch_feed_refresh(&world->feed);
    switch_feed_until(&world->feed, 5500);
    switch_feed_publish(&world->feed);
    ticks_advance(&world->ticks, 5500);
    struct tick_counts counts = ticks_counts(&world->ticks);
    assert_int_equal(counts.blind, 4); /* 2 to 5 */
    /* Room again, and a record. */
    put_switch(world, 6500, 7, 0);
    switch_feed_refresh(&world->feed);
    switch_feed_until(&world->feed, 8500);
    ticks_advance(&world->ticks, 8500);
    counts = ticks_counts(&world->ticks);
    assert_int_equal(counts.blind, 5);
    assert_int_equal(counts.idle, 2);
}

STORY(what_makes_no_sense_is_a_loss)
{
    uint64_t word = 1;
    put_switch(world, 1500, 0, 7);
    put(world, PERF_RECORD_SWITCH_CPU_WIDE, 0, &word, 1);
    switch_feed_refresh(&world->feed);
    switch_feed_until(&world->feed, 4500);
    ticks_advance(&world->ticks, 4500);
    assert_int_equal(world->feed.bad_count, 1);
    assert_int_equal(ticks_counts(&world->ticks).blind, 3);
}

/* `count` records that have come and gone by `time_ns`. */
static enum switch_wish judge(struct world *world, uint64_t count, uint64_t time_ns)
{
    for (uint64_t i = 0; i < count; i++) {
        put_half(world, time_ns - 1, 0, 7, 8);
        switch_feed_refresh(&world->feed);
        switch_feed_until(&world->feed, time_ns);
        switch_feed_publish(&world->feed);
    }
    return switch_feed_judge(&world->feed, time_ns);
}

STORY(too_many_switches_are_given_up_and_tried_again)
{
    const uint64_t span_ns = 100000000;
    uint64_t time_ns = span_ns;
    assert_int_equal(judge(world, 3999, time_ns), SWITCH_KEEP);        /* 20,000 a second */
    assert_int_equal(judge(world, 3999, time_ns + 1000), SWITCH_KEEP); /* too early to say */
    time_ns += 2 * span_ns;
    assert_int_equal(judge(world, 4001, time_ns), SWITCH_KEEP);
    time_ns += span_ns;
    assert_int_equal(judge(world, 4003, time_ns), SWITCH_DISABLE);
    assert_true(world->feed.off);
    uint64_t retry_ns = time_ns + SWITCH_FEED_RETRY_NS;
    for (time_ns += span_ns; time_ns < retry_ns; time_ns += span_ns) {
        assert_int_equal(judge(world, 0, time_ns), SWITCH_KEEP);
    }
    assert_int_equal(judge(world, 0, time_ns), SWITCH_ENABLE);
    /* A start begins anew. */
    assert_int_equal(judge(world, 8000, time_ns + span_ns), SWITCH_DISABLE);
    switch_feed_start(&world->feed, time_ns + span_ns);
    assert_int_equal(judge(world, 100, time_ns + 2 * span_ns), SWITCH_KEEP);
    assert_false(world->feed.off);
}

STORY(lost_records_count_as_switches)
{
    put_lost(world, 500, 1000000);
    assert_int_equal(judge(world, 1, 100000000), SWITCH_DISABLE);
}

STORY(without_a_ring_nothing_happens)
{
    switch_feed_init(&world->feed, NULL, &world->layout, &world->ticks);
    switch_feed_start(&world->feed, 0);
    switch_feed_refresh(&world->feed);
    switch_feed_until(&world->feed, UINT64_MAX);
    switch_feed_publish(&world->feed);
    assert_int_equal(switch_feed_judge(&world->feed, UINT64_MAX / 2), SWITCH_KEEP);
}
