/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The rings of sideband are emptied into one queue, which is applied in the order of time as far as
 * it is asked to be. What was lost on the way makes everything doubtful until the process forks,
 * executes or is read anew. A process that is known already is read aside, and told when the
 * sideband has come as far as the end of the reading; so what a record explains is nobody else's.
 */
#include "process_feed.h"

#include "cleanup.h"
#include "sideband.h"

#include <errno.h>

#define RESCAN_PERIOD_NS PROCESS_FEED_RESCAN_NS
#define GONE_COUNT       1024 /* pids that /proc did not know lately */

/* When sideband was lost: between a ring's last record and the word of it. 0: never. */
struct loss {
    uint64_t from_ns;
    uint64_t to_ns;
};

struct process_feed {
    struct process_feed_config config;
    struct process_feed_counts counts;
    struct sideband *sideband;
    uint64_t *told_ns; /* for each CPU, the time of its last sideband record */
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

struct process_feed *process_feed_new(const struct process_feed_config *config)
{
    struct process_feed *feed = calloc(1, sizeof *feed);
    if (feed == NULL) {
        return NULL;
    }
    feed->config = *config;
    feed->told_ns = calloc(config->source->sideband_count, sizeof *feed->told_ns);
    feed->sideband = sideband_new();
    feed->rereader = proc_scan_new();
    if (feed->told_ns == NULL || feed->sideband == NULL || feed->rereader == NULL) {
        return process_feed_free(feed);
    }
    return feed;
}

struct process_feed *process_feed_free(struct process_feed *feed)
{
    if (feed != NULL) {
        (void)sideband_free(feed->sideband);
        (void)proc_scan_free(feed->rereader);
        free(feed->told_ns);
        free(feed);
    }
    return NULL;
}

static void apply_mmap(struct process_feed *feed, const struct perf_record *record)
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
    process_table_mmap(feed->config.processes, record->pid, &mapping, record->time_ns);
}

static void apply_chain(struct process_feed *feed, const struct perf_record *record)
{
    if (feed->config.late != NULL) {
        struct process *process =
            process_table_find(feed->config.processes, record->pid, record->time_ns);
        bool expected =
            filter_matches(feed->config.filter, process, record->pid, record->tid, record->time_ns);
        late_stacks_add(feed->config.late, record, expected);
    }
}

static void apply_sideband(struct process_feed *feed, const struct perf_record *record)
{
    struct process_table *processes = feed->config.processes;
    switch (record->kind) {
    case PERF_KIND_MMAP:
        apply_mmap(feed, record);
        break;
    case PERF_KIND_COMM:
        process_table_comm(processes, record->pid, record->tid, record->comm.text,
                           record->comm.exec, record->time_ns);
        break;
    case PERF_KIND_FORK:
        process_table_fork(processes, record->task.pid, record->task.parent_pid, record->task.tid,
                           record->task.parent_tid, record->task.time_ns);
        (void)filter_fork(feed->config.filter, record->task.pid, record->task.parent_pid,
                          record->task.tid);
        break;
    case PERF_KIND_EXIT:
        process_table_exit(processes, record->task.pid, record->task.tid, record->task.time_ns);
        break;
    case PERF_KIND_LOST:
        feed->counts.lost += record->lost.count;
        feed->rescan = true;
        process_table_lost(processes, record->time_ns);
        break;
    case PERF_KIND_DEFERRED_CALLCHAIN:
        apply_chain(feed, record);
        break;
    case PERF_KIND_SAMPLE:
    case PERF_KIND_THROTTLE:
    case PERF_KIND_UNTHROTTLE:
    case PERF_KIND_SWITCH:
    case PERF_KIND_OTHER:
        break;
    }
}

static void note_loss(struct process_feed *feed, uint64_t from_ns, uint64_t to_ns)
{
    struct loss *loss = &feed->loss;
    bool is_apart = from_ns > loss->to_ns && from_ns - loss->to_ns > RESCAN_PERIOD_NS;
    loss->from_ns = is_apart || from_ns < loss->from_ns ? from_ns : loss->from_ns;
    loss->to_ns = to_ns > loss->to_ns ? to_ns : loss->to_ns;
}

/* What has no place in the queue, or cannot be read, is lost as well. */
static void drop_record(struct process_feed *feed, uint64_t from_ns, uint64_t to_ns)
{
    note_loss(feed, from_ns, to_ns);
    process_table_lost(feed->config.processes, to_ns);
    feed->rescan = true;
}

void process_feed_gap(struct process_feed *feed, size_t cpu_index, uint64_t from_ns, uint64_t to_ns)
{
    drop_record(feed, from_ns, to_ns);
    feed->told_ns[cpu_index] = to_ns;
}

/* Moves what a CPU's sideband ring holds into the queue; whether it held anything. */
static bool empty_ring(struct process_feed *feed, size_t cpu_index)
{
    struct perf_ring *ring = &feed->config.source->cpus[cpu_index].sideband_ring;
    uint64_t *told_ns = &feed->told_ns[cpu_index];
    const uint8_t *bytes = NULL;
    size_t size_bytes = 0;
    perf_ring_refresh(ring);
    bool any = ring->head != ring->tail;
    for (int r = perf_ring_peek(ring, &bytes, &size_bytes); r != 0;
         r = perf_ring_peek(ring, &bytes, &size_bytes)) {
        struct perf_record record;
        if (r < 0 ||
            perf_record_parse(&feed->config.source->layout, bytes, size_bytes, &record) < 0) {
            feed->counts.bad_records++;
            drop_record(feed, *told_ns, *told_ns);
        } else if (!sideband_add(feed->sideband, record.time_ns, bytes, size_bytes)) {
            feed->counts.lost++;
            drop_record(feed, record.time_ns, record.time_ns);
        } else {
            if (record.kind == PERF_KIND_LOST) {
                note_loss(feed, *told_ns, record.time_ns);
            }
            *told_ns = record.time_ns;
        }
        if (r > 0) {
            perf_ring_advance(ring, size_bytes);
        }
    }
    perf_ring_publish(ring);
    return any;
}

/* Applies what waits up to the horizon, `max` records at the most. Returns the time up to which
 * everything has been applied. */
uint64_t process_feed_apply(struct process_feed *feed, uint64_t horizon_ns, size_t max,
                            size_t *applied_count)
{
    const uint8_t *bytes = NULL;
    size_t size_bytes = 0;
    uint64_t reached_ns = horizon_ns;
    for (size_t i = 0; i < max; i++) {
        struct perf_record record;
        bytes = sideband_next(feed->sideband, horizon_ns, &size_bytes);
        if (bytes != NULL &&
            perf_record_parse(&feed->config.source->layout, bytes, size_bytes, &record) == 0) {
            apply_sideband(feed, &record);
        }
        *applied_count += bytes != NULL;
    }
    uint64_t next_ns = sideband_next_ns(feed->sideband);
    if (bytes != NULL && next_ns <= horizon_ns) {
        reached_ns = next_ns > 0 ? next_ns - 1 : 0;
    }
    if (feed->reading_waits && feed->reading.end_ns <= reached_ns) {
        feed->reading_waits = false;
        process_table_scan(feed->config.processes, &feed->reading);
    }
    return reached_ns;
}

bool process_feed_queue(struct process_feed *feed)
{
    bool any = false;
    for (size_t i = 0; i < feed->config.source->sideband_count; i++) {
        any = empty_ring(feed, i) || any;
    }
    sideband_sort(feed->sideband);
    return any;
}

/* Reads a process from /proc, unless it was not there a moment ago. False: it is gone. */
static bool scan_process(struct process_feed *feed, int32_t pid, uint64_t time_ns)
{
    size_t place = (uint32_t)pid % GONE_COUNT;
    if (feed->gone[place].pid == pid && feed->gone[place].until_ns > time_ns) {
        return false;
    }
    int r = proc_scan_process(feed->config.scan, feed->config.processes, pid);
    if (r == -ESRCH) {
        feed->gone[place].pid = pid;
        feed->gone[place].until_ns = time_ns + RESCAN_PERIOD_NS;
    }
    return r != -ESRCH;
}

/* Reads a process again of which something seems to be missing, one at a time. */
void process_feed_reread(struct process_feed *feed, struct process *process, uint64_t time_ns)
{
    if (feed->reading_waits || process->next_scan_ns > time_ns) {
        return;
    }
    process->next_scan_ns = time_ns + RESCAN_PERIOD_NS;
    feed->reading_waits = proc_scan_read(feed->rereader, process->pid, &feed->reading) == 0;
}

/* Whether a sample can be one of a process: what has exited works in the kernel only. */
static bool can_be_of(const struct process *process, const struct sample *sample)
{
    return process != NULL && (sample->kernel_mode || sample->time_ns < process->to_ns);
}

/* The process of a sample; one that is not known, or only half, is read from /proc first. One that
 * is gone by then has nobody's name, but not that of who had its pid before either. */
struct process *process_feed_find(struct process_feed *feed, const struct sample *sample)
{
    struct process_table *processes = feed->config.processes;
    if (sample->pid <= 0) {
        return NULL;
    }
    struct process *process = process_table_find(processes, sample->pid, sample->time_ns);
    if (can_be_of(process, sample) &&
        (process->scanned || process->next_scan_ns > sample->time_ns)) {
        return process;
    }
    bool is_there = scan_process(feed, sample->pid, sample->time_ns);
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
bool process_feed_is_doubtful(const struct process_feed *feed, const struct process *process,
                              uint64_t time_ns)
{
    const struct loss *loss = &feed->loss;
    const uint64_t anew_ns[] = {process->from_ns, process->exec_ns, process->scan_ns};
    bool doubtful = loss->to_ns > 0 && time_ns >= loss->from_ns;
    for (size_t i = 0; i < sizeof anew_ns / sizeof anew_ns[0]; i++) {
        doubtful = doubtful && (anew_ns[i] < loss->to_ns || anew_ns[i] > time_ns);
    }
    return doubtful;
}

bool process_feed_has_more(const struct process_feed *feed, uint64_t horizon_ns)
{
    return sideband_count(feed->sideband) > 0 && sideband_next_ns(feed->sideband) <= horizon_ns;
}

size_t process_feed_waiting(const struct process_feed *feed)
{
    return sideband_count(feed->sideband);
}

bool process_feed_take_rescan(struct process_feed *feed)
{
    bool rescan = feed->rescan;
    feed->rescan = false;
    return rescan;
}

struct process_feed_counts process_feed_counts(const struct process_feed *feed)
{
    return feed->counts;
}
