/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Each CPU has two rings of switches, its samples and its records, and the readings of /proc are
 * one more source; what is oldest is taken first. A switch is one moment, that of its first record:
 * the sample of the thread that leaves, else the record of its leaving. The thread that comes runs
 * from then on, as the scheduler counts, so what a sample costs is in the wait that begins with it
 * (wait_weight_ns()). A switch to the idle task is over with that: of a CPU that has been offline
 * Linux (6.18) writes no records for its idle task any more.
 *
 * The ring of switch records has another reader (switch_feed.c). It is read here by a view of its
 * own, and its room is given back when both have read it. While times of threads are read merging
 * stands still, for a while: a reading belongs between the records of its own time.
 */
#include "waits.h"

#include "clock.h"
#include "extremes.h"
#include "thread_line.h"
#include "wait_rate.h"
#include "wait_stacks.h"
#include "wait_table.h"

#include <stdlib.h>
#include <string.h>

#define PUBLISH_BYTES    ((size_t)65536)
#define ROOM_BYTES       128              /* of a ring, that a record and a LOST record need */
#define READING_PAUSE_NS (50 * NS_PER_MS) /* the least that rings hold */
#define READING_LIMIT_NS (2 * NS_PER_S)   /* on a machine with much else to do */
#define TIMES_MAX        CAPACITY((size_t)65536) /* threads whose times are read */
#define LINES_BYTES      ((size_t)32000)
#define OWN_SAMPLES_MAX  16384 /* of which the cost of one is made out */
#define THREADS_NAME     "cpu-profilerd.threads"

/* The ring of switch records, read ahead by one. */
struct switch_view {
    struct perf_ring ring;
    bool has_next;
    bool is_lossy; /* records are missing before the next */
    bool is_full;  /* they may be missing behind those that are there */
    struct perf_record next;
};

struct waits_cpu {
    struct switch_view switches;
    bool has_sample;
    struct perf_record sample; /* the next; its views are of the ring */
    size_t sample_bytes;
    size_t unpublished_bytes;
    uint64_t switch_ns; /* the moment of the switch that is under way; 0: none is */
    int32_t switch_tid; /* whose CPU it was */
    uint64_t ticket;    /* of the wait that its sample has begun; 0: none */
    int32_t ticket_tid;
    uint64_t lost_samples;
    bool is_counted; /* the switch that is under way */
    struct wait_rate rate;
    uint64_t long_count; /* of waits that ended here, as far as `rate` knows */
    /* Its switch records were off lately, or are: between these times all of it is passed over. */
    uint64_t off_from_ns;
    uint64_t off_to_ns;
    uint64_t mark_ns; /* of the two the one that merging has not reached; UINT64_MAX: none */
    bool is_off;      /* merging is between them */
    uint64_t held_back_ns;
};

struct waits {
    struct waits_config config;
    struct wait_table *table;
    struct wait_stacks *stacks;
    struct counters counters;
    uint64_t own_ns;       /* this thread's CPU time for waits, */
    uint64_t switch_count; /* for how many switches, */
    uint64_t sample_count; /* and for how many samples of them, lately */
    uint64_t started_ns;
    uint64_t enabled_ns; /* of the runs that are over */
    bool is_running;
    /* Readings of /proc. */
    struct proc_reading *first_reading; /* that are not merged yet, in the order of time */
    struct proc_reading *last_reading;
    size_t merged_count; /* of the first */
    bool is_reading;
    bool is_last;     /* as the run ends */
    bool has_all;     /* each thread that there was */
    uint64_t walk_ns; /* when the reading of all of them began */
    uint64_t asked_ns;
    size_t read_count;
    /* The lines of threads. */
    uint32_t line_place;
    bool has_line; /* `line` is still to be written */
    struct thread_line line;
    char *text; /* LINES_BYTES */
    struct waits_cpu cpus[];
};

static uint32_t find_account(int32_t pid, uint64_t time_ns, void *userdata)
{
    const struct waits *waits = userdata;
    const struct process *process = process_table_find(waits->config.processes, pid, time_ns);
    return process != NULL && process->owner_known ? process->owner : PROCESS_ACCOUNT_UNKNOWN;
}

static void describe_thread(struct thread_line *line, uint64_t time_ns, void *userdata)
{
    const struct waits *waits = userdata;
    struct process *process = process_table_find(waits->config.processes, line->pid, time_ns);
    struct thread *thread =
        process == NULL ? NULL : process_find_thread(process, line->tid, time_ns);
    const struct name *name = thread == NULL ? NULL : process_thread_name(thread, time_ns);
    const struct sample sample = {.time_ns = time_ns, .pid = line->pid, .tid = line->tid};
    _Static_assert(THREAD_LINE_NAME_BYTES == COMM_BYTES, "names are as long");
    if (name != NULL) {
        memcpy(line->name, name->text, sizeof line->name);
    }
    for (size_t i = 0; i < waits->config.sinks->count; i++) {
        bool wanted = sink_wants(waits->config.sinks->all[i], &sample, process);
        line->wanted |= wanted ? 1U << i : 0;
    }
}

static void take_times(struct proc_reading *reading, void *userdata);

static struct perf_stream *stream_of(const struct waits *waits, size_t cpu_index, size_t kind)
{
    return &waits->config.source->cpus[cpu_index].streams[kind];
}

static void renew_view(struct waits *waits, size_t cpu_index)
{
    waits->cpus[cpu_index].switches = (struct switch_view){
        .ring = stream_of(waits, cpu_index, PERF_STREAM_SWITCHES)->ring,
    };
}

struct waits *waits_new(const struct waits_config *config)
{
    const size_t cpu_count = config->source->cpu_count;
    struct waits *waits = calloc(1, sizeof *waits + cpu_count * sizeof waits->cpus[0]);
    if (waits == NULL) {
        return NULL;
    }
    waits->config = *config;
    waits->stacks = wait_stacks_new();
    waits->text = malloc(LINES_BYTES);
    waits->table = wait_table_new(&(struct wait_table_config){
        .cpu_count = cpu_count,
        .min_wait_ns = config->min_wait_ns,
        .account = find_account,
        .describe = describe_thread,
        .userdata = waits,
    });
    if (waits->stacks == NULL || waits->table == NULL || waits->text == NULL) {
        return waits_free(waits);
    }
    for (size_t i = 0; i < cpu_count; i++) {
        renew_view(waits, i);
        waits->cpus[i].mark_ns = UINT64_MAX;
        wait_rate_init(&waits->cpus[i].rate, config->source->config.wait_cost_percent,
                       perf_source_rate_part_hz(&config->source->config, 1));
    }
    sideband_feed_read_times(config->feed, take_times, waits);
    return waits;
}

static void drop_reading(struct waits *waits)
{
    struct proc_reading *reading = waits->first_reading;
    waits->first_reading = reading->next;
    waits->last_reading = reading->next == NULL ? NULL : waits->last_reading;
    waits->merged_count = 0;
    free(reading);
}

struct waits *waits_free(struct waits *waits)
{
    if (waits != NULL) {
        while (waits->first_reading != NULL) {
            drop_reading(waits);
        }
        (void)wait_table_free(waits->table);
        (void)wait_stacks_free(waits->stacks);
        free(waits->text);
        free(waits);
    }
    return NULL;
}

const struct perf_ring *waits_switches(const struct waits *waits, size_t cpu_index)
{
    return &waits->cpus[cpu_index].switches.ring;
}

/* ---- the times of threads ---- */

static void ask_times(struct waits *waits, int32_t from_pid)
{
    waits->asked_ns = clock_ns(CLOCK_BOOTTIME);
    waits->is_reading = sideband_feed_ask_times(waits->config.feed, from_pid);
}

void waits_read_times(struct waits *waits, bool is_last)
{
    if (!waits->is_reading) {
        waits->is_last = is_last;
        waits->has_all = false;
        waits->walk_ns = clock_ns(CLOCK_BOOTTIME);
        waits->read_count = 0;
        ask_times(waits, 0);
    }
}

bool waits_are_reading(const struct waits *waits)
{
    return waits->is_reading && clock_ns(CLOCK_BOOTTIME) < waits->walk_ns + READING_LIMIT_NS;
}

static void take_times(struct proc_reading *reading, void *userdata)
{
    struct waits *waits = userdata;
    const int32_t next_pid = reading->error == 0 ? reading->next_pid : 0;
    reading->next = NULL;
    reading->is_last = waits->is_last;
    waits->is_reading = false;
    waits->has_all = reading->error == 0 && next_pid == 0;
    waits->read_count += reading->error == 0 ? reading->time_count : 0;
    if (reading->error != 0 || !waits->is_running) {
        free(reading);
    } else if (waits->last_reading == NULL) {
        waits->first_reading = waits->last_reading = reading;
    } else {
        waits->last_reading->next = reading;
        waits->last_reading = reading;
    }
    if (next_pid != 0 && waits->read_count < TIMES_MAX && waits->is_running) {
        ask_times(waits, next_pid);
    }
}

/* When the next thread was read; UINT64_MAX: none is left. */
static uint64_t next_reading_ns(struct waits *waits)
{
    while (waits->first_reading != NULL &&
           waits->merged_count == waits->first_reading->time_count) {
        drop_reading(waits);
    }
    return waits->first_reading == NULL ? UINT64_MAX
                                        : waits->first_reading->times[waits->merged_count].at_ns;
}

/* ---- one CPU ---- */

static bool tells_of_thread(const struct perf_record *record)
{
    return record->kind == PERF_KIND_SWITCH || record->kind == PERF_KIND_FORK ||
           record->kind == PERF_KIND_EXIT || (record->kind == PERF_KIND_COMM && record->comm.exec);
}

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
    wait_table_blind(waits->table, cpu_index, cpu->is_off || cpu->switches.is_lossy);
}

/* What was lost lies between the record before and the next one. */
static void lose_records(struct waits *waits, size_t cpu_index)
{
    waits->cpus[cpu_index].switches.is_lossy = true;
    tell_blind(waits, cpu_index);
}

static void pass_mark(struct waits *waits, size_t cpu_index)
{
    struct waits_cpu *cpu = &waits->cpus[cpu_index];
    cpu->is_off = !cpu->is_off;
    cpu->mark_ns = cpu->is_off ? cpu->off_to_ns : UINT64_MAX;
    tell_blind(waits, cpu_index);
}

/* Records of such a time are not all that there was. */
static bool was_off(const struct waits_cpu *cpu, uint64_t time_ns)
{
    return time_ns >= cpu->off_from_ns && time_ns < cpu->off_to_ns;
}

/* Reads the next switch record, if there is one. */
static void read_ahead(struct waits *waits, size_t cpu_index)
{
    struct switch_view *view = &waits->cpus[cpu_index].switches;
    const uint8_t *bytes = NULL;
    size_t size_bytes = 0;
    while (!view->has_next) {
        int r = perf_ring_peek(&view->ring, &bytes, &size_bytes);
        if (r == 0 && view->is_full) {
            view->is_full = false;
            lose_records(waits, cpu_index);
        }
        if (r == 0) {
            return;
        }
        bool is_whole = r > 0 && perf_record_parse(&waits->config.source->switch_layout, bytes,
                                                   size_bytes, &view->next) == 0;
        if (!is_whole || view->next.kind == PERF_KIND_LOST) {
            lose_records(waits, cpu_index);
        } else {
            view->has_next = tells_of_thread(&view->next) &&
                             !was_off(&waits->cpus[cpu_index], view->next.time_ns);
        }
        if (r > 0) {
            perf_ring_advance(&view->ring, size_bytes);
        }
    }
}

/* Shows the next sample, if there is one. */
static void peek_sample(struct waits *waits, size_t cpu_index)
{
    struct waits_cpu *cpu = &waits->cpus[cpu_index];
    struct perf_ring *ring = &stream_of(waits, cpu_index, PERF_STREAM_WAITS)->ring;
    const uint8_t *bytes = NULL;
    while (!cpu->has_sample) {
        int r = perf_ring_peek(ring, &bytes, &cpu->sample_bytes);
        if (r == 0) {
            return;
        }
        if (r < 0 || perf_record_parse(&waits->config.source->layout, bytes, cpu->sample_bytes,
                                       &cpu->sample) < 0) {
            waits->counters.bad_records++;
        } else if (cpu->sample.kind == PERF_KIND_LOST) {
            cpu->lost_samples += cpu->sample.lost.count;
        } else {
            cpu->has_sample =
                cpu->sample.kind == PERF_KIND_SAMPLE && !was_off(cpu, cpu->sample.time_ns);
        }
        if (r > 0 && !cpu->has_sample) {
            perf_ring_advance(ring, cpu->sample_bytes);
        }
    }
}

static void advance_sample(struct waits *waits, size_t cpu_index)
{
    struct waits_cpu *cpu = &waits->cpus[cpu_index];
    struct perf_ring *ring = &stream_of(waits, cpu_index, PERF_STREAM_WAITS)->ring;
    perf_ring_advance(ring, cpu->sample_bytes);
    cpu->has_sample = false;
    cpu->unpublished_bytes += cpu->sample_bytes;
    if (cpu->unpublished_bytes >= PUBLISH_BYTES) {
        (void)perf_ring_publish(ring);
        cpu->unpublished_bytes = 0;
    }
}

/* When the next is that a CPU has: a mark, a sample or a record, in that order. */
static uint64_t next_ns(struct waits *waits, size_t cpu_index)
{
    const struct waits_cpu *cpu = &waits->cpus[cpu_index];
    read_ahead(waits, cpu_index);
    peek_sample(waits, cpu_index);
    uint64_t time_ns = cpu->mark_ns;
    if (cpu->switches.has_next && cpu->switches.next.time_ns < time_ns) {
        time_ns = cpu->switches.next.time_ns;
    }
    return cpu->has_sample && cpu->sample.time_ns < time_ns ? cpu->sample.time_ns : time_ns;
}

/* The sample of a switch comes before its records. Of the idle task, which waits for nothing, it is
 * a moment alone. */
static void take_sample(struct waits *waits, size_t cpu_index)
{
    struct waits_cpu *cpu = &waits->cpus[cpu_index];
    struct perf_record *record = &cpu->sample;
    cancel_ticket(waits, cpu);
    cpu->switch_ns = record->time_ns;
    cpu->switch_tid = record->tid;
    waits->sample_count++;
    const struct perf_ring *ring = &stream_of(waits, cpu_index, PERF_STREAM_WAITS)->ring;
    const bool has_woken =
        perf_ring_woke(ring, cpu->sample_bytes, ring->data_bytes / PERF_PLAN_WAKEUP_PARTS);
    const uint32_t factor = wait_rate_weigh(&cpu->rate, record->time_ns, has_woken);
    if (record->tid > 0 && factor > 0) {
        record->event = (uint32_t)waits->config.source->config.event_count + 1;
        record->sample.weight = 1;
        record->sample.wait = wait_table_begin(waits->table, factor);
        cpu->ticket = record->sample.wait;
        cpu->ticket_tid = record->tid;
    }
    if (cpu->ticket != 0) {
        waits->config.take(cpu_index, record, waits->config.userdata);
    }
    advance_sample(waits, cpu_index);
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
    struct switch_view *view = &waits->cpus[cpu_index].switches;
    const struct perf_record *record = &view->next;
    if (view->is_lossy) {
        view->is_lossy = false;
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
    view->has_next = false;
}

/* ---- all CPUs ---- */

void waits_refresh(struct waits *waits)
{
    for (size_t i = 0; i < waits->config.source->cpu_count; i++) {
        struct switch_view *view = &waits->cpus[i].switches;
        view->ring.head = stream_of(waits, i, PERF_STREAM_SWITCHES)->ring.head;
        perf_ring_refresh(&stream_of(waits, i, PERF_STREAM_WAITS)->ring);
        view->is_full = view->ring.data_bytes > 0 &&
                        view->ring.head - view->ring.tail > view->ring.data_bytes - ROOM_BYTES;
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
    const struct waits_cpu *cpu = &waits->cpus[cpu_index];
    for (uint64_t time_ns = next_ns(waits, cpu_index); time_ns <= limit_ns && time_ns < UINT64_MAX;
         time_ns = next_ns(waits, cpu_index)) {
        bool is_sample = cpu->has_sample && cpu->sample.time_ns == time_ns;
        if (time_ns == cpu->mark_ns) {
            pass_mark(waits, cpu_index);
        } else if (is_sample) {
            take_sample(waits, cpu_index);
        } else {
            take_record(waits, cpu_index);
        }
    }
}

static void take_all(struct waits *waits, uint64_t horizon_ns)
{
    for (;;) {
        uint64_t first_ns;
        uint64_t second_ns;
        const size_t first = find_oldest(waits, &first_ns, &second_ns);
        const uint64_t reading_ns = next_reading_ns(waits);
        if (first_ns == UINT64_MAX && reading_ns == UINT64_MAX) {
            return;
        }
        if (reading_ns < first_ns) {
            if (reading_ns > horizon_ns) {
                return;
            }
            wait_table_read(waits->table, &waits->first_reading->times[waits->merged_count++],
                            waits->first_reading->is_last);
            continue;
        }
        if (first_ns > horizon_ns) {
            return;
        }
        uint64_t limit_ns = second_ns < horizon_ns ? second_ns : horizon_ns;
        take_cpu(waits, first, limit_ns < reading_ns ? limit_ns : reading_ns);
    }
}

/* Merging waits for readings, which are of a moment that has passed, but for no longer than rings
 * hold what comes meanwhile. */
static uint64_t stand_still(const struct waits *waits, uint64_t horizon_ns)
{
    bool waits_for_times = waits->is_reading && horizon_ns != UINT64_MAX &&
                           horizon_ns < waits->asked_ns + READING_PAUSE_NS;
    return waits_for_times && waits->asked_ns < horizon_ns ? waits->asked_ns : horizon_ns;
}

void waits_merge(struct waits *waits, uint64_t horizon_ns)
{
    const uint64_t before_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    take_all(waits, stand_still(waits, horizon_ns));
    for (size_t i = 0; i < waits->config.source->cpu_count; i++) {
        waits->cpus[i].has_sample = false; /* it is shown again */
        waits->cpus[i].unpublished_bytes = 0;
        (void)perf_ring_publish(&stream_of(waits, i, PERF_STREAM_WAITS)->ring);
    }
    waits_write(waits);
    waits->own_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - before_ns;
}

void waits_hold(struct waits *waits, size_t cpu_index, uint64_t from_ns, uint64_t to_ns)
{
    struct waits_cpu *cpu = &waits->cpus[cpu_index];
    if (from_ns > cpu->off_from_ns) {
        cpu->off_from_ns = from_ns;
        cpu->off_to_ns = UINT64_MAX;
        cpu->mark_ns = from_ns;
        wait_rate_pause(&cpu->rate, from_ns);
    }
    if (from_ns > 0 && to_ns < cpu->off_to_ns) {
        cpu->off_to_ns = to_ns;
        cpu->mark_ns = cpu->is_off ? to_ns : cpu->mark_ns;
        cpu->held_back_ns += to_ns - from_ns;
    }
}

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

void waits_adapt(struct waits *waits, uint64_t time_ns)
{
    const uint64_t records_ns = waits->switch_count * WAIT_RATE_SWITCH_OWN_NS;
    const uint64_t samples_ns = waits->own_ns > records_ns ? waits->own_ns - records_ns : 0;
    bool is_due = false;
    for (size_t i = 0; i < waits->config.source->cpu_count; i++) {
        struct wait_rate *rate = &waits->cpus[i].rate;
        if (waits->cpus[i].off_to_ns == UINT64_MAX) {
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
    const struct process *process = resolved->process;
    struct wait_origin origin = {
        .wanted = resolved->wanted,
        .cgroup = resolved->sample.cgroup,
    };
    if (resolved->wanted != 0) {
        origin.stack = wait_stacks_add(
            waits->stacks, &resolved->sample,
            process != NULL && process->owner_known ? process->owner : PROCESS_ACCOUNT_UNKNOWN);
    }
    if (!wait_table_resolve(waits->table, record->sample.wait, &origin)) {
        wait_stacks_release(waits->stacks, origin.stack);
    }
}

/* The process of a wait, and, where its switch had no sample, the sinks that want it. */
static struct process *find_process(struct waits *waits, const struct wait *wait,
                                    const struct sample *sample, unsigned *ret_wanted)
{
    bool awaited = false;
    *ret_wanted = wait->origin.wanted;
    if (wait->has_origin) {
        return wait->origin.wanted == 0
                   ? NULL
                   : process_table_find(waits->config.processes, wait->pid, wait->to_ns);
    }
    struct process *process = sideband_feed_find(waits->config.feed, sample, true, &awaited);
    *ret_wanted = 0;
    for (size_t i = 0; i < waits->config.sinks->count; i++) {
        bool wanted = sink_wants(waits->config.sinks->all[i], sample, process);
        *ret_wanted |= wanted ? 1U << i : 0;
    }
    return process;
}

static void write_wait(struct waits *waits, size_t cpu_index, const struct wait *wait)
{
    struct sample sample = {
        .time_ns = wait->to_ns,
        .weight = wait_weight_ns(wait),
        .event = (uint32_t)(waits->config.source->config.event_count + 1 + wait->kind),
        .cpu = waits->config.source->cpus[cpu_index].cpu,
        .pid = wait->pid,
        .tid = wait->tid,
        .kernel_mode = true,
        .cgroup = wait->origin.cgroup,
    };
    unsigned wanted = 0;
    struct process *process = find_process(waits, wait, &sample, &wanted);
    if (wait->has_origin && wait->origin.stack != 0) {
        wait_stacks_show(waits->stacks, wait->origin.stack, &sample);
    }
    if (wanted != 0 && process != NULL) {
        (void)sideband_feed_disown(waits->config.feed, process, &sample);
    }
    for (size_t i = 0; i < waits->config.sinks->count; i++) {
        struct sink *sink = waits->config.sinks->all[i];
        if ((wanted >> i & 1) == 0) {
            sink_pass(sink, cpu_index, NULL, &sample);
            continue;
        }
        if (process != NULL) {
            sink_note_owner(sink, &sample, process);
        }
        struct sink_doubts doubts = sink_write(sink, cpu_index, NULL, false, &sample, process);
        waits->counters.mapping_uncertain += doubts.uncertain;
    }
}

void waits_write(struct waits *waits)
{
    for (size_t i = 0; i < waits->config.source->cpu_count; i++) {
        const struct wait *wait;
        while ((wait = wait_table_next(waits->table, i)) != NULL) {
            if (wait->to_ns > wait->from_ns) {
                write_wait(waits, i, wait);
            }
            wait_stacks_release(waits->stacks, wait_table_release(waits->table, wait));
        }
    }
}

/* ---- runs ---- */

void waits_start(struct waits *waits, uint64_t time_ns)
{
    waits->is_running = true;
    for (size_t i = 0; i < waits->config.source->cpu_count; i++) {
        waits->cpus[i].switches.is_lossy = waits->cpus[i].switches.is_full = false;
    }
    waits->started_ns = time_ns;
    wait_table_start(waits->table, time_ns);
    waits_read_times(waits, false);
}

void waits_stop(struct waits *waits, uint64_t time_ns)
{
    waits_merge(waits, UINT64_MAX);
    const bool are_all_read = waits->is_last && !waits->is_reading && waits->has_all;
    wait_table_stop(waits->table, time_ns, are_all_read ? waits->walk_ns : UINT64_MAX);
    waits_write(waits);
    waits->enabled_ns += time_ns > waits->started_ns ? time_ns - waits->started_ns : 0;
    waits->is_running = false;
    while (waits->first_reading != NULL) {
        drop_reading(waits);
    }
    for (size_t i = 0; i < waits->config.source->cpu_count; i++) {
        struct waits_cpu *cpu = &waits->cpus[i];
        waits_hold(waits, i, cpu->off_from_ns, max_u64(cpu->off_from_ns, time_ns));
        cpu->off_from_ns = cpu->off_to_ns = 0;
        cpu->mark_ns = UINT64_MAX;
        cpu->is_off = false;
        cancel_ticket(waits, cpu);
        cpu->switch_ns = 0;
    }
    waits->line_place = 0;
    waits->has_line = false;
}

/* Nothing runs on it any more: what was lost is what it did last. */
void waits_lose_cpu(struct waits *waits, size_t cpu_index)
{
    lose_records(waits, cpu_index);
    waits->cpus[cpu_index].switches.is_lossy = false;
    tell_blind(waits, cpu_index);
}

void waits_return_cpu(struct waits *waits, size_t cpu_index)
{
    struct waits_cpu *cpu = &waits->cpus[cpu_index];
    renew_view(waits, cpu_index);
    cpu->off_from_ns = cpu->off_to_ns = 0; /* its new events are on */
    cpu->mark_ns = UINT64_MAX;
    cpu->is_off = false;
    lose_records(waits, cpu_index);
    cpu->has_sample = false;
    wait_rate_renew(&cpu->rate);
}

void waits_count(const struct waits *waits, size_t cpu_index, size_t kind, struct books_event *line)
{
    const struct wait_counts counts =
        wait_table_counts(waits->table, cpu_index, (enum wait_kind)kind);
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
    line->unread_count = kind == WAIT_BLOCKED ? waits->cpus[cpu_index].lost_samples : 0;
    line->thinned_count = counts.thinned_count;
    line->variance = counts.variance;
    line->held_back_ns = waits->cpus[cpu_index].held_back_ns;
    line->enabled_ns = waits->enabled_ns + run_ns;
    line->running_ns = line->enabled_ns;
}

struct counters waits_counters(const struct waits *waits)
{
    const struct wait_thread_counts threads = wait_table_thread_counts(waits->table);
    struct counters sum = waits->counters;
    sum.wait_stacks_refused = wait_stacks_refused(waits->stacks);
    sum.threads_refused = threads.refused;
    sum.threads_forgotten = threads.forgotten;
    return sum;
}

/* As many lines as a blob holds. */
static size_t gather_lines(struct waits *waits, size_t sink)
{
    size_t used = 0;
    while (waits->has_line || wait_table_line(waits->table, &waits->line_place, &waits->line)) {
        waits->has_line = (waits->line.wanted >> sink & 1) != 0;
        if (waits->has_line && used + THREAD_LINE_BYTES > LINES_BYTES) {
            return used;
        }
        used += waits->has_line ? thread_line_print(&waits->line, waits->text + used) : 0;
        waits->has_line = false;
    }
    return used;
}

bool waits_write_threads(struct waits *waits, size_t sink)
{
    for (;;) {
        const uint32_t place = waits->line_place;
        const bool has_line = waits->has_line;
        const struct thread_line line = waits->line;
        const size_t bytes = gather_lines(waits, sink);
        if (bytes == 0) {
            return true;
        }
        if (!sink_write_lines(waits->config.sinks->all[sink], THREADS_NAME, waits->text, bytes)) {
            waits->line_place = place;
            waits->has_line = has_line;
            waits->line = line;
            return false;
        }
    }
}
