/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the trace writes for a sample, read back with the strict reader: names and mappings before
 * the sample, each once; corrections when a file's table comes; functions once; drops counted.
 */
#include "trace_world.h"
#include "unit_test.h"

#include "perf_map.h"

STORY(begins_a_segment_with_its_session)
{
    expect_read(world, "data {\"s\":1}\n"
                       "name 0/0 [outside] since 0\n"
                       "name -1/0 [exited] since 0\n");
}

STORY(defines_before_the_sample_and_once)
{
    uint64_t stack[] = {0x7001010, 0x7001205};
    run(world, 42, "/bin/prog");
    (void)read_all(world);
    assert_false(take_sample(world, 42, 100, stack, 2));
    assert_false(take_sample(world, 42, 200, stack, 2));
    expect_read(world, "name 42/0 prog since 50\n"
                       "name 42/42 prog since 50\n"
                       "module 42:1 [unknown] build-id 0 bytes\n"
                       "mmap 42:1 0+100000000000000 = 0 at 50\n"
                       "module 42:2 /bin/prog build-id 0 bytes\n"
                       "mmap 42:2 7000000+10000 = 0 at 60\n"
                       "partial 5000000000001 42/42 at 100, 0 user\n"
                       "partial 5000000000001 42/42 at 200, 0 user\n"
                       "completes 5000000000001: 2 user, quality 200000004\n");
    assert_int_equal(ticket_count, 1);
    assert_true(trace_names_pending(world->trace));
}

STORY(a_table_corrects_addresses_and_names_what_was_sampled)
{
    uint64_t stack[] = {0x7001010, 0x7001200}; /* the caller's call ends where `high` begins */
    uint64_t again[] = {0x7001201};
    run(world, 42, "/bin/prog");
    (void)take_sample(world, 42, 100, stack, 2);
    (void)read_all(world);
    answer(world, 0, &test_modules[0]);
    expect_read(world,
                "module 42:2 /bin/prog build-id 4 bytes\n"
                "mmap 42:2 7000000+10000 = 400000 at 60\n"
                "data {\"build_id\":\"abcdef01\",\"module\":\"/bin/prog\",\"start\":\"0x401000\","
                "\"size\":256,\"name\":\"low\"}\n");
    assert_false(trace_names_pending(world->trace));
    (void)take_sample(world, 42, 300, again, 1);
    (void)take_sample(world, 42, 400, stack, 2);
    trace_poll(world->trace);
    assert_non_null(
        strstr(read_all(world), "\"start\":\"0x401200\",\"size\":16,\"name\":\"high\"}\n"));
    assert_null(strstr(world->text, "\"low\""));
}

STORY(a_file_with_anothers_build_id_and_path_gets_a_name_of_its_own)
{
    for (int32_t pid = 42; pid < 44; pid++) {
        process_table_comm(world->processes, pid, pid, "prog", true, 50);
        map_at(world, pid, "/lib/libc.so.6", 0x7000000, 60);
        (void)sample_low(world, pid, 100);
    }
    (void)read_all(world);
    tickets[0].module = &test_modules[0];
    test_modules[1].identity.inode = 99;
    tickets[1].module = &test_modules[1];
    tickets[0].state = tickets[1].state = MODULE_READY;
    trace_poll(world->trace);
    const char *text = read_all(world);
    assert_contains(text, "\"module\":\"/lib/libc.so.6\"");
    assert_contains(text, "\"module\":\"/lib/libc.so.6 (2)\"");
    assert_contains(text, ":2 /lib/libc.so.6 (2) build-id 4 bytes\n");
}

/* A file that was never read stands under no build-id; a file without one is known by its inode,
 * and none can be called so. */
STORY(nothing_names_the_functions_of_a_file_that_was_not_read)
{
    struct module nameless = test_modules[0];
    nameless.symbols.build_id_bytes = 0;
    nameless.identity.device = 0x801;
    nameless.identity.inode = 77;
    for (int32_t pid = 42; pid < 44; pid++) {
        struct mapping_description mapping = {
            .start = 0x7000000,
            .end = 0x7010000,
            .path = pid == 42 ? "/tmp/prog (inode 801:77)" : "/tmp/prog",
            .inode = pid == 42 ? 78 : 77,
        };
        process_table_comm(world->processes, pid, pid, "prog", true, 50);
        process_table_mmap(world->processes, pid, &mapping, 60);
        (void)sample_low(world, pid, 100);
    }
    const char *text = read_all(world);
    assert_contains(text, "module 42:2 /tmp/prog [inode 801:77) build-id 0 bytes\n");
    assert_contains(text, "module 43:2 /tmp/prog build-id 0 bytes\n");
    tickets[0].state = MODULE_FAILED;
    answer(world, 1, &nameless);
    assert_int_equal(trace_counters(world->trace).modules_unread, 1);
    text = read_all(world);
    assert_contains(text, "module 43:2 /tmp/prog (inode 801:77) build-id 0 bytes\n");
    assert_contains(text, "\"module\":\"/tmp/prog (inode 801:77)\"");
    assert_null(strstr(text, "\"module\":\"/tmp/prog\""));
}

/* The file may have been written since: it counts if the mapping was there later, which records
 * say. */
STORY(an_unclear_file_names_only_a_mapping_that_stayed)
{
    for (int32_t pid = 42; pid < 45; pid++) {
        run(world, pid, "/bin/prog");
        (void)sample_low(world, pid, 100);
        tickets[pid - 42].shown_ns = 200;
    }
    map_at(world, 43, "/bin/prog", 0x7000000, 200);
    map_at(world, 44, "/bin/prog", 0x7000000, 201);
    process_table_reach(world->processes, 199);
    (void)read_all(world);
    answer(world, 0, &test_modules[0]);
    assert_null(strstr(read_all(world), "abcdef01"));
    process_table_reach(world->processes, 201);
    for (size_t i = 0; i < 3; i++) {
        answer(world, i, &test_modules[0]);
    }
    const char *text = read_all(world);
    assert_contains(text, "module 42:2 /bin/prog build-id 4 bytes");
    assert_null(strstr(text, "module 43:2 "));
    assert_contains(text, "module 44:2 /bin/prog build-id 4 bytes");
    assert_int_equal(trace_counters(world->trace).modules_unread, 1);
}

STORY(an_address_in_no_mapping_is_unknown_and_uncertain)
{
    uint64_t stack[] = {0x123456};
    process_table_comm(world->processes, 42, 42, "prog", true, 50);
    (void)read_all(world);
    assert_true(take_sample(world, 42, 100, stack, 1));
    assert_true(take_sample(world, 42, 110, stack, 1));
    assert_true(take_sample(world, 99, 110, stack, 1)); /* of an unknown process */
    assert_contains(read_all(world), "module 42:1 [unknown] build-id 0 bytes\n"
                                     "mmap 42:1 0+100000000000000 = 0 at 50\n"
                                     "partial");
    assert_null(strstr(world->text, "module 42:2"));
}

STORY(memory_without_a_file_is_anon_until_its_map_is_read)
{
    uint64_t stack[] = {0x9000010};
    struct mapping_description mapping = {.start = 0x9000000, .end = 0x9001000, .path = "//anon"};
    process_table_comm(world->processes, 42, 42, "jit", true, 50);
    process_table_mmap(world->processes, 42, &mapping, 1500000000);
    (void)take_sample(world, 42, 2000000000, stack, 1);
    assert_non_null(
        strstr(read_all(world), "[anon] build-id 0 bytes\nmmap 42:2 9000000+1000 = 9000000"));
    assert_int_equal(ticket_count, 1);
    assert_string_equal(tickets[0].path, "map of 42");
    assert_true(trace_names_pending(world->trace));

    const struct symbol function = {0x9000000, 0x20, 0};
    const struct perf_map_state changed_long_ago = {.text_bytes = 100, .changed_s = 1};
    const struct module map = {
        .symbols = {.symbols = &function,
                    .symbol_count = 1,
                    .names = "made",
                    .names_bytes = sizeof "made",
                    .build_id = (const uint8_t *)&changed_long_ago,
                    .build_id_bytes = sizeof changed_long_ago},
    };
    answer(world, 0, &map);
    expect_read(world, "module 42:2 [jit] (pid 42) build-id 0 bytes\n"
                       "mmap 42:2 9000000+1000 = 9000000 at 1500000000\n"
                       "data {\"build_id\":\"\",\"module\":\"[jit] (pid 42)\","
                       "\"start\":\"0x9000000\",\"size\":32,\"name\":\"made\"}\n");
    assert_false(trace_names_pending(world->trace));
}

STORY(kernel_frames_are_named_with_numbers_that_json_can_carry)
{
    uint64_t kernel[] = {0xffffffff81000010, 0xffffffff81000020};
    struct sample sample = {
        .weight = 1, .time_ns = 5, .pid = 2, .tid = 2, .kernel_stack = kernel, .kernel_count = 2};
    bool uncertain = false;
    (void)read_all(world);
    trace_sample(world->trace, 0, &sample, NULL, &uncertain);
    answer(world, 0, &test_modules[0]);
    expect_read(world, "module 0:1 [kernel] build-id 0 bytes\n"
                       "mmap 0:1 ffff800000000000+7fffffffffff = ffff800000000000 at 0\n"
                       "data {\"build_id\":\"abcdef01\",\"module\":\"[kernel]\","
                       "\"start\":\"0xffffffff81000000\",\"size\":4096,\"name\":\"kernel\\\"fn\"}\n"
                       "sample cpu 0 2/2 at 5, 0 user 2 kernel, quality 0\n");
    assert_false(uncertain);
}

/* Without its frames there, an empty kernel stack says that a sample was in the kernel. */
STORY(a_sample_in_the_kernel_is_written_as_such)
{
    struct sample sample = {.time_ns = 5, .weight = 1, .pid = 42, .tid = 42};
    bool uncertain = false;
    (void)read_all(world);
    trace_sample(world->trace, 0, &sample, NULL, &uncertain);
    sample.time_ns = 6;
    sample.kernel_mode = true;
    trace_sample(world->trace, 0, &sample, NULL, &uncertain);
    trace_poll(world->trace);
    expect_read(world, "sample cpu 0 42/42 at 5, 0 user, quality 0\n"
                       "sample cpu 0 42/42 at 6, 0 user 0 kernel, quality 0\n");
}

STORY(a_full_lane_drops_and_tells_how_many)
{
    (void)read_all(world);
    process_table_comm(world->processes, 42, 42, "prog", true, 50);
    struct process *process = process_table_find(world->processes, 42, 100);
    bool uncertain = false;
    for (uint64_t time_ns = 1000; time_ns < 1200; time_ns++) {
        struct sample sample = {.time_ns = time_ns, .weight = 1, .cpu = 5, .pid = 42, .tid = 42};
        trace_sample(world->trace, 1, &sample, process, &uncertain);
    }
    trace_poll(world->trace);
    /* A sample without a stack is 7 words, and one more in the lane: 64 of them in a page. */
    assert_int_equal(trace_lane_counts(world->trace, 1, 0).kept, 64);
    assert_int_equal(trace_lane_counts(world->trace, 1, 0).dropped, 136);
    assert_null(strstr(read_all(world), "dropped"));
    (void)take_sample(world, 42, 1300, NULL, 0);
    (void)take_sample(world, 42, 1400, NULL, 0);
    expect_read(world, "dropped 136 of cpu 5 from 1064 to 1199\n"
                       "sample cpu 5 42/42 at 1300, 0 user, quality 0\n"
                       "sample cpu 5 42/42 at 1400, 0 user, quality 0\n");
}

STORY(names_change_with_time)
{
    process_table_comm(world->processes, 42, 42, "before", true, 50);
    process_table_fork(world->processes, 42, 42, 43, 42, 60);
    process_table_comm(world->processes, 42, 43, "thread\xff", false, 70);
    (void)read_all(world);
    struct sample sample = {.time_ns = 100, .weight = 1, .cpu = 5, .pid = 42, .tid = 43};
    bool uncertain = false;
    trace_sample(world->trace, 1, &sample, process_table_find(world->processes, 42, 100),
                 &uncertain);
    process_table_comm(world->processes, 42, 42, "after", false, 150);
    (void)take_sample(world, 42, 200, NULL, 0);
    expect_read(world, "name 42/0 before since 50\n"
                       "name 42/42 before since 50\n"
                       "name 42/43 thread\xEF\xBF\xBD since 70\n"
                       "module 42:1 [unknown] build-id 0 bytes\n"
                       "mmap 42:1 0+100000000000000 = 0 at 50\n"
                       "name 42/0 after since 150\n"
                       "name 42/42 after since 150\n"
                       "sample cpu 5 42/43 at 100, 0 user, quality 0\n"
                       "sample cpu 5 42/42 at 200, 0 user, quality 0\n");
}
