/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One round: note the horizon (a moment just past), then the sample rings' heads, then drain all
 * sideband. Whatever a sample up to the horizon depends on was written before it, so it is among
 * what was drained. Sideband up to the horizon is applied in the order of its time, then the
 * samples up to the horizon are worked off CPU by CPU, each looking up the state of its own time.
 * Newer samples stay in their rings, newer sideband stays queued, until the next round. Nothing
 * ever waits.
 *
 * A sample allocates nothing here and logs nothing; what goes wrong is counted.
 */
#include "drain.h"

#include "cleanup.h"
#include "held_samples.h"
#include "sideband.h"
#include "user_stack.h"

#include <string.h>

#define RESCAN_PERIOD_NS UINT64_C(1000000000)
#define PUBLISH_BYTES    ((size_t)65536)
#define GONE_COUNT       1024 /* pids that /proc did not know lately */
#define HELD_BYTES       ((size_t)32 << 20)
#define CACHE_LINE_BYTES 64
#define PREFETCH_BYTES   3072 /* chain, registers, and what most stacks need of their copy */
#define RETRIES_MAX      1024 /* held samples that are tried again in one round */

/* Where a CPU's ticks go. */
struct accounting {
    struct tick_ledger ledger;
    struct switch_feed feed;
};

struct drain {
    struct drain_config config;
    struct drain_counts counts;
    struct drain_cpu_counts *cpus; /* cpu_count of them, as of the next */
    struct accounting *accounting;
    struct sideband *sideband;
    struct user_stack stack;
    struct held_samples *held; /* NULL with SESSION_UNWIND_FP */
    /* Tables come one by one, and each time all that is held may be tried again: a bit at a time,
     * or many tables and many samples would keep the rings waiting. */
    const struct held_sample *next_retry; /* NULL: no pass is under way */
    bool tables_came;                     /* since the pass began */
    bool rescan;
    struct {
        int32_t pid;
        uint64_t until_ns;
    } gone[GONE_COUNT];
};

/* Returned: free(). NULL when there is no memory. */
static struct accounting *new_accounting(struct perf_source *source)
{
    struct accounting *accounting = calloc(source->cpu_count, sizeof *accounting);
    for (size_t i = 0; accounting != NULL && i < source->cpu_count; i++) {
        tick_ledger_init(&accounting[i].ledger, source->config.period_ns);
        switch_feed_init(&accounting[i].feed,
                         source->has_switches ? &source->cpus[i].switch_ring : NULL,
                         &source->switch_layout, &accounting[i].ledger);
    }
    return accounting;
}

struct drain *drain_new(const struct drain_config *config)
{
    struct drain *drain = calloc(1, sizeof *drain);
    if (drain == NULL) {
        return NULL;
    }
    drain->config = *config;
    drain->cpus = calloc(config->source->cpu_count, sizeof *drain->cpus);
    drain->accounting = new_accounting(config->source);
    drain->sideband = sideband_new();
    drain->stack = (struct user_stack){
        .unwind = config->unwind,
        .max_depth = config->max_stack_depth,
        .chain_max = config->source->sample_max_stack,
        .code = config->code,
    };
    if (config->code != NULL) {
        drain->held = held_samples_new(HELD_BYTES);
        drain->stack.stitch = stitch_new(config->max_stack_depth);
    }
    if (drain->cpus == NULL || drain->accounting == NULL || drain->sideband == NULL ||
        (config->code != NULL && (drain->held == NULL || drain->stack.stitch == NULL))) {
        return drain_free(drain);
    }
    return drain;
}

struct drain *drain_free(struct drain *drain)
{
    if (drain != NULL) {
        (void)sideband_free(drain->sideband);
        (void)held_samples_free(drain->held);
        (void)stitch_free(drain->stack.stitch);
        free(drain->cpus);
        free(drain->accounting);
        free(drain);
    }
    return NULL;
}

static void apply_mmap(struct drain *drain, const struct perf_record *record)
{
    const struct perf_mmap_view *mmap = &record->mmap;
    struct mapping_description mapping = {
        .start = mmap->start,
        .end = mmap->start + mmap->size_bytes,
        .file_offset = mmap->file_offset,
        .path = mmap->path,
        .device_major = mmap->device_major,
        .device_minor = mmap->device_minor,
        .inode = mmap->inode,
        .inode_generation = mmap->inode_generation,
    };
    if (!mmap->executable || mapping.end <= mapping.start) {
        return;
    }
    process_table_mmap(drain->config.processes, record->pid, &mapping, record->time_ns);
}

static void apply_sideband(struct drain *drain, const struct perf_record *record)
{
    struct process_table *processes = drain->config.processes;
    switch (record->kind) {
    case PERF_KIND_MMAP:
        apply_mmap(drain, record);
        break;
    case PERF_KIND_COMM:
        process_table_comm(processes, record->pid, record->tid, record->comm.text,
                           record->comm.exec, record->time_ns);
        break;
    case PERF_KIND_FORK:
        process_table_fork(processes, record->task.pid, record->task.parent_pid, record->task.tid,
                           record->task.parent_tid, record->task.time_ns);
        if (record->task.pid != record->task.parent_pid) {
            (void)filter_fork(drain->config.filter, record->task.pid, record->task.parent_pid);
        }
        break;
    case PERF_KIND_EXIT:
        process_table_exit(processes, record->task.pid, record->task.tid, record->task.time_ns);
        break;
    case PERF_KIND_LOST:
        drain->counts.sideband_lost += record->lost.count;
        drain->rescan = true;
        break;
    case PERF_KIND_SAMPLE:
    case PERF_KIND_THROTTLE:
    case PERF_KIND_UNTHROTTLE:
    case PERF_KIND_SWITCH:
    case PERF_KIND_DEFERRED_CALLCHAIN:
    case PERF_KIND_OTHER:
        break;
    }
}

/* Moves what a CPU's sideband ring holds into the queue. */
static void drain_sideband_ring(struct drain *drain, struct perf_ring *ring)
{
    const uint8_t *bytes = NULL;
    size_t size_bytes = 0;
    perf_ring_refresh(ring);
    for (int r = perf_ring_peek(ring, &bytes, &size_bytes); r != 0;
         r = perf_ring_peek(ring, &bytes, &size_bytes)) {
        struct perf_record record;
        if (r < 0 ||
            perf_record_parse(&drain->config.source->layout, bytes, size_bytes, &record) < 0) {
            drain->counts.bad_records++;
            drain->rescan = true;
        } else if (!sideband_add(drain->sideband, record.time_ns, bytes, size_bytes)) {
            drain->counts.sideband_lost++;
            drain->rescan = true;
        }
        if (r > 0) {
            perf_ring_advance(ring, size_bytes);
        }
    }
    perf_ring_publish(ring);
}

void drain_sideband(struct drain *drain, uint64_t horizon_ns)
{
    struct perf_source *source = drain->config.source;
    const uint8_t *bytes = NULL;
    size_t size_bytes = 0;
    for (size_t i = 0; i < source->sideband_count; i++) {
        drain_sideband_ring(drain, &source->cpus[i].sideband_ring);
    }
    sideband_sort(drain->sideband);
    while ((bytes = sideband_next(drain->sideband, horizon_ns, &size_bytes)) != NULL) {
        struct perf_record record;
        if (perf_record_parse(&source->layout, bytes, size_bytes, &record) == 0) {
            apply_sideband(drain, &record);
        }
    }
}

/* Reads a process from /proc, unless it was not there a moment ago. */
static void scan_process(struct drain *drain, int32_t pid, uint64_t time_ns)
{
    size_t place = (uint32_t)pid % GONE_COUNT;
    if (drain->gone[place].pid == pid && drain->gone[place].until_ns > time_ns) {
        return;
    }
    if (proc_scan_process(drain->config.scan, drain->config.processes, pid) < 0) {
        drain->gone[place].pid = pid;
        drain->gone[place].until_ns = time_ns + RESCAN_PERIOD_NS;
    }
}

/* The process of a sample; one that is not known, or only half, is read from /proc first. */
static struct process *find_process(struct drain *drain, const struct sample *sample)
{
    struct process_table *processes = drain->config.processes;
    if (sample->pid <= 0) {
        return NULL;
    }
    struct process *process = process_table_find(processes, sample->pid, sample->time_ns);
    if (process != NULL && (process->scanned || process->next_scan_ns > sample->time_ns)) {
        return process;
    }
    scan_process(drain, sample->pid, sample->time_ns);
    process = process_table_find(processes, sample->pid, sample->time_ns);
    if (process != NULL) {
        process->next_scan_ns = sample->time_ns + RESCAN_PERIOD_NS;
    }
    return process;
}

static void count_outcome(struct drain_cpu_counts *counts, enum trace_outcome outcome)
{
    switch (outcome) {
    case TRACE_KEPT:
        counts->kept++;
        break;
    case TRACE_DROPPED:
        counts->dropped++;
        break;
    }
}

/* Addresses that were settled without the table that they needed. */
static uint64_t unready_count(const struct drain *drain)
{
    return drain->config.code == NULL ? 0 : code_map_counts(drain->config.code).unready_count;
}

/* Counts and writes a sample. False: its stack needs a table that is not there yet; never with
 * `settle`. */
static bool take_sample(struct drain *drain, size_t cpu_index, const struct perf_record *record,
                        bool settle)
{
    struct drain_cpu_counts *counts = &drain->cpus[cpu_index];
    struct sample sample = {
        .time_ns = record->time_ns,
        .cpu = record->cpu,
        .pid = record->pid,
        .tid = record->tid,
        .kernel_mode = record->mode == PERF_MODE_KERNEL,
        .kernel_stack = record->sample.kernel_chain,
        .kernel_count = record->sample.kernel_count,
    };
    struct process *process = find_process(drain, &sample);
    if (!filter_matches(drain->config.filter, sample.pid,
                        process != NULL && process->kernel_thread)) {
        counts->received++;
        counts->filtered++;
        return true;
    }
    bool unmapped = false;
    uint64_t unready_before = unready_count(drain);
    if (!user_stack_take(&drain->stack, &record->sample, process, settle, &sample, &unmapped)) {
        return false;
    }
    counts->received++;
    drain->counts.cold_stacks += unready_count(drain) > unready_before;
    bool uncertain = false;
    count_outcome(counts,
                  trace_sample(drain->config.trace, cpu_index, &sample, process, &uncertain));
    drain->counts.mapping_uncertain += uncertain;
    drain->counts.stitched_stacks += sample.quality == STACK_STITCHED;
    drain->counts.truncated_stacks +=
        sample.quality != STACK_NONE && sample.quality != STACK_COMPLETE;
    if ((uncertain || unmapped) && process != NULL && process->next_scan_ns <= sample.time_ns) {
        process->next_scan_ns = sample.time_ns + RESCAN_PERIOD_NS;
        scan_process(drain, sample.pid, sample.time_ns);
    }
    return true;
}

static void handle_sample(struct drain *drain, size_t cpu_index, const struct perf_record *record)
{
    if (!take_sample(drain, cpu_index, record, false) &&
        !held_samples_add(drain->held, cpu_index, record)) {
        (void)take_sample(drain, cpu_index, record, true);
    }
}

void drain_prefetch(struct drain *drain)
{
    if (drain->config.code != NULL) {
        code_map_prefetch(drain->config.code, drain->config.processes);
    }
}

/* Takes the oldest ones that have waited for long enough, whatever is known by now. */
static void settle_expired(struct drain *drain, uint64_t time_ns)
{
    const struct held_sample *held = held_samples_first(drain->held);
    while (held != NULL && held->record.time_ns + DRAIN_HELD_NS <= time_ns) {
        const struct held_sample *next = held_samples_next(drain->held, held);
        if (drain->next_retry == held) {
            drain->next_retry = next;
        }
        (void)take_sample(drain, held->cpu_index, &held->record, true);
        held_samples_release(drain->held, held);
        held = next;
    }
}

static void retry_held(struct drain *drain)
{
    if (drain->next_retry == NULL && drain->tables_came) {
        drain->next_retry = held_samples_first(drain->held);
        drain->tables_came = false;
    }
    for (size_t i = 0; i < RETRIES_MAX && drain->next_retry != NULL; i++) {
        const struct held_sample *held = drain->next_retry;
        drain->next_retry = held_samples_next(drain->held, held);
        if (take_sample(drain, held->cpu_index, &held->record, false)) {
            held_samples_release(drain->held, held);
        }
    }
}

size_t drain_held(struct drain *drain, uint64_t time_ns)
{
    if (drain->held == NULL) {
        return 0;
    }
    drain->tables_came = code_map_poll(drain->config.code) || drain->tables_came;
    settle_expired(drain, time_ns);
    retry_held(drain);
    drain->counts.code = code_map_counts(drain->config.code);
    return held_samples_count(drain->held);
}

/* A record of the ring of samples, after all switches before it. */
static void take_record(struct drain *drain, size_t cpu_index, const struct perf_record *record)
{
    struct accounting *accounting = &drain->accounting[cpu_index];
    struct tick_ledger *ledger = &accounting->ledger;
    switch_feed_until(&accounting->feed, record->time_ns);
    switch (record->kind) {
    case PERF_KIND_SAMPLE:
        tick_ledger_sample(ledger, record->time_ns);
        handle_sample(drain, cpu_index, record);
        break;
    case PERF_KIND_LOST:
        tick_ledger_lost(ledger, record->lost.count);
        break;
    case PERF_KIND_THROTTLE:
        tick_ledger_throttle(ledger, record->time_ns);
        break;
    case PERF_KIND_UNTHROTTLE:
        tick_ledger_unthrottle(ledger, record->time_ns);
        break;
    case PERF_KIND_MMAP:
    case PERF_KIND_COMM:
    case PERF_KIND_FORK:
    case PERF_KIND_EXIT:
    case PERF_KIND_SWITCH:
    case PERF_KIND_DEFERRED_CALLCHAIN:
    case PERF_KIND_OTHER:
        break;
    }
}

/*
 * The kernel wrote the next record on its own CPU, long ago: on its way here while this one is
 * worked off, it is not waited for word by word. Where there is none this is a hint for nothing.
 */
static void prefetch_next(const uint8_t *bytes, size_t size_bytes)
{
    for (size_t i = 0; i < PREFETCH_BYTES; i += CACHE_LINE_BYTES) {
        __builtin_prefetch(bytes + size_bytes + i);
    }
    __builtin_prefetch(bytes + 2 * size_bytes - 1); /* its last word says how much is valid */
}

/* Works off one CPU's samples up to the horizon. */
static void drain_samples(struct drain *drain, size_t cpu_index, uint64_t horizon_ns)
{
    struct perf_source *source = drain->config.source;
    struct perf_ring *ring = &source->cpus[cpu_index].sample_ring;
    const uint8_t *bytes = NULL;
    size_t size_bytes = 0;
    size_t unpublished_bytes = 0;
    for (int r = perf_ring_peek(ring, &bytes, &size_bytes); r != 0;
         r = perf_ring_peek(ring, &bytes, &size_bytes)) {
        struct perf_record record;
        if (r < 0) {
            drain->counts.bad_records++;
            continue;
        }
        prefetch_next(bytes, size_bytes);
        if (perf_record_parse(&source->layout, bytes, size_bytes, &record) < 0) {
            drain->counts.bad_records++;
        } else if (record.time_ns > horizon_ns) {
            break;
        } else {
            take_record(drain, cpu_index, &record);
        }
        perf_ring_advance(ring, size_bytes);
        unpublished_bytes += size_bytes;
        if (unpublished_bytes >= PUBLISH_BYTES) {
            perf_ring_publish(ring);
            unpublished_bytes = 0;
        }
    }
    perf_ring_publish(ring);
}

void drain_all(struct drain *drain, uint64_t horizon_ns)
{
    struct perf_source *source = drain->config.source;
    for (size_t i = 0; i < source->cpu_count; i++) {
        perf_ring_refresh(&source->cpus[i].sample_ring);
        switch_feed_refresh(&drain->accounting[i].feed);
    }
    drain_sideband(drain, horizon_ns);
    for (size_t i = 0; i < source->cpu_count; i++) {
        struct accounting *accounting = &drain->accounting[i];
        drain_samples(drain, i, horizon_ns);
        switch_feed_until(&accounting->feed, horizon_ns);
        switch_feed_publish(&accounting->feed);
        if (horizon_ns != UINT64_MAX) {
            tick_ledger_advance(&accounting->ledger, horizon_ns);
        }
    }
}

void drain_start(struct drain *drain)
{
    const struct perf_source *source = drain->config.source;
    for (size_t i = 0; i < source->cpu_count; i++) {
        tick_ledger_start(&drain->accounting[i].ledger, source->cpus[i].started_ns,
                          source->has_switches);
        switch_feed_start(&drain->accounting[i].feed, source->cpus[i].started_ns);
    }
}

void drain_stop(struct drain *drain)
{
    const struct perf_source *source = drain->config.source;
    for (size_t i = 0; i < source->cpu_count; i++) {
        tick_ledger_end(&drain->accounting[i].ledger, source->cpus[i].stopped_ns);
    }
    drain_all(drain, UINT64_MAX);
    for (size_t i = 0; i < source->cpu_count; i++) {
        tick_ledger_close(&drain->accounting[i].ledger);
    }
}

void drain_suspended(struct drain *drain, uint64_t jump_ns)
{
    for (size_t i = 0; i < drain->config.source->cpu_count; i++) {
        tick_ledger_suspended(&drain->accounting[i].ledger, jump_ns);
    }
}

enum switch_wish drain_switch_wish(struct drain *drain, size_t cpu_index, uint64_t horizon_ns)
{
    return switch_feed_judge(&drain->accounting[cpu_index].feed, horizon_ns);
}

void drain_tell_idle(struct drain *drain, size_t cpu_index, uint64_t idle_ns)
{
    tick_ledger_tell_idle(&drain->accounting[cpu_index].ledger, idle_ns);
}

bool drain_take_rescan(struct drain *drain)
{
    bool rescan = drain->rescan;
    drain->rescan = false;
    return rescan;
}

const struct drain_counts *drain_counts(const struct drain *drain)
{
    return &drain->counts;
}

const struct drain_cpu_counts *drain_cpu_counts(struct drain *drain)
{
    for (size_t i = 0; i < drain->config.source->cpu_count; i++) {
        drain->cpus[i].ticks = tick_ledger_counts(&drain->accounting[i].ledger);
    }
    return drain->cpus;
}
