/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Each CPU has two rings of switches (switch_rings.c), and the readings of /proc are one more
 * source (thread_times.c); what is oldest is taken first. A switch is one moment, that of its first
 * record: the sample of the thread that leaves, else the record of its leaving. The thread that
 * comes runs from then on, as the scheduler counts, so what a sample costs is in the wait that
 * begins with it (wait_weight_ns()). A switch to the idle task ends with its first record: of a CPU
 * that has been offline Linux (6.18) writes no records for its idle task any more.
 */
#include "waits.h"

#include "clock.h"
#include "switch_rings.h"
#include "thread_times.h"
#include "wait_rate.h"
#include "wait_table.h"
#include "wait_writer.h"

#include <stdlib.h>

#define SETTLE_NS       (100 * NS_PER_MS)
#define OWN_SAMPLES_MAX 16384 /* of which the cost of one is made out */

struct waits_cpu {
    struct switch_rings rings;
    uint64_t switch_ns; /* the moment of the switch that is under way; 0: none is */
    int32_t switch_tid; /* whose CPU it was */
    uint64_t ticket;    /* of the wait that its sample has begun; 0: none */
    int32_t ticket_tid;
    bool is_counted; /* the switch that is under way */
    struct wait_rate rate;
    uint64_t long_count; /* of waits that ended here, as far as `rate` knows */
};

struct waits {
    struct waits_config config;
    struct wait_table *table;
    struct wait_writer writer;
    struct thread_times times;
    uint64_t own_ns;       /* this thread's CPU time for waits, */
    uint64_t switch_count; /* for how many switches, */
    uint64_t sample_count; /* and for how many samples of them, lately */
    uint64_t started_ns;
    uint64_t enabled_ns; /* of the runs that are over */
    uint64_t merged_ns;  /* the records up to then have been taken, */
    uint64_t settled_ns; /* and then ends of threads were last asked for */
    bool is_running;
    struct waits_cpu cpus[];
};

static void init_cpu(struct waits *waits, size_t cpu_index)
{
    struct perf_source *source = waits->config.source;
    struct perf_stream *streams = source->cpus[cpu_index].streams;
    switch_rings_init(&waits->cpus[cpu_index].rings,
                      &(struct switch_rings_config){
                          .records = &streams[PERF_STREAM_SWITCHES].ring,
                          .samples = &streams[PERF_STREAM_WAITS].ring,
                          .record_layout = &source->switch_layout,
                          .sample_layout = &source->layout,
                      });
    wait_rate_init(&waits->cpus[cpu_index].rate, source->config.wait_cost_percent,
                   perf_source_rate_part_hz(&source->config, 1));
}

struct waits *waits_new(const struct waits_config *config)
{
    const size_t cpu_count = config->source->cpu_count;
    struct waits *waits = calloc(1, sizeof *waits + cpu_count * sizeof waits->cpus[0]);
    if (waits == NULL) {
        return NULL;
    }
    waits->config = *config;
    bool has_writer = wait_writer_init(&waits->writer, &(struct wait_writer_config){
                                                           .source = config->source,
                                                           .processes = config->processes,
                                                           .feed = config->feed,
                                                           .sinks = config->sinks,
                                                       });
    waits->table = wait_table_new(&(struct wait_table_config){
        .cpu_count = cpu_count,
        .min_wait_ns = config->min_wait_ns,
        .owner = wait_writer_owner,
        .life = wait_writer_life,
        .describe = wait_writer_describe,
        .userdata = &waits->writer,
    });
    if (!has_writer || waits->table == NULL) {
        return waits_free(waits);
    }
    for (size_t i = 0; i < cpu_count; i++) {
        init_cpu(waits, i);
    }
    thread_times_init(&waits->times, config->feed);
    return waits;
}

struct waits *waits_free(struct waits *waits)
{
    if (waits != NULL) {
        thread_times_done(&waits->times);
        (void)wait_table_free(waits->table);
        wait_writer_done(&waits->writer);
        free(waits);
    }
    return NULL;
}

const struct perf_ring *waits_switches(const struct waits *waits, size_t cpu_index)
{
    return &waits->cpus[cpu_index].rings.view;
}

/* ---- one CPU ---- */

static void cancel_ticket(struct waits *waits, struct waits_cpu *cpu)
{
    wait_table_cancel(waits->table, cpu->ticket);
    cpu->ticket = 0;
}

/* What the CPU does is not known from now on, or is again. */
static void tell_blind(struct waits *waits, size_t cpu_index)
{
    struct waits_cpu *cpu = &waits->cpus[cpu_index];
    cancel_ticket(waits, cpu);
    cpu->switch_ns = 0;
    cpu->is_counted = false;
    wait_table_blind(waits->table, cpu_index, switch_rings_are_blind(&cpu->rings));
}

/* When the next is that a CPU has. */
static uint64_t next_ns(struct waits *waits, size_t cpu_index)
{
    struct switch_rings *rings = &waits->cpus[cpu_index].rings;
    if (switch_rings_look(rings)) {
        tell_blind(waits, cpu_index);
    }
    return switch_rings_next_ns(rings);
}

/* The sample of a switch comes before its records. Of the idle task, which waits for nothing, it is
 * a moment alone. */
static void take_sample(struct waits *waits, size_t cpu_index)
{
    struct waits_cpu *cpu = &waits->cpus[cpu_index];
    struct perf_record *record = &cpu->rings.sample;
    cancel_ticket(waits, cpu);
    cpu->switch_ns = record->time_ns;
    cpu->switch_tid = record->tid;
    waits->sample_count++;
    const uint32_t factor =
        wait_rate_weigh(&cpu->rate, record->time_ns, switch_rings_sample_woke(&cpu->rings));
    if (record->tid > 0) {
        record->event = (uint32_t)waits->config.source->config.event_count + 1;
        record->sample.weight = 1;
        record->sample.wait = wait_table_begin(waits->table, factor);
        cpu->ticket = record->sample.wait;
        cpu->ticket_tid = record->tid;
    }
    if (cpu->ticket != 0) {
        waits->config.take(cpu_index, record, waits->config.userdata);
    }
    switch_rings_drop_sample(&cpu->rings);
}

static void count_switch(struct waits *waits, struct waits_cpu *cpu)
{
    if (!cpu->is_counted) {
        waits->switch_count++;
        wait_rate_count(&cpu->rate);
        cpu->is_counted = true;
    }
}

static void take_switch(struct waits *waits, size_t cpu_index, const struct perf_record *record)
{
    struct waits_cpu *cpu = &waits->cpus[cpu_index];
    /* A moment that was noted of another switch, of which records are missing, is none of this. */
    const int32_t from_tid =
        record->context_switch.out ? record->tid : record->context_switch.other_tid;
    const bool is_under_way = cpu->switch_ns != 0 && cpu->switch_tid == from_tid;
    const uint64_t time_ns = is_under_way ? cpu->switch_ns : record->time_ns;
    if (record->context_switch.out) {
        bool is_begun = cpu->ticket != 0 && cpu->ticket_tid == record->tid;
        const struct wait_switch away = {
            .pid = record->pid,
            .tid = record->tid,
            .time_ns = time_ns,
            .kind = record->context_switch.preempted ? WAIT_PREEMPTED : WAIT_BLOCKED,
            .ticket = is_begun ? cpu->ticket : 0,
            .sampling_ns = is_begun && record->time_ns > time_ns ? record->time_ns - time_ns : 0,
            .period = wait_rate_period_at(&cpu->rate, time_ns),
            .long_ns = wait_rate_long_ns(&cpu->rate, time_ns),
        };
        wait_table_out(waits->table, cpu_index, &away);
        count_switch(waits, cpu);
        cpu->ticket = is_begun ? 0 : cpu->ticket;
        cpu->switch_ns = record->context_switch.other_pid == 0 ? 0 : time_ns;
        cpu->switch_tid = record->tid;
    } else {
        wait_table_in(waits->table, cpu_index, record->pid, record->tid, time_ns);
        count_switch(waits, cpu); /* unless the record of the leaving has come */
        cpu->is_counted = false;
        cpu->switch_ns = 0;
    }
    cancel_ticket(waits, cpu);
}

static void take_record(struct waits *waits, size_t cpu_index)
{
    struct switch_rings *rings = &waits->cpus[cpu_index].rings;
    const struct perf_record *record = &rings->record;
    if (switch_rings_find(rings)) {
        tell_blind(waits, cpu_index);
    }
    if (record->kind == PERF_KIND_SWITCH) {
        take_switch(waits, cpu_index, record);
    } else if (record->kind == PERF_KIND_FORK) {
        wait_table_fork(waits->table, record->task.pid, record->task.tid, record->time_ns);
    } else if (record->kind == PERF_KIND_EXIT) {
        wait_table_exit(waits->table, cpu_index, record->task.pid, record->task.tid,
                        record->time_ns);
    } else {
        wait_table_exec(waits->table, cpu_index, record->pid, record->time_ns);
    }
    switch_rings_drop_record(rings);
}

/* ---- all CPUs ---- */

void waits_refresh(struct waits *waits)
{
    for (size_t i = 0; i < waits->config.source->cpu_count; i++) {
        switch_rings_refresh(&waits->cpus[i].rings);
    }
}

/* The CPU whose next record is the oldest; `*ret_second_ns` is the time of the oldest of others. */
static size_t find_oldest(struct waits *waits, uint64_t *ret_first_ns, uint64_t *ret_second_ns)
{
    size_t first = 0;
    *ret_first_ns = *ret_second_ns = UINT64_MAX;
    for (size_t i = 0; i < waits->config.source->cpu_count; i++) {
        const uint64_t time_ns = next_ns(waits, i);
        if (time_ns < *ret_first_ns) {
            *ret_second_ns = *ret_first_ns;
            *ret_first_ns = time_ns;
            first = i;
        } else if (time_ns < *ret_second_ns) {
            *ret_second_ns = time_ns;
        }
    }
    return first;
}

/* Takes what a CPU has up to a time. */
static void take_cpu(struct waits *waits, size_t cpu_index, uint64_t limit_ns)
{
    struct switch_rings *rings = &waits->cpus[cpu_index].rings;
    for (uint64_t time_ns = next_ns(waits, cpu_index); time_ns <= limit_ns && time_ns < UINT64_MAX;
         time_ns = next_ns(waits, cpu_index)) {
        bool is_sample = rings->has_sample && rings->sample.time_ns == time_ns;
        if (time_ns == rings->mark_ns) {
            switch_rings_pass_mark(rings);
            tell_blind(waits, cpu_index);
        } else if (is_sample) {
            take_sample(waits, cpu_index);
        } else {
            take_record(waits, cpu_index);
        }
    }
}

static void take_reading(struct waits *waits)
{
    bool is_last = false;
    const struct thread_reading *reading = thread_times_take(&waits->times, &is_last);
    wait_table_read(waits->table, reading, is_last);
}

static void take_all(struct waits *waits, uint64_t horizon_ns)
{
    for (;;) {
        uint64_t first_ns;
        uint64_t second_ns;
        const size_t first = find_oldest(waits, &first_ns, &second_ns);
        const uint64_t reading_ns = thread_times_next_ns(&waits->times);
        if (first_ns == UINT64_MAX && reading_ns == UINT64_MAX) {
            return;
        }
        if (reading_ns < first_ns) {
            if (reading_ns > horizon_ns) {
                return;
            }
            take_reading(waits);
            continue;
        }
        if (first_ns > horizon_ns) {
            return;
        }
        uint64_t limit_ns = second_ns < horizon_ns ? second_ns : horizon_ns;
        take_cpu(waits, first, limit_ns < reading_ns ? limit_ns : reading_ns);
    }
}

void waits_merge(struct waits *waits, uint64_t horizon_ns)
{
    const uint64_t before_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    waits->merged_ns = thread_times_limit_ns(&waits->times, horizon_ns);
    take_all(waits, waits->merged_ns);
    for (size_t i = 0; i < waits->config.source->cpu_count; i++) {
        switch_rings_publish(&waits->cpus[i].rings);
    }
    waits_write(waits);
    waits->own_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - before_ns;
}

void waits_hold(struct waits *waits, size_t cpu_index, uint64_t from_ns, uint64_t to_ns)
{
    struct waits_cpu *cpu = &waits->cpus[cpu_index];
    if (switch_rings_hold(&cpu->rings, from_ns, to_ns)) {
        wait_rate_pause(&cpu->rate, from_ns);
    }
}

/* ---- what is sampled ---- */

static void tell_long(struct waits *waits, size_t cpu_index)
{
    struct waits_cpu *cpu = &waits->cpus[cpu_index];
    uint64_t count = 0;
    for (size_t kind = 0; kind < WAIT_KINDS; kind++) {
        count += wait_table_counts(waits->table, cpu_index, (enum wait_kind)kind).long_count;
    }
    cpu->rate.long_count += count - cpu->long_count;
    cpu->long_count = count;
}

static void settle(struct waits *waits)
{
    if (waits->merged_ns >= waits->settled_ns + SETTLE_NS) {
        wait_table_settle(waits->table, waits->merged_ns);
        waits->settled_ns = waits->merged_ns;
    }
}

void waits_adapt(struct waits *waits, uint64_t time_ns)
{
    settle(waits);
    const uint64_t records_ns = waits->switch_count * WAIT_RATE_SWITCH_OWN_NS;
    const uint64_t samples_ns = waits->own_ns > records_ns ? waits->own_ns - records_ns : 0;
    bool is_due = false;
    for (size_t i = 0; i < waits->config.source->cpu_count; i++) {
        struct wait_rate *rate = &waits->cpus[i].rate;
        if (switch_rings_are_held(&waits->cpus[i].rings)) {
            continue; /* it has no switches to be counted */
        }
        tell_long(waits, i);
        if (wait_rate_adapt(rate, time_ns, samples_ns, waits->sample_count)) {
            const uint64_t from_ns = clock_ns(CLOCK_BOOTTIME);
            is_due = true;
            (void)perf_source_control_waits(waits->config.source, i, wait_rate_period(rate));
            wait_rate_changed(rate, from_ns, clock_ns(CLOCK_BOOTTIME));
        }
    }
    if (is_due || waits->sample_count > OWN_SAMPLES_MAX) {
        waits->own_ns /= 2; /* older ones count for less */
        waits->switch_count /= 2;
        waits->sample_count /= 2;
    }
}

/* ---- what comes of it ---- */

void waits_resolve(struct waits *waits, const struct perf_record *record,
                   const struct resolved *resolved)
{
    wait_writer_resolve(&waits->writer, waits->table, record, resolved);
}

void waits_write(struct waits *waits)
{
    wait_writer_write(&waits->writer, waits->table);
}

bool waits_write_threads(struct waits *waits, size_t sink)
{
    return wait_writer_write_threads(&waits->writer, waits->table, sink);
}

void waits_count(const struct waits *waits, size_t cpu_index, size_t kind, struct books_event *line)
{
    const struct wait_counts counts =
        wait_table_counts(waits->table, cpu_index, (enum wait_kind)kind);
    const struct switch_rings *rings = &waits->cpus[cpu_index].rings;
    const uint64_t now_ns = waits->is_running ? clock_ns(CLOCK_BOOTTIME) : 0;
    const uint64_t run_ns = now_ns > waits->started_ns ? now_ns - waits->started_ns : 0;
    line->counted = counts.counted_ns;
    line->held_weight = counts.held_ns;
    line->lost = counts.uncertain_count;
    line->lost_weight = counts.uncertain_ns;
    line->short_count = counts.short_count;
    line->short_weight = counts.short_ns;
    line->bare = counts.bare_count;
    /* Which kind they were of is not known. */
    line->unread_count = kind == WAIT_BLOCKED ? rings->lost_samples : 0;
    line->thinned_count = counts.thinned_count;
    line->variance = counts.variance;
    line->largest_weight = counts.largest_ns;
    line->held_back_ns = rings->held_back_ns;
    line->enabled_ns = waits->enabled_ns + run_ns;
    line->running_ns = line->enabled_ns;
}

struct counters waits_counters(const struct waits *waits)
{
    const struct wait_thread_counts threads = wait_table_thread_counts(waits->table);
    struct counters sum = {0};
    for (size_t i = 0; i < waits->config.source->cpu_count; i++) {
        sum.bad_records += waits->cpus[i].rings.bad_samples;
    }
    wait_writer_count(&waits->writer, &sum);
    sum.threads_refused = threads.refused;
    sum.threads_forgotten = threads.forgotten;
    return sum;
}

/* ---- runs ---- */

void waits_start(struct waits *waits, uint64_t time_ns)
{
    waits->is_running = true;
    for (size_t i = 0; i < waits->config.source->cpu_count; i++) {
        switch_rings_start(&waits->cpus[i].rings);
    }
    waits->started_ns = time_ns;
    wait_table_start(waits->table, time_ns);
    thread_times_start(&waits->times);
}

void waits_stop(struct waits *waits, uint64_t time_ns)
{
    waits_merge(waits, UINT64_MAX);
    wait_table_stop(waits->table, time_ns, thread_times_stop(&waits->times));
    waits_write(waits);
    waits->enabled_ns += time_ns > waits->started_ns ? time_ns - waits->started_ns : 0;
    waits->is_running = false;
    for (size_t i = 0; i < waits->config.source->cpu_count; i++) {
        struct waits_cpu *cpu = &waits->cpus[i];
        switch_rings_stop(&cpu->rings, time_ns);
        wait_rate_pause(&cpu->rate, time_ns);
        cancel_ticket(waits, cpu);
        cpu->switch_ns = 0;
    }
    wait_writer_rewind(&waits->writer);
}

/* Nothing runs on it any more: what was lost is what it did last. */
void waits_lose_cpu(struct waits *waits, size_t cpu_index)
{
    (void)switch_rings_find(&waits->cpus[cpu_index].rings);
    tell_blind(waits, cpu_index);
}

void waits_return_cpu(struct waits *waits, size_t cpu_index)
{
    struct waits_cpu *cpu = &waits->cpus[cpu_index];
    switch_rings_renew(&cpu->rings);
    tell_blind(waits, cpu_index);
    wait_rate_renew(&cpu->rate);
}

void waits_read_times(struct waits *waits, bool is_last)
{
    thread_times_read(&waits->times, is_last);
}

bool waits_are_reading(const struct waits *waits)
{
    return thread_times_are_coming(&waits->times);
}
