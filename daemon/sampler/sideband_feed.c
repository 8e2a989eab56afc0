/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Moves the sideband of all rings into one queue, and applies it to the process table in the order
 * of time. After a loss all processes are doubtful until they fork, execute or are read anew.
 * Readings of /proc come from proc_feed.c, some time after their request.
 */
#include "sideband_feed.h"

#include "cleanup.h"
#include "clock.h"
#include "sideband.h"

#include <stdio.h>
#include <string.h>

#define RESCAN_PERIOD_NS PROC_FEED_PERIOD_NS
#define OWNERS_PERIOD_NS UINT64_C(60000000000) /* a walk of 30,000 processes takes seconds */
#define GAPS_MAX         64
#define BPF_SUFFIX       " [bpf]"

/* When sideband was lost: between a ring's last record and the word of it. 0: never. */
struct loss {
    uint64_t from_ns;
    uint64_t to_ns;
};

struct sideband_feed {
    struct sideband_feed_config config;
    struct counters counters;
    struct sideband *sideband;
    uint64_t *told_ns; /* for each CPU, the time of its last sideband record, */
    bool *was_full;    /* whether its ring was full after that, */
    uint64_t *lost_ns; /* and when it went offline, 0: not known */
    bool rescan;
    struct loss loss;           /* the last one, or the last few together */
    struct loss gaps[GAPS_MAX]; /* in which records of any process may be missing, as noted */
    size_t gap_count;
    struct cgroup_feed *cgroups; /* NULL: this kernel does not say them */
    struct proc_feed *readings;
    uint64_t reached_ns; /* up to where sideband has been applied */
    bool news;           /* readings have come */
    uint64_t next_owners_ns;
};

static void on_command(struct process *process, void *userdata)
{
    const struct sideband_feed *feed = userdata;
    for (size_t i = 0; i < feed->config.sinks->count; i++) {
        sink_tell_command(feed->config.sinks->all[i], process);
    }
}

struct sideband_feed *sideband_feed_new(const struct sideband_feed_config *config)
{
    struct sideband_feed *feed = calloc(1, sizeof *feed);
    if (feed == NULL) {
        return NULL;
    }
    feed->config = *config;
    feed->told_ns = calloc(config->source->sideband_count, sizeof *feed->told_ns);
    feed->was_full = calloc(config->source->sideband_count, sizeof *feed->was_full);
    feed->lost_ns = calloc(config->source->sideband_count, sizeof *feed->lost_ns);
    feed->sideband = sideband_new();
    feed->cgroups = config->source->features.cgroup ? cgroup_feed_new() : NULL;
    feed->readings = proc_feed_new(config->processes, feed->cgroups, config->sinks->filters,
                                   config->sinks->count);
    if (feed->told_ns == NULL || feed->was_full == NULL || feed->lost_ns == NULL ||
        feed->sideband == NULL || feed->readings == NULL ||
        (config->source->features.cgroup && feed->cgroups == NULL)) {
        return sideband_feed_free(feed);
    }
    const struct command_right right = sinks_commands(config->sinks);
    proc_feed_read_commands(feed->readings, &right, on_command, feed);
    proc_feed_list_cgroups(feed->readings);
    return feed;
}

struct sideband_feed *sideband_feed_free(struct sideband_feed *feed)
{
    if (feed != NULL) {
        (void)sideband_free(feed->sideband);
        (void)proc_feed_free(feed->readings);
        (void)cgroup_feed_free(feed->cgroups);
        free(feed->told_ns);
        free(feed->was_full);
        free(feed->lost_ns);
        free(feed);
    }
    return NULL;
}

static void apply_mmap(struct sideband_feed *feed, const struct perf_record *record)
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

/* Programs are called as the kernel's list of symbols calls them. */
static void apply_ksymbol(struct sideband_feed *feed, const struct perf_record *record)
{
    struct kernel_code *kernel = feed->config.kernel;
    struct kernel_function function = {
        .start = record->ksymbol.start,
        .size_bytes = record->ksymbol.size_bytes,
        .from_ns = record->time_ns,
        .to_ns = TIME_OPEN_NS,
    };
    if (kernel == NULL || function.size_bytes == 0 ||
        function.start > UINT64_MAX - function.size_bytes) {
        return;
    }
    (void)snprintf(function.name, sizeof function.name, "%.*s%s",
                   KERNEL_CODE_NAME_BYTES - (int)sizeof BPF_SUFFIX, record->ksymbol.name,
                   record->ksymbol.is_bpf ? BPF_SUFFIX : "");
    bool has_place = record->ksymbol.gone ? kernel_code_go(kernel, &function, record->time_ns)
                                          : kernel_code_come(kernel, &function);
    feed->counters.table_refused += !has_place;
}

/* Whether a process was what is known of it at a time, in spite of records that were lost: from
 * then on a record told of it, or a reading of /proc. */
static bool is_known_since(const struct process *process, uint64_t lost_ns, uint64_t time_ns)
{
    const uint64_t anew_ns[] = {process->heir_of_doubt ? 0 : process->from_ns, process->anew_ns,
                                process->exec_ns, process->scan_ns};
    for (size_t i = 0; i < sizeof anew_ns / sizeof anew_ns[0]; i++) {
        if (anew_ns[i] >= lost_ns && anew_ns[i] <= time_ns) {
            return true;
        }
    }
    return false;
}

/* The end of the last gap in which a process may have become what it was at a time, or 0. */
static uint64_t doubtful_until(const struct sideband_feed *feed, const struct process *process,
                               uint64_t time_ns)
{
    for (size_t i = process->kernel_thread ? 0 : feed->gap_count; i > 0; i--) {
        const struct loss *gap = &feed->gaps[i - 1];
        bool agreed = process->agreed_ns >= gap->to_ns && time_ns >= process->exec_ns;
        if (time_ns >= gap->from_ns && !agreed && !is_known_since(process, gap->to_ns, time_ns)) {
            return gap->to_ns;
        }
    }
    return 0;
}

/* What a child has from a parent in doubt is in doubt until the child executes or is read. */
static void apply_fork(struct sideband_feed *feed, const struct perf_record *record)
{
    struct process_table *processes = feed->config.processes;
    const int32_t pid = record->task.pid;
    const uint64_t time_ns = record->task.time_ns;
    const struct process *parent = process_table_find(processes, record->task.parent_pid, time_ns);
    bool is_doubtful = pid != record->task.parent_pid && parent != NULL &&
                       doubtful_until(feed, parent, time_ns) > 0;
    process_table_fork(processes, pid, record->task.parent_pid, record->task.tid,
                       record->task.parent_tid, time_ns);
    struct process *child = is_doubtful ? process_table_find(processes, pid, time_ns) : NULL;
    if (child != NULL && child->from_ns == time_ns) {
        child->heir_of_doubt = true;
    }
    for (size_t i = 0; i < feed->config.sinks->count; i++) {
        sink_fork(feed->config.sinks->all[i], record);
    }
}

static void apply_comm(struct sideband_feed *feed, const struct perf_record *record)
{
    struct process_table *processes = feed->config.processes;
    process_table_comm(processes, record->pid, record->tid, record->comm.text, record->comm.exec,
                       record->time_ns);
    const struct process *process =
        record->comm.exec ? process_table_find(processes, record->pid, record->time_ns) : NULL;
    if (process != NULL && process->exec_ns == record->time_ns) {
        proc_feed_ask_command(feed->readings, process);
    }
}

static void apply_sideband(struct sideband_feed *feed, const struct perf_record *record)
{
    struct process_table *processes = feed->config.processes;
    switch (record->kind) {
    case PERF_KIND_MMAP:
        apply_mmap(feed, record);
        break;
    case PERF_KIND_COMM:
        apply_comm(feed, record);
        break;
    case PERF_KIND_FORK:
        apply_fork(feed, record);
        break;
    case PERF_KIND_EXIT:
        process_table_exit(processes, record->task.pid, record->task.tid, record->task.time_ns);
        break;
    case PERF_KIND_LOST:
        feed->counters.sideband_lost += record->lost.count;
        break;
    case PERF_KIND_DEFERRED_CALLCHAIN:
        for (size_t i = 0; i < feed->config.sinks->count; i++) {
            sink_add_chain(feed->config.sinks->all[i], record);
        }
        break;
    case PERF_KIND_KSYMBOL:
        apply_ksymbol(feed, record);
        break;
    case PERF_KIND_CGROUP:
        if (feed->cgroups != NULL) {
            cgroup_feed_tell(feed->cgroups, record->cgroup.id, record->cgroup.path,
                             record->time_ns);
            proc_feed_list_cgroups(feed->readings);
        }
        break;
    case PERF_KIND_SAMPLE:
    case PERF_KIND_THROTTLE:
    case PERF_KIND_UNTHROTTLE:
    case PERF_KIND_SWITCH:
    case PERF_KIND_OTHER:
        break;
    }
}

/* Of more gaps than there is room for the oldest two count as one. */
static void note_gap(struct sideband_feed *feed, uint64_t from_ns, uint64_t to_ns)
{
    struct loss *gaps = feed->gaps;
    if (feed->gap_count == GAPS_MAX) {
        gaps[1].from_ns = gaps[0].from_ns < gaps[1].from_ns ? gaps[0].from_ns : gaps[1].from_ns;
        gaps[1].to_ns = gaps[0].to_ns > gaps[1].to_ns ? gaps[0].to_ns : gaps[1].to_ns;
        memmove(&gaps[0], &gaps[1], (GAPS_MAX - 1) * sizeof gaps[0]);
        feed->gap_count--;
    }
    gaps[feed->gap_count++] = (struct loss){from_ns, to_ns};
}

static void note_loss(struct sideband_feed *feed, uint64_t from_ns, uint64_t to_ns)
{
    struct loss *loss = &feed->loss;
    bool is_apart = from_ns > loss->to_ns && from_ns - loss->to_ns > RESCAN_PERIOD_NS;
    loss->from_ns = is_apart || from_ns < loss->from_ns ? from_ns : loss->from_ns;
    loss->to_ns = to_ns > loss->to_ns ? to_ns : loss->to_ns;
}

/* Records of any process may be missing between these times: all have to be read again. */
static void lose_records(struct sideband_feed *feed, uint64_t from_ns, uint64_t to_ns)
{
    note_loss(feed, from_ns, to_ns);
    note_gap(feed, from_ns, to_ns);
    process_table_lost(feed->config.processes, to_ns);
    feed->rescan = true;
}

void sideband_feed_lose(struct sideband_feed *feed, size_t cpu_index, uint64_t time_ns)
{
    feed->lost_ns[cpu_index] = time_ns;
}

void sideband_feed_gap(struct sideband_feed *feed, size_t cpu_index, uint64_t from_ns,
                       uint64_t to_ns)
{
    const uint64_t lost_ns = feed->lost_ns[cpu_index];
    from_ns = lost_ns > from_ns && lost_ns <= to_ns ? lost_ns : from_ns;
    lose_records(feed, from_ns, to_ns);
}

void sideband_feed_renew(struct sideband_feed *feed, size_t cpu_index, uint64_t time_ns)
{
    feed->told_ns[cpu_index] = time_ns;
}

/* Adds a time to those in which records are missing. */
static void widen(struct loss *loss, uint64_t from_ns, uint64_t to_ns)
{
    bool is_first = loss->to_ns == 0;
    loss->from_ns = is_first || from_ns < loss->from_ns ? from_ns : loss->from_ns;
    loss->to_ns = to_ns > loss->to_ns ? to_ns : loss->to_ns;
}

/* Counts a record that finds no place in the queue, and adds its time to `loss`. A LOST record
 * reports others, and is none itself. */
static void count_unqueued(struct sideband_feed *feed, const struct perf_record *record,
                           struct loss *loss)
{
    if (record->kind == PERF_KIND_LOST) {
        feed->counters.sideband_lost += record->lost.count;
        return;
    }
    feed->counters.sideband_lost++;
    widen(loss, record->time_ns, record->time_ns);
}

/* Queues a record of a ring, and adds to `loss` where one is missing. A LOST record of what was
 * seen when the ring was full says nothing new. The ring's next gap
 * begins at this record, queued or not. */
static void queue_record(struct sideband_feed *feed, size_t cpu_index, const uint8_t *bytes,
                         size_t size_bytes, struct loss *loss)
{
    uint64_t *told_ns = &feed->told_ns[cpu_index];
    struct perf_record record;
    if (perf_record_parse(&feed->config.source->layout, bytes, size_bytes, &record) < 0) {
        feed->counters.bad_records++;
        widen(loss, *told_ns, clock_ns(CLOCK_BOOTTIME));
        return;
    }
    if (record.kind == PERF_KIND_LOST && !feed->was_full[cpu_index]) {
        widen(loss, *told_ns, record.time_ns);
    }
    if (!sideband_add(feed->sideband, record.time_ns, bytes, size_bytes)) {
        count_unqueued(feed, &record, loss);
    }
    *told_ns = record.time_ns;
    feed->was_full[cpu_index] = false;
}

/*
 * Moves what a sideband ring of a CPU holds into the queue; whether it held anything. A record that
 * found no room is lost, and LOST, which tells of it, comes with the next record only. So a ring
 * that was full is taken to have lost some since its last record.
 */
static bool empty_ring(struct sideband_feed *feed, size_t cpu_index, struct perf_ring *ring)
{
    const uint8_t *bytes = NULL;
    size_t size_bytes = 0;
    struct loss loss = {0};
    perf_ring_refresh(ring);
    bool any = ring->head != ring->tail;
    for (int r = perf_ring_peek(ring, &bytes, &size_bytes); r != 0;
         r = perf_ring_peek(ring, &bytes, &size_bytes)) {
        if (r < 0) {
            feed->counters.bad_records++;
            widen(&loss, feed->told_ns[cpu_index], clock_ns(CLOCK_BOOTTIME));
        } else {
            queue_record(feed, cpu_index, bytes, size_bytes, &loss);
            perf_ring_advance(ring, size_bytes);
        }
    }
    if (perf_ring_publish(ring)) {
        feed->was_full[cpu_index] = true;
        widen(&loss, feed->told_ns[cpu_index], clock_ns(CLOCK_BOOTTIME));
    }
    if (loss.to_ns > 0) {
        lose_records(feed, loss.from_ns, loss.to_ns);
    }
    return any;
}

/* Applies what waits up to the horizon, `max` records at the most. Returns the time up to which
 * everything has been applied. */
uint64_t sideband_feed_apply(struct sideband_feed *feed, uint64_t horizon_ns, size_t max,
                             size_t *applied_count)
{
    const struct perf_record_layout *layout = &feed->config.source->layout;
    const uint8_t *bytes = NULL;
    size_t size_bytes = 0;
    uint64_t reached_ns = horizon_ns;
    for (size_t i = 0;
         i < max && (bytes = sideband_next(feed->sideband, horizon_ns, &size_bytes)) != NULL; i++) {
        struct perf_record record;
        if (perf_record_parse(layout, bytes, size_bytes, &record) == 0) {
            apply_sideband(feed, &record);
        }
        *applied_count += 1;
    }
    if (sideband_feed_has_more(feed, horizon_ns)) {
        uint64_t next_ns = sideband_next_ns(feed->sideband);
        reached_ns = next_ns > 0 ? next_ns - 1 : 0;
    }
    process_table_reach(feed->config.processes, reached_ns);
    feed->news = proc_feed_apply(feed->readings, reached_ns) || feed->news;
    feed->reached_ns = reached_ns;
    return reached_ns;
}

bool sideband_feed_queue(struct sideband_feed *feed)
{
    bool any = false;
    proc_feed_begin_round(feed->readings);
    process_table_begin_round(feed->config.processes);
    for (size_t i = 0; i < feed->config.source->sideband_count; i++) {
        struct perf_cpu *cpu = &feed->config.source->cpus[i];
        struct perf_stream *stream = NULL;
        while ((stream = perf_cpu_next(cpu, PERF_CONSUMER_SIDEBAND, stream)) != NULL) {
            any = empty_ring(feed, i, &stream->ring) || any;
        }
    }
    sideband_sort(feed->sideband);
    return any;
}

void sideband_feed_reread(struct sideband_feed *feed, struct process *process, uint64_t time_ns)
{
    proc_feed_reread(feed->readings, process, time_ns);
}

bool sideband_feed_identify(struct sideband_feed *feed, struct process *process, uint64_t time_ns)
{
    return proc_feed_identify(feed->readings, process, time_ns);
}

/* Whether a sample can be one of a process: what has exited works in the kernel only. */
static bool can_be_of(const struct process *process, const struct sample *sample)
{
    return process != NULL && (sample->kernel_mode || sample->time_ns < process->to_ns);
}

bool sideband_feed_disown(struct sideband_feed *feed, struct process *process,
                          const struct sample *sample)
{
    if (process == NULL || doubtful_until(feed, process, sample->time_ns) == 0) {
        return false;
    }
    process_table_doubt(feed->config.processes, process, sample->tid, sample->time_ns);
    return true;
}

/* What is there already is told at once; but not for every sample of a process that is awaited.
 * What was read before `from_ns` is none. */
static enum reading_state ask(struct sideband_feed *feed, uint64_t from_ns,
                              const struct sample *sample)
{
    enum reading_state state = proc_feed_ask(feed->readings, sample->pid, from_ns, sample->time_ns);
    if (state == READING_ASKED && proc_feed_apply(feed->readings, feed->reached_ns)) {
        feed->news = true;
        state = proc_feed_ask(feed->readings, sample->pid, from_ns, sample->time_ns);
    }
    return state == READING_ASKED ? READING_COMES : state;
}

struct process *sideband_feed_find(struct sideband_feed *feed, const struct sample *sample,
                                   bool settle, bool *ret_awaited)
{
    struct process_table *processes = feed->config.processes;
    *ret_awaited = false;
    if (sample->pid <= 0) {
        return NULL;
    }
    struct process *process = process_table_find(processes, sample->pid, sample->time_ns);
    uint64_t from_ns = 0;
    if (can_be_of(process, sample)) {
        const uint64_t gap_ns = doubtful_until(feed, process, sample->time_ns);
        if (gap_ns == 0 &&
            (process->scanned || !proc_feed_is_due(feed->readings, process, sample->time_ns))) {
            return process;
        }
        from_ns = gap_ns > process->from_ns ? gap_ns : process->from_ns;
    }
    enum reading_state state = ask(feed, from_ns, sample);
    process = process_table_find(processes, sample->pid, sample->time_ns);
    if (state == READING_COMES && !settle) {
        *ret_awaited = true;
        return NULL;
    }
    if (!can_be_of(process, sample)) {
        process = process_table_meet(processes, sample->pid, sample->time_ns);
    }
    if (process != NULL && state != READING_COMES) {
        proc_feed_put_off(feed->readings, process, sample->time_ns + RESCAN_PERIOD_NS);
    }
    if (state == READING_GONE) {
        process_table_gone(processes, sample->pid, sample->time_ns + RESCAN_PERIOD_NS);
    }
    return process;
}

const struct cgroup *sideband_feed_cgroup(struct sideband_feed *feed, uint64_t id,
                                          const struct process *process, uint64_t time_ns,
                                          bool *ret_awaited)
{
    *ret_awaited = false;
    if (feed->cgroups == NULL) {
        return NULL;
    }
    const struct cgroup *cgroup = cgroup_feed_find(
        feed->cgroups, id, process->owner_known ? process->owner : PROCESS_ACCOUNT_UNKNOWN, time_ns,
        ret_awaited);
    proc_feed_list_cgroups(feed->readings);
    return cgroup;
}

/* Whether records that were lost may have changed what is known of a process at a time: until it
 * forks, executes or is read anew. */
bool sideband_feed_is_doubtful(const struct sideband_feed *feed, const struct process *process,
                               uint64_t time_ns)
{
    const struct loss *loss = &feed->loss;
    return loss->to_ns > 0 && time_ns >= loss->from_ns &&
           !is_known_since(process, loss->to_ns, time_ns);
}

bool sideband_feed_has_more(const struct sideband_feed *feed, uint64_t horizon_ns)
{
    return sideband_count(feed->sideband) > 0 && sideband_next_ns(feed->sideband) <= horizon_ns;
}

size_t sideband_feed_waiting(const struct sideband_feed *feed)
{
    return sideband_count(feed->sideband);
}

/* True when the owners of all processes are to be read again: an entry charged to root found no
 * place, and some processes charged to root may be of users that logged in since. */
static bool owners_are_due(struct sideband_feed *feed)
{
    if (feed->reached_ns < feed->next_owners_ns ||
        !process_table_take_root_refused(feed->config.processes)) {
        return false;
    }
    feed->next_owners_ns = feed->reached_ns + OWNERS_PERIOD_NS;
    return true;
}

bool sideband_feed_take_rescan(struct sideband_feed *feed)
{
    bool rescan = proc_feed_take_failure(feed->readings) || feed->rescan || owners_are_due(feed);
    feed->rescan = false;
    return rescan;
}

void sideband_feed_walk(struct sideband_feed *feed)
{
    proc_feed_walk(feed->readings);
}

bool sideband_feed_is_walking(const struct sideband_feed *feed)
{
    return proc_feed_is_walking(feed->readings);
}

void sideband_feed_read_times(struct sideband_feed *feed, proc_feed_times_fn on_times,
                              void *userdata)
{
    proc_feed_read_times(feed->readings, on_times, userdata);
}

bool sideband_feed_ask_times(struct sideband_feed *feed, int32_t from_pid)
{
    return proc_feed_ask_times(feed->readings, from_pid);
}

bool sideband_feed_take_news(struct sideband_feed *feed)
{
    bool news = feed->news;
    feed->news = false;
    return news;
}

struct counters sideband_feed_counters(const struct sideband_feed *feed)
{
    struct counters sum = proc_feed_counts(feed->readings).counters;
    counters_add(&sum, &feed->counters);
    return sum;
}

int32_t sideband_feed_hung_pid(const struct sideband_feed *feed)
{
    return proc_feed_counts(feed->readings).hung_pid;
}
