/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The order of things: two CPUs' rings, drained in rounds.
 */
#include "drain_world.h"

#include <inttypes.h>

#define STORY(name)      DRAIN_STORY(name, set_up)
#define STACK_TEST(name) DRAIN_STORY(name, set_up_stacks)

STORY(what_is_newer_than_the_horizon_waits_for_the_next_round)
{
    put_exec(world, 0, PID, 100, "prog");
    put_mmap(world, 1, PID, 200, 0x5000, "/one");
    put_sample(world, 0, PID, 300, 0x5010);
    put_sample(world, 0, PID, 1500, 0x6010);
    put_mmap(world, 1, PID, 1200, 0x6000, "/two");
    drain_all(world->drain, 1000);
    assert_int_equal(received(world), 1);
    /* A record that took its time before the horizon of the first round, and shows up only now. */
    put_mmap(world, 0, PID, 990, 0x7000, "/late");
    put_sample(world, 1, PID, 1600, 0x7010);
    drain_all(world->drain, 2000);
    expect_qualities(world, "300 4; 1500 4; 1600 4; ");
    assert_int_equal(counted(world).mapping_uncertain, 0);
}

STORY(tells_whether_sideband_came)
{
    drain_sideband(world->drain, 1000);
    assert_true(drain_is_quiet(world->drain));
    put_exec(world, 1, PID, 100, "prog");
    drain_sideband(world->drain, 1000);
    assert_false(drain_is_quiet(world->drain));
    put_sample(world, 0, PID, 300, 0x5010);
    drain_all(world->drain, 2000);
    assert_true(drain_is_quiet(world->drain));
    put_exec(world, 0, PID, 1500, "other");
    drain_all(world->drain, 2000);
    assert_false(drain_is_quiet(world->drain));
}

/* Between a session's creation and its start, and after its stop, no samples are drained. */
STORY(sideband_waits_for_nothing_while_there_are_no_samples)
{
    drain_stop(world->drain);
    for (uint64_t time_ns = 1000; time_ns < 11000; time_ns++) {
        put_comm(world, PID, PID, time_ns, time_ns == 10999 ? "last" : "name");
        if (time_ns % 1000 == 999) {
            drain_sideband(world->drain, time_ns);
            assert_false(drain_is_pressed(world->drain));
        }
    }
    drain_start(world->drain);
    put_sample(world, 0, PID, 12000, 0x5010);
    put_comm(world, PID, PID, 12001, "later");
    drain_sideband(world->drain, 12002);
    drain_all(world->drain, 12002);
    assert_int_equal(kept(world), 1);
}

STORY(losses_are_counted_where_they_happen)
{
    put_lost(world, 0, PERF_STREAM_CLOCK, 50, 17);
    assert_false(sideband_feed_take_rescan(drain_feed(world->drain)));
    drain_all(world->drain, 1000);
    assert_int_equal(drain_books(world->drain, 0, 0).lost, 17);
    assert_false(sideband_feed_take_rescan(drain_feed(world->drain)));
    put_lost(world, 1, PERF_STREAM_SIDEBAND, 50, 17);
    drain_all(world->drain, 1000);
    assert_int_equal(drain_books(world->drain, 0, 1).lost, 0);
    assert_int_equal(counted(world).sideband_lost, 17);
    assert_true(sideband_feed_take_rescan(drain_feed(world->drain)));
    assert_false(sideband_feed_take_rescan(drain_feed(world->drain)));
}

STORY(a_record_that_makes_no_sense_is_counted_and_passed)
{
    PUT(world, 0, CLOCK, SAMPLE, PERF_RECORD_MISC_USER, 1, pair(PID, PID), 300, 0, 1000);
    put_sample(world, 0, PID, 310, 0x5010);
    drain_all(world->drain, 1000);
    assert_int_equal(counted(world).bad_records, 1);
    assert_int_equal(drain_books(world->drain, 0, 0).received, 1);
    PUT(world, 1, SIDEBAND, COMM, 0, 1);
    drain_all(world->drain, 1100);
    assert_int_equal(counted(world).bad_records, 2);
}

STORY(what_the_process_table_refuses_is_counted)
{
    assert_int_equal(counted(world).table_refused, 0);
    for (uint64_t i = 0; i <= THREAD_NAMES_MAX; i++) {
        char name[COMM_BYTES];
        (void)snprintf(name, sizeof name, "n%" PRIu64, i);
        process_table_comm(world->processes, PID, PID, name, false, 100 + i);
    }
    assert_int_equal(counted(world).table_refused, THREAD_NAMES_MAX / 2);
}

STORY(a_full_depth_is_a_cut_stack)
{
    put_mmap(world, 0, PID, 200, 0x5000, "/prog");
    PUT(world, 0, CLOCK, SAMPLE, PERF_RECORD_MISC_USER, 1, pair(PID, PID), 300, 0, 4,
        PERF_CONTEXT_USER, 0x5010, 0x5020, 0x5030);
    expect_qualities(world, "300 3; ");
    assert_int_equal(counted(world).truncated_stacks, 1);
}

STACK_TEST(samples_are_held_until_their_table_comes_and_stay_in_order)
{
    put_program(world);
    put_stack(world, 0, PID, 300, 64);
    put_stack(world, 0, PID, 310, 64);
    put_stack(world, 1, PID, 305, 64);
    drain_all(world->drain, 1000);
    assert_int_equal(received(world), 0);
    assert_int_equal(drain_held(world->drain, 1000), 3);
    assert_int_equal(world->cache.request_count, 1);

    fake_module_ready(&world->cache, 77, fake_module_table());
    assert_int_equal(drain_held(world->drain, 1010), 0);
    assert_int_equal(received(world), 3);
    assert_int_equal(counted(world).cold_stacks, 0);
    assert_int_equal(counted(world).truncated_stacks, 0);
    expect_qualities(world, "300 1; 310 1; 305 1; "); /* one CPU after the other */
}

static int set_up_waits(void **state)
{
    *state = ring_world_new(&(struct ring_world_options){.unwind = SESSION_UNWIND_AUTO,
                                                         .cpu_count = 2,
                                                         .max_stack_depth = 3,
                                                         .caches = true,
                                                         .switches = true,
                                                         .waits = true});
    return *state == NULL ? -1 : 0;
}

/* It goes on at 500. */
DRAIN_STORY(a_wait_is_written_when_its_stack_comes, set_up_waits)
{
    put_program(world);
    put_copy_in(world, PERF_STREAM_WAITS, PERF_RECORD_MISC_USER, 0, PID, 300, 64, 64, NULL);
    for (uint64_t i = 0; i < 4; i++) { /* out and in, of each of both switches */
        uint64_t tid = i == 0 || i == 3 ? PID : 0;
        PUT(world, 0, SWITCHES, SWITCH_CPU_WIDE, i % 2 == 0 ? PERF_RECORD_MISC_SWITCH_OUT : 0,
            pair(0, 0), tid << 32 | tid, i < 2 ? 310 : 500);
    }
    drain_all(world->drain, 1000);
    assert_int_equal(drain_held(world->drain, 1000), 1);
    fake_module_ready(&world->cache, 77, fake_module_table());
    assert_int_equal(drain_held(world->drain, 1010), 0);
    const struct books_event waits = drain_books(world->drain, 0, 0).events[0];
    assert_int_equal(waits.received, 1);
    assert_int_equal(waits.weight, 200);
}

STACK_TEST(who_waits_does_not_hold_up_the_others)
{
    put_program(world);
    put_mmap(world, 0, PID, 200, 0x9000, "/more");
    put_stack(world, 0, PID, 300, 64);
    put_fork(world, 0, PID + 1, PID, 250);
    put_mmap(world, 0, PID + 1, 260, 0x5000, ""); /* code without a file */
    put_stack(world, 0, PID + 1, 310, 64);
    drain_all(world->drain, 1000);
    assert_int_equal(drain_held(world->drain, 1000), 1);
    assert_int_equal(received(world), 1);
}

STACK_TEST(who_waited_too_long_is_taken_as_it_is)
{
    put_program(world);
    put_stack(world, 0, PID, 300, 64);
    put_stack(world, 0, PID, 900, 64);
    drain_all(world->drain, 1000);
    assert_int_equal(drain_held(world->drain, DRAIN_HELD_NS), 2);
    assert_int_equal(drain_held(world->drain, DRAIN_HELD_NS + 300), 1);
    assert_int_equal(received(world), 1);
    assert_int_equal(counted(world).cold_stacks, 1);
    assert_int_equal(counted(world).truncated_stacks, 1);
    fake_module_ready(&world->cache, 77, fake_module_table());
    assert_int_equal(drain_held(world->drain, DRAIN_HELD_NS + 310), 0);
    assert_int_equal(received(world), 2);
    assert_int_equal(counted(world).cold_stacks, 1);
}

STACK_TEST(a_full_memory_loses_tables_and_no_samples)
{
    uint64_t count = 0;
    put_program(world);
    while (received(world) == 0 && count < 1000) {
        put_stack(world, 0, PID, 300 + count, 60000);
        drain_all(world->drain, 1000000);
        count++;
    }
    assert_in_range(count, 250, 300); /* of 60 KB in half of 32 MiB, the share of one process */
    assert_int_equal(received(world) + drain_held(world->drain, 1000), count);
    assert_int_equal(counted(world).cold_stacks, received(world));
    fake_module_ready(&world->cache, 77, fake_module_table());
    assert_int_equal(drain_held(world->drain, 1010), 0);
    assert_int_equal(received(world), count);
}

#define MANY ((size_t)3000)

/* Stacks at 300, 301, ... that wait for the table of their file. */
static void hold(struct ring_world *world)
{
    for (size_t i = 0; i < MANY; i++) {
        put_stack(world, 0, PID, 300 + i, 16);
        drain_all(world->drain, 1000000);
    }
}

STACK_TEST(many_that_wait_are_tried_again_a_part_at_a_time)
{
    put_program(world);
    put_mmap(world, 0, PID, 200, 0x9000, "/more");
    hold(world);
    assert_int_equal(drain_held(world->drain, 1000), MANY);
    fake_module_ready(&world->cache, 77, fake_module_table());
    size_t rounds = 0;
    for (size_t left = MANY; left > 0; rounds++) {
        size_t now = drain_held(world->drain, 1000);
        assert_true(now < left && left - now <= 1024);
        left = now;
    }
    assert_int_equal(rounds, 3);
    assert_int_equal(received(world), MANY);
    assert_int_equal(counted(world).cold_stacks, 0);
}

STACK_TEST(what_proc_says_is_no_news_to_those_who_wait_for_tables)
{
    fake_proc_delay(true);
    put_program(world);
    hold(world);
    put_stack(world, 0, PID + 1, 900000, 16);
    drain_all(world->drain, 1000000);
    assert_int_equal(drain_held(world->drain, 1000000), MANY + 1);
    fake_proc_delay(false);
    drain_sideband(world->drain, 1000001);
    /* None of the many is tried again on its way. */
    assert_int_equal(drain_held(world->drain, 1000001), MANY);
    fake_module_ready(&world->cache, 77, fake_module_table());
    for (size_t rounds = 0; drain_held(world->drain, 1000001) > 0; rounds++) {
        assert_true(rounds < 3);
    }
    assert_int_equal(counted(world).cold_stacks, 0);
}

STACK_TEST(a_table_is_news_only_to_samples_that_wait_for_it)
{
    put_program(world);
    put_exec(world, 0, PID + 1, 100, "other");
    put_mmap_of(world, 0, PID + 1, 200, 0x5000, "/other", 78);
    put_stack(world, 0, PID, 300, 64);
    put_stack(world, 0, PID + 1, 310, 64);
    drain_all(world->drain, 1000);
    assert_int_equal(drain_held(world->drain, 1000), 2);
    uint64_t lookups_before = counted(world).code_lookups;
    fake_module_ready(&world->cache, 78, fake_module_table());
    assert_int_equal(drain_held(world->drain, 1010), 1);
    assert_int_equal(counted(world).code_lookups, lookups_before + 2);
    trace_poll(world->trace);
    fake_module_ready(&world->cache, 77, fake_module_table());
    assert_int_equal(drain_held(world->drain, 1020), 0);
    expect_qualities(world, "310 1; 300 1; ");
}

STACK_TEST(a_pass_goes_on_while_what_it_was_at_expires)
{
    put_program(world);
    hold(world);
    fake_module_ready(&world->cache, 77, fake_module_table());
    assert_int_equal(drain_held(world->drain, 1000), MANY - 1024);
    assert_int_equal(drain_held(world->drain, DRAIN_HELD_NS + 300 + 2000), MANY - 2001 - 999);
    assert_int_equal(received(world), MANY);
    assert_int_equal(counted(world).cold_stacks, 0);
}

STACK_TEST(a_task_amid_an_exec_has_no_stack)
{
    put_exec(world, 0, PID, 100, "prog");
    put_mmap(world, 0, PID, 200, 0x5000, "//anon");
    put_copy(world, PERF_RECORD_MISC_KERNEL, 0, PID, 300, 64, 0);
    put_copy(world, PERF_RECORD_MISC_KERNEL, 0, PID, 301, 64, 64);
    put_copy(world, PERF_RECORD_MISC_USER, 0, PID, 302, 64, 0);
    expect_qualities(world, "300 0; 301 4; 302 4; ");
    assert_int_equal(counted(world).truncated_stacks, 2);
    assert_int_equal(counted(world).mapping_uncertain, 0);
}
