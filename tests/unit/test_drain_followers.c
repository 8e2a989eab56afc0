/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the followers of an event have counted between two of its samples, in the file and in the
 * books: rings are filled by hand with samples that have the readings of a group.
 */
#include "drain_world.h"
#include "fxt_reader.h"
#include "sink.h"

enum {
    LEADER = 1, /* of RING_STREAM_FURTHER */
    FIRST,
    SECOND,
    EVENTS_END,
};

static int set_up_group_for(void **state, const struct session_targets *targets, bool deferring)
{
    struct ring_world *world = ring_world_new(&(struct ring_world_options){
        .unwind = SESSION_UNWIND_FP, .targets = targets, .cpu_count = 2, .deferring = deferring});
    if (world != NULL) {
        world->source.config.event_count = SECOND;
        world->source.rated_layout =
            perf_record_layout_make(RING_SAMPLE_TYPE | PERF_SAMPLE_READ, 0);
        world->source.groups[LEADER] = (struct perf_group){FIRST, 2};
    }
    *state = world;
    return world == NULL ? -1 : 0;
}

static int set_up_group(void **state)
{
    return set_up_group_for(state, NULL, false);
}

static int set_up_target(void **state)
{
    static const struct session_targets targets = {.pids = {PID}, .pid_count = 1};
    return set_up_group_for(state, &targets, false);
}

static int set_up_deferring(void **state)
{
    return set_up_group_for(state, NULL, true);
}

/* A sample of the leader, on which CPU its followers have counted so much. */
static void put_reading(struct ring_world *world, size_t cpu, size_t stream, uint32_t pid,
                        uint64_t time_ns, uint64_t first, uint64_t second)
{
    put(world, cpu, stream, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER,
        ROWS_OF(uint64_t, 1, pair(pid, pid), time_ns, cpu, 3, 0, 0, time_ns, 10, first, 11, second,
                12, 2, PERF_CONTEXT_USER, LEAF_PC));
}

static void put_leader(struct ring_world *world, size_t cpu, uint32_t pid, uint64_t time_ns,
                       uint64_t first, uint64_t second)
{
    put_reading(world, cpu, RING_STREAM_FURTHER, pid, time_ns, first, second);
}

/* What the file has of samples. */
struct filed {
    char samples[512];         /* "TIME EVENT WEIGHT; ", as they come */
    size_t continuation_count; /* partials of stacks that come later */
    size_t completion_count;
};

static void read_file(struct ring_world *world, struct filed *ret)
{
    size_t file_bytes = 0;
    const uint8_t *file = ring_world_file(world, &file_bytes);
    struct fxt_reader *reader = fxt_reader_new();
    struct fxt_record record;
    size_t used = 0;
    *ret = (struct filed){0};
    for (size_t at = 0; at < file_bytes; at += record.size_bytes) {
        assert_int_equal(fxt_reader_next(reader, file + at, file_bytes - at, &record), 1);
        const struct fxt_sample *sample = &record.sample;
        if (record.kind != FXT_RECORD_SAMPLE) {
            continue;
        }
        ret->continuation_count += (sample->fields & FXT_SAMPLE_CONTINUATION) != 0;
        if ((sample->fields & FXT_SAMPLE_CONTINUATION_COMPLETION) != 0) {
            ret->completion_count++;
            continue;
        }
        used +=
            (size_t)snprintf(ret->samples + used, sizeof ret->samples - used, "%d %d %d; ",
                             (int)sample->boot_ts_ns, (int)sample->event,
                             (sample->fields & FXT_SAMPLE_WEIGHT) == 0 ? 1 : (int)sample->weight);
        assert_true(used < sizeof ret->samples);
    }
    (void)fxt_reader_free(reader);
}

static void expect_samples(struct ring_world *world, const char *expected)
{
    struct filed filed;
    read_file(world, &filed);
    assert_string_equal(filed.samples, expected);
}

static struct books_event line_of(struct ring_world *world, size_t cpu, uint32_t event)
{
    trace_poll(world->trace);
    const struct books_cpu books = drain_books(world->drain, 0, cpu);
    const struct books_event line = books.events[event - 1];
    assert_int_equal(line.received, line.kept + line.filtered + line.dropped);
    return line;
}

/* What a CPU counted is no other's, and what counted nothing has no sample. */
DRAIN_STORY(a_follower_has_what_was_counted_since_the_sample_before, set_up_group)
{
    put_leader(world, 0, PID, 300, 5, 0);
    put_leader(world, 0, PID, 400, 12, 0);
    put_leader(world, 1, PID, 450, 100, 1);
    put_leader(world, 0, PID, 500, 12, 3);
    drain_all(world->drain, UINT64_MAX);
    assert_int_equal(line_of(world, 0, LEADER).kept, 3);
    assert_int_equal(line_of(world, 0, FIRST).kept, 2);
    assert_int_equal(line_of(world, 0, FIRST).weight, 12);
    assert_int_equal(line_of(world, 0, SECOND).kept, 1);
    assert_int_equal(line_of(world, 1, FIRST).weight, 100);
    assert_int_equal(counted(world).bad_records, 0);
    expect_samples(world, "300 1 1; 300 2 5; 400 1 1; 400 2 7; 500 1 1; 500 3 3; "
                          "450 1 1; 450 2 100; 450 3 1; ");
}

/* The clock's ticks are counted as ever. */
DRAIN_STORY(the_clock_can_lead, set_up_group)
{
    world->source.groups[0] = (struct perf_group){FIRST, 2};
    put_reading(world, 0, PERF_STREAM_CLOCK, PID, 300, 5, 0);
    put_reading(world, 0, PERF_STREAM_CLOCK, PID, 400, 6, 9);
    drain_all(world->drain, UINT64_MAX);
    trace_poll(world->trace);
    assert_int_equal(drain_books(world->drain, 0, 0).kept, 2);
    assert_int_equal(line_of(world, 0, FIRST).weight, 6);
    expect_samples(world, "300 0 1; 300 2 5; 400 0 1; 400 2 1; 400 3 9; ");
}

/* What another program had is none of the target's, and in the books. */
DRAIN_STORY(a_filtered_sample_takes_what_was_counted_before_it, set_up_target)
{
    put_leader(world, 0, PID, 300, 5, 0);
    put_leader(world, 0, PID + 1, 400, 1005, 2);
    put_leader(world, 0, PID, 500, 1008, 2);
    drain_all(world->drain, UINT64_MAX);
    const struct books_event line = line_of(world, 0, FIRST);
    assert_int_equal(line.kept, 2);
    assert_int_equal(line.filtered, 1);
    assert_int_equal(line.weight, 1008);
    assert_int_equal(line_of(world, 0, SECOND).filtered, 1);
    expect_samples(world, "300 1 1; 300 2 5; 500 1 1; 500 2 3; ");
}

/* A lost sample's amount is in the next one, so nothing of it is lost. */
DRAIN_STORY(a_lost_sample_leaves_its_amount_to_the_next, set_up_group)
{
    put_leader(world, 0, PID, 300, 5, 0);
    put_lost(world, 0, RING_STREAM_FURTHER, 400, 3);
    put_leader(world, 0, PID, 500, 50, 0);
    drain_all(world->drain, UINT64_MAX);
    assert_int_equal(line_of(world, 0, LEADER).lost, 3);
    assert_int_equal(line_of(world, 0, FIRST).lost, 0);
    assert_int_equal(line_of(world, 0, FIRST).weight, 50);
}

/* No kernel does so; a sum of 2^64 would stand in the file. */
DRAIN_STORY(a_count_that_went_back_is_no_amount, set_up_group)
{
    put_leader(world, 0, PID, 300, 500, 0);
    put_leader(world, 0, PID, 400, 499, 0);
    put_leader(world, 0, PID, 500, 501, 0);
    drain_all(world->drain, UINT64_MAX);
    assert_int_equal(counted(world).bad_records, 1);
    assert_int_equal(line_of(world, 0, FIRST).weight, 502);
    expect_samples(world, "300 1 1; 300 2 500; 400 1 1; 500 1 1; 500 2 2; ");
}

/* A group with an event less, or more, is none of ours. */
DRAIN_STORY(a_reading_of_another_group_is_refused, set_up_group)
{
    put(world, 0, RING_STREAM_FURTHER, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER,
        ROWS_OF(uint64_t, 1, pair(PID, PID), 300, 0, 2, 0, 0, 1, 10, 2, 11, 0, 0, 2,
                PERF_CONTEXT_USER, LEAF_PC));
    put_leader(world, 0, PID, 400, 5, 6);
    drain_all(world->drain, UINT64_MAX);
    assert_int_equal(counted(world).bad_records, 1);
    expect_samples(world, "400 1 1; 400 2 5; 400 3 6; ");
}

/* Of waits the table says what is held alone, of other events the ring says all that came. */
DRAIN_STORY(what_is_held_of_waits_is_held, set_up_group)
{
    struct books_cpu books = {.events = {{.held_weight = 12}, [SECOND] = {.held_weight = 7}}};
    const struct sample sample = {.event = LEADER, .weight = 9};
    const struct sample wait = {.event = SECOND + 1, .weight = 1000};
    world->source.config.has_waits = true;
    struct sink *sink = sink_new(&(struct sink_config){
        .source = &world->source,
        .processes = world->processes,
        .filter = world->filter,
        .trace = world->trace,
    });
    assert_non_null(sink);
    sink_pass(sink, 0, NULL, &sample);
    sink_pass(sink, 0, NULL, &wait);
    sink_count(sink, 0, &books);
    (void)sink_free(sink);
    assert_int_equal(books.events[LEADER - 1].held_weight, 3);
    assert_int_equal(books.events[SECOND].weight, 1000);
    assert_int_equal(books.events[SECOND].held_weight, 7);
}

/* 30 samples a second are 6 of the 3 events in a fifth of it. */
DRAIN_STORY(a_leader_may_bring_what_its_followers_may, set_up_group)
{
    world->source.config.event_rate_max_hz = 30;
    world->source.cpus[0].streams[RING_STREAM_FURTHER].fd = -1;
    struct cpu_books *books = cpu_books_new(&world->source);
    const struct perf_record record = {.kind = PERF_KIND_SAMPLE, .sample = {.weight = 1}};
    cpu_books_start(books);
    for (size_t i = 0; i < 7; i++) {
        cpu_books_take_event(books, 0, LEADER, &record);
    }
    cpu_books_read(books, 1000);
    cpu_books_take_event(books, 0, LEADER, &record);
    cpu_books_read(books, 2000);
    cpu_books_read(books, NS_PER_S);
    assert_int_equal(cpu_books_line(books, 0).events[LEADER - 1].held_back_ns, NS_PER_S - 2000);
    (void)cpu_books_free(books);
}

/* The events of a CPU that came back begin at zero. */
DRAIN_STORY(new_events_begin_at_zero, set_up_group)
{
    put_leader(world, 0, PID, 300, 1000, 0);
    drain_all(world->drain, 350);
    for (uint32_t event = LEADER; event < EVENTS_END; event++) {
        world->cpus[0].streams[perf_event_place(event)].counted = 0; /* as perf_cpu_open() does */
    }
    put_leader(world, 0, PID, 400, 7, 0);
    drain_all(world->drain, UINT64_MAX);
    assert_int_equal(counted(world).bad_records, 0);
    expect_samples(world, "300 1 1; 300 2 1000; 400 1 1; 400 2 7; ");
}

/* The samples of followers have the stack that comes later as well. */
DRAIN_STORY(followers_share_a_stack_that_comes_later, set_up_deferring)
{
    world->source.groups[0] = (struct perf_group){FIRST, 2};
    put_program(world);
    put(world, 0, PERF_STREAM_CLOCK, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL,
        ROWS_OF(uint64_t, 1, pair(PID, PID), 300, 0, 3, 0, 0, 1, 10, 5, 11, 6, 12, 2,
                PERF_CONTEXT_USER_DEFERRED, 77));
    drain_all(world->drain, 400);
    PUT(world, 0, SIDEBAND, CALLCHAIN_DEFERRED, PERF_RECORD_MISC_USER, 77, 2, 0x5010, 0x5020,
        pair(PID, PID), 450, 0, 2);
    drain_all(world->drain, 500);
    drain_all(world->drain, UINT64_MAX);
    struct filed filed;
    read_file(world, &filed);
    assert_string_equal(filed.samples, "300 0 1; 300 2 5; 300 3 6; ");
    assert_int_equal(filed.continuation_count, 3);
    assert_int_equal(filed.completion_count, 1);
}
