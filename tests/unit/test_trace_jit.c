/* SPDX-License-Identifier: Apache-2.0 */

/* What is written of code that processes make, and when their maps are asked for. */
#include "jit_map.h"
#include "jit_story.h"

#include "mapping_set.h"

JIT_TEST(names_each_function_once_in_a_module_of_its_process)
{
    define(world, 3, 0x1000);
    name(world, 0x1004);
    name(world, 0x1008);
    name(world, 0x1014);
    expect_read(world, "[anon] 7:3 1000+1000=1000 mapped\n");
    assert_int_equal(ticket_count, 1);
    assert_string_equal(tickets[0].path, "map of 7");
    assert_int_equal(tickets[0].start_time_ns, 49);
    answer(world, &two);
    expect_read(world, "[jit] (pid 7) 7:3 1000+1000=1000 mapped\n" JIT_LINE("0x1010", "b")
                           JIT_LINE("0x1000", "a"));
    name(world, 0x100c);
    define(world, 4, 0x2000);
    expect_read(world, "[jit] (pid 7) 7:4 2000+1000=2000 mapped\n");
    assert_int_equal(ticket_count, 1);
}

JIT_TEST(looks_again_for_what_the_map_did_not_have)
{
    define(world, 3, 0x1000);
    name(world, 0x1004);
    answer(world, &one);
    (void)read_all(world);
    name(world, 0x1024);
    assert_true(trace_jits_poll(world->jits));
    assert_int_equal(ticket_count, 1); /* not at once */
    wait_for_question(world);
    assert_int_equal(tickets[1].inode, 99);
    assert_int_equal(tickets[1].known_bytes, 100);
    answer(world, &three);
    expect_read(world, "[jit] (pid 7) 7:3 1020+10=200000000000000 later\n" JIT_LINE(
                           "0x200000000000000", "c"));
}

JIT_TEST(asks_at_the_end_for_what_is_missing_only)
{
    name(world, 0x1004);
    name(world, 0x1014);
    answer(world, &one);
    (void)read_all(world);
    assert_false(trace_jits_pending(world->jits));
    trace_jits_ask_again(world->jits);
    assert_true(trace_jits_pending(world->jits));
    assert_true(trace_jits_poll(world->jits));
    assert_int_equal(ticket_count, 2);
    assert_true(trace_jits_pending(world->jits));
    answer(world, &two);
    assert_false(trace_jits_pending(world->jits));
    assert_contains(read_all(world), JIT_LINE("0x200000000000000", "b"));

    trace_jits_ask_again(world->jits);
    assert_true(trace_jits_poll(world->jits));
    assert_false(trace_jits_pending(world->jits));
    assert_int_equal(ticket_count, 2);
}

JIT_TEST(does_not_wait_for_a_map_that_has_nothing_to_name)
{
    name(world, 0x1004);
    trace_jits_ask_again(world->jits); /* while the first reading is under way */
    answer(world, &one);
    assert_contains(read_all(world), JIT_LINE("0x1000", "a"));
    assert_true(trace_jits_poll(world->jits));
    assert_int_equal(ticket_count, 1);
    assert_false(trace_jits_pending(world->jits));
}

/* Its first owner was there until the first reading began, the second from the end of the next one
 * on, and in between there is no name. */
JIT_TEST(an_address_that_is_used_again_has_each_name_in_its_time)
{
    define(world, 3, 0x1000);
    name(world, 0x1004);
    uint64_t asked_ns = clock_ns(CLOCK_BOOTTIME);
    answer(world, &one);
    uint32_t epoch = trace_jits_epoch(world->jits);
    assert_int_equal(name_at(world, 0x1008, clock_ns(CLOCK_BOOTTIME)), world->mapped_ns);
    (void)read_all(world);
    wait_for_question(world);
    assert_false(trace_jits_proved(world->jits, clock_ns(CLOCK_BOOTTIME)));
    changed_before_ns = 0;
    answer(world, &replaced);
    expect_read(world, "[anon] 7:3 1000+10=1000 later\n");
    assert_true(last_mmap_ns <= asked_ns);
    assert_int_not_equal(trace_jits_epoch(world->jits), epoch);

    uint64_t end_ns = clock_ns(CLOCK_BOOTTIME);
    assert_int_equal(name_at(world, 0x1008, asked_ns + 1), TIME_OPEN_NS);
    expect_read(world, "[anon] 7:3 1008+1=1008 later\n");
    assert_int_equal(last_mmap_ns, asked_ns + 1);
    uint64_t from_ns = name_at(world, 0x1008, clock_ns(CLOCK_BOOTTIME));
    assert_true(from_ns > asked_ns && from_ns <= end_ns);
    expect_read(world, "[jit] (pid 7) 7:3 1000+10=200000000000000 later\n" JIT_LINE(
                           "0x200000000000000", "A"));
    assert_int_equal(last_mmap_ns, from_ns);
    name(world, 0x1014);
    assert_contains(read_all(world), JIT_LINE("0x200000000000010", "b"));
}

/* As long as the file has not been changed since before the sample, its reading tells of that. */
JIT_TEST(an_old_map_names_what_was_sampled_before_it_was_read)
{
    define(world, 3, 0x1000);
    name_at(world, 0x1004, world->mapped_ns + 1);
    answer(world, &replaced);
    expect_read(world, "[anon] 7:3 1000+1000=1000 mapped\n[jit] (pid 7) 7:3 1000+1000=1000 mapped\n"
                       "[jit] (pid 7) 7:3 1000+10=200000000000000 mapped\n" JIT_LINE(
                           "0x200000000000000", "A"));
    changed_before_ns = 0;
    world->process.pid = 8;
    name_at(world, 0x1004, world->mapped_ns + 1);
    answer(world, &replaced);
    expect_read(world, "");
}

/* While a map is read for the first time, frames are looked up again now and then. */
JIT_TEST(a_map_names_what_was_sampled_last_if_it_is_younger_than_the_first_sample)
{
    uint64_t now_ns = clock_ns(CLOCK_BOOTTIME);
    define(world, 3, 0x1000);
    name_at(world, 0x1004, now_ns - 4 * NS_PER_S);
    name_at(world, 0x1014, now_ns - 4 * NS_PER_S);
    uint32_t epoch = trace_jits_epoch(world->jits);
    for (int i = 0; i < 500 && trace_jits_epoch(world->jits) == epoch; i++) {
        (void)poll(NULL, 0, 10);
        assert_true(trace_jits_poll(world->jits));
    }
    assert_int_not_equal(trace_jits_epoch(world->jits), epoch);
    name_at(world, 0x1004, now_ns - NS_PER_S);
    changed_before_ns = clock_ns(CLOCK_BOOTTIME) - now_ns + 3 * NS_PER_S;
    (void)read_all(world);
    answer(world, &two);
    expect_read(world, "[jit] (pid 7) 7:3 1000+1000=1000 later\n" JIT_LINE("0x1000", "a"));
    assert_in_range(last_mmap_ns, now_ns - 4 * NS_PER_S, now_ns - NS_PER_S);
}

/* Whatever it said in between is lost: all that was sampled since the reading before loses its
 * name, and what comes is named from the new reading on. */
JIT_TEST(a_map_that_is_written_anew_begins_anew)
{
    define(world, 3, 0x1000);
    name(world, 0x1004);
    answer(world, &three);
    name(world, 0x1004);
    name(world, 0x1014);
    (void)read_all(world);
    wait_for_question(world);
    is_rewritten = true;
    changed_before_ns = 0;
    answer(world, &two);
    expect_read(world, "[anon] 7:3 1010+10=1010 later\n[anon] 7:3 1000+10=1000 later\n");
    name(world, 0x1004);
    expect_read(world, "[anon] 7:3 1000+1000=1000 later\n"
                       "[jit] (pid 7) 7:3 1000+10=200000000000000 later\n" JIT_LINE(
                           "0x200000000000000", "a"));
}

JIT_TEST(a_map_that_has_changed_and_reads_as_before_begins_anew)
{
    define(world, 3, 0x1000);
    name(world, 0x1004);
    answer(world, &two);
    name(world, 0x1004);
    (void)read_all(world);
    wait_for_question(world);
    changed_before_ns = 0;
    answer(world, &two);
    expect_read(world, "[anon] 7:3 1000+10=1000 later\n");
}

/* Samples since the last reading have no name when there is no other reading. */
JIT_TEST(what_is_not_proved_at_the_end_loses_its_name)
{
    define(world, 3, 0x1000);
    name_at(world, 0x1004, world->mapped_ns + 1);
    answer(world, &two);
    (void)read_all(world);
    trace_jits_close(world->jits);
    expect_read(world, "");

    name(world, 0x1004);
    name(world, 0x1014);
    expect_read(world, JIT_LINE("0x1010", "b"));
    trace_jits_ask_again(world->jits);
    assert_true(trace_jits_poll(world->jits));
    fail_look(world, MODULE_FAILURE_NOT_FOUND);
    trace_jits_close(world->jits);
    expect_read(world, "[anon] 7:3 1000+1000=1000 later\n");
    assert_true(trace_jits_proved(world->jits, UINT64_MAX));
}

/* Another answer with the same module is a proof, too. */
JIT_TEST(a_map_that_stays_proves_what_was_sampled)
{
    define(world, 3, 0x1000);
    name(world, 0x1004);
    answer(world, &two);
    name(world, 0x1004);
    uint64_t sampled_ns = clock_ns(CLOCK_BOOTTIME);
    assert_false(trace_jits_proved(world->jits, sampled_ns));
    (void)read_all(world);
    trace_jits_ask_again(world->jits);
    assert_true(trace_jits_poll(world->jits));
    tickets[1].module = tickets[0].module;
    tickets[1].state = MODULE_READY;
    assert_true(trace_jits_poll(world->jits));
    assert_true(trace_jits_proved(world->jits, sampled_ns));
    trace_jits_close(world->jits);
    expect_read(world, "");
}

JIT_TEST(a_process_without_a_map_stays_as_it_is)
{
    define(world, 3, 0x1000);
    name(world, 0x1004);
    fail_look(world, MODULE_FAILURE_NOT_FOUND);
    define(world, 4, 0x2000);
    expect_read(world, "[anon] 7:3 1000+1000=1000 mapped\n"
                       "[anon] 7:4 2000+1000=2000 mapped\n");
    assert_false(trace_jits_pending(world->jits));

    /* Until there is one, be it written only now. */
    changed_before_ns = 0;
    trace_jits_ask_again(world->jits);
    assert_true(trace_jits_poll(world->jits));
    answer(world, &one);
    expect_read(world, "[jit] (pid 7) 7:3 1000+1000=1000 mapped\n" JIT_LINE("0x1000", "a"));
}

/* The map may have been there, and other. */
JIT_TEST(a_look_that_failed_does_not_say_that_there_was_no_map)
{
    static const enum module_failure failures[] = {MODULE_FAILURE_LIMIT, MODULE_FAILURE_UNREADABLE,
                                                   MODULE_FAILURE_IDENTITY};
    changed_before_ns = 0;
    for (size_t i = 0; i < COUNT_OF(failures); i++) {
        world->process.pid = 70 + (int32_t)i;
        name(world, 0x1004);
        fail_look(world, failures[i]);
        trace_jits_ask_again(world->jits);
        assert_true(trace_jits_poll(world->jits));
        answer(world, &one);
        expect_read(world, "");
    }
}

/* A process that has mapped its jitdump at 0x5000. */
static void map_jitdump(struct world *world)
{
    static struct mapped_file file = {.path = "/tmp/jit-7.dump", .is_jitdump = true};
    static struct mapping mapping;
    static struct mapping_chunk chunk;
    mapping =
        (struct mapping){.start = 0x5000, .end = 0x6000, .file = &file, .to_ns = TIME_OPEN_NS};
    chunk = (struct mapping_chunk){.items = &mapping, .count = 1};
    world->process.mappings = (struct mapping_set){.chunks = &chunk, .chunk_count = 1, .count = 1};
    world->process.jitdump_start = mapping.start;
}

JIT_TEST(a_jitdump_that_cannot_be_read_now_is_asked_for_again)
{
    map_jitdump(world);
    name(world, 0x1004);
    assert_string_equal(tickets[0].path, "map of 7/tmp/jit-7.dump");
    fail_look(world, MODULE_FAILURE_LIMIT);
    assert_int_equal(ticket_count, 1);
    wait_for_question(world);
    assert_string_equal(tickets[1].path, "map of 7/tmp/jit-7.dump");
    fail_look(world, MODULE_FAILURE_UNREADABLE); /* now its perf map is */
    assert_int_equal(ticket_count, 3);
    assert_string_equal(tickets[2].path, "map of 7");
}

JIT_TEST(another_program_with_the_pid_has_a_name_of_its_own)
{
    name(world, 0x1004);
    answer(world, &one);
    world->process.exec_ns = 90;
    name(world, 0x1004);
    answer(world, &one);
    const char *text = read_all(world);
    assert_contains(text, JIT_LINE("0x1000", "a"));
    assert_contains(text, LINE("[jit] (pid 7) (2)", "0x1000", "a"));
}

JIT_TEST(a_new_log_begins_with_nothing)
{
    name(world, 0x1004);
    answer(world, &one);
    (void)read_all(world);
    name(world, 0x1014);
    trace_jits_begin(world->jits);
    name(world, 0x1004);
    answer(world, &one);
    assert_contains(read_all(world), JIT_LINE("0x1000", "a"));
}

TEST(sees_that_the_real_time_was_set)
{
    const int64_t hour_ns = INT64_C(3600) * NS_PER_S;
    struct jit_clock clock = {0};
    while (!clock.is_known) { /* a look that is interrupted tells nothing */
        jit_clock_look(&clock);
    }
    const int64_t offset_ns = clock.offset_ns;
    assert_int_equal(clock.set_ns, 0);
    for (clock.offset_ns += hour_ns; clock.offset_ns > offset_ns + hour_ns / 2;) {
        jit_clock_look(&clock);
    }
    assert_int_not_equal(clock.set_ns, 0);
}
