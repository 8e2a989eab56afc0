/* SPDX-License-Identifier: Apache-2.0 */

/* One user has all the names in the world, or keeps everybody busy; what the trace writes of the
 * others all the same. */
#include "trace_world.h"
#include "unit_test.h"

#include <poll.h>

#define HOSTILE_PID    666 /* and all from there to 20,000 */
#define FUNCTION_COUNT 1024
#define NAME_STRIDE    4097 /* 4 KiB and its NUL */

static uint32_t two_users(int32_t pid)
{
    return pid >= HOSTILE_PID && pid < 20000 ? 1000 : 1001;
}

/* A file of functions with names of 4 KiB, each of 16 bytes from 0x1000 on. */
struct hostile_file {
    struct module module;
    struct symbol symbols[FUNCTION_COUNT];
    struct symbol_segment segment;
    char names[FUNCTION_COUNT * NAME_STRIDE];
};

static struct hostile_file *make_hostile_file(void)
{
    struct hostile_file *file = calloc(1, sizeof *file);
    assert_non_null(file);
    file->segment = (struct symbol_segment){0, 0x400000, 0x10000};
    for (size_t i = 0; i < FUNCTION_COUNT; i++) {
        char *name = file->names + i * NAME_STRIDE;
        memset(name, 'x', NAME_STRIDE - 1);
        file->symbols[i] = (struct symbol){0x401000 + 16 * i, 16, (uint32_t)(i * NAME_STRIDE)};
    }
    static const uint8_t build_id[4] = {1, 2, 3, 4};
    file->module.symbols = (struct symbol_table){.symbols = file->symbols,
                                                 .symbol_count = FUNCTION_COUNT,
                                                 .segments = &file->segment,
                                                 .segment_count = 1,
                                                 .names = file->names,
                                                 .names_bytes = sizeof file->names,
                                                 .build_id = build_id,
                                                 .build_id_bytes = sizeof build_id};
    return file;
}

/* A sample, and now and then a reader, so that the lane has room. */
static void take_and_read(struct world *world, int32_t pid, uint64_t time_ns, uint64_t address)
{
    (void)take_sample(world, pid, time_ns, &address, address == 0 ? 0 : 1);
    if (address / 16 % 8 == 0 && trace_buffer_unread_samples(world->buffer) > 8) {
        (void)read_all(world);
    }
}

/* Nothing of it is lost: the next account has the names of its functions. */
static void expect_names_of(struct world *world, int32_t pid)
{
    char expected[256];
    run(world, pid, "/bin/other");
    (void)sample_low(world, pid, 100);
    answer(world, ticket_count - 1, &test_modules[0]);
    const char *text = read_all(world);
    (void)snprintf(expected, sizeof expected, "name %d/0 prog since 50\n", (int)pid);
    assert_contains(text, expected);
    (void)snprintf(expected, sizeof expected, "module %d:2 /bin/other build-id 4 bytes\n",
                   (int)pid);
    assert_contains(text, expected);
    assert_contains(text, "\"name\":\"low\"");
    (void)snprintf(expected, sizeof expected, "sample cpu 5 %d/%d at 100, 1 user", (int)pid,
                   (int)pid);
    assert_contains(text, expected);
}

#define WIDE(name) TEST_OF(struct world *world, name, set_up_wide, tear_down)

WIDE(long_names_of_one_user_leave_room_for_those_of_others)
{
    struct hostile_file *file = make_hostile_file();
    owner_of = two_users;
    run(world, HOSTILE_PID, "/bin/long");
    for (uint64_t i = 0; i < FUNCTION_COUNT; i++) {
        take_and_read(world, HOSTILE_PID, 100, 0x7001000 + 16 * i);
        if (i == 0) {
            answer(world, 0, &file->module);
        }
    }
    struct counters counts = trace_counters(world->trace);
    assert_in_range(counts.names_refused, FUNCTION_COUNT / 2, FUNCTION_COUNT - 16);
    assert_int_equal(counts.tasks_refused, 0);
    expect_names_of(world, 42);
    assert_int_equal(trace_counters(world->trace).names_refused, counts.names_refused);
    assert_int_equal(trace_lane_counts(world->trace, 1, 0).dropped, 0);
    assert_true(trace_finish(world->trace, "{}"));
    free(file);
}

/* Samples of 6000 mappings, each of 64 KiB in a place of its own. */
static void map_many(struct world *world, int32_t pid)
{
    process_table_comm(world->processes, pid, pid, "maps", true, 50);
    for (uint64_t i = 0; i < 6000; i++) {
        uint64_t start = 0x10000000 + i * 0x10000;
        map_at(world, pid, "", start, 60 + i);
        take_and_read(world, pid, 10000, start);
    }
}

WIDE(mappings_of_one_user_leave_room_for_those_of_others)
{
    owner_of = two_users;
    map_many(world, HOSTILE_PID);
    assert_true(trace_counters(world->trace).mappings_refused > 100);
    assert_int_equal(trace_lane_counts(world->trace, 1, 0).dropped, 0);
    expect_names_of(world, 42);
}

/* What was there before is written, and must not show through: so each takes a definition. */
WIDE(unknown_pages_of_one_user_leave_room_for_others)
{
    owner_of = two_users;
    process_table_comm(world->processes, HOSTILE_PID, HOSTILE_PID, "maps", true, 50);
    for (uint64_t i = 0; i < 12000; i++) {
        uint64_t start = 0x10000000 + i % 8 * 0x10000;
        map_at(world, HOSTILE_PID, i % 2 == 0 ? "" : "[heap]", start, 60 + i);
        take_and_read(world, HOSTILE_PID, 60 + i, start);
    }
    struct counters counts = trace_counters(world->trace);
    assert_true(counts.tasks_refused > 100);
    assert_int_equal(trace_lane_counts(world->trace, 1, 0).dropped, counts.tasks_refused);
    expect_names_of(world, 42);
    assert_int_equal(trace_counters(world->trace).tasks_refused, counts.tasks_refused);
}

/* A frame whose definition was refused is unknown, never what was there before. */
WIDE(what_is_refused_does_not_show_what_was_there_before)
{
    owner_of = two_users;
    run(world, HOSTILE_PID, "/bin/first");
    (void)sample_low(world, HOSTILE_PID, 100);
    map_many(world, HOSTILE_PID + 1);
    (void)read_all(world);
    map_at(world, HOSTILE_PID, "/bin/second", 0x7000000, 200);
    (void)sample_low(world, HOSTILE_PID, 300);
    const char *text = read_all(world);
    assert_null(strstr(text, "/bin/second"));
    assert_contains(text, "module 666:65535 [unknown] build-id 0 bytes\n"
                          "mmap 666:65535 7001000+1000 = 7001000 at 300\n"
                          "sample cpu 5 666/666 at 300, 1 user");
}

WIDE(names_of_tasks_of_one_user_leave_room_for_others)
{
    owner_of = two_users;
    for (int32_t pid = HOSTILE_PID; pid < 8000; pid++) {
        process_table_comm(world->processes, pid, pid, "fork", true, 50);
        take_and_read(world, pid, 100, 0);
    }
    struct counters counts = trace_counters(world->trace);
    const uint64_t dropped = trace_lane_counts(world->trace, 1, 0).dropped;
    assert_true(dropped > 100);
    assert_in_range(counts.tasks_refused, dropped, 2 * dropped); /* a name, and whose it is */
    expect_names_of(world, 42);
    assert_true(trace_finish(world->trace, "{}"));
}

/* Polls for a while, or until there are so many tickets. */
static void await_tickets(struct world *world, size_t count, size_t polls)
{
    for (size_t i = 0; i < polls && ticket_count < count; i++) {
        (void)poll(NULL, 0, 10);
        trace_poll(world->trace);
    }
}

static void await_ticket(struct world *world, size_t count)
{
    await_tickets(world, count, 400);
    assert_int_equal(ticket_count, count);
}

/* Whatever account kept the cache so busy. */
WIDE(what_was_refused_for_want_of_room_is_asked_for_again)
{
    refuses_requests = true;
    run(world, 42, "/bin/prog");
    (void)sample_low(world, 42, 100);
    trace_poll(world->trace);
    assert_int_equal(trace_counters(world->trace).modules_unread, 1);
    assert_false(trace_names_pending(world->trace));
    assert_null(strstr(read_all(world), "\"name\":"));
    refuses_requests = false;
    await_ticket(world, 1);
    assert_int_equal(trace_counters(world->trace).modules_unread, 0);
    tickets[0].failure = MODULE_FAILURE_LIMIT;
    tickets[0].state = MODULE_FAILED;
    trace_poll(world->trace);
    assert_int_equal(trace_counters(world->trace).modules_unread, 1);
    assert_int_equal(ticket_count, 1); /* not at once */
    await_ticket(world, 2);
    answer(world, 1, &test_modules[0]);
    const char *text = read_all(world);
    assert_contains(text, "module 42:2 /bin/prog build-id 4 bytes\n");
    assert_contains(text, "\"name\":\"low\"");
    assert_int_equal(trace_counters(world->trace).modules_unread, 0);
}

/* 20,000 addresses of one file are noted before it has been read; a poll may write 2,048 notes. */
WIDE(what_was_noted_of_a_file_is_written_in_parts)
{
    uint64_t stack[100];
    run(world, 42, "/bin/prog");
    for (uint64_t i = 0; i < 200; i++) {
        for (uint64_t j = 0; j < 100; j++) {
            stack[j] = 0x7000000 + (100 * i + j) * 3 % 0x10000;
        }
        (void)take_sample(world, 42, 100 + i, stack, 100);
        (void)read_all(world);
    }
    fake_tickets_ready(0, &test_modules[0]);
    run(world, 43, "/bin/other");
    (void)take_sample(world, 43, 400, (uint64_t[]){0x7001010}, 1);
    fake_tickets_ready(1, &test_modules[0]);
    size_t polls = 0;
    for (; trace_names_pending(world->trace); polls++) {
        trace_poll(world->trace);
        if (polls == 0) {
            /* Meanwhile others have theirs. */
            assert_contains(read_all(world), "module 43:2 /bin/other build-id 4 bytes\n");
        }
    }
    assert_in_range(polls, 20000 / 2048, 20000 / 2048 + 2);
    assert_int_equal(trace_counters(world->trace).addresses_refused, 0);
}

WIDE(what_cannot_be_read_is_not_asked_for_again)
{
    run(world, 42, "/bin/prog");
    (void)sample_low(world, 42, 100);
    tickets[0].failure = MODULE_FAILURE_UNREADABLE;
    tickets[0].state = MODULE_FAILED;
    await_tickets(world, 2, 120);
    assert_int_equal(ticket_count, 1);
    assert_int_equal(trace_counters(world->trace).modules_unread, 1);
}

WIDE(what_was_refused_and_is_gone_is_forgotten)
{
    refuses_requests = true;
    run(world, 42, "/bin/prog");
    (void)sample_low(world, 42, 100);
    process_table_exit(world->processes, 42, 42, 200);
    process_table_prune(world->processes, 10000);
    refuses_requests = false;
    await_tickets(world, 1, 120);
    assert_int_equal(ticket_count, 0);
    assert_int_equal(trace_counters(world->trace).modules_unread, 1);
}
