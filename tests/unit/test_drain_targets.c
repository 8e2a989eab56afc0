/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which samples are filtered on their way: by what was known of their process at their time.
 */
#include "drain_world.h"
#include "sink.h"

#include <errno.h>

static int set_up_name(void **state)
{
    static const struct session_targets targets = {
        .comms = {"work*"}, .comm_count = 1, .tids = {PID + 9}, .tid_count = 1};
    return set_up_with(state, &targets, SESSION_UNWIND_FP);
}

static int set_up_user(void **state)
{
    const struct session_targets targets = {.uids = {geteuid()}, .uid_count = 1};
    return set_up_with(state, &targets, SESSION_UNWIND_FP);
}

/* The second sink wants all that the first wants, and more. */
static int set_up_two_sinks(void **state)
{
    static const struct session_targets targets = {.pids = {PID}, .pid_count = 1};
    static const struct session_targets more = {.pids = {PID, PID + 1}, .pid_count = 2};
    *state = ring_world_new(&(struct ring_world_options){
        .unwind = SESSION_UNWIND_FP, .targets = &targets, .second_targets = &more, .cpu_count = 2});
    return *state == NULL ? -1 : 0;
}

static int set_up_named_stacks(void **state)
{
    static const struct session_targets targets = {.comms = {"prog"}, .comm_count = 1};
    return set_up_with(state, &targets, SESSION_UNWIND_AUTO);
}

DRAIN_STORY(each_sink_has_the_samples_that_its_filter_wants, set_up_two_sinks)
{
    put_fork(world, 0, PID + 2, PID, 100); /* the child of a target of both */
    for (uint32_t i = 0; i < 4; i++) {
        put_sample(world, 0, PID + i, 300 + i, 0x5010);
    }
    drain_all(world->drain, 1000);
    trace_poll(world->trace);
    trace_poll(world->second.trace);
    for (size_t sink = 0; sink < 2; sink++) {
        const struct books_cpu books = drain_books(world->drain, sink, 0);
        assert_int_equal(books.received, 4);
        assert_int_equal(books.kept, 2 + sink);
        assert_int_equal(books.filtered, 2 - sink);
    }
}

DRAIN_STORY(a_name_counts_at_the_time_of_the_sample, set_up_name)
{
    put_comm(world, PID, PID, 100, "leader");
    put_comm(world, PID, PID + 1, 150, "idle");
    put_comm(world, PID, PID + 1, 200, "worker");
    put_comm(world, PID, PID + 1, 400, "idle");
    put_thread_sample(world, PID, PID, 300);     /* out: its thread's name is not its own */
    put_thread_sample(world, PID, PID + 1, 199); /* out: the name is to come */
    put_thread_sample(world, PID, PID + 1, 200); /* in */
    put_thread_sample(world, PID, PID + 1, 399); /* in, though it has another name by now */
    put_thread_sample(world, PID, PID + 1, 400); /* out */
    drain_all(world->drain, 1000);
    assert_int_equal(kept(world), 2);
    put_comm(world, PID, PID, 1100, "work");
    put_thread_sample(world, PID, PID + 1, 1099);
    put_thread_sample(world, PID, PID + 1, 1100); /* in, with its leader */
    drain_all(world->drain, 2000);
    assert_int_equal(drain_books(world->drain, 0, 0).filtered, 4);
    expect_qualities(world, "200 4; 399 4; 1100 4; ");
}

DRAIN_STORY(a_tid_is_a_target_until_another_thread_has_it, set_up_name)
{
    put_thread_sample(world, PID, PID + 9, 300);
    put_thread_sample(world, PID, PID + 8, 300);
    drain_all(world->drain, 1000);
    assert_int_equal(kept(world), 1);
    PUT(world, 0, SIDEBAND, FORK, 0, pair(PID, PID), pair(PID + 9, PID), 1100, pair(PID, PID), 1100,
        0, 2);
    put_thread_sample(world, PID, PID + 9, 1200);
    drain_all(world->drain, 2000);
    assert_int_equal(kept(world), 1);
}

#define SECOND_NS UINT64_C(1000000000)

static void expect_kept(struct ring_world *world, uint64_t count)
{
    drain_all(world->drain, UINT64_MAX);
    assert_int_equal(kept(world), count);
}

/* /proc as it is at the time that the userdata points to. */
static int read_proc(int32_t pid, struct process_scan *reading, void *userdata)
{
    const uint64_t *now_ns = userdata;
    reading->begin_ns = reading->end_ns = *now_ns;
    reading->identity_read = true;
    return pid >= PID ? 0 : -ESRCH;
}

DRAIN_STORY(a_uid_is_read_again_after_a_second_and_after_an_exec, set_up_user)
{
    uint64_t now_ns = 400;
    fake_proc_set(read_proc, &now_ns);
    fake_proc_set_uid(geteuid());
    put_sample(world, 0, PID, 300, 0x5010);
    expect_kept(world, 1);

    /* Now it is another process's: the next sample has it asked. */
    fake_proc_set_uid(geteuid() + 1);
    put_sample(world, 0, PID, now_ns + SECOND_NS - 1, 0x5010);
    expect_kept(world, 2);
    now_ns += SECOND_NS;
    put_sample(world, 0, PID, now_ns, 0x5010);
    expect_kept(world, 3);
    put_sample(world, 0, PID, now_ns + 1, 0x5010);
    expect_kept(world, 3);

    /* After an exec it is not known, so the sample waits for it. */
    fake_proc_set_uid(geteuid());
    put_exec(world, 0, PID, now_ns + 10, "prog");
    now_ns += 20;
    put_sample(world, 0, PID, now_ns - 5, 0x5010);
    expect_kept(world, 3);
    drain_sideband(world->drain, UINT64_MAX);
    assert_int_equal(drain_held(world->drain, now_ns), 0);
    assert_int_equal(kept(world), 4);
}

/* The pid may be another's by now. */
DRAIN_STORY(who_has_ended_is_judged_by_the_last_word, set_up_user)
{
    uint64_t now_ns = 400;
    fake_proc_set(read_proc, &now_ns);
    fake_proc_set_uid(geteuid());
    put_sample(world, 0, PID, 300, 0x5010);
    drain_all(world->drain, UINT64_MAX);
    struct process *process = process_table_find(world->processes, PID, UINT64_MAX - 1);
    uint64_t ended_ns = process->identity_ns + 2 * SECOND_NS;
    process->identity_matches = false;
    PUT(world, 0, SIDEBAND, EXIT, 0, pair(PID, 1), pair(PID, 1), ended_ns, pair(PID, PID), ended_ns,
        0, 2);
    put_sample(world, 0, PID, ended_ns - 1, 0x5010);
    drain_all(world->drain, UINT64_MAX);
    drain_sideband(world->drain, UINT64_MAX);
    assert_int_equal(process->to_ns, ended_ns);
    assert_int_equal(process->identity_ns, 400);
    assert_int_equal(kept(world), 1);
}

DRAIN_STORY(a_sample_waits_for_whose_its_process_is, set_up_user)
{
    uint64_t now_ns = 400;
    fake_proc_set(read_proc, &now_ns);
    fake_proc_set_uid(geteuid());
    fake_proc_delay(true);
    put_sample(world, 0, PID, 300, 0x5010);
    put_sample(world, 0, PID + 1, 310, 0x5010);
    drain_all(world->drain, 1000);
    assert_int_equal(drain_held(world->drain, 1000), 2);
    assert_int_equal(received(world), 0);
    fake_proc_delay(false);
    drain_sideband(world->drain, 1100);
    assert_int_equal(drain_held(world->drain, 1100), 0);
    assert_int_equal(kept(world), 2);

    /* Not for ever: then it belongs to no target. */
    fake_proc_delay(true);
    put_sample(world, 0, PID + 2, 1200, 0x5010);
    drain_all(world->drain, 2000);
    assert_int_equal(drain_held(world->drain, 1200 + DRAIN_HELD_NS - 1), 1);
    assert_int_equal(drain_held(world->drain, 1200 + DRAIN_HELD_NS), 0);
    assert_int_equal(kept(world), 2);
    assert_int_equal(received(world), 3);
}

DRAIN_STORY(a_sample_that_waits_was_filtered_when_it_came, set_up_named_stacks)
{
    put_program(world);
    put_stack(world, 0, PID, 300, 64);
    drain_all(world->drain, 1000);
    assert_int_equal(drain_held(world->drain, 1000), 1);
    /* So many that the name of its time is forgotten. */
    for (uint64_t i = 0; i < 2000; i++) {
        put_comm(world, PID, PID, 1100 + i, i % 2 == 0 ? "other" : "another");
    }
    drain_all(world->drain, 2000);
    fake_module_ready(&world->cache, 77, fake_module_table());
    assert_int_equal(drain_held(world->drain, 2000), 0);
    assert_int_equal(kept(world), 1);
    assert_int_equal(received(world), 1);
}

/* Of one session with a uid, of two with the same one, of two that differ: what all may read. */
TEST(what_is_read_of_command_lines_is_enough_for_all_sinks)
{
    static const struct {
        struct command_right rights[2];
        struct command_right expected;
    } cases[] = {
        {{{.is_given = false}, {.is_given = false}}, {.is_given = false}},
        {{{.is_given = true, .uid = 5}, {.is_given = false}}, {.is_given = true, .uid = 5}},
        {{{.is_given = false}, {.is_given = true, .uid = 6}}, {.is_given = true, .uid = 6}},
        {{{.is_given = true, .uid = 5}, {.is_given = true, .uid = 5}},
         {.is_given = true, .uid = 5}},
        {{{.is_given = true, .uid = 5}, {.is_given = true, .uid = 6}},
         {.is_given = true, .uid = 0}},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct sinks sinks = {.commands = {cases[i].rights[0], cases[i].rights[1]},
                                    .count = 2};
        struct command_right right = sinks_commands(&sinks);
        assert_int_equal(right.is_given, cases[i].expected.is_given);
        assert_int_equal(right.uid, cases[i].expected.uid);
    }
}
