/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Where knowledge ends: records that were lost, mappings and names that were forgotten, pids whose
 * new owner that no record announced. A sample is named right, or has no name and is counted; it
 * never has another one's.
 */
#include "drain_world.h"

#include <errno.h>

#define PLACE UINT64_C(0x500000)

static struct mapping_description describe(const char *path, uint64_t start)
{
    return (struct mapping_description){.start = start,
                                        .end = start + 0x1000,
                                        .path = path,
                                        .device_major = 8,
                                        .inode = (uint64_t)path[1]};
}

static void map(struct ring_world *world, const char *path, uint64_t start, uint64_t time_ns)
{
    const struct mapping_description description = describe(path, start);
    process_table_mmap(world->processes, PID, &description, time_ns);
}

static void tell_name(struct ring_world *world, const char *comm, bool exec, uint64_t time_ns)
{
    process_table_comm(world->processes, PID, PID, comm, exec, time_ns);
}

static void put_sample_of(struct ring_world *world, uint32_t pid, uint64_t time_ns)
{
    put_sample(world, 0, pid, time_ns, PLACE + 16);
}

static void put_samples(struct ring_world *world, const uint64_t *times_ns, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        put_sample_of(world, PID, times_ns[i]);
    }
}

#define PUT_SAMPLES(...) put_samples(world, ROWS_OF(uint64_t, __VA_ARGS__))

#define FIRST "150 prog a+0x10 ; " /* of set_up_doubts() */

/* Drains what is left. Every sample behind the first is then as "TIME PROCESS FRAME...; ". */
static void expect_samples(struct ring_world *world, const char *expected)
{
    struct loaded_recording loaded;
    char text[1024] = "";
    size_t used = 0;
    drain_all(world->drain, UINT64_MAX);
    ring_world_load(world, &loaded);
    loaded_recording_sort(&loaded);
    for (size_t i = 0; i < loaded.sample_count; i++) {
        char frames[256];
        const struct loaded_sample *sample = &loaded.samples[i];
        loaded_recording_frames(&loaded, sample, frames, sizeof frames);
        used += (size_t)snprintf(text + used, sizeof text - used, "%d %s %s; ",
                                 (int)sample->time_ns, sample->process, frames);
    }
    assert_memory_equal(text, FIRST, strlen(FIRST));
    assert_string_equal(text + strlen(FIRST), expected);
    loaded_recording_done(&loaded);
}

static void expect_held(struct ring_world *world, uint64_t now_ns, size_t count)
{
    assert_int_equal(drain_held(world->drain, now_ns), count);
}

static int set_up_doubts(void **state)
{
    struct ring_world *world =
        ring_world_new(&(struct ring_world_options){.unwind = SESSION_UNWIND_FP});
    *state = world;
    if (world == NULL) {
        return -1;
    }
    tell_name(world, "prog", true, 50);
    map(world, "/a", PLACE, 100);
    PUT_SAMPLES(150);
    drain_all(world->drain, 160);
    return 0;
}

#define STORY(name) DRAIN_STORY(name, set_up_doubts)

STORY(a_mapping_that_was_forgotten_leaves_an_unknown)
{
    map(world, "/b", PLACE, 200);
    map(world, "/c", PLACE, 300);
    for (uint64_t i = 0; i <= PROCESS_HISTORY_MAX; i++) {
        map(world, "/d", PLACE + 0x10000, 300 + i);
    }
    PUT_SAMPLES(190, 250, 2000);
    expect_samples(world, "190 prog [unknown] ; 250 prog [unknown] ; "
                          "2000 prog c+0x10 ; ");
    assert_int_equal(counted(world).mapping_uncertain, 2);
}

STORY(a_program_that_was_left_does_not_show_through)
{
    tell_name(world, "two", true, 200);
    tell_name(world, "three", true, 300);
    map(world, "/c", PLACE, 310);
    PUT_SAMPLES(250, 305, 320);
    expect_samples(world, "250 two [unknown] ; 305 three [unknown] ; "
                          "320 three c+0x10 ; ");
}

STORY(a_name_that_was_forgotten_leaves_an_unknown)
{
    for (uint32_t i = 0; i <= THREAD_NAMES_MAX; i++) {
        char name[COMM_BYTES];
        (void)snprintf(name, sizeof name, "n%u", (unsigned)i);
        tell_name(world, name, false, 200 + i);
    }
    PUT_SAMPLES(210, 1000);
    expect_samples(world, "210 [unknown] a+0x10 ; 1000 n256 a+0x10 ; ");
}

STORY(what_runs_after_its_exit_is_somebody_else)
{
    process_table_exit(world->processes, PID, PID, 200);
    PUT(world, 0, CLOCK, SAMPLE, PERF_RECORD_MISC_KERNEL, 1, pair(PID, PID), 210, 0, 0);
    PUT_SAMPLES(300, 310);
    /* When the new one began is not known: what is left of the old one has no name either. */
    expect_samples(world, "210 [unknown] ; 300 [unknown] [unknown] ; "
                          "310 [unknown] [unknown] ; ");
    assert_int_equal(counted(world).mapping_uncertain, 2);
}

/* /proc shows another file where the last record said /a. */
static int read_changed(int32_t pid, struct process_scan *reading, void *userdata)
{
    static struct mapping_description mapping;
    static const struct scanned_thread thread = {.tid = PID, .comm = "prog"};
    (void)userdata;
    mapping = describe("/b", PLACE);
    *reading = (struct process_scan){.pid = pid,
                                     .threads = &thread,
                                     .thread_count = 1,
                                     .mappings = &mapping,
                                     .mapping_count = 1,
                                     .account_known = true,
                                     .begin_ns = 600,
                                     .end_ns = 601};
    return 0;
}

/* A process that no record announced, until /proc is read at 600. */
static int read_late(int32_t pid, struct process_scan *reading, void *userdata)
{
    static struct scanned_thread thread = {.comm = "late"};
    (void)read_changed(pid, reading, userdata);
    thread.tid = pid;
    reading->threads = &thread;
    return pid == PID + 1 ? 0 : -ETIMEDOUT;
}

STORY(a_sample_waits_for_the_reading_of_its_process)
{
    fake_proc_set(read_late, NULL);
    fake_proc_delay(true);
    put_sample_of(world, PID + 1, 500);
    put_sample_of(world, PID + 2, 510);
    PUT_SAMPLES(520);
    drain_all(world->drain, 560);
    expect_held(world, 560, 2);
    /* A process that is known does not wait for others. */
    trace_poll(world->trace);
    assert_int_equal(drain_books(world->drain, 0, 0).kept, 2);
    fake_proc_delay(false);
    drain_sideband(world->drain, 700);
    expect_held(world, 700, 0);
    assert_int_equal(counted(world).mapping_uncertain, 1);
    expect_samples(world, "500 late b+0x10 ; 510 [unknown] [unknown] ; "
                          "520 prog a+0x10 ; ");
}

STORY(who_waits_does_not_look_for_the_answer_with_each_sample)
{
    fake_proc_set(read_late, NULL);
    fake_proc_delay(true);
    for (uint64_t i = 0; i < 100; i++) {
        put_sample_of(world, PID + 1, 500 + i);
    }
    const size_t before_count = fake_proc_looked_count();
    drain_all(world->drain, 700);
    expect_held(world, 700, 100);
    assert_in_range(fake_proc_looked_count() - before_count, 1, 4);
}

STORY(a_sample_does_not_wait_for_ever)
{
    fake_proc_set(read_late, NULL);
    fake_proc_delay(true);
    put_sample_of(world, PID + 1, 500);
    drain_all(world->drain, 560);
    expect_held(world, 499 + DRAIN_HELD_NS, 1);
    expect_held(world, 500 + DRAIN_HELD_NS, 0);
    assert_int_equal(counted(world).mapping_uncertain, 1);
    expect_samples(world, "500 [unknown] [unknown] ; ");
}

static int given_error;

static int read_given(int32_t pid, struct process_scan *reading, void *userdata)
{
    const int *error = userdata;
    (void)read_changed(pid, reading, NULL);
    return *error;
}

STORY(a_walk_that_fails_is_due_again)
{
    const struct {
        int list_error;
        int process_error;
        bool again;
    } cases[] = {
        {-EBUSY, 0, true},  {-ETIMEDOUT, 0, true}, {0, -EBUSY, true},  {0, -ETIMEDOUT, false},
        {0, -ESRCH, false}, {0, 0, false},         {0, -EMFILE, true}, {0, -ENFILE, true},
    };
    fake_proc_set(read_given, &given_error);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        given_error = cases[i].process_error;
        fake_proc_set_list(cases[i].list_error, PID);
        sideband_feed_walk(drain_feed(world->drain));
        for (int round = 0; sideband_feed_is_walking(drain_feed(world->drain)); round++) {
            assert_true(round < 10);
            drain_sideband(world->drain, 1000);
        }
        assert_int_equal(sideband_feed_take_rescan(drain_feed(world->drain)), cases[i].again);
        assert_false(sideband_feed_take_rescan(drain_feed(world->drain)));
    }
}

static int read_anybody(int32_t pid, struct process_scan *reading, void *userdata)
{
    (void)read_late(pid, reading, userdata);
    return 0;
}

/* A process that is known is told of when sideband has come as far: not without a bound. */
STORY(readings_that_wait_for_sideband_hold_up_the_next_ones)
{
    fake_proc_set(read_anybody, NULL);
    fake_proc_set_bytes(PROC_POOL_BYTES_MAX);
    process_table_exit(world->processes, PID, PID, 160);
    tell_name(world, "new", true, 170);
    PUT_SAMPLES(300); /* in no mapping */
    drain_all(world->drain, 310);
    put_sample_of(world, PID + 1, 320);
    drain_all(world->drain, 330);
    drain_sideband(world->drain, 400);
    expect_held(world, 400, 1);
    drain_sideband(world->drain, 700);
    expect_held(world, 700, 0);
}

/* Each reading of what is in no mapping is made twice as long after the one before. */
static int count_readings(int32_t pid, struct process_scan *reading, void *userdata)
{
    size_t *count = userdata;
    (void)read_changed(pid, reading, NULL);
    reading->mapping_count = 0;
    *count += 1;
    return 0;
}

STORY(what_is_read_in_vain_is_read_ever_less)
{
    const uint64_t second_ns = 1000000000;
    size_t count = 0;
    fake_proc_set(count_readings, &count);
    process_table_exit(world->processes, PID, PID, 160);
    tell_name(world, "new", true, 170);
    for (uint64_t i = 1; i <= 127; i++) {
        put_sample_of(world, PID, i * second_ns);
        drain_all(world->drain, i * second_ns);
        drain_sideband(world->drain, i * second_ns);
    }
    /* At 1, 2, 4, ..., 64 s, each with its answer. */
    assert_int_equal(count, 7);
}

/* What /proc shows at 600 is what was known. */
static int read_same(int32_t pid, struct process_scan *reading, void *userdata)
{
    static struct mapping_description mapping;
    (void)read_changed(pid, reading, userdata);
    mapping = describe("/a", PLACE);
    reading->mappings = &mapping;
    return 0;
}

static int read_same_of_a_user(int32_t pid, struct process_scan *reading, void *userdata)
{
    (void)read_same(pid, reading, userdata);
    reading->account = 4711;
    return 0;
}

/* A CPU was back before its sideband, from 500 to 560; samples before, in and after that. */
static void have_gap(struct ring_world *world)
{
    sideband_feed_gap(drain_feed(world->drain), 0, 500, 560);
    PUT_SAMPLES(490, 550, 590, 650);
    drain_all(world->drain, 660);
    drain_sideband(world->drain, 700);
    expect_held(world, 700, 0);
}

/* Records were lost up to 500. An exec may be among them. */
static void have_loss(struct ring_world *world)
{
    put_lost(world, 0, PERF_STREAM_SIDEBAND, 500, 5);
    PUT_SAMPLES(550, 590, 650);
    drain_all(world->drain, 660);
    assert_true(sideband_feed_take_rescan(drain_feed(world->drain)));
    drain_sideband(world->drain, 700);
    expect_held(world, 700, 0);
    assert_int_equal(counted(world).sideband_lost, 5);
}

/* The parent may have executed something unseen; its children, and theirs, are what it is. */
static void have_loss_and_forks(struct ring_world *world)
{
    put_lost(world, 0, PERF_STREAM_SIDEBAND, 500, 5);
    put_fork(world, 0, PID + 1, PID, 520);
    put_fork(world, 0, PID + 2, PID + 1, 530);
    put_sample_of(world, PID + 1, 540);
    put_sample_of(world, PID + 2, 550);
    put_sample_of(world, PID + 2, 640);
    drain_all(world->drain, 660);
    drain_sideband(world->drain, 700);
    expect_held(world, 700, 0);
}

static void exec_grandchild(struct ring_world *world)
{
    process_table_comm(world->processes, PID + 2, PID + 2, "two", true, 600);
    have_loss_and_forks(world);
}

static void exec_after_gap(struct ring_world *world)
{
    tell_name(world, "two", true, 640);
    map(world, "/c", PLACE, 645);
    have_gap(world);
}

static void exec_twice_after_gap(struct ring_world *world)
{
    sideband_feed_gap(drain_feed(world->drain), 0, 500, 560);
    tell_name(world, "two", true, 570);
    map(world, "/c", PLACE, 575);
    tell_name(world, "three", true, 640);
    map(world, "/d", PLACE, 645);
    have_gap(world);
}

TEST(what_is_in_doubt_has_no_name_before_it_is_read)
{
    static const struct {
        const char *what;
        void (*happen)(struct ring_world *world);
        int (*read)(int32_t pid, struct process_scan *reading,
                    void *userdata); /* NULL: nothing reads */
        const char *expected;
    } cases[] = {
        {"what is read to be as before a gap was so in it", have_gap, read_same,
         "490 prog a+0x10 ; 550 prog a+0x10 ; 590 prog a+0x10 ; 650 prog a+0x10 ; "},
        /* It may have executed a set-user-id program, and that one the program before. */
        {"but not what a user runs", have_gap, read_same_of_a_user,
         "490 prog a+0x10 ; 550 [unknown] ; 590 [unknown] ; 650 prog a+0x10 ; "},
        {"what changed in a gap", have_gap, read_changed,
         "490 prog a+0x10 ; 550 [unknown] ; 590 [unknown] ; 650 prog b+0x10 ; "},
        {"a program that ends unread after a gap", exec_after_gap, NULL,
         "490 prog a+0x10 ; 550 [unknown] ; 590 [unknown] ; 650 two c+0x10 ; "},
        {"each program after a gap has its name", exec_twice_after_gap, NULL,
         "490 prog a+0x10 ; 550 [unknown] ; 590 two c+0x10 ; 650 three d+0x10 ; "},
        {"what changed in a loss", have_loss, read_changed,
         "550 [unknown] ; 590 [unknown] ; 650 prog b+0x10 ; "},
        {"what is read to be as before a loss was so after it", have_loss, read_same,
         "550 prog a+0x10 ; 590 prog a+0x10 ; 650 prog a+0x10 ; "},
        {"what a process in doubt forks", have_loss_and_forks, NULL,
         "540 [unknown] ; 550 [unknown] ; 640 [unknown] ; "},
        {"but is known when it has executed", exec_grandchild, NULL,
         "540 [unknown] ; 550 [unknown] ; 640 two [unknown] ; "},
        {"or is read to be so", have_loss_and_forks, read_same,
         "540 prog a+0x10 ; 550 prog a+0x10 ; 640 prog a+0x10 ; "},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        void *world = NULL;
        print_message("  %s\n", cases[i].what);
        assert_int_equal(set_up_doubts(&world), 0);
        fake_proc_set(cases[i].read, NULL);
        cases[i].happen(world);
        expect_samples(world, cases[i].expected);
        (void)tear_down(&world);
    }
}

STORY(a_mapping_that_is_gone_after_a_loss_names_nothing)
{
    map(world, "/c", PLACE + 0x100000, 110);
    fake_proc_set(read_same, NULL);
    put_lost(world, 0, PERF_STREAM_SIDEBAND, 500, 5);
    drain_sideband(world->drain, 560);
    PUT_SAMPLES(650);
    drain_all(world->drain, 660);
    drain_sideband(world->drain, 700);
    expect_held(world, 700, 0);
    struct process *process = process_table_find(world->processes, PID, 650);
    assert_non_null(process_find_mapping(process, PLACE, 650));
    assert_null(process_find_mapping(process, PLACE + 0x100000, 650));
    assert_non_null(process_find_mapping(process, PLACE + 0x100000, 550));
}

/* What a full ring lost is told of with the next record only. */
STORY(a_full_ring_has_lost_records_of_any_process)
{
    const uint64_t task = pair(PID + 1, PID + 1);
    size_t count = 0;
    while (ring_world_put(world, 0, PERF_STREAM_SIDEBAND, PERF_RECORD_COMM, 0,
                          ROWS_OF(uint64_t, task, 0x62, 7, task, 200, 0, 7))) {
        count++;
    }
    assert_true(count > 100);
    fake_proc_set(read_same, NULL);
    PUT_SAMPLES(190, 550);
    drain_all(world->drain, 560);
    assert_true(sideband_feed_take_rescan(drain_feed(world->drain)));
    (void)drain_held(world->drain, 550 + DRAIN_HELD_NS);
    expect_samples(world, "190 prog a+0x10 ; 550 [unknown] ; ");
}

/* The queue of the records of all CPUs is full, and finds no place for the LOST of a ring either.
 */
STORY(a_loss_is_known_although_the_word_of_it_is_lost)
{
    const uint64_t task = pair(PID + 1, PID + 1);
    put_comm(world, PID + 1, PID + 1, 300, "last");
    for (size_t count = 1; count < 131072; count++) {
        PUT(world, 1, SIDEBAND, COMM, 0, task, 0x62, 7, task, 200, 1, 7);
        if (count % 2048 == 0) {
            drain_sideband(world->drain, 160);
        }
    }
    drain_sideband(world->drain, 160);
    assert_false(sideband_feed_take_rescan(drain_feed(world->drain)));
    put_lost(world, 0, PERF_STREAM_SIDEBAND, 500, 5);
    PUT_SAMPLES(250, 400, 550);
    drain_all(world->drain, 560);
    assert_true(sideband_feed_take_rescan(drain_feed(world->drain)));
    assert_int_equal(counted(world).sideband_lost, 5);
    (void)drain_held(world->drain, 550 + DRAIN_HELD_NS);
    expect_samples(world, "250 prog a+0x10 ; 400 [unknown] ; 550 [unknown] ; ");
}
