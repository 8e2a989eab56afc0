/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From the id of a control group in a sample to the line of its process: what the kernel told of
 * groups that were made, what a walk brings of those that were there, and what neither knows.
 */
#include "drain_world.h"

#include "fxt_reader.h"

#define GROUP_STORY(name) DRAIN_STORY(name, set_up_groups)

/* Drains what is left. The recording has these lines of processes, one behind the other. */
static void expect_lines(struct ring_world *world, const char *expected)
{
    char text[1024] = "";
    size_t used = 0;
    size_t file_bytes = 0;
    drain_all(world->drain, UINT64_MAX);
    const uint8_t *file = ring_world_file(world, &file_bytes);
    struct fxt_reader *reader = fxt_reader_new();
    struct fxt_record record;
    for (size_t at = 0; at < file_bytes; at += record.size_bytes) {
        assert_int_equal(fxt_reader_next(reader, file + at, file_bytes - at, &record), 1);
        if (record.kind == FXT_RECORD_DATA && record.data.name.index == FXT_STRING_PROCESSES) {
            used +=
                (size_t)snprintf(text + used, sizeof text - used, "%.*s",
                                 (int)record.data.payload_bytes, (const char *)record.data.payload);
            assert_true(used < sizeof text);
        }
    }
    (void)fxt_reader_free(reader);
    assert_string_equal(text, expected);
}

#define LINE(pid, from, rest)                                                                      \
    "{\"pid\":" #pid ",\"boot_ts_ns\":\"" #from "\",\"ppid\":4100001" rest "}\n"
/* The first one, which holds from the fork on, brings that of the parent. */
#define FIRST_LINE(rest) LINE(4100000, 50, rest) "{\"pid\":4100001,\"boot_ts_ns\":\"0\"}\n"

GROUP_STORY(a_group_that_was_made_is_known_without_a_walk)
{
    fake_proc_delay(true);
    put_fork(world, 0, PID, PID + 1, 50);
    put_program(world);
    put_group(world, 250, 8, "/a.service");
    put_sample_in(world, 0, PID, 300, 8);
    put_sample_in(world, 1, PID, 310, 8);
    drain_all(world->drain, 1000);
    assert_int_equal(drain_held(world->drain, 1000), 0);
    assert_int_equal(kept(world), 2);
    expect_lines(world, FIRST_LINE(",\"cgroup\":\"/a.service\",\"unit\":\"a.service\""));
}

/* The first walk was asked for with the recording, and brings nothing; a second one is for the id.
 */
GROUP_STORY(a_sample_waits_for_the_walk_that_brings_its_group)
{
    static const uint64_t ids[] = {1, 8};
    static const char paths[] = "/\0/a.service/x";
    fake_proc_delay(true);
    put_fork(world, 0, PID, PID + 1, 50);
    put_program(world);
    put_sample_in(world, 1, PID, 300, 8);
    drain_all(world->drain, 1000);
    assert_int_equal(drain_held(world->drain, 1000), 1);
    assert_int_equal(kept(world), 0);
    fake_proc_set_cgroups(ids, COUNT_OF(ids), paths);
    fake_proc_delay(false);
    for (uint64_t now_ns = 1100; now_ns < 1500; now_ns += 100) {
        drain_all(world->drain, now_ns);
        (void)drain_held(world->drain, now_ns);
    }
    assert_int_equal(kept(world), 1);
    expect_lines(world, FIRST_LINE(",\"cgroup\":\"/a.service/x\",\"unit\":\"a.service\""));
}

GROUP_STORY(a_sample_of_a_group_that_no_walk_brings_is_kept_without)
{
    put_fork(world, 0, PID, PID + 1, 50);
    put_program(world);
    put_sample_in(world, 1, PID, 300, 8);
    for (uint64_t now_ns = 1000; now_ns < 1500; now_ns += 100) {
        drain_all(world->drain, now_ns);
        (void)drain_held(world->drain, now_ns);
    }
    assert_int_equal(kept(world), 1);
    /* And the next one does not wait, as no walk is made so soon. */
    fake_proc_delay(true);
    put_sample_in(world, 1, PID, 1600, 8);
    drain_all(world->drain, 2000);
    assert_int_equal(drain_held(world->drain, 2000), 0);
    assert_int_equal(kept(world), 2);
    expect_lines(world, FIRST_LINE(""));
}

GROUP_STORY(a_process_changes_its_group)
{
    put_fork(world, 0, PID, PID + 1, 50);
    put_program(world);
    put_group(world, 250, 8, "/a");
    put_group(world, 260, 9, "/b");
    put_sample_in(world, 0, PID, 300, 8);
    put_sample_in(world, 0, PID, 500, 9);
    put_sample_in(world, 1, PID, 400, 9); /* from another ring, which is read later */
    put_sample_in(world, 0, PID, 600, 0); /* the kernel says none */
    expect_lines(world, FIRST_LINE(",\"cgroup\":\"/a\"") LINE(4100000, 400, ",\"cgroup\":\"/b\"")
                            LINE(4100000, 600, ""));
}

/* However many batches its samples come in, a move costs a line. */
GROUP_STORY(a_process_moves_between_groups_and_cpus)
{
    put_fork(world, 0, PID, PID + 1, 50);
    put_program(world);
    put_group(world, 250, 8, "/a");
    put_group(world, 260, 9, "/b");
    for (uint64_t now_ns = 1000; now_ns < 4000; now_ns += 1000) {
        put_sample_in(world, 0, PID, now_ns + 100, 8);
        put_sample_in(world, 1, PID, now_ns + 200, 8);
        put_sample_in(world, 1, PID, now_ns + 300, 9);
        put_sample_in(world, 0, PID, now_ns + 400, 9);
        put_sample_in(world, 0, PID, now_ns + 500, 8);
        put_sample_in(world, 1, PID, now_ns + 600, 8);
        drain_all(world->drain, now_ns + 900);
        assert_int_equal(drain_held(world->drain, now_ns + 900), 0);
    }
    assert_int_equal(kept(world), 18);
    expect_lines(world, FIRST_LINE(",\"cgroup\":\"/a\"") LINE(4100000, 1300, ",\"cgroup\":\"/b\"")
                            LINE(4100000, 1500, ",\"cgroup\":\"/a\"")
                                LINE(4100000, 2300, ",\"cgroup\":\"/b\"")
                                    LINE(4100000, 2500, ",\"cgroup\":\"/a\"")
                                        LINE(4100000, 3300, ",\"cgroup\":\"/b\"")
                                            LINE(4100000, 3500, ",\"cgroup\":\"/a\""));
}

static void put_stack_in(struct ring_world *world, size_t cpu, uint64_t time_ns, uint64_t group_id)
{
    put_copy_in(world, PERF_STREAM_CLOCK, PERF_RECORD_MISC_USER, cpu, PID, time_ns, 64, 64,
                &group_id);
}

/* Its samples are written when it has long moved on, and those of one CPU before the other's. */
DRAIN_STORY(a_process_moves_while_its_samples_wait_for_a_table, set_up_stacks_in_groups)
{
    put_fork(world, 0, PID, PID + 1, 50);
    put_program(world);
    put_group(world, 250, 8, "/a");
    put_group(world, 260, 9, "/b");
    put_stack_in(world, 0, 300, 8);
    put_stack_in(world, 0, 500, 9);
    put_stack_in(world, 1, 310, 8);
    put_stack_in(world, 1, 400, 9);
    drain_all(world->drain, 1000);
    assert_int_equal(drain_held(world->drain, 1000), 4);
    put_stack_in(world, 1, 1100, 9);
    put_stack_in(world, 0, 1050, 9);
    put_stack_in(world, 0, 1200, 8);
    drain_all(world->drain, 2000);
    assert_int_equal(drain_held(world->drain, 2000), 7);
    assert_int_equal(kept(world), 0);
    fake_module_ready(&world->cache, 77, fake_module_table());
    assert_int_equal(drain_held(world->drain, 2010), 0);
    assert_int_equal(kept(world), 7);
    expect_lines(world, FIRST_LINE(",\"cgroup\":\"/a\"") LINE(4100000, 400, ",\"cgroup\":\"/b\"")
                            LINE(4100000, 1200, ",\"cgroup\":\"/a\""));
}
