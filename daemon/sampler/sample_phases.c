/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A sample is handled in two phases: resolver.c finds out whose it is and unwinds it, and sink.c
 * writes it. One that lacks a table or a reading of /proc waits, and is resolved again when that
 * has come. Handling a sample logs nothing and allocates nothing, except once a second for the
 * request of an unknown process. Every failure is counted.
 */
#include "sample_phases.h"

#include "drain_limits.h"
#include "resolver.h"
#include "waiting_samples.h"

#include <stdlib.h>

#define RETRIES_MAX      1024 /* held samples that are tried again in one round */
#define STEPS_MAX        ((size_t)128 * RETRIES_MAX) /* or looked at */
#define RETRY_FRAMES_MAX 65536       /* addresses that these look up: a stack may have 510 */
#define EXPIRED_MAX      RETRIES_MAX /* samples that are waited for no longer, in one round */

/* The events that may end the wait of held samples. */
struct news {
    uint64_t tables; /* the bits of their files: samples whose stacks need one of these */
    bool readings;   /* of /proc: samples of which it is not known whether they are wanted */
};

struct sample_phases {
    struct sample_phases_config config;
    struct counters counters;
    struct resolver resolver;
    struct waiting_samples *held;
    struct waits *waits; /* NULL: none are wanted */
    /* Tables come one by one, and each time the samples that wait for it are tried again: a part at
     * a time, or many tables and many samples would keep the rings waiting. */
    struct waiting_walk retry;
    struct news came; /* since that walk began */
};

struct sample_phases *sample_phases_new(const struct sample_phases_config *config)
{
    struct sample_phases *phases = calloc(1, sizeof *phases);
    if (phases == NULL) {
        return NULL;
    }
    phases->config = *config;
    phases->resolver = (struct resolver){
        .feed = config->feed,
        .sinks = config->sinks,
        .stack = config->stack,
        .deferring = config->deferring,
    };
    phases->held = waiting_samples_new(config->held_bytes);
    return phases->held != NULL ? phases : sample_phases_free(phases);
}

struct sample_phases *sample_phases_free(struct sample_phases *phases)
{
    if (phases != NULL) {
        (void)waiting_samples_free(phases->held);
        free(phases);
    }
    return NULL;
}

void sample_phases_set_waits(struct sample_phases *phases, struct waits *waits)
{
    phases->waits = waits;
}

/* Writes a sample into the sinks that want it. Returns what that has shown. */
static struct sink_doubts put_sample(struct sample_phases *phases, size_t cpu_index,
                                     const struct perf_record *record, struct resolved *resolved)
{
    struct sink_doubts all = {0};
    for (size_t i = 0; i < phases->config.sinks->count; i++) {
        struct sink *sink = phases->config.sinks->all[i];
        if ((resolved->wanted >> i & 1) == 0) {
            sink_pass(sink, cpu_index, record, &resolved->sample);
            continue;
        }
        struct sink_doubts doubts = sink_write(sink, cpu_index, record, resolved->is_open,
                                               &resolved->sample, resolved->process);
        all.uncertain = all.uncertain || doubts.uncertain;
        all.unmapped = all.unmapped || doubts.unmapped;
    }
    return all;
}

/* Notes what a sample has shown that is written. */
static void note_doubts(struct sample_phases *phases, const struct resolved *resolved,
                        const struct sink_doubts *doubts)
{
    struct process *process = resolved->process;
    const uint64_t time_ns = resolved->sample.time_ns;
    phases->counters.cold_stacks += resolved->is_cold;
    if (process == NULL) {
        phases->counters.mapping_uncertain += doubts->uncertain;
        return;
    }
    process_table_charge(phases->config.processes, process);
    phases->counters.mapping_uncertain +=
        doubts->uncertain || sideband_feed_is_doubtful(phases->config.feed, process, time_ns);
    if (doubts->uncertain || doubts->unmapped || resolved->is_unmapped) {
        sideband_feed_reread(phases->config.feed, process, time_ns);
    }
}

/* Notes whose a sample is, in the sinks that are now known to want it. */
static void note_owner(struct sample_phases *phases, const struct resolved *resolved)
{
    for (size_t i = 0; i < phases->config.sinks->count; i++) {
        if ((resolved->wanted >> i & 1) != 0) {
            sink_note_owner(phases->config.sinks->all[i], &resolved->sample, resolved->process);
        }
    }
}

/* Resolves a sample and, unless it has to wait, counts it, and writes it where it is wanted.
 * `*wait` is what it has waited for, and becomes what it waits for now. */
static enum resolution take_sample(struct sample_phases *phases, size_t cpu_index,
                                   const struct perf_record *record, struct sample_wait *wait,
                                   bool settle)
{
    struct resolved resolved;
    enum resolution resolution =
        resolver_resolve(&phases->resolver, record, wait->wanted, settle, &resolved);
    if (wait->wanted == 0 && resolved.process != NULL) {
        note_owner(phases, &resolved);
    }
    *wait = (struct sample_wait){resolved.wanted, resolved.awaited};
    if (resolution == RESOLVED_NOW && record->sample.wait != 0) {
        const struct sink_doubts none = {0};
        waits_resolve(phases->waits, record, &resolved);
        if (resolved.wanted != 0) {
            note_doubts(phases, &resolved, &none);
        }
    } else if (resolution == RESOLVED_NOW) {
        struct sink_doubts doubts = put_sample(phases, cpu_index, record, &resolved);
        if (resolved.wanted != 0) {
            note_doubts(phases, &resolved, &doubts);
        }
    }
    return resolution;
}

void sample_phases_take(struct sample_phases *phases, size_t cpu_index,
                        const struct perf_record *record)
{
    struct sample_wait wait = {0};
    if (take_sample(phases, cpu_index, record, &wait, false) != RESOLVED_NOW &&
        !waiting_samples_add(phases->held, cpu_index, record, &wait)) {
        (void)take_sample(phases, cpu_index, record, &wait, true);
    }
}

/* Settles the oldest samples that have waited for DRAIN_HELD_NS, with what is known. */
static void settle_expired(struct sample_phases *phases, uint64_t time_ns)
{
    const struct held_sample *held = waiting_samples_first(phases->held);
    for (size_t i = 0;
         i < EXPIRED_MAX && held != NULL && held->record.time_ns + DRAIN_HELD_NS <= time_ns; i++) {
        struct sample_wait wait = held->wait;
        (void)take_sample(phases, held->cpu_index, &held->record, &wait, true);
        waiting_samples_release(phases->held, held);
        held = waiting_samples_first(phases->held);
    }
}

/* Addresses that were looked up for stacks. */
static uint64_t frame_count(const struct sample_phases *phases)
{
    return phases->config.code == NULL ? 0 : code_map_counters(phases->config.code)->code_lookups;
}

static void retry_held(struct sample_phases *phases)
{
    size_t steps = STEPS_MAX;
    if (!phases->retry.is_under_way && (phases->came.tables != 0 || phases->came.readings)) {
        phases->retry = (struct waiting_walk){
            .is_under_way = true,
            .has_readings = phases->came.readings,
            .files = phases->came.tables,
        };
        phases->came = (struct news){0};
    }
    const uint64_t frames_limit = frame_count(phases) + RETRY_FRAMES_MAX;
    for (size_t i = 0; i < RETRIES_MAX && frame_count(phases) < frames_limit; i++) {
        const struct held_sample *held = waiting_samples_walk(phases->held, &phases->retry, &steps);
        if (held == NULL) {
            return;
        }
        struct sample_wait wait = held->wait;
        if (take_sample(phases, held->cpu_index, &held->record, &wait, false) == RESOLVED_NOW) {
            waiting_samples_release(phases->held, held);
        } else {
            waiting_samples_mark(phases->held, held, &wait);
        }
    }
}

size_t sample_phases_retry(struct sample_phases *phases, uint64_t time_ns)
{
    struct code_map *code = phases->config.code;
    phases->came.readings = sideband_feed_take_news(phases->config.feed) || phases->came.readings;
    phases->came.tables |= code == NULL ? 0 : code_map_poll(code);
    settle_expired(phases, time_ns);
    retry_held(phases);
    return waiting_samples_count(phases->held);
}

struct counters sample_phases_counters(const struct sample_phases *phases)
{
    return phases->counters;
}
