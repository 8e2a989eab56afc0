/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the trace writes where a log ends and the next one begins, and for samples whose stacks come
 * later.
 */
#include "trace_world.h"
#include "unit_test.h"

/* A process that is new to the log, and a sample of it without a stack. */
static void sample_new(struct world *world, size_t cpu_index, int32_t pid)
{
    struct sample sample = {
        .time_ns = 100, .weight = 1, .cpu = cpu_index == 0 ? 0 : 5, .pid = pid, .tid = pid};
    bool uncertain = false;
    process_table_comm(world->processes, pid, pid, "filler", true, 50);
    trace_sample(world->trace, cpu_index, &sample, process_table_find(world->processes, pid, 100),
                 &uncertain);
}

/* Fills the log until another one is open. */
static void fill_log(struct world *world)
{
    for (int32_t pid = 1000; trace_buffer_has_log(world->buffer); pid++) {
        assert_true(pid < 20000);
        sample_new(world, 1, pid);
    }
}

STORY(a_new_log_says_again_what_is_sampled_again)
{
    run(world, 42, "/bin/prog");
    (void)sample_low(world, 42, 100);
    fill_log(world); /* while the file is being read */
    (void)read_all(world);
    answer(world, 0, &test_modules[0]);
    (void)read_all(world);
    /* Here nothing is known of the process yet, so there is nothing to correct. */
    assert_contains(world->text, "\"name\":\"low\"");
    assert_null(strstr(world->text, "42:2"));
    (void)sample_low(world, 42, 300);
    assert_contains(read_all(world), "name 42/0 prog since 50\n"
                                     "name 42/42 prog since 50\n"
                                     "module 42:1 [unknown] build-id 0 bytes\n"
                                     "mmap 42:1 0+100000000000000 = 0 at 50\n"
                                     "module 42:2 /bin/prog build-id 4 bytes\n"
                                     "mmap 42:2 7000000+10000 = 400000 at 60\n");
    assert_int_equal(ticket_count, 1);
}

STORY(what_was_gathered_goes_to_the_log_that_defines_it)
{
    const size_t needed_bytes = BUFFER_BYTES / 16;
    int32_t pid = 1000;
    while (trace_buffer_has_room(world->buffer, TRACE_LANE_DEFINITIONS, needed_bytes + 4096)) {
        sample_new(world, 1, pid++);
    }
    int32_t first = pid;
    while (trace_buffer_has_log(world->buffer)) {
        sample_new(world, 0, pid++);
    }
    assert_in_range(pid - first, 2, 50);
    const char *second_log = strstr(strstr(read_all(world), "data {") + 1, "data {");
    char expected[64];
    (void)snprintf(expected, sizeof expected, "sample cpu 0 %d/%d at 100", first, first);
    const char *sample = strstr(world->text, expected);
    assert_true(sample != NULL && second_log != NULL && sample < second_log);
    (void)snprintf(expected, sizeof expected, "sample cpu 0 %d/%d at 100", pid - 1, pid - 1);
    sample = strstr(world->text, expected);
    assert_true(sample != NULL && sample > second_log);
}

STORY(full_logs_drop_what_is_not_defined_in_them)
{
    int32_t pid = 1000;
    (void)take_sample(world, 1000, 100, NULL, 0);
    fill_log(world); /* the first one, and its samples are never read */
    while (trace_buffer_has_room(world->buffer, TRACE_LANE_DEFINITIONS, BUFFER_BYTES / 32 + 4096)) {
        sample_new(world, 1, ++pid);
    }
    for (size_t i = 0; i < 40; i++) {
        sample_new(world, 0, ++pid);
    }
    assert_in_range(trace_lane_counts(world->trace, 0, 0).dropped, 5, 35);
}

STORY(a_stack_that_comes_later_is_defined_before_its_completion)
{
    uint64_t stack[] = {0x7001010};
    uint64_t id = 0;
    struct sample sample = {.time_ns = 100, .weight = 1, .cpu = 5, .pid = 42, .tid = 42};
    run(world, 42, "/bin/prog");
    struct process *process = process_table_find(world->processes, 42, 100);
    (void)read_all(world);
    assert_true(trace_open_partial(world->trace, 1, &sample, process, &id));
    assert_int_equal(trace_lane_counts(world->trace, 1, 0).kept, 1);
    expect_read(world, "name 42/0 prog since 50\n"
                       "name 42/42 prog since 50\n"
                       "module 42:1 [unknown] build-id 0 bytes\n"
                       "mmap 42:1 0+100000000000000 = 0 at 50\n"
                       "partial 5000000000001 42/42 at 100, 0 user\n");
    sample.user_stack = stack;
    sample.user_count = 1;
    sample.quality = STACK_NO_RULE;
    assert_true(trace_complete(world->trace, 1, id, &sample, process, STACK_CLOSED_NORMALLY));
    expect_read(world, "module 42:2 /bin/prog build-id 0 bytes\n"
                       "mmap 42:2 7000000+10000 = 0 at 60\n"
                       "completes 5000000000001: 1 user, quality 4\n");
    assert_false(trace_complete(world->trace, 1, id, &sample, process, STACK_CLOSED_NORMALLY));
    assert_int_equal(trace_lane_counts(world->trace, 1, 0).kept, 1);
}

/* An id means nothing in another segment. */
STORY(what_is_open_is_closed_with_its_log)
{
    uint64_t id = 0;
    struct sample sample = {.time_ns = 100, .weight = 1, .cpu = 5, .pid = 42, .tid = 42};
    process_table_comm(world->processes, 42, 42, "prog", true, 50);
    struct process *process = process_table_find(world->processes, 42, 100);
    assert_true(trace_open_partial(world->trace, 1, &sample, process, &id));
    fill_log(world);
    assert_false(trace_complete(world->trace, 1, id, &sample, process, STACK_CLOSED_NORMALLY));
    assert_contains(read_all(world), "completes 5000000000001: 0 user, quality 500\n");
    id = 0;
    assert_true(trace_open_partial(world->trace, 0, &sample, process, &id));
    assert_true(trace_finish(world->trace, "{}"));
    assert_contains(read_all(world), ": 0 user, quality 300\n");
}

/* A reader skips a closed log that has no samples left, and would not get the books in it. */
TEST_OF(struct world *world, no_log_begins_behind_the_books, set_up_wide, tear_down)
{
    const char *books = "data {\"books\":1}\n";
    for (int32_t pid = 1000;
         trace_buffer_has_room(world->buffer, TRACE_LANE_DEFINITIONS, BUFFER_BYTES / 8); pid++) {
        sample_new(world, 1, pid);
    }
    assert_true(trace_finish(world->trace, "{\"books\":1}"));
    assert_contains(read_shown(world), books);
    assert_int_equal(trace_buffer_unread_samples(world->buffer), 0);
    trace_cursor_begin_segment(world->chunks);
    trace_poll(world->trace);
    assert_contains(read_shown(world), books);
    /* What is recorded then has other books. */
    assert_true(trace_buffer_has_log(world->buffer));
    trace_resume(world->trace);
    trace_poll(world->trace);
    assert_false(trace_buffer_has_log(world->buffer));
}
