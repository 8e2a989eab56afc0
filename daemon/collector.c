/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The thread around drain.c: when a round is due, what the main thread asked for, and what it is
 * told. Sideband is drained every 10 ms while some comes, so that short processes are known while
 * they live, else every 25 ms, since a round costs about 50 us; samples every 100 ms, or as soon as
 * a ring is a quarter full.
 */
#include "collector.h"

#include "cleanup.h"
#include "cpu_idle.h"
#include "drain.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <time.h>

#define MILLISECOND_NS       UINT64_C(1000000)
#define SIDEBAND_PERIOD_MS   10
#define QUIET_PERIOD_MS      25
#define IDLE_PERIOD_MS       100
#define FIRST_WALK_PERIOD_MS 1 /* the first one is waited for */
#define SAMPLE_PERIOD_NS     (100 * MILLISECOND_NS)
#define HORIZON_LAG_NS       MILLISECOND_NS /* between a record's time stamp and its being visible */
#define HISTORY_NS           (1000 * MILLISECOND_NS + DRAIN_HELD_NS)
#define IDLE_TELL_NS         (1000 * MILLISECOND_NS)
#define SUSPEND_LEAST_NS                                                                           \
    MILLISECOND_NS /* clocks that are read one after the other differ by less */
#define WALK_PERIOD_NS      (500 * MILLISECOND_NS)
#define FIRST_WALK_LIMIT_MS 100
#define WAKE_COLLECTOR      UINT64_MAX

enum request {
    REQUEST_RESUME = 1,
    REQUEST_DRAIN = 2,
    REQUEST_FINISH = 4,
    REQUEST_QUIT = 8,
};

struct collector {
    struct drain_config config;
    pthread_t thread;
    int epoll_fd;
    int request_fd; /* eventfd: main -> collector */
    int event_fd;   /* eventfd: collector -> main */
    _Atomic uint64_t beat_ns;

    pthread_mutex_t mutex; /* over what both threads touch: the block below */
    pthread_cond_t walked;
    bool first_walk_done; /* set by the thread */
    unsigned requests;
    char *books_json;
    uint64_t names_limit_ns;
    unsigned events; /* a bit for each enum collector_event */
    struct collector_counts published;
    struct drain_cpu_counts *published_cpus;
    struct perf_count *published_kernel;

    /* The thread's own from here on. */
    struct drain *drain;
    struct perf_count *kernel; /* as of the last drain of samples */
    char *finishing_json;      /* not NULL: finishing */
    uint64_t finish_limit_ns;
    uint64_t next_samples_ns;
    struct cpu_time *idle; /* cpu_count of them, as of the next; as it was told of last */
    struct cpu_time *idle_now;
    uint64_t next_idle_ns;
    uint64_t suspended_ns; /* that the clock is ahead of the one that stops in a suspend */
    bool running;
    bool stopping; /* drained, but for samples that are held */
    bool walk_due; /* sideband was lost since the last walk began */
    bool told_of_hang;
    uint64_t next_walk_ns;
};

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    (void)clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000 * MILLISECOND_NS + (uint64_t)now.tv_nsec;
}

static uint64_t now_ns(void)
{
    return clock_ns(CLOCK_BOOTTIME);
}

/* Tells the main thread that this one lives. */
static void beat(struct collector *collector)
{
    atomic_store_explicit(&collector->beat_ns, clock_ns(CLOCK_MONOTONIC), memory_order_relaxed);
}

static void publish(struct collector *collector)
{
    uint64_t modules_unread = trace_counts(collector->config.trace).modules_unread;
    (void)pthread_mutex_lock(&collector->mutex);
    collector->published.drain = *drain_counts(collector->drain);
    collector->published.modules_unread = modules_unread;
    memcpy(collector->published_cpus, drain_cpu_counts(collector->drain),
           collector->config.source->cpu_count * sizeof *collector->published_cpus);
    memcpy(collector->published_kernel, collector->kernel,
           collector->config.source->cpu_count * sizeof *collector->published_kernel);
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
    collector->events |= 1U << event;
    (void)pthread_mutex_unlock(&collector->mutex);
    signal_fd(collector->event_fd);
}

static int next_round_ms(const struct collector *collector)
{
    if (!collector->first_walk_done) {
        return FIRST_WALK_PERIOD_MS;
    }
    if (collector->stopping || drain_is_walking(collector->drain) ||
        collector->finishing_json != NULL) {
        return SIDEBAND_PERIOD_MS;
    }
    if (!collector->running) {
        return IDLE_PERIOD_MS;
    }
    return drain_is_quiet(collector->drain) ? QUIET_PERIOD_MS : SIDEBAND_PERIOD_MS;
}

/* Waits for a ring, a request or the next round. True: a sample ring asked for it. */
static bool wait_for_work(struct collector *collector)
{
    struct epoll_event events[64];
    int count = epoll_wait(collector->epoll_fd, events, sizeof events / sizeof events[0],
                           next_round_ms(collector));
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
        free(collector->finishing_json);
        collector->finishing_json = take_ptr(collector->books_json);
        collector->finish_limit_ns = now_ns() + collector->names_limit_ns;
    }
    (void)pthread_mutex_unlock(&collector->mutex);
    return requests;
}

/* The end of a recording: names that are on their way, for a while, then the books, however long it
 * takes. */
static void try_finish(struct collector *collector, uint64_t time_ns)
{
    if (trace_names_pending(collector->config.trace) && time_ns < collector->finish_limit_ns) {
        return;
    }
    if (trace_finish(collector->config.trace, collector->finishing_json)) {
        free(take_ptr(collector->finishing_json));
        post_event(collector, COLLECTOR_FINISHED);
    }
}

/* The kernel's counts, as they were at the horizon: what it has counted since is not drained yet.
 */
static void read_counts(struct collector *collector, uint64_t horizon_ns)
{
    for (size_t i = 0; i < collector->config.source->cpu_count; i++) {
        struct perf_count count;
        if (perf_source_read_count(collector->config.source, i, &count) < 0) {
            continue;
        }
        uint64_t time_ns = now_ns();
        uint64_t since_ns = time_ns > horizon_ns ? time_ns - horizon_ns : 0;
        count.time_running_ns -=
            since_ns < count.time_running_ns ? since_ns : count.time_running_ns;
        collector->kernel[i] = count;
    }
}

/* So that a session that is started at once knows who was there before it. */
static void end_first_walk(struct collector *collector)
{
    drain_prefetch(collector->drain);
    (void)pthread_mutex_lock(&collector->mutex);
    collector->first_walk_done = true;
    (void)pthread_cond_signal(&collector->walked);
    (void)pthread_mutex_unlock(&collector->mutex);
}

/* Begins a walk of /proc, if one is due. What is lost during a walk needs another one; but they do
 * not follow one another without a pause. */
static void walk(struct collector *collector, uint64_t time_ns)
{
    bool walking = drain_is_walking(collector->drain);
    collector->walk_due = drain_take_rescan(collector->drain) || collector->walk_due;
    if (!walking && !collector->first_walk_done) {
        end_first_walk(collector);
    }
    if (!walking && collector->walk_due && time_ns >= collector->next_walk_ns) {
        collector->walk_due = false;
        collector->next_walk_ns = time_ns + WALK_PERIOD_NS;
        drain_walk(collector->drain);
    }
}

/* Once: that a process keeps who reads about it waiting. */
static void tell_of_hang(struct collector *collector)
{
    if (!collector->told_of_hang && drain_counts(collector->drain)->proc_hung_pid != 0) {
        collector->told_of_hang = true;
        post_event(collector, COLLECTOR_HUNG);
    }
}

/* For how long the CPUs idled, to whom no switch records tell it. */
static void tell_idle(struct collector *collector, bool first)
{
    size_t cpu_count = collector->config.source->cpu_count;
    memcpy(collector->idle_now, collector->idle, cpu_count * sizeof *collector->idle);
    (void)cpu_idle_read(CPU_IDLE_ROOT, collector->published.idle_source, collector->idle_now,
                        cpu_count);
    for (size_t i = 0; i < cpu_count; i++) {
        uint64_t idle_ns = collector->idle_now[i].idle_ns;
        uint64_t before_ns = collector->idle[i].idle_ns;
        /* The kernel's sums may go back by a tick. */
        if (!first && idle_ns >= before_ns) {
            drain_tell_idle(collector->drain, i, idle_ns - before_ns);
        }
        if (first || idle_ns > before_ns) {
            collector->idle[i].idle_ns = idle_ns;
        }
    }
}

static void start_sampling(struct collector *collector, uint64_t time_ns)
{
    collector->running = true;
    collector->next_samples_ns = time_ns;
    collector->next_idle_ns = time_ns + IDLE_TELL_NS;
    drain_start(collector->drain);
    tell_idle(collector, true);
}

static void stop_sampling(struct collector *collector)
{
    drain_stop(collector->drain);
    tell_idle(collector, false);
    read_counts(collector, UINT64_MAX);
    collector->running = false;
    collector->stopping = true;
}

static void drain_samples(struct collector *collector, uint64_t time_ns, uint64_t horizon_ns)
{
    struct perf_source *source = collector->config.source;
    drain_all(collector->drain, horizon_ns);
    read_counts(collector, horizon_ns);
    for (size_t i = 0; i < source->cpu_count; i++) {
        switch (drain_switch_wish(collector->drain, i, horizon_ns)) {
        case SWITCH_DISABLE:
            (void)perf_source_control_switches(source, i, false);
            break;
        case SWITCH_ENABLE:
            (void)perf_source_control_switches(source, i, true);
            break;
        case SWITCH_KEEP:
            break;
        }
    }
    if (time_ns >= collector->next_idle_ns) {
        tell_idle(collector, false);
        collector->next_idle_ns = time_ns + IDLE_TELL_NS;
    }
    collector->next_samples_ns = time_ns + SAMPLE_PERIOD_NS;
}

/* No timer runs while the machine is suspended, and the clock of the records goes on. */
static void watch_for_suspend(struct collector *collector, uint64_t time_ns)
{
    uint64_t monotonic_ns = clock_ns(CLOCK_MONOTONIC);
    uint64_t ahead_ns = time_ns > monotonic_ns ? time_ns - monotonic_ns : 0;
    if (ahead_ns >= collector->suspended_ns + SUSPEND_LEAST_NS) {
        drain_suspended(collector->drain, ahead_ns - collector->suspended_ns);
        collector->suspended_ns = ahead_ns;
    }
}

static void run_round(struct collector *collector, unsigned requests, bool sample_ring)
{
    uint64_t time_ns = now_ns();
    uint64_t horizon_ns = time_ns - HORIZON_LAG_NS;
    bool samples_drained = false;

    watch_for_suspend(collector, time_ns);
    if ((requests & REQUEST_RESUME) != 0) {
        start_sampling(collector, time_ns);
        free(take_ptr(collector->finishing_json)); /* the recording has not ended after all */
    }
    if ((requests & REQUEST_DRAIN) != 0) {
        stop_sampling(collector);
    } else if (collector->running && (sample_ring || time_ns >= collector->next_samples_ns ||
                                      drain_is_pressed(collector->drain))) {
        drain_samples(collector, time_ns, horizon_ns);
        samples_drained = true;
    } else {
        drain_sideband(collector->drain, horizon_ns);
    }
    walk(collector, time_ns);
    bool drained = drain_held(collector->drain, time_ns) == 0;
    /* After a late round, too, what waited too long has found its time. */
    if (samples_drained || !collector->running) {
        process_table_prune(collector->config.processes,
                            horizon_ns < HISTORY_NS ? 0 : horizon_ns - HISTORY_NS);
    }
    trace_poll(collector->config.trace);
    publish(collector);
    tell_of_hang(collector);
    if (collector->stopping && drained) {
        collector->stopping = false;
        post_event(collector, COLLECTOR_DRAINED);
    }
    if ((requests & REQUEST_FINISH) != 0) {
        trace_ask_again(collector->config.trace);
    }
    if (collector->finishing_json != NULL) {
        try_finish(collector, time_ns);
    }
}

/*
 * A late drain costs samples, so this thread goes before the programs that it samples, where the
 * daemon may say so. A nice value alone would count only among the threads of its own session
 * (sched_autogroup).
 */
static void go_first(void)
{
    const struct sched_param lowest = {.sched_priority = sched_get_priority_min(SCHED_RR)};
    if (sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &lowest) < 0) {
        (void)setpriority(PRIO_PROCESS, (id_t)gettid(), -20);
    }
}

static void *run_thread(void *userdata)
{
    struct collector *collector = userdata;
    (void)pthread_setname_np(pthread_self(), "collector");
    go_first();

    drain_walk(collector->drain);
    for (;;) {
        beat(collector);
        bool sample_ring = wait_for_work(collector);
        unsigned requests = take_requests(collector);
        if ((requests & REQUEST_QUIT) != 0) {
            return NULL;
        }
        run_round(collector, requests, sample_ring);
    }
}

static void await_first_walk(struct collector *collector)
{
    struct timespec limit;
    (void)clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_nsec += (long)(FIRST_WALK_LIMIT_MS * MILLISECOND_NS);
    limit.tv_sec += limit.tv_nsec / 1000000000;
    limit.tv_nsec %= 1000000000;
    (void)pthread_mutex_lock(&collector->mutex);
    while (!collector->first_walk_done) {
        if (pthread_cond_timedwait(&collector->walked, &collector->mutex, &limit) != 0) {
            break;
        }
    }
    (void)pthread_mutex_unlock(&collector->mutex);
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
    for (size_t i = 0; r == 0 && i < source->sideband_count; i++) {
        r = watch(collector, source->cpus[i].sideband_fd, 2 * i + 1);
        if (r == 0 && i < source->cpu_count) {
            r = watch(collector, source->cpus[i].sample_fd, 2 * i);
        }
    }
    return r;
}

static struct collector *free_parts(struct collector *collector)
{
    (void)close_fd(collector->epoll_fd);
    (void)close_fd(collector->request_fd);
    (void)close_fd(collector->event_fd);
    (void)pthread_cond_destroy(&collector->walked);
    (void)pthread_mutex_destroy(&collector->mutex);
    (void)drain_free(collector->drain);
    free(collector->books_json);
    free(collector->finishing_json);
    free(collector->published_cpus);
    free(collector->published_kernel);
    free(collector->kernel);
    free(collector->idle);
    free(collector->idle_now);
    free(collector);
    return NULL;
}

static void prepare_idle(struct collector *collector)
{
    const struct perf_source *source = collector->config.source;
    collector->published.idle_source = cpu_idle_source(CPU_IDLE_ROOT, source->cpus[0].cpu);
    for (size_t i = 0; i < source->cpu_count; i++) {
        collector->idle[i].cpu = source->cpus[i].cpu;
    }
}

int collector_start(const struct drain_config *config, struct collector **ret)
{
    struct collector *collector = calloc(1, sizeof *collector);
    if (collector == NULL) {
        return -ENOMEM;
    }
    size_t cpu_count = config->source->cpu_count;
    collector->config = *config;
    (void)pthread_mutex_init(&collector->mutex, NULL);
    (void)pthread_cond_init(&collector->walked, NULL);
    collector->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    collector->request_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    collector->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    collector->published_cpus = calloc(cpu_count, sizeof *collector->published_cpus);
    collector->published_kernel = calloc(cpu_count, sizeof *collector->published_kernel);
    collector->kernel = calloc(cpu_count, sizeof *collector->kernel);
    collector->idle = calloc(cpu_count, sizeof *collector->idle);
    collector->idle_now = calloc(cpu_count, sizeof *collector->idle_now);
    collector->drain = drain_new(config);

    int r = 0;
    beat(collector);
    if (collector->epoll_fd < 0 || collector->request_fd < 0 || collector->event_fd < 0) {
        r = -EMFILE;
    } else if (collector->published_cpus == NULL || collector->published_kernel == NULL ||
               collector->kernel == NULL || collector->idle == NULL ||
               collector->idle_now == NULL || collector->drain == NULL) {
        r = -ENOMEM;
    } else {
        prepare_idle(collector);
        r = watch_all(collector);
    }
    if (r == 0) {
        r = -pthread_create(&collector->thread, NULL, run_thread, collector);
    }
    if (r < 0) {
        (void)free_parts(collector);
        return r;
    }
    await_first_walk(collector);
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

void collector_finish(struct collector *collector, char *books_json, uint64_t names_limit_ns)
{
    (void)pthread_mutex_lock(&collector->mutex);
    collector->names_limit_ns = names_limit_ns;
    (void)pthread_mutex_unlock(&collector->mutex);
    request(collector, REQUEST_FINISH, books_json);
}

int collector_fd(const struct collector *collector)
{
    return collector->event_fd;
}

enum collector_event collector_take_event(struct collector *collector)
{
    /* A drain is told before its finish is asked for: where both are there, the finish is an older
     * one. */
    static const enum collector_event order[] = {COLLECTOR_HUNG, COLLECTOR_FINISHED,
                                                 COLLECTOR_DRAINED};
    enum collector_event taken = COLLECTOR_NOTHING;
    uint64_t ignored = 0;
    (void)!read(collector->event_fd, &ignored, sizeof ignored);
    (void)pthread_mutex_lock(&collector->mutex);
    for (size_t i = 0; i < sizeof order / sizeof order[0] && taken == COLLECTOR_NOTHING; i++) {
        if ((collector->events & 1U << order[i]) != 0) {
            collector->events &= ~(1U << order[i]);
            taken = order[i];
        }
    }
    (void)pthread_mutex_unlock(&collector->mutex);
    return taken;
}

uint64_t collector_beat_ns(const struct collector *collector)
{
    return atomic_load_explicit(&collector->beat_ns, memory_order_relaxed);
}

void collector_snapshot(struct collector *collector, struct collector_counts *ret,
                        struct drain_cpu_counts *cpus, struct perf_count *kernel)
{
    size_t cpu_count = collector->config.source->cpu_count;
    (void)pthread_mutex_lock(&collector->mutex);
    *ret = collector->published;
    memcpy(cpus, collector->published_cpus, cpu_count * sizeof *cpus);
    memcpy(kernel, collector->published_kernel, cpu_count * sizeof *kernel);
    (void)pthread_mutex_unlock(&collector->mutex);
}

int32_t collector_hung_pid(struct collector *collector)
{
    (void)pthread_mutex_lock(&collector->mutex);
    int32_t pid = collector->published.drain.proc_hung_pid;
    (void)pthread_mutex_unlock(&collector->mutex);
    return pid;
}
