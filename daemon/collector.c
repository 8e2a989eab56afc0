/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One round: note the horizon (a moment just past), then the sample rings' heads, then drain all
 * sideband. Whatever a sample up to the horizon depends on was written before it, so it is among
 * what was drained. Sideband up to the horizon is applied in the order of its time, then the
 * samples up to the horizon are worked off CPU by CPU, each looking up the state of its own time.
 * Newer samples stay in their rings, newer sideband stays queued, until the next round. Nothing
 * ever waits.
 *
 * Sideband is drained every 10 ms, so that short processes are known while they live; samples every
 * 100 ms, or as soon as a ring is a quarter full. A sample allocates nothing here and logs nothing.
 */
#include "collector.h"

#include "cleanup.h"
#include "sideband.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <time.h>

#define MILLISECOND_NS     UINT64_C(1000000)
#define SIDEBAND_PERIOD_MS 10
#define IDLE_PERIOD_MS     100
#define SAMPLE_PERIOD_NS   (100 * MILLISECOND_NS)
#define HORIZON_LAG_NS     MILLISECOND_NS /* between a record's time stamp and its being visible */
#define HISTORY_NS         (1000 * MILLISECOND_NS)
#define RESCAN_PERIOD_NS   (1000 * MILLISECOND_NS)
#define WALK_BUDGET_NS     (5 * MILLISECOND_NS)
#define NAMES_LIMIT_NS     (5000 * MILLISECOND_NS)
#define PUBLISH_BYTES      ((size_t)65536)
#define GONE_COUNT         1024 /* pids that /proc did not know lately */
#define WAKE_COLLECTOR     UINT64_MAX

enum request {
    REQUEST_RESUME = 1,
    REQUEST_DRAIN = 2,
    REQUEST_FINISH = 4,
    REQUEST_QUIT = 8,
};

struct collector {
    struct collector_config config;
    pthread_t thread;
    int epoll_fd;
    int request_fd; /* eventfd: main -> collector */
    int event_fd;   /* eventfd: collector -> main */

    pthread_mutex_t mutex; /* over what both threads touch: the block below */
    unsigned requests;
    char *books_json;
    enum collector_event event;
    struct collector_counts published;
    struct collector_cpu_counts *published_cpus;

    /* The thread's own from here on. */
    struct collector_counts counts;
    struct collector_cpu_counts *cpus;
    struct sideband *sideband;
    char *finishing_json; /* not NULL: finishing */
    uint64_t finish_limit_ns;
    uint64_t next_samples_ns;
    bool running;
    bool walking; /* a walk of /proc is under way */
    struct {
        int32_t pid;
        uint64_t until_ns;
    } gone[GONE_COUNT];
};

static uint64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * 1000 * MILLISECOND_NS + (uint64_t)now.tv_nsec;
}

static void apply_mmap(struct collector *collector, const struct perf_record *record)
{
    const struct perf_mmap_view *mmap = &record->mmap;
    struct mapping_description mapping = {
        .start = mmap->start,
        .end = mmap->start + mmap->size_bytes,
        .file_offset = mmap->file_offset,
        .path = mmap->path,
        .has_build_id = mmap->has_build_id,
        .build_id_bytes = mmap->build_id_bytes,
        .device_major = mmap->device_major,
        .device_minor = mmap->device_minor,
        .inode = mmap->inode,
        .inode_generation = mmap->inode_generation,
    };
    if (!mmap->executable || mapping.end <= mapping.start) {
        return;
    }
    memcpy(mapping.build_id, mmap->build_id, sizeof mapping.build_id);
    process_table_mmap(collector->config.processes, record->pid, &mapping, record->time_ns);
}

static void apply_sideband(struct collector *collector, const struct perf_record *record)
{
    struct process_table *processes = collector->config.processes;
    switch (record->kind) {
    case PERF_KIND_MMAP:
        apply_mmap(collector, record);
        break;
    case PERF_KIND_COMM:
        process_table_comm(processes, record->pid, record->tid, record->comm.text,
                           record->comm.exec, record->time_ns);
        break;
    case PERF_KIND_FORK:
        process_table_fork(processes, record->task.pid, record->task.parent_pid, record->task.tid,
                           record->task.parent_tid, record->task.time_ns);
        if (record->task.pid != record->task.parent_pid) {
            (void)filter_fork(collector->config.filter, record->task.pid, record->task.parent_pid);
        }
        break;
    case PERF_KIND_EXIT:
        process_table_exit(processes, record->task.pid, record->task.tid, record->task.time_ns);
        break;
    case PERF_KIND_LOST:
        collector->counts.sideband_lost += record->lost.count;
        collector->walking = true;
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
static void drain_sideband_ring(struct collector *collector, struct perf_ring *ring)
{
    const uint8_t *bytes = NULL;
    size_t size_bytes = 0;
    perf_ring_refresh(ring);
    for (int r = perf_ring_peek(ring, &bytes, &size_bytes); r != 0;
         r = perf_ring_peek(ring, &bytes, &size_bytes)) {
        struct perf_record record;
        if (r < 0 ||
            perf_record_parse(&collector->config.source->layout, bytes, size_bytes, &record) < 0) {
            collector->counts.bad_records++;
            collector->walking = true;
        } else if (!sideband_add(collector->sideband, record.time_ns, bytes, size_bytes)) {
            collector->counts.sideband_lost++;
            collector->walking = true;
        }
        if (r > 0) {
            perf_ring_advance(ring, size_bytes);
        }
    }
    perf_ring_publish(ring);
}

static void drain_sideband(struct collector *collector, uint64_t horizon_ns)
{
    struct perf_source *source = collector->config.source;
    const uint8_t *bytes = NULL;
    size_t size_bytes = 0;
    for (size_t i = 0; i < source->cpu_count; i++) {
        drain_sideband_ring(collector, &source->cpus[i].sideband_ring);
    }
    sideband_sort(collector->sideband);
    while ((bytes = sideband_next(collector->sideband, horizon_ns, &size_bytes)) != NULL) {
        struct perf_record record;
        if (perf_record_parse(&source->layout, bytes, size_bytes, &record) == 0) {
            apply_sideband(collector, &record);
        }
    }
}

/* Reads a process from /proc, unless it was not there a moment ago. */
static void scan_process(struct collector *collector, int32_t pid, uint64_t time_ns)
{
    size_t place = (uint32_t)pid % GONE_COUNT;
    if (collector->gone[place].pid == pid && collector->gone[place].until_ns > time_ns) {
        return;
    }
    if (proc_scan_process(collector->config.scan, collector->config.processes, pid) < 0) {
        collector->gone[place].pid = pid;
        collector->gone[place].until_ns = time_ns + RESCAN_PERIOD_NS;
    }
}

/* The process of a sample; one that is not known, or only half, is read from /proc first. */
static struct process *find_process(struct collector *collector, const struct sample *sample)
{
    struct process_table *processes = collector->config.processes;
    if (sample->pid <= 0) {
        return NULL;
    }
    struct process *process = process_table_find(processes, sample->pid, sample->time_ns);
    if (process != NULL && (process->scanned || process->next_scan_ns > sample->time_ns)) {
        return process;
    }
    scan_process(collector, sample->pid, sample->time_ns);
    process = process_table_find(processes, sample->pid, sample->time_ns);
    if (process != NULL) {
        process->next_scan_ns = sample->time_ns + RESCAN_PERIOD_NS;
    }
    return process;
}

static enum stack_quality judge_stack(const struct collector *collector, size_t user_count)
{
    if (user_count == 0) {
        return STACK_NONE;
    }
    /* The kernel walks frame pointers until it cannot; it does not say why it stopped. */
    return user_count >= collector->config.max_stack_depth ? STACK_DEPTH : STACK_NO_RULE;
}

static void handle_sample(struct collector *collector, size_t cpu_index,
                          const struct perf_record *record)
{
    struct collector_cpu_counts *counts = &collector->cpus[cpu_index];
    struct sample sample = {
        .time_ns = record->time_ns,
        .cpu = record->cpu,
        .pid = record->pid,
        .tid = record->tid,
        .kernel_mode = record->mode == PERF_MODE_KERNEL,
        .quality = judge_stack(collector, record->sample.user_count),
        .fp_frame_count = (uint16_t)record->sample.user_count,
        .user_stack = record->sample.user_chain,
        .user_count = record->sample.user_count,
        .kernel_stack = record->sample.kernel_chain,
        .kernel_count = record->sample.kernel_count,
    };
    counts->received++;
    struct process *process = find_process(collector, &sample);
    if (!filter_matches(collector->config.filter, sample.pid,
                        process != NULL && process->kernel_thread)) {
        counts->filtered++;
        return;
    }
    bool uncertain = false;
    switch (trace_sample(collector->config.trace, cpu_index, &sample, process, &uncertain)) {
    case TRACE_KEPT:
        counts->kept++;
        break;
    case TRACE_DROPPED:
        counts->dropped++;
        break;
    }
    if (sample.quality == STACK_DEPTH) {
        collector->counts.truncated_stacks++;
    }
    if (uncertain) {
        collector->counts.mapping_uncertain++;
        if (process != NULL && process->next_scan_ns <= sample.time_ns) {
            process->next_scan_ns = sample.time_ns + RESCAN_PERIOD_NS;
            scan_process(collector, sample.pid, sample.time_ns);
        }
    }
}

/* Works off one CPU's samples up to the horizon. */
static void drain_samples(struct collector *collector, size_t cpu_index, uint64_t horizon_ns)
{
    struct perf_source *source = collector->config.source;
    struct perf_ring *ring = &source->cpus[cpu_index].sample_ring;
    const uint8_t *bytes = NULL;
    size_t size_bytes = 0;
    size_t unpublished_bytes = 0;
    for (int r = perf_ring_peek(ring, &bytes, &size_bytes); r != 0;
         r = perf_ring_peek(ring, &bytes, &size_bytes)) {
        struct perf_record record;
        if (r < 0) {
            collector->counts.bad_records++;
            continue;
        }
        if (perf_record_parse(&source->layout, bytes, size_bytes, &record) < 0) {
            collector->counts.bad_records++;
        } else if (record.time_ns > horizon_ns) {
            break;
        } else if (record.kind == PERF_KIND_SAMPLE) {
            handle_sample(collector, cpu_index, &record);
        } else if (record.kind == PERF_KIND_LOST) {
            collector->cpus[cpu_index].lost += record.lost.count;
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

static void drain_all(struct collector *collector, uint64_t horizon_ns)
{
    struct perf_source *source = collector->config.source;
    for (size_t i = 0; i < source->cpu_count; i++) {
        perf_ring_refresh(&source->cpus[i].sample_ring);
    }
    drain_sideband(collector, horizon_ns);
    for (size_t i = 0; i < source->cpu_count; i++) {
        drain_samples(collector, i, horizon_ns);
    }
}

static void publish(struct collector *collector)
{
    collector->counts.modules_unread = trace_counts(collector->config.trace).modules_unread;
    (void)pthread_mutex_lock(&collector->mutex);
    collector->published = collector->counts;
    memcpy(collector->published_cpus, collector->cpus,
           collector->config.source->cpu_count * sizeof *collector->cpus);
    (void)pthread_mutex_unlock(&collector->mutex);
}

static void signal_fd(int fd)
{
    uint64_t one = 1;
    (void)!write(fd, &one, sizeof one);
}

static void post_event(struct collector *collector, enum collector_event event)
{
    (void)pthread_mutex_lock(&collector->mutex);
    collector->event = event;
    (void)pthread_mutex_unlock(&collector->mutex);
    signal_fd(collector->event_fd);
}

/* Waits for a ring, a request or the next round. True: a sample ring asked for it. */
static bool wait_for_work(struct collector *collector)
{
    struct epoll_event events[64];
    bool busy = collector->running || collector->walking || collector->finishing_json != NULL;
    int count = epoll_wait(collector->epoll_fd, events, sizeof events / sizeof events[0],
                           busy ? SIDEBAND_PERIOD_MS : IDLE_PERIOD_MS);
    bool sample_ring = false;
    for (int i = 0; i < count; i++) {
        uint64_t ignored = 0;
        if (events[i].data.u64 == WAKE_COLLECTOR) {
            (void)!read(collector->request_fd, &ignored, sizeof ignored);
        } else if (events[i].data.u64 % 2 == 0) {
            sample_ring = true;
        }
    }
    return sample_ring;
}

static unsigned take_requests(struct collector *collector)
{
    (void)pthread_mutex_lock(&collector->mutex);
    unsigned requests = collector->requests;
    collector->requests = 0;
    if ((requests & REQUEST_FINISH) != 0) {
        collector->finishing_json = take_ptr(collector->books_json);
    }
    (void)pthread_mutex_unlock(&collector->mutex);
    return requests;
}

/* The end of a recording: names that are on their way, then the books. */
static void try_finish(struct collector *collector, uint64_t time_ns)
{
    bool late = time_ns >= collector->finish_limit_ns;
    if (trace_names_pending(collector->config.trace) && !late) {
        return;
    }
    if (!trace_finish(collector->config.trace, collector->finishing_json) && !late) {
        return;
    }
    free(take_ptr(collector->finishing_json));
    post_event(collector, COLLECTOR_FINISHED);
}

static void run_round(struct collector *collector, unsigned requests, bool sample_ring)
{
    uint64_t time_ns = now_ns();
    uint64_t horizon_ns = time_ns - HORIZON_LAG_NS;

    if ((requests & REQUEST_RESUME) != 0) {
        collector->running = true;
        collector->next_samples_ns = time_ns;
    }
    if ((requests & REQUEST_DRAIN) != 0) {
        drain_all(collector, UINT64_MAX);
        collector->running = false;
    } else if (collector->running && (sample_ring || time_ns >= collector->next_samples_ns)) {
        drain_all(collector, horizon_ns);
        collector->next_samples_ns = time_ns + SAMPLE_PERIOD_NS;
        process_table_prune(collector->config.processes, horizon_ns - HISTORY_NS);
    } else {
        drain_sideband(collector, horizon_ns);
    }
    if (!collector->running) {
        process_table_prune(collector->config.processes, horizon_ns - HISTORY_NS);
    }
    if (collector->walking) {
        collector->walking =
            proc_scan_walk(collector->config.scan, collector->config.processes, WALK_BUDGET_NS) > 0;
    }
    trace_poll(collector->config.trace);
    publish(collector);
    if ((requests & REQUEST_DRAIN) != 0) {
        post_event(collector, COLLECTOR_DRAINED);
    }
    if ((requests & REQUEST_FINISH) != 0) {
        collector->finish_limit_ns = time_ns + NAMES_LIMIT_NS;
    }
    if (collector->finishing_json != NULL) {
        try_finish(collector, time_ns);
    }
}

static void *run_thread(void *userdata)
{
    struct collector *collector = userdata;
    (void)pthread_setname_np(pthread_self(), "collector");
    /* A late drain costs samples, so this thread goes first where the daemon may say so. */
    (void)setpriority(PRIO_PROCESS, (id_t)gettid(), -20);

    collector->walking = true;
    for (;;) {
        bool sample_ring = wait_for_work(collector);
        unsigned requests = take_requests(collector);
        if ((requests & REQUEST_QUIT) != 0) {
            return NULL;
        }
        run_round(collector, requests, sample_ring);
    }
}

static int watch(const struct collector *collector, int fd, uint64_t tag)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = tag};
    return epoll_ctl(collector->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static int watch_all(const struct collector *collector)
{
    const struct perf_source *source = collector->config.source;
    int r = watch(collector, collector->request_fd, WAKE_COLLECTOR);
    for (size_t i = 0; r == 0 && i < source->cpu_count; i++) {
        r = watch(collector, source->cpus[i].sample_fd, 2 * i);
        if (r == 0) {
            r = watch(collector, source->cpus[i].sideband_fd, 2 * i + 1);
        }
    }
    return r;
}

static struct collector *free_parts(struct collector *collector)
{
    (void)close_fd(collector->epoll_fd);
    (void)close_fd(collector->request_fd);
    (void)close_fd(collector->event_fd);
    (void)pthread_mutex_destroy(&collector->mutex);
    (void)sideband_free(collector->sideband);
    free(collector->books_json);
    free(collector->finishing_json);
    free(collector->published_cpus);
    free(collector->cpus);
    free(collector);
    return NULL;
}

int collector_start(const struct collector_config *config, struct collector **ret)
{
    struct collector *collector = calloc(1, sizeof *collector);
    if (collector == NULL) {
        return -ENOMEM;
    }
    size_t cpu_count = config->source->cpu_count;
    collector->config = *config;
    (void)pthread_mutex_init(&collector->mutex, NULL);
    collector->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    collector->request_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    collector->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    collector->cpus = calloc(cpu_count, sizeof *collector->cpus);
    collector->published_cpus = calloc(cpu_count, sizeof *collector->published_cpus);
    collector->sideband = sideband_new();

    int r = 0;
    if (collector->epoll_fd < 0 || collector->request_fd < 0 || collector->event_fd < 0) {
        r = -EMFILE;
    } else if (collector->cpus == NULL || collector->published_cpus == NULL ||
               collector->sideband == NULL) {
        r = -ENOMEM;
    } else {
        r = watch_all(collector);
    }
    if (r == 0) {
        r = -pthread_create(&collector->thread, NULL, run_thread, collector);
    }
    if (r < 0) {
        (void)free_parts(collector);
        return r;
    }
    *ret = collector;
    return 0;
}

static void request(struct collector *collector, enum request what, char *books_json)
{
    (void)pthread_mutex_lock(&collector->mutex);
    collector->requests |= what;
    if (what == REQUEST_FINISH) {
        free(collector->books_json);
        collector->books_json = books_json;
    }
    (void)pthread_mutex_unlock(&collector->mutex);
    signal_fd(collector->request_fd);
}

struct collector *collector_free(struct collector *collector)
{
    if (collector == NULL) {
        return NULL;
    }
    request(collector, REQUEST_QUIT, NULL);
    (void)pthread_join(collector->thread, NULL);
    return free_parts(collector);
}

void collector_resume(struct collector *collector)
{
    request(collector, REQUEST_RESUME, NULL);
}

void collector_drain(struct collector *collector)
{
    request(collector, REQUEST_DRAIN, NULL);
}

void collector_finish(struct collector *collector, char *books_json)
{
    request(collector, REQUEST_FINISH, books_json);
}

int collector_fd(const struct collector *collector)
{
    return collector->event_fd;
}

enum collector_event collector_take_event(struct collector *collector)
{
    uint64_t ignored = 0;
    (void)!read(collector->event_fd, &ignored, sizeof ignored);
    (void)pthread_mutex_lock(&collector->mutex);
    enum collector_event event = collector->event;
    collector->event = COLLECTOR_NOTHING;
    (void)pthread_mutex_unlock(&collector->mutex);
    return event;
}

void collector_snapshot(struct collector *collector, struct collector_counts *ret,
                        struct collector_cpu_counts *cpus)
{
    (void)pthread_mutex_lock(&collector->mutex);
    *ret = collector->published;
    memcpy(cpus, collector->published_cpus, collector->config.source->cpu_count * sizeof *cpus);
    (void)pthread_mutex_unlock(&collector->mutex);
}
