/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The books of what the real drain does with rings that are filled by hand: one CPU, whose timer
 * ticks every 250 us while programs run and sleep, and of whose samples some are taken away.
 */
#include "books.h"
#include "drain_world.h"
#include "fxt_reader.h"

#define PERIOD_NS UINT64_C(250000)
#define START_NS  UINT64_C(5000000000)
#define TICK(n)   (START_NS + (n)*PERIOD_NS)

static int set_up_ticks(void **state)
{
    *state = ring_world_new(&(struct ring_world_options){.unwind = SESSION_UNWIND_FP,
                                                         .cpu_count = 1,
                                                         .period_ns = PERIOD_NS,
                                                         .started_ns = START_NS,
                                                         .switches = true});
    return *state == NULL ? -1 : 0;
}

static void put_switch(struct ring_world *world, uint64_t time_ns, uint32_t from, uint32_t to)
{
    PUT(world, 0, SWITCHES, SWITCH_CPU_WIDE, PERF_RECORD_MISC_SWITCH_OUT, pair(to, to),
        pair(from, from), time_ns);
    PUT(world, 0, SWITCHES, SWITCH_CPU_WIDE, 0, pair(from, from), pair(to, to), time_ns + 400);
}

/* Samples of the ticks from `first` to `last`, `late_ns` after each. */
static void put_ticks(struct ring_world *world, uint64_t first, uint64_t last, uint64_t late_ns)
{
    for (uint64_t i = first; i <= last; i++) {
        put_sample(world, 0, PID, TICK(i) + late_ns, 0x5010);
    }
}

/* Sampling stops at `stop_ns`. The books of `ticks` ticks are then as expected, and close. */
static void expect_books(struct ring_world *world, uint64_t ticks, uint64_t stop_ns,
                         const struct books_cpu *expected)
{
    world->cpus[0].stopped_ns = stop_ns;
    drain_stop(world->drain);
    struct books_cpu cpu = drain_books(world->drain, 0, 0);
    cpu.running_ns = ticks * PERIOD_NS;
    const struct books books = {.period_ns = PERIOD_NS, .cpus = &cpu, .cpu_count = 1};
    assert_int_equal(cpu.received, expected->received);
    assert_int_equal(cpu.lost, expected->lost);
    assert_int_equal(cpu.throttled, expected->throttled);
    assert_int_equal(cpu.missed, expected->missed);
    assert_int_equal(cpu.idle, expected->idle);
    assert_int_equal(books_unexplained(&books, &cpu), 0);
}

#define EXPECT_BOOKS(ticks, stop_ns, ...)                                                          \
    expect_books(world, ticks, stop_ns, &(const struct books_cpu){__VA_ARGS__})

#define STORY(name) DRAIN_STORY(name, set_up_ticks)

/* The ring is full from the tick 101 on. No record tells of what is lost then: the kernel's count
 * does. When sampling goes on, a record tells of it late, and of one more. */
STORY(what_is_lost_last_is_not_missed_as_well)
{
    struct perf_stream *clock = &world->cpus[0].streams[PERF_STREAM_CLOCK];
    clock->fd = -1; /* the count is what was there before it */
    put_ticks(world, 1, 100, 2000);
    clock->before.lost_count = 300;
    EXPECT_BOOKS(400, TICK(400) + 50000, .received = 100, .lost = 300);

    world->cpus[0].started_ns = TICK(400) + 50000;
    drain_start(world->drain);
    clock->before.lost_count = 301;
    put_lost(world, 0, PERF_STREAM_CLOCK, TICK(402) + 52000, 301);
    for (uint64_t i = 402; i <= 500; i++) {
        put_sample(world, 0, PID, TICK(i) + 52000, 0x5010);
    }
    EXPECT_BOOKS(500, TICK(500) + 100000, .received = 199, .lost = 301);
}

/* Samples of another event come in a ring of their own, and say so in the file. */
STORY(ticks_are_the_samples_of_the_clock)
{
    size_t others = 0;
    size_t file_bytes = 0;
    for (uint64_t i = 0; i < 10; i++) {
        put(world, 0, RING_STREAM_FURTHER, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER,
            ROWS_OF(uint64_t, 3, pair(PID, PID), START_NS + i * 1000, 0, 2, PERF_CONTEXT_USER,
                    0x5010));
    }
    put_lost(world, 0, RING_STREAM_FURTHER, START_NS + 20000, 500);
    put_ticks(world, 1, 400, 2000);
    EXPECT_BOOKS(400, TICK(400) + 50000, .received = 400);
    const uint8_t *file = ring_world_file(world, &file_bytes);
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
}

/* The program runs for `run` ticks of each `turn`, and sleeps for the rest; of its samples one in
 * `remove_one_in` is taken away. Drained every 400 ticks. */
static uint64_t run_program(struct ring_world *world, uint64_t ticks, uint64_t run, uint64_t turn,
                            uint64_t remove_one_in)
{
    uint64_t removed = 0;
    for (uint64_t i = 1; i <= ticks; i++) {
        if (i % turn == run) {
            put_switch(world, TICK(i) - 100000, PID, 0);
        } else if (i % turn == 0 && run < turn) {
            put_switch(world, TICK(i) - 100000, 0, PID);
        }
        if (i % turn < run && remove_one_in > 0 && i % remove_one_in == 7) {
            removed++;
        } else if (i % turn < run) {
            put_ticks(world, i, i, 2000 + i % 5 * 700);
        }
        if (i % 400 == 0) {
            drain_all(world->drain, TICK(i) - 1000000);
        }
    }
    return removed;
}

TEST(who_takes_one_sample_in_a_hundred_is_seen)
{
    static const struct {
        uint64_t run, turn, remove_one_in;
    } loads[] = {{100, 100, 0}, {100, 100, 101}, {12, 25, 101}, {1, 2, 101}, {3, 4, 101}};
    for (size_t i = 0; i < COUNT_OF(loads); i++) {
        const uint64_t run = loads[i].run;
        const uint64_t turn = loads[i].turn;
        void *made = NULL;
        assert_int_equal(set_up_ticks(&made), 0);
        struct ring_world *world = made;
        uint64_t removed = run_program(world, 40000, run, turn, loads[i].remove_one_in);
        assert_true(removed > 150 || loads[i].remove_one_in == 0);
        const uint64_t idle = 40000 - 40000 / turn * run - 40000 % turn;
        EXPECT_BOOKS(40000, TICK(40000) + 50000, .received = 40000 - idle - removed,
                     .missed = removed, .idle = idle);
        (void)tear_down(&made);
    }
}

/* One CPU after the other is stopped, and rounds go on meanwhile: the CPU idles, without ticks. */
STORY(a_round_while_sampling_ends_counts_no_tick_after_the_end)
{
    put_ticks(world, 1, 400, 2000);
    put_switch(world, TICK(400) + 100000, PID, 0);
    drain_all(world->drain, TICK(410));
    world->source.sampling = false;
    drain_all(world->drain, TICK(500));
    EXPECT_BOOKS(450, TICK(450) + 50000, .received = 400, .idle = 50);
}

STORY(every_term_of_one_run)
{
    put_ticks(world, 1, 10, 2000);
    /* Throttled with the tenth, for 16 ticks; then 10 more, 5 of them lost; idle to the end. */
    PUT(world, 0, CLOCK, THROTTLE, 0, 1, 1, 1, 0, TICK(10) + 2500, 0, 1);
    PUT(world, 0, CLOCK, UNTHROTTLE, 0, 1, 1, 1, 0, TICK(26) + 2500, 0, 1);
    put_lost(world, 0, PERF_STREAM_CLOCK, TICK(32) + 2000, 5);
    put_ticks(world, 32, 36, 4000);
    put_switch(world, TICK(36) + 100000, PID, 0);
    EXPECT_BOOKS(56, TICK(56) + 100000, .received = 15, .throttled = 16, .lost = 5, .idle = 20);
}

/* Ten ticks, and then an idle CPU. */
static void run_and_sleep(struct ring_world *world)
{
    put_ticks(world, 1, 10, 2000);
    put_switch(world, TICK(10) + 100000, PID, 0);
}

STORY(a_suspend_is_in_no_term)
{
    const uint64_t jump_ns = UINT64_C(8) * 3600 * 1000000000 + 12345;
    run_and_sleep(world);
    drain_all(world->drain, TICK(15) + 100000);
    /* Five ticks into idleness the clock of the records jumps, and the timer waits. */
    cpu_books_suspended(world->books, jump_ns);
    put_switch(world, TICK(30) + 100000 + jump_ns, 0, PID);
    put_ticks(world, 31, 40, 2000 + jump_ns);
    EXPECT_BOOKS(40, TICK(40) + 50000 + jump_ns, .received = 20, .idle = 20);
}

/* The CPU is found to be offline, long after its clock ran for 15 ticks. */
static void lose(struct ring_world *world)
{
    const uint64_t late_ns = START_NS + NS_PER_S;
    world->cpus[0].streams[PERF_STREAM_CLOCK].fd = -1;
    world->cpus[0].streams[PERF_STREAM_CLOCK].before.time_running_ns = 15 * PERIOD_NS + 100000;
    drain_lose_cpu(world->drain, 0, (struct clock_moment){late_ns, late_ns});
    world->cpus[0].absent = true;
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

STORY(a_cpu_that_was_away_has_no_ticks_meanwhile)
{
    const uint64_t back_ns = TICK(4000);
    run_and_sleep(world);
    lose(world);
    assert_false(drain_is_empty(world->drain, 0));
    drain_all(world->drain, TICK(3000));
    assert_true(drain_is_empty(world->drain, 0));
    cpu_books_leave(world->books, 0);
    replace_rings(world, back_ns);
    sideband_feed_gap(drain_feed(world->drain), 0, back_ns - 100000, back_ns - 1000);
    drain_return_cpu(world->drain, 0, true, back_ns - 1000);
    put_ticks(world, 4001, 4010, 2000);
    EXPECT_BOOKS(25, TICK(4010) + 50000, .received = 20, .idle = 5);
}

STORY(a_cpu_that_stays_away_ends_when_it_went)
{
    run_and_sleep(world);
    lose(world);
    EXPECT_BOOKS(15, TICK(9000), .received = 10, .idle = 5);
    /* And is in no run that begins without it. */
    world->cpus[0].started_ns = TICK(9500);
    drain_start(world->drain);
    EXPECT_BOOKS(15, TICK(9900), .received = 10, .idle = 5);
}

STORY(a_return_is_like_a_loss_of_sideband)
{
    assert_false(sideband_feed_take_rescan(drain_feed(world->drain)));
    sideband_feed_gap(drain_feed(world->drain), 0, START_NS, START_NS + 1000000);
    drain_return_cpu(world->drain, 0, false, START_NS + 1000000);
    assert_true(sideband_feed_take_rescan(drain_feed(world->drain)));
}

STORY(a_switch_record_that_makes_no_sense_is_counted)
{
    drain_start(world->drain);
    put_switch(world, TICK(1), PID, 0);
    PUT(world, 0, SWITCHES, SWITCH_CPU_WIDE, 0, 1);
    drain_all(world->drain, TICK(2));
    assert_int_equal(counted(world).bad_records, 1);
}
