/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The books of what the real drain does with rings that are filled by hand: one CPU, whose timer
 * ticks every 250 us while programs run and sleep, and of whose samples some are taken away.
 */
#include "books.h"
#include "fxt_reader.h"
#include "ring_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define PERIOD_NS UINT64_C(250000)
#define START_NS  UINT64_C(5000000000)
#define PID       4100000

static int set_up(void **state)
{
    *state = ring_world_new(&(struct ring_world_options){.unwind = SESSION_UNWIND_FP,
                                                         .cpu_count = 1,
                                                         .period_ns = PERIOD_NS,
                                                         .started_ns = START_NS,
                                                         .switches = true});
    return *state == NULL ? -1 : 0;
}

static int tear_down(void **state)
{
    (void)ring_world_free(*state);
    return 0;
}

static void put(struct ring_world *world, size_t stream, uint32_t type, uint16_t misc,
                const uint64_t *words, size_t word_count)
{
    assert_true(ring_world_put(world, 0, stream, type, misc, words, word_count));
}

static void put_sample(struct ring_world *world, uint64_t time_ns)
{
    uint64_t words[] = {1, pair(PID, PID), time_ns, 0, 2, PERF_CONTEXT_USER, 0x5010};
    put(world, PERF_STREAM_CLOCK, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, words, 7);
}

static void put_switch(struct ring_world *world, uint64_t time_ns, uint32_t from, uint32_t to)
{
    uint64_t words[] = {pair(to, to), pair(from, from), time_ns};
    put(world, PERF_STREAM_SWITCHES, PERF_RECORD_SWITCH_CPU_WIDE, PERF_RECORD_MISC_SWITCH_OUT,
        words, 3);
    words[0] = pair(from, from);
    words[1] = pair(to, to);
    words[2] += 400;
    put(world, PERF_STREAM_SWITCHES, PERF_RECORD_SWITCH_CPU_WIDE, 0, words, 3);
}

static void put_trailed(struct ring_world *world, uint32_t type, uint64_t second, size_t body_words,
                        uint64_t time_ns)
{
    uint64_t words[7] = {1, second, 1};
    words[body_words] = 0;
    words[body_words + 1] = time_ns;
    words[body_words + 2] = 0;
    words[body_words + 3] = 1;
    put(world, PERF_STREAM_CLOCK, type, 0, words, body_words + 4);
}

/* The program runs for `run` ticks of each `turn`, and sleeps for the rest; of its samples one in
 * `remove_one_in` is taken away. Drained every 400 ticks. */
static uint64_t tick(struct ring_world *world, uint64_t ticks, uint64_t run, uint64_t turn,
                     uint64_t remove_one_in)
{
    uint64_t removed = 0;
    for (uint64_t i = 1; i <= ticks; i++) {
        uint64_t tick_ns = START_NS + i * PERIOD_NS;
        if (i % turn == run) {
            put_switch(world, tick_ns - 100000, PID, 0);
        } else if (i % turn == 0 && run < turn) {
            put_switch(world, tick_ns - 100000, 0, PID);
        }
        if (i % turn >= run) {
            /* idle */
        } else if (remove_one_in > 0 && i % remove_one_in == 7) {
            removed++;
        } else {
            put_sample(world, tick_ns + 2000 + i % 5 * 700);
        }
        if (i % 400 == 0) {
            drain_all(world->drain, tick_ns - 1000000);
        }
    }
    world->cpus[0].stopped_ns = START_NS + ticks * PERIOD_NS + 50000;
    return removed;
}

/* The books of `ticks` ticks. */
static struct books_cpu make_books(struct ring_world *world, uint64_t ticks,
                                   int64_t *ret_unexplained)
{
    struct books_cpu cpu = drain_books(world->drain, 0, 0);
    cpu.running_ns = ticks * PERIOD_NS;
    struct books books = {.period_ns = PERIOD_NS, .cpus = &cpu, .cpu_count = 1};
    *ret_unexplained = books_unexplained(&books, &cpu);
    return cpu;
}

static void a_busy_cpu_is_received_whole(void **state)
{
    struct ring_world *world = *state;
    int64_t unexplained = 1;
    (void)tick(world, 40000, 100, 100, 0);
    drain_stop(world->drain);
    struct books_cpu cpu = make_books(world, 40000, &unexplained);
    assert_int_equal(cpu.received, 40000);
    assert_int_equal(unexplained, 0);
}

/* Samples of another event come in a ring of their own, and say so in the file. */
static void ticks_are_the_samples_of_the_clock(void **state)
{
    struct ring_world *world = *state;
    int64_t unexplained = 1;
    size_t others = 0;
    size_t file_bytes = 0;
    for (uint64_t i = 0; i < 10; i++) {
        uint64_t words[] = {3,     pair(PID, PID), START_NS + i * 1000, 0, 2, PERF_CONTEXT_USER,
                            0x5010};
        put(world, RING_STREAM_FURTHER, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, words, 7);
    }
    const uint64_t lost[] = {3, 500, pair(0, 0), START_NS + 20000, 0, 3};
    put(world, RING_STREAM_FURTHER, PERF_RECORD_LOST, 0, lost, 6);
    (void)tick(world, 400, 100, 100, 0);
    drain_stop(world->drain);
    struct books_cpu cpu = make_books(world, 400, &unexplained);
    assert_int_equal(cpu.received, 400);
    assert_int_equal(cpu.lost, 0);
    assert_int_equal(unexplained, 0);
    uint8_t *file = ring_world_file(world, &file_bytes);
    struct fxt_reader *reader = fxt_reader_new();
    struct fxt_record record;
    for (size_t at = 0; at < file_bytes; at += record.size_bytes) {
        assert_int_equal(fxt_reader_next(reader, file + at, file_bytes - at, &record), 1);
        if (record.kind == FXT_RECORD_SAMPLE && record.sample.event != 0) {
            assert_int_equal(record.sample.event, 1);
            assert_true(record.sample.boot_ts_ns < START_NS + 10000);
            others++;
        }
    }
    assert_int_equal(others, 10);
    (void)fxt_reader_free(reader);
    free(file);
}

static void who_takes_one_sample_in_a_hundred_is_seen(void **state)
{
    static const struct {
        uint64_t run, turn;
    } loads[] = {{100, 100}, {12, 25}, {1, 2}, {3, 4}};
    for (size_t i = 0; i < sizeof loads / sizeof loads[0]; i++) {
        (void)tear_down(state);
        assert_int_equal(set_up(state), 0);
        struct ring_world *world = *state;
        int64_t unexplained = 1;
        uint64_t removed = tick(world, 40000, loads[i].run, loads[i].turn, 101);
        drain_stop(world->drain);
        struct books_cpu cpu = make_books(world, 40000, &unexplained);
        assert_true(removed > 150);
        assert_int_equal(cpu.missed, removed);
        assert_int_equal(unexplained, 0);
        assert_int_equal(cpu.idle,
                         40000 - 40000 / loads[i].turn * loads[i].run - 40000 % loads[i].turn);
    }
}

static void every_term_of_one_run(void **state)
{
    struct ring_world *world = *state;
    int64_t unexplained = 1;
    uint64_t at_ns = START_NS;
    for (uint64_t i = 1; i <= 10; i++) {
        put_sample(world, at_ns + i * PERIOD_NS + 2000);
    }
    /* Throttled with the tenth, for 16 ticks; then 10 more, 5 of them lost; idle to the end. */
    put_trailed(world, PERF_RECORD_THROTTLE, 1, 3, at_ns + 10 * PERIOD_NS + 2500);
    at_ns += 26 * PERIOD_NS;
    put_trailed(world, PERF_RECORD_UNTHROTTLE, 1, 3, at_ns + 2500);
    put_trailed(world, PERF_RECORD_LOST, 5, 2, at_ns + 6 * PERIOD_NS + 2000);
    for (uint64_t i = 6; i <= 10; i++) {
        put_sample(world, at_ns + i * PERIOD_NS + 4000);
    }
    at_ns += 10 * PERIOD_NS;
    put_switch(world, at_ns + 100000, PID, 0);
    world->cpus[0].stopped_ns = at_ns + 20 * PERIOD_NS + 100000;
    drain_stop(world->drain);
    struct books_cpu cpu = make_books(world, 56, &unexplained);
    assert_int_equal(cpu.received, 15);
    assert_int_equal(cpu.throttled, 16);
    assert_int_equal(cpu.lost, 5);
    assert_int_equal(cpu.idle, 20);
    assert_int_equal(cpu.missed, 0);
    assert_int_equal(unexplained, 0);
}

static void a_suspend_is_in_no_term(void **state)
{
    const uint64_t jump_ns = UINT64_C(8) * 3600 * 1000000000 + 12345;
    struct ring_world *world = *state;
    int64_t unexplained = 1;
    for (uint64_t i = 1; i <= 10; i++) {
        put_sample(world, START_NS + i * PERIOD_NS + 2000);
    }
    put_switch(world, START_NS + 10 * PERIOD_NS + 100000, PID, 0);
    drain_all(world->drain, START_NS + 15 * PERIOD_NS + 100000);
    /* Five ticks into idleness the clock of the records jumps, and the timer waits. */
    cpu_books_suspended(world->books, jump_ns);
    put_switch(world, START_NS + 30 * PERIOD_NS + 100000 + jump_ns, 0, PID);
    for (uint64_t i = 31; i <= 40; i++) {
        put_sample(world, START_NS + i * PERIOD_NS + 2000 + jump_ns);
    }
    world->cpus[0].stopped_ns = START_NS + 40 * PERIOD_NS + 50000 + jump_ns;
    drain_stop(world->drain);
    struct books_cpu cpu = make_books(world, 40, &unexplained);
    assert_int_equal(cpu.received, 20);
    assert_int_equal(cpu.idle, 20);
    assert_int_equal(cpu.missed, 0);
    assert_int_equal(unexplained, 0);
}

/* The CPU is found to be offline, long after its clock ran for so long. */
static void lose(struct ring_world *world, uint64_t ran_ns)
{
    const uint64_t late_ns = START_NS + NS_PER_S;
    world->cpus[0].streams[PERF_STREAM_CLOCK].fd = -1;
    world->cpus[0].before.time_running_ns = ran_ns;
    drain_lose_cpu(world->drain, 0, (struct clock_moment){late_ns, late_ns});
}

/* New rings, in the memory of the old ones, as perf_source_replace() leaves them. */
static void replace_rings(struct ring_world *world, uint64_t started_ns)
{
    struct perf_cpu *cpu = &world->cpus[0];
    for (size_t i = 0; i < PERF_STREAMS_MAX; i++) {
        struct perf_ring *ring = &cpu->streams[i].ring;
        world->pages[0][i] = (struct perf_event_mmap_page){0};
        perf_ring_init(ring, &world->pages[0][i], ring->data, RING_BYTES, ring->bounce);
    }
    cpu->absent = false;
    cpu->started_ns = started_ns;
}

static void a_cpu_that_was_away_has_no_ticks_meanwhile(void **state)
{
    const uint64_t back_ns = START_NS + 4000 * PERIOD_NS;
    struct ring_world *world = *state;
    int64_t unexplained = 1;
    for (uint64_t i = 1; i <= 10; i++) {
        put_sample(world, START_NS + i * PERIOD_NS + 2000);
    }
    put_switch(world, START_NS + 10 * PERIOD_NS + 100000, PID, 0);
    /* Idle for five ticks, and gone; word of it comes later. */
    lose(world, 15 * PERIOD_NS + 100000);
    world->cpus[0].absent = true;
    assert_false(drain_is_empty(world->drain, 0));
    drain_all(world->drain, START_NS + 3000 * PERIOD_NS);
    assert_true(drain_is_empty(world->drain, 0));
    cpu_books_leave(world->books, 0);
    replace_rings(world, back_ns);
    sideband_feed_gap(drain_feed(world->drain), 0, back_ns - 100000, back_ns - 1000);
    drain_return_cpu(world->drain, 0, true, back_ns - 1000);
    for (uint64_t i = 1; i <= 10; i++) {
        put_sample(world, back_ns + i * PERIOD_NS + 2000);
    }
    world->cpus[0].stopped_ns = back_ns + 10 * PERIOD_NS + 50000;
    drain_stop(world->drain);
    struct books_cpu cpu = make_books(world, 25, &unexplained);
    assert_int_equal(cpu.received, 20);
    assert_int_equal(cpu.idle, 5);
    assert_int_equal(cpu.missed, 0);
    assert_int_equal(unexplained, 0);
}

static void a_cpu_that_stays_away_ends_when_it_went(void **state)
{
    struct ring_world *world = *state;
    int64_t unexplained = 1;
    for (uint64_t i = 1; i <= 10; i++) {
        put_sample(world, START_NS + i * PERIOD_NS + 2000);
    }
    put_switch(world, START_NS + 10 * PERIOD_NS + 100000, PID, 0);
    lose(world, 15 * PERIOD_NS + 100000);
    world->cpus[0].absent = true;
    world->cpus[0].stopped_ns = START_NS + 9000 * PERIOD_NS;
    drain_stop(world->drain);
    struct books_cpu cpu = make_books(world, 15, &unexplained);
    assert_int_equal(cpu.idle, 5);
    assert_int_equal(unexplained, 0);
    /* And is in no run that begins without it. */
    world->cpus[0].started_ns = START_NS + 9500 * PERIOD_NS;
    world->cpus[0].stopped_ns = START_NS + 9900 * PERIOD_NS;
    drain_start(world->drain);
    drain_stop(world->drain);
    cpu = make_books(world, 15, &unexplained);
    assert_int_equal(cpu.idle, 5);
    assert_int_equal(unexplained, 0);
}

static void a_return_is_like_a_loss_of_sideband(void **state)
{
    struct ring_world *world = *state;
    assert_false(sideband_feed_take_rescan(drain_feed(world->drain)));
    sideband_feed_gap(drain_feed(world->drain), 0, START_NS, START_NS + 1000000);
    drain_return_cpu(world->drain, 0, false, START_NS + 1000000);
    assert_true(sideband_feed_take_rescan(drain_feed(world->drain)));
}

static void a_switch_record_that_makes_no_sense_is_counted(void **state)
{
    struct ring_world *world = *state;
    const uint64_t broken = 1;
    drain_start(world->drain);
    put_switch(world, START_NS + PERIOD_NS, PID, 0);
    put(world, PERF_STREAM_SWITCHES, PERF_RECORD_SWITCH_CPU_WIDE, 0, &broken, 1);
    drain_all(world->drain, START_NS + 2 * PERIOD_NS);
    assert_int_equal(drain_counters(world->drain, 0).bad_records, 1);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_busy_cpu_is_received_whole),
        TEST(ticks_are_the_samples_of_the_clock),
        TEST(who_takes_one_sample_in_a_hundred_is_seen),
        TEST(every_term_of_one_run),
        TEST(a_suspend_is_in_no_term),
        TEST(a_cpu_that_was_away_has_no_ticks_meanwhile),
        TEST(a_cpu_that_stays_away_ends_when_it_went),
        TEST(a_return_is_like_a_loss_of_sideband),
        TEST(a_switch_record_that_makes_no_sense_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
