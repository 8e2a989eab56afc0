/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Merges the two rings of a CPU: before a record of its sample ring is counted, all switches up to
 * its time are. cpu_ticks does the accounting.
 */
#include "ticks.h"

#include <stdlib.h>

struct account {
    struct cpu_ticks ticks;
    struct switch_feed feed;
};

struct ticks {
    const struct perf_source *source;
    struct account cpus[]; /* cpu_count of the source */
};

struct ticks *ticks_new(struct perf_source *source)
{
    struct ticks *ticks = calloc(1, sizeof *ticks + source->cpu_count * sizeof ticks->cpus[0]);
    if (ticks == NULL) {
        return NULL;
    }
    ticks->source = source;
    for (size_t i = 0; i < source->cpu_count; i++) {
        struct account *account = &ticks->cpus[i];
        cpu_ticks_init(&account->ticks, source->config.period_ns);
        switch_feed_init(&account->feed,
                         source->has_switches ? &source->cpus[i].streams[PERF_STREAM_SWITCHES].ring
                                              : NULL,
                         &source->switch_layout, &account->ticks);
    }
    return ticks;
}

struct ticks *ticks_free(struct ticks *ticks)
{
    free(ticks);
    return NULL;
}

void ticks_return(struct ticks *ticks, size_t cpu_index)
{
    const struct perf_source *source = ticks->source;
    uint64_t started_ns = source->cpus[cpu_index].started_ns;
    cpu_ticks_start(&ticks->cpus[cpu_index].ticks, started_ns, source->has_switches);
    switch_feed_start(&ticks->cpus[cpu_index].feed, started_ns);
}

void ticks_start(struct ticks *ticks)
{
    for (size_t i = 0; i < ticks->source->cpu_count; i++) {
        if (!ticks->source->cpus[i].absent) {
            ticks_return(ticks, i);
        }
    }
}

void ticks_lose(struct ticks *ticks, size_t cpu_index, uint64_t time_ns)
{
    cpu_ticks_end(&ticks->cpus[cpu_index].ticks, time_ns);
}

bool ticks_drained(struct ticks *ticks, size_t cpu_index)
{
    struct account *account = &ticks->cpus[cpu_index];
    switch_feed_refresh(&account->feed);
    return switch_feed_is_empty(&account->feed);
}

void ticks_leave(struct ticks *ticks, size_t cpu_index)
{
    cpu_ticks_close(&ticks->cpus[cpu_index].ticks);
}

void ticks_end(struct ticks *ticks)
{
    const struct perf_source *source = ticks->source;
    for (size_t i = 0; i < source->cpu_count; i++) {
        if (!source->cpus[i].absent) {
            cpu_ticks_end(&ticks->cpus[i].ticks, source->cpus[i].stopped_ns);
        }
    }
}

void ticks_close(struct ticks *ticks)
{
    for (size_t i = 0; i < ticks->source->cpu_count; i++) {
        cpu_ticks_close(&ticks->cpus[i].ticks);
    }
}

void ticks_suspended(struct ticks *ticks, uint64_t jump_ns)
{
    for (size_t i = 0; i < ticks->source->cpu_count; i++) {
        cpu_ticks_suspended(&ticks->cpus[i].ticks, jump_ns);
    }
}

void ticks_refresh(struct ticks *ticks)
{
    for (size_t i = 0; i < ticks->source->cpu_count; i++) {
        switch_feed_refresh(&ticks->cpus[i].feed);
    }
}

void ticks_take(struct ticks *ticks, size_t cpu_index, const struct perf_record *record)
{
    struct cpu_ticks *cpu_ticks = &ticks->cpus[cpu_index].ticks;
    switch_feed_until(&ticks->cpus[cpu_index].feed, record->time_ns);
    switch (record->kind) {
    case PERF_KIND_SAMPLE:
        cpu_ticks_sample(cpu_ticks, record->time_ns);
        break;
    case PERF_KIND_LOST:
        cpu_ticks_lost(cpu_ticks, record->lost.count);
        break;
    case PERF_KIND_THROTTLE:
        cpu_ticks_throttle(cpu_ticks, record->time_ns);
        break;
    case PERF_KIND_UNTHROTTLE:
        cpu_ticks_unthrottle(cpu_ticks, record->time_ns);
        break;
    case PERF_KIND_MMAP:
    case PERF_KIND_COMM:
    case PERF_KIND_FORK:
    case PERF_KIND_EXIT:
    case PERF_KIND_SWITCH:
    case PERF_KIND_DEFERRED_CALLCHAIN:
    case PERF_KIND_KSYMBOL:
    case PERF_KIND_OTHER:
        break;
    }
}

void ticks_reach(struct ticks *ticks, size_t cpu_index, uint64_t horizon_ns)
{
    struct account *account = &ticks->cpus[cpu_index];
    switch_feed_until(&account->feed, horizon_ns);
    switch_feed_publish(&account->feed);
    if (horizon_ns != UINT64_MAX) {
        cpu_ticks_advance(&account->ticks, horizon_ns);
    }
}

enum switch_wish ticks_wish(struct ticks *ticks, size_t cpu_index, uint64_t horizon_ns)
{
    return switch_feed_judge(&ticks->cpus[cpu_index].feed, horizon_ns);
}

void ticks_tell_idle(struct ticks *ticks, size_t cpu_index, uint64_t idle_ns)
{
    cpu_ticks_tell_idle(&ticks->cpus[cpu_index].ticks, idle_ns);
}

uint64_t ticks_bad_count(const struct ticks *ticks)
{
    uint64_t count = 0;
    for (size_t i = 0; i < ticks->source->cpu_count; i++) {
        count += ticks->cpus[i].feed.bad_count;
    }
    return count;
}

struct tick_counts ticks_counts(const struct ticks *ticks, size_t cpu_index)
{
    return cpu_ticks_counts(&ticks->cpus[cpu_index].ticks);
}
