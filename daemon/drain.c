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
#define IDENTITIES_MAX   64   /* processes that are asked for their uid and cgroups in one round */

struct drain {
    struct drain_config config;
    struct drain_counts counts;
    struct drain_cpu_counts *cpus;
    struct sideband *sideband;
    struct user_stack stack;
    struct held_samples *held; /* NULL with SESSION_UNWIND_FP */
    /* Tables come one by one, and each time all that is held may be tried again: a bit at a time,
     * or many tables and many samples would keep the rings waiting. */
    const struct held_sample *next_retry; /* NULL: no pass is under way */
    bool tables_came;                     /* since the pass began */
    bool rescan;
    size_t identities_left; /* in this round */
    struct {
        int32_t pid;
        uint64_t until_ns;
    } gone[GONE_COUNT];
};

struct drain *drain_new(const struct drain_config *config)
{
    struct drain *drain = calloc(1, sizeof *drain);
    if (drain == NULL) {
        return NULL;
    }
    drain->config = *config;
    drain->cpus = calloc(config->source->cpu_count, sizeof *drain->cpus);
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
    if (drain->cpus == NULL || drain->sideband == NULL ||
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
        (void)filter_fork(drain->config.filter, record->task.pid, record->task.parent_pid,
                          record->task.tid);
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
    for (size_t i = 0; i < source->cpu_count; i++) {
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
static struct process *find_process(struct drain *drain, int32_t pid, uint64_t time_ns)
{
    struct process_table *processes = drain->config.processes;
    if (pid <= 0) {
        return NULL;
    }
    struct process *process = process_table_find(processes, pid, time_ns);
    if (process != NULL && (process->scanned || process->next_scan_ns > time_ns)) {
        return process;
    }
    scan_process(drain, pid, time_ns);
    process = process_table_find(processes, pid, time_ns);
    if (process != NULL) {
        process->next_scan_ns = time_ns + RESCAN_PERIOD_NS;
    }
    return process;
}

/* No record tells that a process has another uid or cgroup, so one that is sampled is asked again,
 * once a second and after an exec. */
static void refresh_identity(struct drain *drain, struct process *process, uint64_t time_ns)
{
    bool due = process->identity_ns == 0 || process->identity_ns + RESCAN_PERIOD_NS <= time_ns;
    if (due && process->to_ns == TIME_OPEN_NS && drain->identities_left > 0 &&
        filter_wants_identity(drain->config.filter)) {
        drain->identities_left--;
        proc_scan_identity(drain->config.scan, process, time_ns);
    }
}

/* Decided once for each sample, when it comes. */
static bool is_wanted(struct drain *drain, const struct perf_record *record)
{
    struct process *process = find_process(drain, record->pid, record->time_ns);
    if (process != NULL) {
        refresh_identity(drain, process, record->time_ns);
    }
    return filter_matches(drain->config.filter, process, record->pid, record->tid, record->time_ns);
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
    struct process *process = find_process(drain, sample.pid, sample.time_ns);
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
    if (!is_wanted(drain, record)) {
        drain->cpus[cpu_index].received++;
        drain->cpus[cpu_index].filtered++;
    } else if (!take_sample(drain, cpu_index, record, false) &&
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
        } else if (record.kind == PERF_KIND_SAMPLE) {
            handle_sample(drain, cpu_index, &record);
        } else if (record.kind == PERF_KIND_LOST) {
            drain->cpus[cpu_index].lost += record.lost.count;
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
    }
    drain_sideband(drain, horizon_ns);
    drain->identities_left = IDENTITIES_MAX;
    for (size_t i = 0; i < source->cpu_count; i++) {
        drain_samples(drain, i, horizon_ns);
    }
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

const struct drain_cpu_counts *drain_cpu_counts(const struct drain *drain)
{
    return drain->cpus;
}
