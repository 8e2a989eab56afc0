/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Handles the records of one round. A round notes the horizon (a moment just past), then the heads
 * of the sample rings, then drains all sideband. The records that a sample depends on were written
 * before it, so they are among those that were drained.
 *
 * Some sideband records are applied, in the order of their time; then the samples up to that time
 * are handled CPU by CPU, each by the state of its own time. This repeats up to the horizon. Newer
 * samples stay in their rings and newer sideband stays queued until the next round. No call waits.
 * A sample that lacks something is held by sample_phases.c.
 */
#include "drain.h"

#include "capacity.h"
#include "cleanup.h"
#include "sample_phases.h"
#include "sideband_feed.h"
#include "sink.h"
#include "user_stack.h"
#include "wait_rate.h"
#include "waits.h"

#include <string.h>

#define PUBLISH_BYTES    ((size_t)65536)
#define CACHE_LINE_BYTES 64
#define PREFETCH_BYTES   3072 /* chain, registers, and what most stacks need of their copy */

/* How far sideband is applied ahead of samples, in records: in a storm of mappings the process
 * table keeps the last few hundred of a process. */
#define MERGED_MAX  ((size_t)128)
#define WAITING_MAX ((size_t)4096)

struct drain {
    struct drain_config config;
    struct counters counters;
    struct cpu_books *books;
    struct sideband_feed *feed;
    bool quiet;         /* the rings of sideband were empty when they were last looked at */
    bool sampling;      /* else there are no samples that sideband could get ahead of */
    size_t ahead_count; /* sideband records that were applied since samples were handled */
    struct user_stack stack;
    struct sinks sinks;
    struct sample_phases *phases;
    struct waits *waits; /* NULL: none are wanted */
};

static bool make_sinks(struct drain *drain)
{
    const struct drain_config *config = &drain->config;
    for (size_t i = 0; i < config->sink_count; i++) {
        struct sink *sink = sink_new(&(struct sink_config){
            .source = config->source,
            .processes = config->processes,
            .filter = config->sinks[i].filter,
            .trace = config->sinks[i].trace,
            .stack = &drain->stack,
        });
        if (sink == NULL) {
            return false;
        }
        drain->sinks.filters[i] = config->sinks[i].filter;
        drain->sinks.commands[i] = config->sinks[i].commands;
        drain->sinks.all[drain->sinks.count++] = sink;
    }
    return true;
}

static void handle_switch(size_t cpu_index, const struct perf_record *record, void *userdata)
{
    sample_phases_take(userdata, cpu_index, record);
}

static bool make_waits(struct drain *drain)
{
    struct perf_source *source = drain->config.source;
    if (!source->config.has_waits) {
        return true;
    }
    drain->waits = waits_new(&(struct waits_config){
        .source = source,
        .processes = drain->config.processes,
        .feed = drain->feed,
        .sinks = &drain->sinks,
        .min_wait_ns = drain->config.min_wait_ns,
        .take = handle_switch,
        .userdata = drain->phases,
    });
    sample_phases_set_waits(drain->phases, drain->waits);
    for (size_t i = 0; drain->waits != NULL && i < source->cpu_count; i++) {
        cpu_books_share(drain->books, i, waits_switches(drain->waits, i),
                        wait_rate_switches_max(source->config.wait_cost_percent));
    }
    return drain->waits != NULL;
}

struct drain *drain_new(const struct drain_config *config)
{
    struct drain *drain = calloc(1, sizeof *drain);
    if (drain == NULL) {
        return NULL;
    }
    drain->config = *config;
    drain->books = config->books;
    drain->stack = (struct user_stack){
        .unwind = config->unwind,
        .max_depth = config->max_stack_depth,
        .chain_max = config->source->sample_max_stack,
        .code = config->code,
    };
    if (config->code != NULL) {
        drain->stack.stitch = stitch_new(config->max_stack_depth);
    }
    bool has_sinks = make_sinks(drain);
    drain->feed = sideband_feed_new(&(struct sideband_feed_config){
        .source = config->source,
        .processes = config->processes,
        .sinks = &drain->sinks,
        .kernel = config->kernel,
    });
    if (drain->feed == NULL || !has_sinks ||
        (config->code != NULL && drain->stack.stitch == NULL)) {
        return drain_free(drain);
    }
    drain->phases = sample_phases_new(&(struct sample_phases_config){
        .processes = config->processes,
        .feed = drain->feed,
        .sinks = &drain->sinks,
        .stack = &drain->stack,
        .code = config->code,
        .deferring = config->source->deferring,
        .held_bytes = config->held_bytes,
    });
    return drain->phases != NULL && make_waits(drain) ? drain : drain_free(drain);
}

struct drain *drain_free(struct drain *drain)
{
    if (drain != NULL) {
        (void)sideband_feed_free(drain->feed);
        (void)waits_free(drain->waits);
        (void)sample_phases_free(drain->phases);
        for (size_t i = 0; i < drain->sinks.count; i++) {
            (void)sink_free(drain->sinks.all[i]);
        }
        (void)stitch_free(drain->stack.stitch);
        free(drain);
    }
    return NULL;
}

void drain_sideband(struct drain *drain, uint64_t horizon_ns)
{
    drain->quiet = !sideband_feed_queue(drain->feed);
    size_t room = drain->ahead_count < MERGED_MAX ? MERGED_MAX - drain->ahead_count : 0;
    if (!drain->sampling) {
        room = SIZE_MAX;
    }
    (void)sideband_feed_apply(drain->feed, horizon_ns, room, &drain->ahead_count);
}

bool drain_is_pressed(const struct drain *drain)
{
    return sideband_feed_waiting(drain->feed) > WAITING_MAX;
}

bool drain_is_quiet(const struct drain *drain)
{
    return drain->quiet;
}

static void tell_owners(struct drain *drain)
{
    for (size_t i = 0; i < drain->sinks.count; i++) {
        sink_tell_owners(drain->sinks.all[i]);
    }
}

void drain_prefetch(struct drain *drain)
{
    if (drain->config.code != NULL) {
        code_map_prefetch(drain->config.code, drain->config.processes);
    }
}

size_t drain_held(struct drain *drain, uint64_t time_ns)
{
    const size_t held_count = sample_phases_retry(drain->phases, time_ns);
    if (drain->waits != NULL) {
        waits_write(drain->waits);
    }
    tell_owners(drain);
    return held_count;
}

/*
 * Prefetches the next record, which another CPU has written, while this one is handled. Without a
 * next record the hint does no harm.
 */
static void prefetch_next(const uint8_t *bytes, size_t size_bytes)
{
    for (size_t i = 0; i < PREFETCH_BYTES; i += CACHE_LINE_BYTES) {
        __builtin_prefetch(bytes + size_bytes + i);
    }
    __builtin_prefetch(bytes + 2 * size_bytes - 1); /* its last word says how much is valid */
}

/* A sample of an event that has a rate stands for what was counted since the one before it. */
static void weigh(struct perf_stream *stream, struct perf_sample_view *sample)
{
    sample->weight = stream->is_rated ? sample->counted - stream->counted : 1;
    stream->counted = sample->counted;
}

/*
 * What a follower counted since its leader's sample before on this CPU belongs to this sample,
 * whichever sinks want it. One that is negative, which no kernel makes it, is no amount.
 */
static void weigh_followers(struct drain *drain, size_t cpu_index, const struct perf_group *group,
                            struct perf_followed *followed)
{
    struct perf_cpu *cpu = &drain->config.source->cpus[cpu_index];
    followed->first = group->first_follower;
    for (uint32_t i = 0; i < followed->count; i++) {
        struct perf_stream *follower = &cpu->streams[perf_event_place(followed->first + i)];
        const uint64_t counted = followed->values[i];
        const uint64_t gained = counted - follower->counted;
        const bool is_negative = gained > INT64_MAX;
        followed->values[i] = is_negative ? 0 : gained;
        follower->counted = counted;
        drain->counters.bad_records += is_negative;
    }
}

/* Handles the samples of one stream up to the horizon. Ticks are the clock's alone. */
static void drain_stream(struct drain *drain, size_t cpu_index, struct perf_stream *stream,
                         uint64_t horizon_ns)
{
    const struct perf_source *source = drain->config.source;
    const struct perf_record_layout layout = perf_source_layout(source, stream);
    struct perf_ring *ring = &stream->ring;
    const uint8_t *bytes = NULL;
    size_t size_bytes = 0;
    size_t unpublished_bytes = 0;
    for (int r = perf_ring_peek(ring, &bytes, &size_bytes); r != 0;
         r = perf_ring_peek(ring, &bytes, &size_bytes)) {
        struct perf_record record;
        if (r < 0) {
            drain->counters.bad_records++;
            continue;
        }
        prefetch_next(bytes, size_bytes);
        if (perf_record_parse(&layout, bytes, size_bytes, &record) < 0) {
            drain->counters.bad_records++;
        } else if (record.time_ns > horizon_ns) {
            break;
        } else {
            if (record.kind == PERF_KIND_SAMPLE) {
                weigh(stream, &record.sample);
                weigh_followers(drain, cpu_index, &source->groups[stream->event],
                                &record.sample.followed);
            }
            if (stream->event == 0) {
                cpu_books_take(drain->books, cpu_index, &record);
            } else {
                cpu_books_take_event(drain->books, cpu_index, stream->event, &record);
            }
            if (record.kind == PERF_KIND_SAMPLE) {
                record.event = stream->event;
                sample_phases_take(drain->phases, cpu_index, &record);
            }
        }
        perf_ring_advance(ring, size_bytes);
        unpublished_bytes += size_bytes;
        if (unpublished_bytes >= PUBLISH_BYTES) {
            (void)perf_ring_publish(ring);
            unpublished_bytes = 0;
        }
    }
    (void)perf_ring_publish(ring);
}

static void drain_samples(struct drain *drain, size_t cpu_index, uint64_t horizon_ns)
{
    struct perf_cpu *cpu = &drain->config.source->cpus[cpu_index];
    struct perf_stream *stream = NULL;
    while ((stream = perf_cpu_next(cpu, PERF_CONSUMER_SAMPLES, stream)) != NULL) {
        drain_stream(drain, cpu_index, stream, horizon_ns);
    }
}

static void refresh_rings(struct perf_cpu *cpu)
{
    struct perf_stream *stream = NULL;
    while ((stream = perf_cpu_next(cpu, PERF_CONSUMER_SAMPLES, stream)) != NULL) {
        perf_ring_refresh(&stream->ring);
    }
}

static void adapt_waits(struct drain *drain, uint64_t horizon_ns)
{
    if (drain->waits == NULL || horizon_ns == UINT64_MAX) {
        return;
    }
    waits_adapt(drain->waits, horizon_ns);
}

static void refresh_waits(struct drain *drain)
{
    waits_refresh(drain->waits);
    for (size_t i = 0; i < drain->config.source->cpu_count; i++) {
        const struct switches_off off = cpu_books_switches_off(drain->books, i);
        waits_hold(drain->waits, i, off.from_ns, off.to_ns);
    }
}

void drain_all(struct drain *drain, uint64_t horizon_ns)
{
    struct perf_source *source = drain->config.source;
    for (size_t i = 0; i < source->cpu_count; i++) {
        refresh_rings(&source->cpus[i]);
    }
    cpu_books_refresh(drain->books);
    if (drain->waits != NULL) {
        refresh_waits(drain);
    }
    drain->quiet = !sideband_feed_queue(drain->feed);
    uint64_t reached_ns = 0;
    do {
        reached_ns = sideband_feed_apply(drain->feed, horizon_ns, MERGED_MAX, &drain->ahead_count);
        for (size_t i = 0; i < source->cpu_count; i++) {
            drain_samples(drain, i, reached_ns);
        }
        if (drain->waits != NULL) {
            waits_merge(drain->waits, reached_ns);
        }
        tell_owners(drain);
        drain->ahead_count = 0;
    } while (sideband_feed_has_more(drain->feed, horizon_ns));
    for (size_t i = 0; i < drain->sinks.count; i++) {
        sink_end_round(drain->sinks.all[i], horizon_ns);
    }
    adapt_waits(drain, horizon_ns);
    /* While CPU after CPU is stopped, the horizon may be after the last tick of one. */
    const bool is_before_the_end = horizon_ns == UINT64_MAX || source->sampling;
    for (size_t i = 0; is_before_the_end && i < source->cpu_count; i++) {
        cpu_books_reach(drain->books, i, horizon_ns);
    }
}

/* When sampling was enabled on the first CPU, or disabled. */
static uint64_t moment_of_all(const struct drain *drain, bool is_end)
{
    const struct perf_source *source = drain->config.source;
    uint64_t first_ns = UINT64_MAX;
    for (size_t i = 0; i < source->cpu_count; i++) {
        const struct perf_cpu *cpu = &source->cpus[i];
        const uint64_t time_ns = is_end ? cpu->stopped_ns : cpu->started_ns;
        first_ns = !cpu->absent && time_ns < first_ns ? time_ns : first_ns;
    }
    return first_ns;
}

void drain_start(struct drain *drain)
{
    cpu_books_start(drain->books);
    drain->sampling = true;
    drain->ahead_count = 0;
    if (drain->waits != NULL) {
        waits_start(drain->waits, moment_of_all(drain, false));
    }
}

void drain_stop(struct drain *drain)
{
    cpu_books_end(drain->books);
    drain_all(drain, UINT64_MAX);
    if (drain->waits != NULL) {
        waits_stop(drain->waits, moment_of_all(drain, true));
        tell_owners(drain);
    }
    cpu_books_close(drain->books);
    drain->sampling = false;
}

void drain_lose_cpu(struct drain *drain, size_t cpu_index, struct clock_moment now)
{
    if (cpu_index < drain->config.source->cpu_count) {
        uint64_t gone_ns = cpu_books_lose(drain->books, cpu_index, now);
        if (drain->waits != NULL) {
            waits_lose_cpu(drain->waits, cpu_index);
        }
        sideband_feed_lose(drain->feed, cpu_index, gone_ns);
    }
}

bool drain_is_empty(struct drain *drain, size_t cpu_index)
{
    struct perf_cpu *cpu = &drain->config.source->cpus[cpu_index];
    bool empty =
        cpu_index >= drain->config.source->cpu_count || cpu_books_drained(drain->books, cpu_index);
    for (size_t i = 0; i < PERF_STREAMS_MAX; i++) {
        struct perf_ring *ring = &cpu->streams[i].ring;
        perf_ring_refresh(ring);
        empty = empty && ring->head == ring->tail;
    }
    return empty;
}

void drain_return_cpu(struct drain *drain, size_t cpu_index, bool enabled, uint64_t gap_to_ns)
{
    sideband_feed_renew(drain->feed, cpu_index, gap_to_ns);
    if (drain->waits != NULL && cpu_index < drain->config.source->cpu_count) {
        waits_return_cpu(drain->waits, cpu_index);
    }
    if (enabled) {
        cpu_books_return(drain->books, cpu_index);
    }
}

void drain_read_times(struct drain *drain)
{
    if (drain->waits != NULL) {
        waits_read_times(drain->waits, true);
    }
}

bool drain_is_reading_times(const struct drain *drain)
{
    return drain->waits != NULL && waits_are_reading(drain->waits);
}

bool drain_write_threads(struct drain *drain, size_t sink)
{
    return drain->waits == NULL || waits_write_threads(drain->waits, sink);
}

struct sideband_feed *drain_feed(struct drain *drain)
{
    return drain->feed;
}

struct counters drain_counters(struct drain *drain, size_t sink)
{
    struct counters sum = drain->counters;
    struct counters sideband = sideband_feed_counters(drain->feed);
    struct counters phases = sample_phases_counters(drain->phases);
    struct counters written = sink_counters(drain->sinks.all[sink]);
    struct process_table_counts processes = process_table_counts(drain->config.processes);
    sum.bad_records += cpu_books_bad_count(drain->books);
    counters_add(&sum, &written);
    counters_add(&sum, &sideband);
    counters_add(&sum, &phases);
    counters_add(&sum, &processes.counters);
    if (drain->waits != NULL) {
        const struct counters waits = waits_counters(drain->waits);
        counters_add(&sum, &waits);
    }
    if (drain->config.code != NULL) {
        counters_add(&sum, code_map_counters(drain->config.code));
    }
    return sum;
}

struct books_cpu drain_books(const struct drain *drain, size_t sink, size_t cpu_index)
{
    struct books_cpu books = cpu_books_line(drain->books, cpu_index);
    const size_t first = drain->config.source->config.event_count;
    for (size_t i = 0; drain->waits != NULL && i < PERF_WAIT_EVENTS; i++) {
        waits_count(drain->waits, cpu_index, i, &books.events[first + i]);
    }
    sink_count(drain->sinks.all[sink], cpu_index, &books);
    return books;
}
