/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The rings of switches of two CPUs, filled by hand as the kernel fills them, in front of the real
 * waits. Each story is judged by what its sink has got, and by the books: a wait has the length
 * that the records say, or is counted as uncertain where records are missing.
 */
#include "drain_world.h"
#include "fxt_reader.h"
#include "sink.h"
#include "wait.h"
#include "waits.h"

#define START 100
#define IDLE  0
#define A     (PID + 1)
#define B     (PID + 2)

struct story {
    struct ring_world *world;
    struct sinks sinks;
    struct waits *waits;
    size_t taken_count; /* samples that were taken for beginnings of waits */
};

/* Each sample of a switch is known at once, and wanted. */
static void resolve(size_t cpu_index, const struct perf_record *record, void *userdata)
{
    static const uint64_t frames[] = {LEAF_PC};
    struct story *story = userdata;
    const struct resolved resolved = {
        .sample = {.time_ns = record->time_ns,
                   .pid = record->pid,
                   .tid = record->tid,
                   .user_stack = frames,
                   .user_count = COUNT_OF(frames)},
        .wanted = 1,
    };
    (void)cpu_index;
    story->taken_count++;
    waits_resolve(story->waits, record, &resolved);
}

static struct waits *make_waits(struct story *story)
{
    struct ring_world *world = story->world;
    world->source.config.has_waits = true;
    world->source.config.wait_cost_percent = 100;
    story->sinks.count = 1;
    story->sinks.filters[0] = world->filter;
    story->sinks.all[0] = sink_new(&(struct sink_config){
        .source = &world->source,
        .processes = world->processes,
        .filter = world->filter,
        .trace = world->trace,
    });
    return waits_new(&(struct waits_config){
        .source = &world->source,
        .processes = world->processes,
        .feed = drain_feed(world->drain),
        .sinks = &story->sinks,
        .take = resolve,
        .userdata = story,
    });
}

static int set_up_story(void **state)
{
    struct story *story = calloc(1, sizeof *story);
    story->world = ring_world_new(&(struct ring_world_options){
        .unwind = SESSION_UNWIND_FP, .cpu_count = 2, .max_stack_depth = 3, .switches = true});
    story->waits = make_waits(story);
    assert_non_null(story->waits);
    waits_start(story->waits, START);
    *state = story;
    return 0;
}

static int tear_down_story(void **state)
{
    struct story *story = *state;
    (void)waits_free(story->waits);
    (void)sink_free(story->sinks.all[0]);
    (void)ring_world_free(story->world);
    free(story);
    return 0;
}

#define STORY(name) TEST_OF(struct story *story, name, set_up_story, tear_down_story)

/* ---- what the kernel writes ---- */

#define OUT     PERF_RECORD_MISC_SWITCH_OUT
#define PREEMPT (PERF_RECORD_MISC_SWITCH_OUT | PERF_RECORD_MISC_SWITCH_OUT_PREEMPT)

static void put_half(struct story *story, size_t cpu, uint16_t misc, uint32_t tid, uint32_t other,
                     uint64_t time_ns)
{
    PUT(story->world, cpu, SWITCHES, SWITCH_CPU_WIDE, misc, pair(other, other), pair(tid, tid),
        time_ns);
}

/* A CPU goes over from a thread to another. */
static void put_switch(struct story *story, size_t cpu, uint16_t misc, uint32_t from, uint32_t to,
                       uint64_t time_ns)
{
    put_half(story, cpu, misc, from, to, time_ns);
    put_half(story, cpu, 0, to, from, time_ns);
}

static void put_switch_sample(struct story *story, size_t cpu, uint32_t tid, uint64_t time_ns)
{
    PUT(story->world, cpu, WAITS, SAMPLE, PERF_RECORD_MISC_USER, 1, pair(tid, tid), time_ns, cpu, 2,
        PERF_CONTEXT_USER, LEAF_PC);
}

static void put_lost_switches(struct story *story, size_t cpu, uint64_t time_ns)
{
    PUT(story->world, cpu, SWITCHES, LOST, 0, 1, 7, pair(0, 0), time_ns);
}

/* ---- a round ---- */

static struct perf_ring *switches_of(struct story *story, size_t cpu)
{
    return &story->world->cpus[cpu].streams[PERF_STREAM_SWITCHES].ring;
}

static void begin_round(struct story *story)
{
    for (size_t i = 0; i < story->world->source.cpu_count; i++) {
        perf_ring_refresh(switches_of(story, i)); /* by the books, whose ring it is */
    }
    waits_refresh(story->waits);
}

static void play_round(struct story *story, uint64_t horizon_ns)
{
    begin_round(story);
    waits_merge(story->waits, horizon_ns);
}

/* The same with CPU 0's records off between these times, as far as that is known. */
static void play_held_round(struct story *story, uint64_t horizon_ns, uint64_t from_ns,
                            uint64_t to_ns)
{
    begin_round(story);
    waits_hold(story->waits, 0, from_ns, to_ns);
    waits_merge(story->waits, horizon_ns);
}

/* ---- what came of it ---- */

static struct books_event books_of(struct story *story, size_t cpu, enum wait_kind kind)
{
    struct books_event line = {0};
    waits_count(story->waits, cpu, kind, &line);
    return line;
}

struct filed {
    uint64_t time_ns;
    uint32_t event;
    uint64_t weight;
};

static int compare_times(const void *a, const void *b)
{
    const struct filed *left = a;
    const struct filed *right = b;
    return (left->time_ns > right->time_ns) - (left->time_ns < right->time_ns);
}

/* The run ends. The sink has these waits, in the order of their ends: "TIME EVENT LENGTH; ". */
static void expect_waits(struct story *story, uint64_t stop_ns, const char *expected)
{
    struct filed filed[32];
    size_t count = 0;
    char text[512] = "";
    size_t file_bytes = 0;
    begin_round(story);
    waits_stop(story->waits, stop_ns);
    const uint8_t *file = ring_world_file(story->world, &file_bytes);
    struct fxt_reader *reader = fxt_reader_new();
    struct fxt_record record;
    for (size_t at = 0; at < file_bytes; at += record.size_bytes) {
        assert_int_equal(fxt_reader_next(reader, file + at, file_bytes - at, &record), 1);
        const struct fxt_sample *sample = &record.sample;
        if (record.kind == FXT_RECORD_SAMPLE &&
            (sample->fields & FXT_SAMPLE_CONTINUATION_COMPLETION) == 0) {
            assert_true(count < COUNT_OF(filed));
            filed[count++] =
                (struct filed){sample->boot_ts_ns, (uint32_t)sample->event, sample->weight};
        }
    }
    (void)fxt_reader_free(reader);
    qsort(filed, count, sizeof filed[0], compare_times);
    for (size_t i = 0, used = 0; i < count; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%d %d %d; ",
                                 (int)filed[i].time_ns, (int)filed[i].event, (int)filed[i].weight);
        assert_true(used < sizeof text);
    }
    assert_string_equal(text, expected);
}

STORY(takes_records_of_all_cpus_in_the_order_of_time)
{
    put_switch(story, 1, OUT, IDLE, A, 1500);
    put_switch(story, 1, PREEMPT, A, B, 1700);
    put_switch(story, 0, OUT, A, IDLE, 1000);
    put_switch(story, 0, OUT, IDLE, A, 1900);
    play_round(story, 1499);
    assert_int_equal(books_of(story, 1, WAIT_BLOCKED).counted, 0);
    play_round(story, 1500);
    assert_int_equal(books_of(story, 1, WAIT_BLOCKED).counted, 500);
    expect_waits(story, 2000, "1500 1 500; 1700 1 1600; 1900 2 200; ");
    assert_int_equal(books_of(story, 0, WAIT_PREEMPTED).counted, 200);
    assert_int_equal(books_of(story, 0, WAIT_PREEMPTED).lost, 0);
}

/* A CPU's samples and records are two rings. The sample is first, and is the moment of both. */
STORY(joins_a_sample_to_the_records_of_its_switch)
{
    put_switch_sample(story, 0, A, 1000);
    put_switch(story, 0, OUT, A, B, 1010);
    put_switch(story, 0, OUT, B, A, 1500); /* without a sample */
    put_switch_sample(story, 0, A, 1600);
    put_switch(story, 0, OUT, A, B, 1610);
    put_switch_sample(story, 0, A, 1700); /* of which no record tells */
    put_switch(story, 0, OUT, B, A, 1710);
    expect_waits(story, 1800, "1000 1 900; 1500 1 500; 1600 1 100; 1710 1 110; 1800 1 90; ");
    assert_int_equal(books_of(story, 0, WAIT_BLOCKED).bare, 3); /* those of B */
    assert_int_equal(books_of(story, 0, WAIT_BLOCKED).counted, 900 + 500 + 100 + 110 + 90);
}

STORY(hands_out_no_wait_over_a_loss)
{
    put_switch(story, 0, OUT, A, IDLE, 1000);
    put_switch(story, 1, OUT, B, IDLE, 1100); /* it may have had CPU 0 */
    put_lost_switches(story, 0, 1200);
    put_switch(story, 0, OUT, IDLE, A, 1500);
    put_switch(story, 0, OUT, A, IDLE, 1600);
    put_switch(story, 0, OUT, IDLE, A, 1650);
    put_switch(story, 1, OUT, IDLE, B, 1700);
    expect_waits(story, 2000, "1650 1 50; ");
    assert_int_equal(books_of(story, 0, WAIT_BLOCKED).lost, 1);
    assert_int_equal(books_of(story, 0, WAIT_BLOCKED).lost_weight, 500);
    assert_int_equal(books_of(story, 1, WAIT_BLOCKED).lost_weight, 600);
}

/* The time without records ends with the next record, not with the loss. */
STORY(is_blind_until_the_next_record_after_a_loss)
{
    put_switch(story, 0, OUT, IDLE, A, 1000);
    put_lost_switches(story, 0, 1000);
    put_switch(story, 1, OUT, B, IDLE, 1100);
    put_switch(story, 1, OUT, IDLE, B, 1200); /* on CPU 0 meanwhile, for all that is known */
    put_switch(story, 0, OUT, A, IDLE, 1300);
    put_switch(story, 1, OUT, B, IDLE, 1400);
    put_switch(story, 1, OUT, IDLE, B, 1450);
    play_round(story, 1250);
    assert_int_equal(books_of(story, 1, WAIT_BLOCKED).lost_weight, 100);
    put_switch(story, 0, OUT, IDLE, A, 1500);
    expect_waits(story, 2000, "1000 1 900; 1450 1 50; 1500 1 200; ");
}

/* A record that cannot be read is a loss as well. */
STORY(takes_a_bad_record_for_a_loss)
{
    put_switch(story, 0, OUT, A, IDLE, 1000);
    PUT(story->world, 0, SWITCHES, SWITCH_CPU_WIDE, 0, 1);
    put_switch(story, 0, OUT, IDLE, A, 1500);
    expect_waits(story, 2000, "");
    assert_int_equal(books_of(story, 0, WAIT_BLOCKED).lost_weight, 500);
}

/* The kernel says what it lost with the next record that fits, and that may never come. */
STORY(takes_a_full_ring_for_a_loss)
{
    struct ring_world *world = story->world;
    const uint64_t idle[] = {pair(IDLE, IDLE), pair(IDLE, IDLE), 1001};
    put_switch(story, 0, OUT, A, IDLE, 1000);
    while (ring_world_put(world, 0, PERF_STREAM_SWITCHES, PERF_RECORD_SWITCH_CPU_WIDE, 0, idle,
                          COUNT_OF(idle))) {
    }
    play_round(story, 1100);
    /* Both readers are through. */
    world->pages[0][PERF_STREAM_SWITCHES].data_tail = waits_switches(story->waits, 0)->tail;
    put_switch(story, 0, OUT, IDLE, A, 1500);
    put_switch(story, 0, OUT, A, IDLE, 1600);
    put_switch(story, 0, OUT, IDLE, A, 1650);
    expect_waits(story, 2000, "1650 1 50; ");
    assert_int_equal(books_of(story, 0, WAIT_BLOCKED).lost_weight, 500);
}

/* The ring of records has another reader, which gives its room back. */
STORY(gives_back_the_room_of_samples_alone)
{
    const struct perf_event_mmap_page *pages = story->world->pages[0];
    const uint64_t before = pages[PERF_STREAM_SWITCHES].data_tail;
    put_switch_sample(story, 0, A, 1000);
    put_switch(story, 0, OUT, A, IDLE, 1000);
    put_switch_sample(story, 0, A, 1400); /* beyond the horizon */
    play_round(story, 1200);
    assert_int_equal(pages[PERF_STREAM_SWITCHES].data_tail, before);
    assert_int_equal(waits_switches(story->waits, 0)->tail, before + 2 * 32);
    assert_int_equal(pages[PERF_STREAM_WAITS].data_tail, before + 64);
    assert_int_equal(pages[PERF_STREAM_WAITS].data_head, before + 2 * 64);
    play_round(story, 1400);
    assert_int_equal(pages[PERF_STREAM_WAITS].data_tail, before + 2 * 64);
    expect_waits(story, 1500, "1500 1 500; ");
}

STORY(counts_samples_that_were_lost_or_bad)
{
    PUT(story->world, 0, WAITS, LOST, 0, 1, 7, pair(0, 0), 900, 0, 1);
    PUT(story->world, 0, WAITS, SAMPLE, PERF_RECORD_MISC_USER, 1);
    put_switch(story, 0, OUT, A, IDLE, 1000);
    put_switch(story, 0, OUT, IDLE, A, 1200);
    expect_waits(story, 2000, "1200 1 200; ");
    assert_int_equal(books_of(story, 0, WAIT_BLOCKED).unread_count, 7);
    assert_int_equal(books_of(story, 0, WAIT_BLOCKED).bare, 1);
    assert_int_equal(waits_counters(story->waits).bad_records, 1);
}

/* ---- records that are switched off and on ---- */

STORY(hands_out_no_wait_over_a_time_that_was_off)
{
    put_switch(story, 0, OUT, A, IDLE, 1000);
    put_switch(story, 1, OUT, B, IDLE, 1200);
    put_switch(story, 1, OUT, IDLE, B, 1400); /* before */
    put_switch(story, 1, OUT, B, IDLE, 1450);
    put_switch(story, 1, OUT, IDLE, B, 1600); /* the time begins within */
    put_switch(story, 1, OUT, B, IDLE, 1700);
    put_switch(story, 1, OUT, IDLE, B, 1800); /* and is not over */
    play_held_round(story, 2000, 1500, UINT64_MAX);
    assert_int_equal(books_of(story, 1, WAIT_BLOCKED).lost_weight, 150 + 100);
    assert_int_equal(books_of(story, 0, WAIT_BLOCKED).held_back_ns, 0); /* how long is not known */
    put_switch(story, 1, OUT, B, IDLE, 2400);
    put_switch(story, 0, OUT, IDLE, A, 2600); /* A had a CPU before, for all that is known */
    put_switch(story, 1, OUT, IDLE, B, 2650);
    put_switch(story, 0, OUT, A, IDLE, 2700);
    put_switch(story, 0, OUT, IDLE, A, 2800);
    play_held_round(story, 3000, 1500, 2500);
    play_held_round(story, 3000, 1500, 2500);
    assert_int_equal(books_of(story, 0, WAIT_BLOCKED).held_back_ns, 1000);
    expect_waits(story, 3000, "1400 1 200; 2800 1 100; ");
    assert_int_equal(books_of(story, 0, WAIT_BLOCKED).lost_weight, 1600);
    assert_int_equal(books_of(story, 1, WAIT_BLOCKED).lost_weight, 150 + 100 + 250);
    assert_int_equal(books_of(story, 0, WAIT_BLOCKED).held_back_ns, 1000);
}

/* What came while the event was being switched is not all that there was, samples included. */
STORY(passes_over_what_came_in_a_time_that_was_off)
{
    put_switch(story, 0, OUT, A, B, 1499);
    put_switch(story, 0, OUT, B, A, 1500); /* neither this */
    put_switch_sample(story, 0, A, 2499);
    put_switch(story, 0, OUT, A, IDLE, 2499); /* nor that */
    put_switch_sample(story, 0, B, 2500);
    put_switch(story, 0, OUT, B, IDLE, 2500);
    put_switch(story, 0, OUT, IDLE, B, 2600);
    play_held_round(story, 3000, 1500, 2500);
    assert_int_equal(story->taken_count, 1);
    /* Of B the time between is not known; of A, which left before, nothing more is. */
    expect_waits(story, 3000, "1499 1 1399; 2600 1 100; ");
    assert_int_equal(books_of(story, 0, WAIT_BLOCKED).bare, 1); /* B's first */
    assert_int_equal(books_of(story, 0, WAIT_BLOCKED).lost_weight, 3000 - 1499);
}

/* It is told after a round as of which it began, and over before the next. */
STORY(is_off_once_more)
{
    play_held_round(story, 1400, 0, 0);
    assert_int_equal(books_of(story, 0, WAIT_BLOCKED).held_back_ns, 0);
    play_held_round(story, 2000, 1500, 1600);
    put_switch(story, 0, OUT, A, IDLE, 3000);
    put_switch(story, 0, OUT, IDLE, A, 3100);
    put_switch(story, 0, OUT, A, IDLE, 3200);
    play_held_round(story, 3500, 3300, UINT64_MAX);
    put_switch(story, 0, OUT, IDLE, A, 3700);
    put_switch(story, 0, OUT, A, IDLE, 3800);
    put_switch(story, 0, OUT, IDLE, A, 3900);
    play_held_round(story, 4000, 3300, 3600);
    expect_waits(story, 4000, "3100 1 100; 3900 1 100; ");
    assert_int_equal(books_of(story, 0, WAIT_BLOCKED).lost_weight, 500);
    assert_int_equal(books_of(story, 0, WAIT_BLOCKED).held_back_ns, 100 + 300);
    assert_int_equal(books_of(story, 1, WAIT_BLOCKED).held_back_ns, 0);
}

STORY(is_on_again_in_the_next_run)
{
    put_switch(story, 0, OUT, A, IDLE, 1000);
    play_held_round(story, 2000, 1500, UINT64_MAX);
    waits_stop(story->waits, 1900);
    assert_int_equal(books_of(story, 0, WAIT_BLOCKED).held_back_ns, 400);
    waits_start(story->waits, 5000);
    put_switch(story, 0, OUT, A, IDLE, 5100);
    put_switch(story, 0, OUT, IDLE, A, 5200);
    put_switch(story, 1, OUT, B, IDLE, 5300);
    put_switch(story, 1, OUT, IDLE, B, 5400);
    expect_waits(story, 6000, "5200 1 100; 5400 1 100; ");
    assert_int_equal(books_of(story, 0, WAIT_BLOCKED).held_back_ns, 400);
}

/* ---- CPUs that go ---- */

STORY(knows_nothing_of_a_cpu_from_its_loss_to_its_return)
{
    struct ring_world *world = story->world;
    struct perf_event_mmap_page *page = &world->pages[0][PERF_STREAM_SWITCHES];
    put_switch(story, 0, OUT, A, IDLE, 1000);
    put_switch(story, 0, OUT, IDLE, B, 1050);
    put_switch(story, 1, OUT, IDLE, A, 1100);
    put_switch(story, 1, OUT, A, IDLE, 1150);
    play_round(story, 1200);
    waits_lose_cpu(story->waits, 0);
    put_switch(story, 1, OUT, IDLE, A, 1300); /* it had no CPU when the other one was lost */
    put_switch(story, 1, OUT, A, IDLE, 1400);
    put_switch(story, 1, OUT, IDLE, A, 1500); /* there is none but this one */
    put_switch(story, 0, OUT, B, IDLE, 1610); /* the last of the old events, which comes too late */
    play_round(story, 1600);
    /* New events have new rings, whose first records are of a later time. */
    page->data_tail = page->data_head;
    perf_ring_init(switches_of(story, 0), page,
                   (const uint8_t *)world->data[0][PERF_STREAM_SWITCHES], RING_BYTES,
                   world->bounces[0][PERF_STREAM_SWITCHES]);
    waits_return_cpu(story->waits, 0);
    put_switch(story, 1, OUT, A, IDLE, 1700);
    put_switch(story, 1, OUT, IDLE, A, 1800); /* its first tasks may have been there before */
    put_switch(story, 0, OUT, IDLE, B, 1900);
    put_switch(story, 1, OUT, A, IDLE, 1950);
    put_switch(story, 1, OUT, IDLE, A, 1960);
    expect_waits(story, 2000, "1050 1 950; 1100 1 100; 1500 1 100; 1960 1 10; ");
    assert_int_equal(books_of(story, 0, WAIT_BLOCKED).lost_weight, 0);
    assert_int_equal(books_of(story, 1, WAIT_BLOCKED).lost_weight, 150 + 100);
}
