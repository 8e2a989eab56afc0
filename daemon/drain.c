/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One round: note the horizon (a moment just past), then the sample rings' heads, then drain all
 * sideband. Whatever a sample up to the horizon depends on was written before it, so it is among
 * what was drained. Sideband up to the horizon is applied in the order of its time, some records at
 * a time; then the samples up to there are worked off CPU by CPU, each looking up the state of its
 * own time; and so on, up to the horizon.
 * Newer samples stay in their rings, newer sideband stays queued, until the next round. Nothing
 * ever waits.
 *
 * A sample allocates nothing here and logs nothing; what goes wrong is counted.
 */
#include "drain.h"

#include "cleanup.h"
#include "held_samples.h"
#include "late_stacks.h"
#include "sideband.h"
#include "user_stack.h"

#include <errno.h>
#include <string.h>

#define RESCAN_PERIOD_NS UINT64_C(1000000000)
#define PUBLISH_BYTES    ((size_t)65536)
#define GONE_COUNT       1024 /* pids that /proc did not know lately */
#define HELD_BYTES       ((size_t)32 << 20)
#define CACHE_LINE_BYTES 64
#define PREFETCH_BYTES   3072 /* chain, registers, and what most stacks need of their copy */
#define RETRIES_MAX      1024 /* held samples that are tried again in one round */

/* How far sideband is applied ahead of samples, in records: in a storm of mappings the process
 * table keeps the last few hundred of a process. */
#define MERGED_MAX  ((size_t)128)
#define WAITING_MAX ((size_t)4096)

/* When sideband was lost: between a ring's last record and the word of it. 0: never. */
struct loss {
    uint64_t from_ns;
    uint64_t to_ns;
};

struct drain {
    struct drain_config config;
    struct drain_counts counts;
    struct drain_cpu_counts *cpus;
    uint64_t *told_ns; /* for each CPU, the time of its last sideband record */
    struct sideband *sideband;
    size_t ahead_count; /* sideband records that were applied since samples were handled */
    struct user_stack stack;
    struct held_samples *held; /* NULL with SESSION_UNWIND_FP */
    struct late_stacks *late;  /* NULL where no chains come later */
    /* Tables come one by one, and each time all that is held may be tried again: a bit at a time,
     * or many tables and many samples would keep the rings waiting. */
    const struct held_sample *next_retry; /* NULL: no pass is under way */
    bool tables_came;                     /* since the pass began */
    bool rescan;
    struct loss loss;            /* the last one, or the last few together */
    struct proc_scan *rereader;  /* keeps what was read of a known process */
    struct process_scan reading; /* until the sideband has come as far */
    bool reading_waits;
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
    drain->told_ns = calloc(config->source->cpu_count, sizeof *drain->told_ns);
    drain->sideband = sideband_new();
    drain->rereader = proc_scan_new();
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
    if (config->source->deferring) {
        drain->late = late_stacks_new(&(struct late_stacks_config){
            .processes = config->processes,
            .trace = config->trace,
            .stack = &drain->stack,
            .cpus = config->source->cpus,
            .cpu_count = config->source->cpu_count,
        });
    }
    if (drain->cpus == NULL || drain->told_ns == NULL || drain->sideband == NULL ||
        drain->rereader == NULL ||
        (config->code != NULL && (drain->held == NULL || drain->stack.stitch == NULL)) ||
        (config->source->deferring && drain->late == NULL)) {
        return drain_free(drain);
    }
    return drain;
}

struct drain *drain_free(struct drain *drain)
{
    if (drain != NULL) {
        (void)sideband_free(drain->sideband);
        (void)proc_scan_free(drain->rereader);
        (void)held_samples_free(drain->held);
        (void)late_stacks_free(drain->late);
        (void)stitch_free(drain->stack.stitch);
        free(drain->told_ns);
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

static void apply_chain(struct drain *drain, const struct perf_record *record)
{
    if (drain->late != NULL) {
        bool expected = filter_matches(drain->config.filter, record->pid, false);
        late_stacks_add(drain->late, record, expected);
    }
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
        process_table_lost(processes, record->time_ns);
        break;
    case PERF_KIND_DEFERRED_CALLCHAIN:
        apply_chain(drain, record);
        break;
    case PERF_KIND_SAMPLE:
    case PERF_KIND_THROTTLE:
    case PERF_KIND_UNTHROTTLE:
    case PERF_KIND_SWITCH:
    case PERF_KIND_OTHER:
        break;
    }
}

static void note_loss(struct drain *drain, uint64_t from_ns, uint64_t to_ns)
{
    struct loss *loss = &drain->loss;
    bool is_apart = from_ns > loss->to_ns && from_ns - loss->to_ns > RESCAN_PERIOD_NS;
    loss->from_ns = is_apart || from_ns < loss->from_ns ? from_ns : loss->from_ns;
    loss->to_ns = to_ns > loss->to_ns ? to_ns : loss->to_ns;
}

/* What has no place in the queue, or cannot be read, is lost as well. */
static void drop_sideband(struct drain *drain, uint64_t from_ns, uint64_t to_ns)
{
    note_loss(drain, from_ns, to_ns);
    process_table_lost(drain->config.processes, to_ns);
    drain->rescan = true;
}

/* Moves what a CPU's sideband ring holds into the queue. */
static void drain_sideband_ring(struct drain *drain, size_t cpu_index)
{
    struct perf_ring *ring = &drain->config.source->cpus[cpu_index].sideband_ring;
    uint64_t *told_ns = &drain->told_ns[cpu_index];
    const uint8_t *bytes = NULL;
    size_t size_bytes = 0;
    perf_ring_refresh(ring);
    for (int r = perf_ring_peek(ring, &bytes, &size_bytes); r != 0;
         r = perf_ring_peek(ring, &bytes, &size_bytes)) {
        struct perf_record record;
        if (r < 0 ||
            perf_record_parse(&drain->config.source->layout, bytes, size_bytes, &record) < 0) {
            drain->counts.bad_records++;
            drop_sideband(drain, *told_ns, *told_ns);
        } else if (!sideband_add(drain->sideband, record.time_ns, bytes, size_bytes)) {
            drain->counts.sideband_lost++;
            drop_sideband(drain, record.time_ns, record.time_ns);
        } else {
            if (record.kind == PERF_KIND_LOST) {
                note_loss(drain, *told_ns, record.time_ns);
            }
            *told_ns = record.time_ns;
        }
        if (r > 0) {
            perf_ring_advance(ring, size_bytes);
        }
    }
    perf_ring_publish(ring);
}

/* Applies what waits up to the horizon, `max` records at the most. Returns the time up to which
 * everything has been applied. */
static uint64_t apply_some(struct drain *drain, uint64_t horizon_ns, size_t max)
{
    const uint8_t *bytes = NULL;
    size_t size_bytes = 0;
    uint64_t reached_ns = horizon_ns;
    for (size_t i = 0; i < max; i++) {
        struct perf_record record;
        bytes = sideband_next(drain->sideband, horizon_ns, &size_bytes);
        if (bytes != NULL &&
            perf_record_parse(&drain->config.source->layout, bytes, size_bytes, &record) == 0) {
            apply_sideband(drain, &record);
        }
        drain->ahead_count += bytes != NULL;
    }
    uint64_t next_ns = sideband_next_ns(drain->sideband);
    if (bytes != NULL && next_ns <= horizon_ns) {
        reached_ns = next_ns > 0 ? next_ns - 1 : 0;
    }
    if (drain->reading_waits && drain->reading.end_ns <= reached_ns) {
        drain->reading_waits = false;
        process_table_scan(drain->config.processes, &drain->reading);
    }
    return reached_ns;
}

static void queue_sideband(struct drain *drain)
{
    for (size_t i = 0; i < drain->config.source->cpu_count; i++) {
        drain_sideband_ring(drain, i);
    }
    sideband_sort(drain->sideband);
}

void drain_sideband(struct drain *drain, uint64_t horizon_ns)
{
    queue_sideband(drain);
    if (drain->ahead_count < MERGED_MAX) {
        (void)apply_some(drain, horizon_ns, MERGED_MAX - drain->ahead_count);
    }
}

bool drain_is_pressed(const struct drain *drain)
{
    return sideband_count(drain->sideband) > WAITING_MAX;
}

/* Reads a process from /proc, unless it was not there a moment ago. False: it is gone. */
static bool scan_process(struct drain *drain, int32_t pid, uint64_t time_ns)
{
    size_t place = (uint32_t)pid % GONE_COUNT;
    if (drain->gone[place].pid == pid && drain->gone[place].until_ns > time_ns) {
        return false;
    }
    int r = proc_scan_process(drain->config.scan, drain->config.processes, pid);
    if (r == -ESRCH) {
        drain->gone[place].pid = pid;
        drain->gone[place].until_ns = time_ns + RESCAN_PERIOD_NS;
    }
    return r != -ESRCH;
}

/* Reads a process again of which something seems to be missing, one at a time. */
static void reread_process(struct drain *drain, struct process *process, uint64_t time_ns)
{
    if (drain->reading_waits || process->next_scan_ns > time_ns) {
        return;
    }
    process->next_scan_ns = time_ns + RESCAN_PERIOD_NS;
    drain->reading_waits = proc_scan_read(drain->rereader, process->pid, &drain->reading) == 0;
}

/* Whether a sample can be one of a process: what has exited works in the kernel only. */
static bool can_be_of(const struct process *process, const struct sample *sample)
{
    return process != NULL && (sample->kernel_mode || sample->time_ns < process->to_ns);
}

/* The process of a sample; one that is not known, or only half, is read from /proc first. One that
 * is gone by then has nobody's name, but not that of who had its pid before either. */
static struct process *find_process(struct drain *drain, const struct sample *sample)
{
    struct process_table *processes = drain->config.processes;
    if (sample->pid <= 0) {
        return NULL;
    }
    struct process *process = process_table_find(processes, sample->pid, sample->time_ns);
    if (can_be_of(process, sample) &&
        (process->scanned || process->next_scan_ns > sample->time_ns)) {
        return process;
    }
    bool is_there = scan_process(drain, sample->pid, sample->time_ns);
    process = process_table_find(processes, sample->pid, sample->time_ns);
    if (!can_be_of(process, sample)) {
        process = process_table_meet(processes, sample->pid, sample->time_ns);
    }
    if (process != NULL) {
        process->next_scan_ns = sample->time_ns + RESCAN_PERIOD_NS;
    }
    if (!is_there) {
        process_table_gone(processes, sample->pid, sample->time_ns + RESCAN_PERIOD_NS);
    }
    return process;
}

/* Whether records that were lost may have changed what is known of a process at a time: until it
 * forks, executes or is read anew. */
static bool is_doubtful(const struct drain *drain, const struct process *process, uint64_t time_ns)
{
    const struct loss *loss = &drain->loss;
    const uint64_t anew_ns[] = {process->from_ns, process->exec_ns, process->scan_ns};
    bool doubtful = loss->to_ns > 0 && time_ns >= loss->from_ns;
    for (size_t i = 0; i < sizeof anew_ns / sizeof anew_ns[0]; i++) {
        doubtful = doubtful && (anew_ns[i] < loss->to_ns || anew_ns[i] > time_ns);
    }
    return doubtful;
}

/* Addresses that were settled without the table that they needed. */
static uint64_t unready_count(const struct drain *drain)
{
    return drain->config.code == NULL ? 0 : code_map_counts(drain->config.code).unready_count;
}

/* Writes a sample that matches. False: as take_sample(). */
static bool write_sample(struct drain *drain, size_t cpu_index, const struct perf_record *record,
                         bool settle, struct sample *sample, struct process *process)
{
    bool unmapped = false;
    bool uncertain = false;
    uint64_t unready_before = unready_count(drain);
    if (drain->late != NULL && record->sample.deferred) {
        late_stacks_sample(drain->late, cpu_index, record, sample, process, &uncertain);
    } else if (user_stack_take(&drain->stack, &record->sample, process, settle, sample,
                               &unmapped)) {
        trace_sample(drain->config.trace, cpu_index, sample, process, &uncertain);
    } else {
        return false;
    }
    drain->counts.cold_stacks += unready_count(drain) > unready_before;
    drain->counts.mapping_uncertain +=
        uncertain || (process != NULL && is_doubtful(drain, process, sample->time_ns));
    drain->counts.stitched_stacks += sample->quality == STACK_STITCHED;
    drain->counts.truncated_stacks +=
        sample->quality != STACK_NONE && sample->quality != STACK_COMPLETE;
    if ((uncertain || unmapped) && process != NULL) {
        reread_process(drain, process, sample->time_ns);
    }
    return true;
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
    if (!write_sample(drain, cpu_index, record, settle, &sample, process)) {
        return false;
    }
    counts->received++;
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
    queue_sideband(drain);
    uint64_t reached_ns = 0;
    do {
        reached_ns = apply_some(drain, horizon_ns, MERGED_MAX);
        for (size_t i = 0; i < source->cpu_count; i++) {
            drain_samples(drain, i, reached_ns);
        }
        drain->ahead_count = 0;
    } while (sideband_next_ns(drain->sideband) <= horizon_ns &&
             sideband_count(drain->sideband) > 0);
    if (drain->late != NULL) {
        drain->counts.truncated_stacks += late_stacks_end_round(drain->late, horizon_ns);
        drain->counts.orphan_partials = late_stacks_counts(drain->late).orphan_partials;
        drain->counts.orphan_completions = late_stacks_counts(drain->late).orphan_completions;
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

const struct drain_cpu_counts *drain_cpu_counts(struct drain *drain)
{
    for (size_t i = 0; i < drain->config.source->cpu_count; i++) {
        struct trace_lane_counts counts = trace_lane_counts(drain->config.trace, i);
        drain->cpus[i].kept = counts.kept;
        drain->cpus[i].dropped = counts.dropped;
    }
    return drain->cpus;
}
