/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Brings together all that is known of a CPU's time: the ring of its clock and that of its switch
 * records, merged (before a record of the clock is counted, all switches up to its time are); the
 * kernel's count of the clock's time running; the sums of its idle and stolen time. ticks.c has the
 * accounting of ticks, cpu_presence.c that of the time offline.
 */
#include "cpu_books.h"

#include "clock.h"
#include "cpu_presence.h"
#include "cpu_time.h"
#include "event_feed.h"
#include "switch_feed.h"
#include "ticks.h"

#include <stdlib.h>
#include <string.h>

#define TIMES_PERIOD_NS NS_PER_S

struct sampled_cpu {
    struct ticks ticks;
    struct switch_feed feed;
    struct cpu_presence presence;
    struct perf_count kernel; /* as of the last reading */
    uint64_t untold_lost;     /* in the books, though no record of the ring told of them yet */
    struct event_feed events[PERF_EVENTS_MAX];
    uint64_t steal_ns; /* while sampling was on */
};

struct cpu_books {
    struct perf_source *source;
    const char *idle_source; /* for times that no switch record covers */
    uint64_t next_times_ns;
    struct cpu_time *times;     /* cpu_count of the source: the kernel's sums, as they were last, */
    struct cpu_time *times_now; /* and as they are now */
    struct sampled_cpu cpus[];
};

struct cpu_books *cpu_books_new(struct perf_source *source)
{
    struct cpu_books *books = calloc(1, sizeof *books + source->cpu_count * sizeof books->cpus[0]);
    if (books == NULL) {
        return NULL;
    }
    books->source = source;
    books->times = calloc(source->cpu_count, sizeof *books->times);
    books->times_now = calloc(source->cpu_count, sizeof *books->times_now);
    if (books->times == NULL || books->times_now == NULL) {
        return cpu_books_free(books);
    }
    books->idle_source = cpu_idle_source(CPU_IDLE_ROOT, source->cpus[0].cpu);
    for (size_t i = 0; i < source->cpu_count; i++) {
        struct sampled_cpu *cpu = &books->cpus[i];
        struct perf_ring *switches = &source->cpus[i].streams[PERF_STREAM_SWITCHES].ring;
        books->times[i].cpu = source->cpus[i].cpu;
        ticks_init(&cpu->ticks, source->config.period_ns);
        switch_feed_init(&cpu->feed, source->has_switches ? switches : NULL, &source->switch_layout,
                         &cpu->ticks);
        for (uint32_t event = 1; event <= source->config.event_count; event++) {
            /* A leader has the parts of its followers. */
            cpu->events[event - 1].rate_max_hz =
                perf_source_rate_part_hz(&source->config, 1 + source->groups[event].follower_count);
        }
    }
    return books;
}

struct cpu_books *cpu_books_free(struct cpu_books *books)
{
    if (books != NULL) {
        free(books->times);
        free(books->times_now);
        free(books);
    }
    return NULL;
}

void cpu_books_share(struct cpu_books *books, size_t cpu_index, const struct perf_ring *view,
                     uint64_t rate_max)
{
    switch_feed_share(&books->cpus[cpu_index].feed, view, rate_max);
}

struct switches_off cpu_books_switches_off(const struct cpu_books *books, size_t cpu_index)
{
    const struct switch_feed *feed = &books->cpus[cpu_index].feed;
    return (struct switches_off){.from_ns = feed->off_from_ns, .to_ns = feed->off_to_ns};
}

/* A moment not long ago: since the machine was last suspended. */
static struct clock_moment moment_at(uint64_t boottime_ns)
{
    struct clock_moment now = clock_moment();
    uint64_t ahead_ns = now.boottime_ns > now.monotonic_ns ? now.boottime_ns - now.monotonic_ns : 0;
    return (struct clock_moment){
        .boottime_ns = boottime_ns,
        .monotonic_ns = boottime_ns - ahead_ns,
    };
}

static void start_cpu(struct cpu_books *books, size_t cpu_index)
{
    uint64_t started_ns = books->source->cpus[cpu_index].started_ns;
    ticks_start(&books->cpus[cpu_index].ticks, started_ns, books->source->has_switches);
    switch_feed_start(&books->cpus[cpu_index].feed, started_ns);
    for (size_t i = 0; i < books->source->config.event_count; i++) {
        event_feed_start(&books->cpus[cpu_index].events[i], started_ns);
    }
}

void cpu_books_start(struct cpu_books *books)
{
    const struct perf_source *source = books->source;
    books->next_times_ns = clock_ns(CLOCK_BOOTTIME) + TIMES_PERIOD_NS;
    cpu_time_read(CPU_IDLE_ROOT, books->idle_source, books->times, source->cpu_count);
    for (size_t i = 0; i < source->cpu_count; i++) {
        const struct perf_cpu *cpu = &source->cpus[i];
        struct sampled_cpu *sampled = &books->cpus[i];
        cpu_presence_start(&sampled->presence, moment_at(cpu->started_ns),
                           sampled->kernel.time_running_ns, cpu->absent);
        if (!cpu->absent) {
            start_cpu(books, i);
        }
    }
}

void cpu_books_end(struct cpu_books *books)
{
    const struct perf_source *source = books->source;
    for (size_t i = 0; i < source->cpu_count; i++) {
        if (!source->cpus[i].absent) {
            ticks_end(&books->cpus[i].ticks, source->cpus[i].stopped_ns);
        }
    }
}

static void end_events(struct cpu_books *books, size_t cpu_index, uint64_t time_ns)
{
    for (size_t i = 0; i < books->source->config.event_count; i++) {
        event_feed_end(&books->cpus[cpu_index].events[i], time_ns);
    }
}

/*
 * A LOST record is written when the next record fits, so none tells of the samples that were lost
 * last. The kernel's count has them; without them their ticks would be missed ones.
 */
static void close_ticks(struct cpu_books *books, size_t cpu_index)
{
    struct sampled_cpu *cpu = &books->cpus[cpu_index];
    struct perf_count count;
    if (perf_source_read_count(books->source, cpu_index, 0, &count) == 0) {
        uint64_t told = ticks_counts(&cpu->ticks).lost;
        uint64_t untold = count.lost_count > told ? count.lost_count - told : 0;
        cpu->untold_lost += untold;
        ticks_lost(&cpu->ticks, untold);
    }
    ticks_close(&cpu->ticks);
}

/* A record tells of lost samples, perhaps of some that the books have. */
static void take_lost(struct sampled_cpu *cpu, uint64_t count)
{
    uint64_t known = count < cpu->untold_lost ? count : cpu->untold_lost;
    cpu->untold_lost -= known;
    ticks_lost(&cpu->ticks, count - known);
}

void cpu_books_close(struct cpu_books *books)
{
    for (size_t i = 0; i < books->source->cpu_count; i++) {
        close_ticks(books, i);
        cpu_presence_stop(&books->cpus[i].presence, moment_at(books->source->cpus[i].stopped_ns));
        end_events(books, i, books->source->cpus[i].stopped_ns);
    }
}

uint64_t cpu_books_lose(struct cpu_books *books, size_t cpu_index, struct clock_moment now)
{
    struct sampled_cpu *cpu = &books->cpus[cpu_index];
    struct perf_count count = cpu->kernel;
    (void)perf_source_read_count(books->source, cpu_index, 0, &count);
    cpu->kernel = count;
    uint64_t gone_ns = cpu_presence_lose(&cpu->presence, now, count.time_running_ns);
    ticks_end(&cpu->ticks, gone_ns);
    end_events(books, cpu_index, gone_ns);
    return gone_ns;
}

bool cpu_books_drained(struct cpu_books *books, size_t cpu_index)
{
    struct switch_feed *feed = &books->cpus[cpu_index].feed;
    switch_feed_refresh(feed);
    return switch_feed_is_empty(feed);
}

void cpu_books_leave(struct cpu_books *books, size_t cpu_index)
{
    close_ticks(books, cpu_index);
    books->cpus[cpu_index].untold_lost = 0; /* its ring goes */
}

void cpu_books_return(struct cpu_books *books, size_t cpu_index)
{
    const struct perf_cpu *cpu = &books->source->cpus[cpu_index];
    /* What the sums have of the time offline is neither idle nor stolen. */
    cpu_time_read(CPU_IDLE_ROOT, books->idle_source, &books->times[cpu_index], 1);
    cpu_presence_return(&books->cpus[cpu_index].presence, moment_at(cpu->started_ns),
                        cpu->streams[PERF_STREAM_CLOCK].before.time_running_ns);
    start_cpu(books, cpu_index);
}

void cpu_books_suspended(struct cpu_books *books, uint64_t jump_ns)
{
    for (size_t i = 0; i < books->source->cpu_count; i++) {
        ticks_suspended(&books->cpus[i].ticks, jump_ns);
    }
}

void cpu_books_refresh(struct cpu_books *books)
{
    for (size_t i = 0; i < books->source->cpu_count; i++) {
        switch_feed_refresh(&books->cpus[i].feed);
    }
}

/* What followers of a sample's event have counted with it. */
static void take_followers(struct sampled_cpu *cpu, const struct perf_record *record)
{
    for (uint32_t i = 0; i < record->sample.followed.count; i++) {
        event_feed_follow(&cpu->events[record->sample.followed.first + i - 1],
                          record->sample.followed.values[i]);
    }
}

void cpu_books_take(struct cpu_books *books, size_t cpu_index, const struct perf_record *record)
{
    struct ticks *ticks = &books->cpus[cpu_index].ticks;
    switch_feed_until(&books->cpus[cpu_index].feed, record->time_ns);
    if (record->kind == PERF_KIND_SAMPLE) {
        ticks_sample(ticks, record->time_ns);
        take_followers(&books->cpus[cpu_index], record);
    } else if (record->kind == PERF_KIND_LOST) {
        take_lost(&books->cpus[cpu_index], record->lost.count);
    } else if (record->kind == PERF_KIND_THROTTLE) {
        ticks_throttle(ticks, record->time_ns);
    } else if (record->kind == PERF_KIND_UNTHROTTLE) {
        ticks_unthrottle(ticks, record->time_ns);
    }
}

void cpu_books_take_event(struct cpu_books *books, size_t cpu_index, uint32_t event,
                          const struct perf_record *record)
{
    event_feed_take(&books->cpus[cpu_index].events[event - 1], record);
    if (record->kind == PERF_KIND_SAMPLE) {
        take_followers(&books->cpus[cpu_index], record);
    }
}

void cpu_books_reach(struct cpu_books *books, size_t cpu_index, uint64_t horizon_ns)
{
    struct sampled_cpu *cpu = &books->cpus[cpu_index];
    switch_feed_until(&cpu->feed, horizon_ns);
    switch_feed_publish(&cpu->feed);
    if (horizon_ns != UINT64_MAX) {
        ticks_advance(&cpu->ticks, horizon_ns);
    }
}

static void read_events(struct cpu_books *books, size_t cpu_index)
{
    for (size_t i = 0; i < books->source->config.event_count; i++) {
        struct perf_count *kernel = &books->cpus[cpu_index].events[i].kernel;
        struct perf_count count;
        if (perf_source_read_count(books->source, cpu_index, (uint32_t)i + 1, &count) == 0) {
            *kernel = count;
        }
    }
}

static void judge_events(struct cpu_books *books, size_t cpu_index, uint64_t time_ns)
{
    for (size_t i = 0; i < books->source->config.event_count; i++) {
        enum event_wish wish = event_feed_judge(&books->cpus[cpu_index].events[i], time_ns);
        if (wish != EVENT_KEEP) {
            (void)perf_source_control_event(books->source, cpu_index, (uint32_t)i + 1,
                                            wish == EVENT_ENABLE);
        }
    }
}

static void read_counts(struct cpu_books *books, uint64_t horizon_ns)
{
    for (size_t i = 0; i < books->source->cpu_count; i++) {
        struct clock_moment before = clock_moment();
        struct perf_count count;
        if (perf_source_read_count(books->source, i, 0, &count) < 0) {
            continue;
        }
        struct clock_moment after = clock_moment();
        if (!books->source->cpus[i].absent) {
            cpu_presence_see(&books->cpus[i].presence, before, after, count.time_running_ns);
            uint64_t since_ns = after.boottime_ns > horizon_ns ? after.boottime_ns - horizon_ns : 0;
            count.time_running_ns -=
                since_ns < count.time_running_ns ? since_ns : count.time_running_ns;
        }
        books->cpus[i].kernel = count;
        read_events(books, i);
    }
}

/* The kernel's sums may go back by a tick: such a reading is passed over. */
static void read_times(struct cpu_books *books)
{
    size_t cpu_count = books->source->cpu_count;
    memcpy(books->times_now, books->times, cpu_count * sizeof *books->times);
    cpu_time_read(CPU_IDLE_ROOT, books->idle_source, books->times_now, cpu_count);
    for (size_t i = 0; i < cpu_count; i++) {
        struct cpu_time *then = &books->times[i];
        const struct cpu_time *now = &books->times_now[i];
        if (now->idle_ns >= then->idle_ns) {
            ticks_tell_idle(&books->cpus[i].ticks, now->idle_ns - then->idle_ns);
            then->idle_ns = now->idle_ns;
        }
        if (now->steal_ns >= then->steal_ns) {
            books->cpus[i].steal_ns += now->steal_ns - then->steal_ns;
            then->steal_ns = now->steal_ns;
        }
    }
}

/* Notes times between which records may be missing. */
static void control_switches(struct cpu_books *books, size_t cpu_index, bool enable)
{
    struct switch_feed *feed = &books->cpus[cpu_index].feed;
    if (!enable) {
        feed->off_from_ns = clock_ns(CLOCK_BOOTTIME);
        feed->off_to_ns = UINT64_MAX;
    }
    (void)perf_source_control_switches(books->source, cpu_index, enable);
    if (enable) {
        feed->off_to_ns = clock_ns(CLOCK_BOOTTIME);
    }
}

void cpu_books_read(struct cpu_books *books, uint64_t horizon_ns)
{
    read_counts(books, horizon_ns);
    for (size_t i = 0; i < books->source->cpu_count; i++) {
        enum switch_wish wish = switch_feed_judge(&books->cpus[i].feed, horizon_ns);
        if (wish != SWITCH_KEEP) {
            control_switches(books, i, wish == SWITCH_ENABLE);
        }
        judge_events(books, i, horizon_ns);
    }
    if (horizon_ns >= books->next_times_ns) {
        read_times(books);
        books->next_times_ns = horizon_ns + TIMES_PERIOD_NS;
    }
}

void cpu_books_read_last(struct cpu_books *books)
{
    read_times(books);
    read_counts(books, UINT64_MAX);
}

/* The sources of a CPU's idle time; static text. */
static const char *name_idle_source(const struct cpu_books *books, const struct tick_counts *ticks)
{
    if (!books->source->has_switches) {
        return books->idle_source;
    }
    if (ticks->blind == 0) {
        return "switches";
    }
    return strcmp(books->idle_source, "cpuidle") == 0 ? "switches,cpuidle" : "switches,proc_stat";
}

/* While a ring is full, the kernel's own count knows more losses than the records told of; a kernel
 * may have none. The larger of the two has every sample that was lost. */
struct books_cpu cpu_books_line(const struct cpu_books *books, size_t cpu_index)
{
    const struct sampled_cpu *cpu = &books->cpus[cpu_index];
    const struct perf_cpu *source = &books->source->cpus[cpu_index];
    const struct tick_counts ticks = ticks_counts(&cpu->ticks);
    uint64_t kernel_lost = cpu->kernel.lost_count;
    struct books_cpu line = {
        .cpu = source->cpu,
        .is_known = source->streams[PERF_STREAM_CLOCK].fd >= 0,
        .running_ns = cpu->kernel.time_running_ns,
        .lost = kernel_lost > ticks.lost ? kernel_lost : ticks.lost,
        .throttled = ticks.throttled,
        .missed = ticks.missed,
        .crowded = ticks.crowded,
        .idle = ticks.idle,
        .held = ticks.samples,
        .steal_ns = cpu->steal_ns,
        .offline_ns = cpu_presence_offline_ns(&cpu->presence, clock_ns(CLOCK_MONOTONIC)),
        .idle_source = name_idle_source(books, &ticks),
    };
    for (size_t i = 0; i < books->source->config.event_count; i++) {
        event_feed_line(&cpu->events[i], &line.events[i]);
    }
    return line;
}

uint64_t cpu_books_bad_count(const struct cpu_books *books)
{
    uint64_t count = 0;
    for (size_t i = 0; i < books->source->cpu_count; i++) {
        count += books->cpus[i].feed.bad_count;
    }
    return count;
}
