/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The books of what the real drain does with rings that are filled by hand: one CPU, whose timer
 * ticks every 250 us while programs run and sleep, and of whose samples some are taken away.
 */
#include "books.h"
#include "drain.h"

#include <linux/perf_event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PERIOD_NS    UINT64_C(250000)
#define START_NS     UINT64_C(5000000000)
#define RING_BYTES   65536
#define BUFFER_BYTES ((size_t)8 << 20)
#define PID          4100000
#define SAMPLE_TYPE                                                                                \
    (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |               \
     PERF_SAMPLE_CALLCHAIN)

enum {
    SAMPLES,
    SIDEBAND,
    SWITCHES,
    RINGS,
};

struct world {
    struct perf_event_mmap_page pages[RINGS];
    uint64_t rings[RINGS][RING_BYTES / 8];
    uint8_t bounces[RINGS][PERF_RING_BOUNCE_BYTES];
    struct perf_cpu cpu;
    struct perf_source source;
    struct trace_buffer *buffer;
    struct trace *trace;
    struct process_table *processes;
    struct proc_scan *scan;
    struct filter *filter;
    struct drain *drain;
};

static void on_file_gone(struct mapped_file *file, void *userdata)
{
    struct world *world = userdata;
    trace_file_gone(file, world->trace);
}

static void init_ring(struct world *world, int ring, struct perf_ring *into)
{
    perf_ring_init(into, &world->pages[ring], (const uint8_t *)world->rings[ring], RING_BYTES,
                   world->bounces[ring]);
}

static int set_up(void **state)
{
    static const uint32_t cpu_id = 0;
    struct world *world = calloc(1, sizeof *world);
    struct filter_config filter = {.kernel_threads = true};
    world->cpu = (struct perf_cpu){.switch_fd = -1, .started_ns = START_NS};
    init_ring(world, SAMPLES, &world->cpu.sample_ring);
    init_ring(world, SIDEBAND, &world->cpu.sideband_ring);
    init_ring(world, SWITCHES, &world->cpu.switch_ring);
    world->source = (struct perf_source){
        .config = {.period_ns = PERIOD_NS},
        .layout = perf_record_layout_make(SAMPLE_TYPE, 0),
        .switch_layout = perf_record_layout_make(PERF_SAMPLE_TID | PERF_SAMPLE_TIME, 0),
        .has_switches = true,
        .cpus = &world->cpu,
        .cpu_count = 1,
        .sideband_count = 1,
        .sample_max_stack = 127,
    };
    world->buffer = trace_buffer_new(1, BUFFER_BYTES, BUFFER_BYTES);
    struct trace_config trace = {.buffer = world->buffer,
                                 .cpus = &cpu_id,
                                 .cpu_count = 1,
                                 .session_json = "{}",
                                 .max_stack_depth = 3};
    if (world->buffer == NULL || trace_new(&trace, &world->trace) < 0) {
        return -1;
    }
    world->processes = process_table_new(on_file_gone, world);
    world->scan = proc_scan_new();
    world->filter = filter_new(&filter);
    struct drain_config config = {
        .source = &world->source,
        .processes = world->processes,
        .scan = world->scan,
        .filter = world->filter,
        .trace = world->trace,
        .unwind = SESSION_UNWIND_FP,
        .max_stack_depth = 3,
    };
    world->drain = drain_new(&config);
    *state = world;
    return world->drain == NULL ? -1 : 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;
    (void)drain_free(world->drain);
    (void)process_table_free(world->processes);
    (void)proc_scan_free(world->scan);
    (void)filter_free(world->filter);
    (void)trace_free(world->trace);
    (void)trace_buffer_free(world->buffer);
    free(world);
    return 0;
}

static void put(struct world *world, int ring, uint32_t type, uint16_t misc, const uint64_t *words,
                size_t word_count)
{
    struct perf_event_header header = {
        .type = type, .misc = misc, .size = (uint16_t)(8 + 8 * word_count)};
    uint64_t at = world->pages[ring].data_head / 8;
    memcpy(&world->rings[ring][at++ % (RING_BYTES / 8)], &header, sizeof header);
    for (size_t i = 0; i < word_count; i++) {
        world->rings[ring][at++ % (RING_BYTES / 8)] = words[i];
    }
    world->pages[ring].data_head += header.size;
}

static void put_sample(struct world *world, uint64_t time_ns)
{
    uint64_t words[] = {1, (uint64_t)PID << 32 | PID, time_ns, 0, 2, PERF_CONTEXT_USER, 0x5010};
    put(world, SAMPLES, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, words, 7);
}

static void put_switch(struct world *world, uint64_t time_ns, uint64_t from, uint64_t to)
{
    uint64_t words[] = {to << 32 | to, from << 32 | from, time_ns};
    put(world, SWITCHES, PERF_RECORD_SWITCH_CPU_WIDE, PERF_RECORD_MISC_SWITCH_OUT, words, 3);
    words[0] = from << 32 | from;
    words[1] = to << 32 | to;
    words[2] += 400;
    put(world, SWITCHES, PERF_RECORD_SWITCH_CPU_WIDE, 0, words, 3);
}

static void put_trailed(struct world *world, uint32_t type, uint64_t second, size_t body_words,
                        uint64_t time_ns)
{
    uint64_t words[7] = {1, second, 1};
    words[body_words] = 0;
    words[body_words + 1] = time_ns;
    words[body_words + 2] = 0;
    words[body_words + 3] = 1;
    put(world, SAMPLES, type, 0, words, body_words + 4);
}

/* The program runs for `run` ticks of each `turn`, and sleeps for the rest; of its samples one in
 * `remove_one_in` is taken away. Drained every 400 ticks. */
static uint64_t tick(struct world *world, uint64_t ticks, uint64_t run, uint64_t turn,
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
    world->cpu.stopped_ns = START_NS + ticks * PERIOD_NS + 50000;
    return removed;
}

/* The books of `ticks` ticks. */
static struct books_cpu make_books(struct world *world, uint64_t ticks, int64_t *ret_unexplained)
{
    const struct drain_cpu_counts *counts = drain_cpu_counts(world->drain);
    struct books_cpu cpu = {
        .running_ns = ticks * PERIOD_NS,
        .received = counts->received,
        .lost = counts->ticks.lost,
        .throttled = counts->ticks.throttled,
        .missed = counts->ticks.missed,
        .idle = counts->ticks.idle,
    };
    struct books books = {.period_ns = PERIOD_NS, .cpus = &cpu, .cpu_count = 1};
    *ret_unexplained = books_unexplained(&books, &cpu);
    return cpu;
}

static void a_busy_cpu_is_received_whole(void **state)
{
    struct world *world = *state;
    int64_t unexplained = 1;
    drain_start(world->drain);
    (void)tick(world, 40000, 100, 100, 0);
    drain_stop(world->drain);
    struct books_cpu cpu = make_books(world, 40000, &unexplained);
    assert_int_equal(cpu.received, 40000);
    assert_int_equal(unexplained, 0);
}

static void who_takes_one_sample_in_a_hundred_is_seen(void **state)
{
    static const struct {
        uint64_t run, turn;
    } loads[] = {{100, 100}, {12, 25}, {1, 2}, {3, 4}};
    for (size_t i = 0; i < sizeof loads / sizeof loads[0]; i++) {
        (void)tear_down(state);
        assert_int_equal(set_up(state), 0);
        struct world *world = *state;
        int64_t unexplained = 1;
        drain_start(world->drain);
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
    struct world *world = *state;
    int64_t unexplained = 1;
    uint64_t at_ns = START_NS;
    drain_start(world->drain);
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
    world->cpu.stopped_ns = at_ns + 20 * PERIOD_NS + 100000;
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
    struct world *world = *state;
    int64_t unexplained = 1;
    drain_start(world->drain);
    for (uint64_t i = 1; i <= 10; i++) {
        put_sample(world, START_NS + i * PERIOD_NS + 2000);
    }
    put_switch(world, START_NS + 10 * PERIOD_NS + 100000, PID, 0);
    drain_all(world->drain, START_NS + 15 * PERIOD_NS + 100000);
    /* Five ticks into idleness the clock of the records jumps, and the timer waits. */
    drain_suspended(world->drain, jump_ns);
    put_switch(world, START_NS + 30 * PERIOD_NS + 100000 + jump_ns, 0, PID);
    for (uint64_t i = 31; i <= 40; i++) {
        put_sample(world, START_NS + i * PERIOD_NS + 2000 + jump_ns);
    }
    world->cpu.stopped_ns = START_NS + 40 * PERIOD_NS + 50000 + jump_ns;
    drain_stop(world->drain);
    struct books_cpu cpu = make_books(world, 40, &unexplained);
    assert_int_equal(cpu.received, 20);
    assert_int_equal(cpu.idle, 20);
    assert_int_equal(cpu.missed, 0);
    assert_int_equal(unexplained, 0);
}

/* New rings, in the memory of the old ones, as perf_source_replace() leaves them. */
static void replace_rings(struct world *world, uint64_t started_ns)
{
    memset(world->pages, 0, sizeof world->pages);
    init_ring(world, SAMPLES, &world->cpu.sample_ring);
    init_ring(world, SIDEBAND, &world->cpu.sideband_ring);
    init_ring(world, SWITCHES, &world->cpu.switch_ring);
    world->cpu.absent = false;
    world->cpu.started_ns = started_ns;
}

static void a_cpu_that_was_away_has_no_ticks_meanwhile(void **state)
{
    const uint64_t back_ns = START_NS + 4000 * PERIOD_NS;
    struct world *world = *state;
    int64_t unexplained = 1;
    drain_start(world->drain);
    for (uint64_t i = 1; i <= 10; i++) {
        put_sample(world, START_NS + i * PERIOD_NS + 2000);
    }
    put_switch(world, START_NS + 10 * PERIOD_NS + 100000, PID, 0);
    /* Idle for five ticks, and gone; word of it comes later. */
    drain_lose_cpu(world->drain, 0, START_NS + 15 * PERIOD_NS + 100000);
    world->cpu.absent = true;
    assert_false(drain_is_empty(world->drain, 0));
    drain_all(world->drain, START_NS + 3000 * PERIOD_NS);
    assert_true(drain_is_empty(world->drain, 0));
    drain_leave_cpu(world->drain, 0);
    replace_rings(world, back_ns);
    drain_return_cpu(world->drain, 0, true, back_ns - 100000, back_ns - 1000);
    for (uint64_t i = 1; i <= 10; i++) {
        put_sample(world, back_ns + i * PERIOD_NS + 2000);
    }
    world->cpu.stopped_ns = back_ns + 10 * PERIOD_NS + 50000;
    drain_stop(world->drain);
    struct books_cpu cpu = make_books(world, 25, &unexplained);
    assert_int_equal(cpu.received, 20);
    assert_int_equal(cpu.idle, 5);
    assert_int_equal(cpu.missed, 0);
    assert_int_equal(unexplained, 0);
}

static void a_cpu_that_stays_away_ends_when_it_went(void **state)
{
    struct world *world = *state;
    int64_t unexplained = 1;
    drain_start(world->drain);
    for (uint64_t i = 1; i <= 10; i++) {
        put_sample(world, START_NS + i * PERIOD_NS + 2000);
    }
    put_switch(world, START_NS + 10 * PERIOD_NS + 100000, PID, 0);
    drain_lose_cpu(world->drain, 0, START_NS + 15 * PERIOD_NS + 100000);
    world->cpu.absent = true;
    world->cpu.stopped_ns = START_NS + 9000 * PERIOD_NS;
    drain_stop(world->drain);
    struct books_cpu cpu = make_books(world, 15, &unexplained);
    assert_int_equal(cpu.idle, 5);
    assert_int_equal(unexplained, 0);
    /* And is in no run that begins without it. */
    world->cpu.started_ns = START_NS + 9500 * PERIOD_NS;
    world->cpu.stopped_ns = START_NS + 9900 * PERIOD_NS;
    drain_start(world->drain);
    drain_stop(world->drain);
    cpu = make_books(world, 15, &unexplained);
    assert_int_equal(cpu.idle, 5);
    assert_int_equal(unexplained, 0);
}

static void a_return_is_like_a_loss_of_sideband(void **state)
{
    struct world *world = *state;
    assert_false(drain_take_rescan(world->drain));
    drain_return_cpu(world->drain, 0, false, START_NS, START_NS + 1000000);
    assert_true(drain_take_rescan(world->drain));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_busy_cpu_is_received_whole),
        TEST(who_takes_one_sample_in_a_hundred_is_seen),
        TEST(every_term_of_one_run),
        TEST(a_suspend_is_in_no_term),
        TEST(a_cpu_that_was_away_has_no_ticks_meanwhile),
        TEST(a_cpu_that_stays_away_ends_when_it_went),
        TEST(a_return_is_like_a_loss_of_sideband),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
