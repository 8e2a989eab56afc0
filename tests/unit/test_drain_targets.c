/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which samples are filtered on their way: by what was known of their process at their time.
 */
#include "drain_world.h"

static int set_up_target(void **state)
{
    static const struct session_targets targets = {.pids = {PID}, .pid_count = 1};
    return set_up_with(state, &targets, SESSION_UNWIND_FP);
}

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

static int set_up_named_stacks(void **state)
{
    static const struct session_targets targets = {.comms = {"prog"}, .comm_count = 1};
    return set_up_with(state, &targets, SESSION_UNWIND_AUTO);
}

static void children_of_a_target_are_kept_and_strangers_filtered(void **state)
{
    struct ring_world *world = *state;
    put_fork(world, 0, PID + 1, PID, 100);
    put_fork(world, 1, PID + 2, PID + 1, 200);
    put_fork(world, 1, PID + 3, 1, 210);
    for (uint32_t i = 0; i < 4; i++) {
        put_sample(world, 0, PID + i, 300 + i, 0x5010);
    }
    drain_all(world->drain, 1000);
    trace_poll(world->trace);
    assert_int_equal(drain_cpu_counts(world->drain)[0].received, 4);
    assert_int_equal(drain_cpu_counts(world->drain)[0].kept, 3);
    assert_int_equal(drain_cpu_counts(world->drain)[0].filtered, 1);
}

static void a_name_counts_at_the_time_of_the_sample(void **state)
{
    struct ring_world *world = *state;
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
    const char *text = read_all(world);
    assert_non_null(strstr(text, "sample at 200, quality 4\nsample at 399, quality 4\n"));
    put_comm(world, PID, PID, 1100, "work");
    put_thread_sample(world, PID, PID + 1, 1099);
    put_thread_sample(world, PID, PID + 1, 1100); /* in, with its leader */
    drain_all(world->drain, 2000);
    assert_int_equal(kept(world), 3);
    assert_int_equal(drain_cpu_counts(world->drain)[0].filtered, 4);
}

static void a_tid_is_a_target_until_another_thread_has_it(void **state)
{
    struct ring_world *world = *state;
    put_thread_sample(world, PID, PID + 9, 300);
    put_thread_sample(world, PID, PID + 8, 300);
    drain_all(world->drain, 1000);
    assert_int_equal(kept(world), 1);
    uint64_t words[] = {pair(PID, PID), pair(PID + 9, PID), 1100, pair(PID, PID), 1100, 0, 2};
    put(world, 0, RING_OF_SIDEBAND, PERF_RECORD_FORK, 0, words, 7);
    put_thread_sample(world, PID, PID + 9, 1200);
    drain_all(world->drain, 2000);
    assert_int_equal(kept(world), 1);
}

static void a_uid_is_read_again_after_a_second_and_after_an_exec(void **state)
{
    struct ring_world *world = *state;
    const uint32_t self = (uint32_t)getpid();
    put_sample(world, 0, self, 300, 0x5010);
    drain_all(world->drain, UINT64_MAX);
    struct process *process = process_table_find(world->processes, (int32_t)self, UINT64_MAX - 1);
    assert_int_equal(kept(world), 1);

    /* As if it had been somebody else's then. */
    const uint64_t second_ns = 1000000000;
    uint64_t read_ns = process->identity_ns;
    process->identity_matches = false;
    put_sample(world, 0, self, read_ns + second_ns - 1, 0x5010);
    drain_all(world->drain, UINT64_MAX);
    assert_int_equal(kept(world), 1);
    put_sample(world, 0, self, read_ns + second_ns, 0x5010);
    drain_all(world->drain, UINT64_MAX);
    assert_int_equal(kept(world), 2);

    process->identity_matches = false;
    put_exec(world, 0, self, read_ns + second_ns + 10, "prog");
    put_sample(world, 0, self, read_ns + second_ns + 11, 0x5010);
    drain_all(world->drain, UINT64_MAX);
    assert_int_equal(kept(world), 3);
}

/* The pid may be another's by now; the pid of this test is one that /proc knows. */
static void who_has_ended_is_judged_by_the_last_word(void **state)
{
    struct ring_world *world = *state;
    const uint32_t self = (uint32_t)getpid();
    put_sample(world, 0, self, 300, 0x5010);
    drain_all(world->drain, UINT64_MAX);
    struct process *process = process_table_find(world->processes, (int32_t)self, UINT64_MAX - 1);
    uint64_t ended_ns = process->identity_ns + UINT64_C(2000000000);
    uint64_t words[] = {pair(self, 1), pair(self, 1), ended_ns, pair(self, self), ended_ns, 0, 2};
    process->identity_matches = false;
    put(world, 0, RING_OF_SIDEBAND, PERF_RECORD_EXIT, 0, words, 7);
    put_sample(world, 0, self, ended_ns - 1, 0x5010);
    drain_all(world->drain, UINT64_MAX);
    assert_int_equal(process->to_ns, ended_ns);
    assert_int_equal(kept(world), 1);
}

static void readings_of_a_round_are_bounded(void **state)
{
    struct ring_world *world = *state;
    enum {
        CHILDREN = 100,
        READINGS = 64
    };
    const uint32_t self = (uint32_t)getpid();
    size_t read_count = 0;
    put_sample(world, 0, self, 300, 0x5010);
    drain_all(world->drain, 1000);
    for (uint32_t i = 0; i < CHILDREN; i++) {
        put_fork(world, 0, PID + i, self, 1100);
        put_sample(world, 0, PID + i, 1200, 0x5010);
    }
    drain_all(world->drain, 2000);
    for (int32_t i = 0; i < CHILDREN; i++) {
        read_count += process_table_find(world->processes, PID + i, 1200)->identity_ns != 0;
    }
    assert_int_equal(read_count, READINGS);
    /* They are what their parent is. */
    assert_int_equal(kept(world), 1 + CHILDREN);
}

static void a_sample_that_waits_was_filtered_when_it_came(void **state)
{
    struct ring_world *world = *state;
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

#define TEST(function, set_up) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(children_of_a_target_are_kept_and_strangers_filtered, set_up_target),
        TEST(a_name_counts_at_the_time_of_the_sample, set_up_name),
        TEST(a_tid_is_a_target_until_another_thread_has_it, set_up_name),
        TEST(a_uid_is_read_again_after_a_second_and_after_an_exec, set_up_user),
        TEST(who_has_ended_is_judged_by_the_last_word, set_up_user),
        TEST(readings_of_a_round_are_bounded, set_up_user),
        TEST(a_sample_that_waits_was_filtered_when_it_came, set_up_named_stacks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
