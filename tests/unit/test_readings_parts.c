/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Readings of /proc that are too much for one round: what is told of them in each, and as what a
 * process counts meanwhile. /proc is made up.
 */
#include "fake_proc_pool.h"
#include "proc_feed.h"
#include "unit_test.h"

#define MAPPINGS   40000
#define ROUND_MOST 16384 /* mappings and threads */
#define PID        7

struct world {
    struct process_table *processes;
    struct filter *filter;
    struct proc_feed *readings;
    struct mapping_description *mappings;
};

static int read_process(int32_t pid, struct process_scan *scan, void *userdata)
{
    static const struct scanned_thread thread[] = {{PID, "wide"}, {PID + 1, "wide"}};
    const struct world *world = userdata;
    (void)pid;
    scan->mappings = world->mappings;
    scan->mapping_count = MAPPINGS;
    scan->threads = thread;
    scan->thread_count = 2;
    scan->begin_ns = 1000;
    scan->end_ns = 1001;
    return 0;
}

static int set_up(void **state)
{
    struct world *world = calloc(1, sizeof *world);
    assert_non_null(world);
    world->processes = process_table_new(NULL, NULL);
    world->filter = filter_new(&(struct filter_config){0});
    world->readings = proc_feed_new(world->processes, NULL, &world->filter, 1);
    world->mappings = calloc(MAPPINGS, sizeof *world->mappings);
    assert_non_null(world->mappings);
    for (size_t i = 0; i < MAPPINGS; i++) {
        world->mappings[i] = (struct mapping_description){
            .start = 0x2000 * i, .end = 0x2000 * i + 0x1000, .path = "/x", .inode = 1};
    }
    fake_proc_set(read_process, world);
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;
    fake_proc_set(NULL, NULL);
    (void)proc_feed_free(world->readings);
    (void)filter_free(world->filter);
    (void)process_table_free(world->processes);
    free(world->mappings);
    free(world);
    return 0;
}

static size_t count_mappings(struct world *world)
{
    return process_table_counts(world->processes).mapping_count;
}

static void apply_round(struct world *world)
{
    size_t before = count_mappings(world);
    proc_feed_begin_round(world->readings);
    for (int i = 0; i < 10; i++) { /* samples ask within a round, too */
        (void)proc_feed_apply(world->readings, UINT64_MAX);
    }
    assert_true(count_mappings(world) <= before + ROUND_MOST);
}

#define STORY(name) TEST_OF(struct world *world, name, set_up, tear_down)

STORY(a_large_reading_is_told_in_parts)
{
    assert_int_equal(proc_feed_ask(world->readings, PID, 0, 2000), READING_ASKED);
    for (size_t round = 1; round <= 3; round++) {
        apply_round(world);
        const struct process *process = process_table_find(world->processes, PID, 2000);
        assert_non_null(process);
        assert_int_equal(process->thread_count, 2);
        /* Until all is told, samples wait for it. */
        assert_int_equal(process->scanned, round == 3);
        assert_int_equal(proc_feed_ask(world->readings, PID, 0, 2000),
                         round == 3 ? READING_CAME : READING_COMES);
    }
    assert_int_equal(count_mappings(world), MAPPINGS);
}

STORY(a_reading_of_what_is_known_is_told_in_parts_too)
{
    (void)proc_feed_ask(world->readings, PID, 0, 2000);
    for (size_t round = 0; round < 3; round++) {
        apply_round(world);
    }
    struct process *process = process_table_find(world->processes, PID, 2000);
    proc_feed_put_off(world->readings, process, 0);
    for (size_t i = 0; i < MAPPINGS; i++) {
        world->mappings[i].inode = 2;
    }
    proc_feed_reread(world->readings, process, 3000);
    for (size_t round = 1; round <= 3; round++) {
        apply_round(world);
        struct mapping *last =
            process_find_mapping(process, world->mappings[MAPPINGS - 1].start, TIME_OPEN_NS - 1);
        assert_int_equal(last->file->inode, round == 3 ? 2 : 1);
    }
    /* It was not useless: the next one is no later than after the first. */
    proc_feed_reread(world->readings, process, 5000 + PROC_FEED_PERIOD_NS);
    assert_false(proc_feed_is_due(world->readings, process, 5000 + PROC_FEED_PERIOD_NS));
    assert_true(proc_feed_is_due(world->readings, process, 5000 + 2 * PROC_FEED_PERIOD_NS));
}

STORY(many_readings_are_told_one_after_the_other)
{
    for (int32_t pid = PID; pid < PID + 4; pid++) {
        assert_int_equal(proc_feed_ask(world->readings, pid, 0, 2000), READING_ASKED);
    }
    /* 160,000 mappings. */
    for (size_t round = 1; round <= 9; round++) {
        apply_round(world);
    }
    assert_int_not_equal(proc_feed_ask(world->readings, PID + 3, 0, 2000), READING_CAME);
    apply_round(world);
    for (int32_t pid = PID; pid < PID + 4; pid++) {
        assert_int_equal(proc_feed_ask(world->readings, pid, 0, 2000), READING_CAME);
    }
}
