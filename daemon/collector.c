/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The thread around drain.c: when a round is due, what the main thread asked for, and what it is
 * told. Sideband is drained every 10 ms while some comes, so that short processes are known while
 * they live, else every 25 ms, since a round costs about 50 us; samples every 100 ms, or as soon as
 * a ring is a quarter full.
 */
#include "collector.h"

#include "cleanup.h"
#include "collector_cpus.h"
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
    struct collector_cpu *published_cpus;
    bool *lost; /* sideband_count of the source; told, and not taken yet */
    struct perf_opening *openings;
    struct perf_opening *replaced;

    /* The thread's own from here on. */
    struct drain *drain;
    struct collector_cpus *cpus;
    struct perf_opening *waiting; /* until the rings that they replace are empty */
    char *finishing_json;         /* not NULL: finishing */
    uint64_t finish_limit_ns;
    uint64_t next_samples_ns;
    uint64_t suspended_ns; /* that the clock is ahead of the one that stops in a suspend */
    bool running;
    bool stopping; /* drained, but for samples that are held */
    bool walk_due; /* sideband was lost since the last walk began */
    bool told_of_hang;
    uint64_t next_walk_ns;
};

static uint64_t now_ns(void)
{
    return collector_cpus_now().boottime_ns;
}

/* Tells the main thread that this one lives. */
static void beat(struct collector *collector)
{
    atomic_store_explicit(&collector->beat_ns, collector_cpus_now().monotonic_ns,
                          memory_order_relaxed);
}

static void publish(struct collector *collector)
{
    const struct perf_source *source = collector->config.source;
    const struct trace_counts traced = trace_counts(collector->config.trace);
    uint64_t monotonic_ns = collector_cpus_now().monotonic_ns;
    const struct drain_cpu_counts *drained = drain_cpu_counts(collector->drain);
    (void)pthread_mutex_lock(&collector->mutex);
    collector->published.drain = *drain_counts(collector->drain);
    collector->published.trace = traced;
    for (size_t i = 0; i < source->cpu_count; i++) {
        collector->published_cpus[i] = (struct collector_cpu){
            .drain = drained[i],
            .kernel = collector_cpus_count(collector->cpus, i),
            .offline_ns = collector_cpus_offline_ns(collector->cpus, i, monotonic_ns),
            .known = source->cpus[i].sample_fd >= 0,
        };
    }
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

/* A CPU that went is not asked for its ticks any more. */
static void lose_cpu(struct collector *collector, size_t index)
{
    struct perf_source *source = collector->config.source;
    if (index < source->cpu_count && !source->cpus[index].absent) {
        drain_lose_cpu(collector->drain, index, collector_cpus_lose(collector->cpus, index));
    }
    source->cpus[index].absent = true;
}

static unsigned take_requests(struct collector *collector)
{
    size_t count = collector->config.source->sideband_count;
    (void)pthread_mutex_lock(&collector->mutex);
    unsigned requests = collector->requests;
    collector->requests = 0;
    for (size_t i = 0; i < count; i++) {
        if (collector->lost[i]) {
            collector->lost[i] = false;
            lose_cpu(collector, i);
        }
    }
    while (collector->openings != NULL) {
        perf_opening_push(&collector->waiting, perf_opening_pop(&collector->openings));
    }
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

static void start_sampling(struct collector *collector, uint64_t time_ns)
{
    collector->running = true;
    collector->next_samples_ns = time_ns;
    collector_cpus_start(collector->cpus, collector->drain);
}

static void stop_sampling(struct collector *collector)
{
    collector_cpus_stop(collector->cpus, collector->drain);
    collector->running = false;
    collector->stopping = true;
}

static void drain_samples(struct collector *collector, uint64_t time_ns, uint64_t horizon_ns)
{
    struct perf_source *source = collector->config.source;
    drain_all(collector->drain, horizon_ns);
    collector_cpus_read(collector->cpus, horizon_ns);
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
    collector_cpus_tell_idle(collector->cpus, collector->drain, time_ns);
    collector->next_samples_ns = time_ns + SAMPLE_PERIOD_NS;
}

/* No timer runs while the machine is suspended, and the clock of the records goes on. */
static void watch_for_suspend(struct collector *collector, struct cpu_moment now)
{
    uint64_t ahead_ns = now.boottime_ns > now.monotonic_ns ? now.boottime_ns - now.monotonic_ns : 0;
    if (ahead_ns >= collector->suspended_ns + SUSPEND_LEAST_NS) {
        drain_suspended(collector->drain, ahead_ns - collector->suspended_ns);
        collector->suspended_ns = ahead_ns;
    }
}

static int watch(const struct collector *collector, int fd, uint64_t tag)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = tag};
    return fd >= 0 && epoll_ctl(collector->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static int watch_cpu(const struct collector *collector, size_t index)
{
    const struct perf_cpu *cpu = &collector->config.source->cpus[index];
    int r = watch(collector, cpu->sideband_fd, 2 * index + 1);
    return r < 0 ? r : watch(collector, cpu->sample_fd, 2 * index);
}

/* A mapping keeps its event open, and watched. */
static void watch_no_more(const struct collector *collector, int fd)
{
    if (fd >= 0) {
        (void)epoll_ctl(collector->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
    }
}

/* Without being watched, rings are drained all the same, at times. */
static void install(struct collector *collector, struct perf_opening *opening)
{
    struct perf_source *source = collector->config.source;
    size_t index = opening->index;
    drain_leave_cpu(collector->drain, index);
    watch_no_more(collector, source->cpus[index].sideband_fd);
    watch_no_more(collector, source->cpus[index].sample_fd);
    bool enabled = perf_source_replace(source, opening);
    (void)watch_cpu(collector, index);
    enabled = enabled && collector->running;
    if (enabled) {
        collector_cpus_return(collector->cpus, index);
    }
    drain_return_cpu(collector->drain, index, enabled, opening->gap_from_ns, opening->gap_to_ns);
    (void)pthread_mutex_lock(&collector->mutex);
    perf_opening_push(&collector->replaced, opening);
    (void)pthread_mutex_unlock(&collector->mutex);
    post_event(collector, COLLECTOR_REPLACED);
}

/* New rings take the place of those that are empty for good; the others have another round. */
static void install_openings(struct collector *collector)
{
    struct perf_opening *left = NULL;
    while (collector->waiting != NULL) {
        struct perf_opening *opening = perf_opening_pop(&collector->waiting);
        if (drain_is_empty(collector->drain, opening->index)) {
            install(collector, opening);
        } else {
            perf_opening_push(&left, opening);
        }
    }
    collector->waiting = left;
}

static void run_round(struct collector *collector, unsigned requests, bool sample_ring)
{
    struct cpu_moment now = collector_cpus_now();
    uint64_t time_ns = now.boottime_ns;
    uint64_t horizon_ns = time_ns - HORIZON_LAG_NS;
    bool samples_drained = false;

    watch_for_suspend(collector, now);
    if ((requests & REQUEST_RESUME) != 0) {
        start_sampling(collector, time_ns);
        free(take_ptr(collector->finishing_json)); /* the recording has not ended after all */
    }
    if ((requests & REQUEST_DRAIN) != 0) {
        stop_sampling(collector);
    } else if (collector->running &&
               (sample_ring || time_ns >= collector->next_samples_ns ||
                collector->waiting != NULL || drain_is_pressed(collector->drain))) {
        drain_samples(collector, time_ns, horizon_ns);
        samples_drained = true;
    } else {
        drain_sideband(collector->drain, horizon_ns);
    }
    install_openings(collector);
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

static int watch_all(const struct collector *collector)
{
    int r = watch(collector, collector->request_fd, WAKE_COLLECTOR);
    for (size_t i = 0; r == 0 && i < collector->config.source->sideband_count; i++) {
        r = watch_cpu(collector, i);
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
    free(collector->lost);
    perf_opening_free_all(collector->openings);
    perf_opening_free_all(collector->waiting);
    perf_opening_free_all(collector->replaced);
    (void)collector_cpus_free(collector->cpus);
    free(collector);
    return NULL;
}

int collector_start(const struct drain_config *config, struct collector **ret)
{
    struct collector *collector = calloc(1, sizeof *collector);
    if (collector == NULL) {
        return -ENOMEM;
    }
    const struct perf_source *source = config->source;
    collector->config = *config;
    (void)pthread_mutex_init(&collector->mutex, NULL);
    (void)pthread_cond_init(&collector->walked, NULL);
    collector->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    collector->request_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    collector->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    collector->published_cpus = calloc(source->cpu_count, sizeof *collector->published_cpus);
    collector->lost = calloc(source->sideband_count, sizeof *collector->lost);
    collector->cpus = collector_cpus_new(source);
    collector->drain = drain_new(config);

    int r = 0;
    beat(collector);
    if (collector->epoll_fd < 0 || collector->request_fd < 0 || collector->event_fd < 0) {
        r = -EMFILE;
    } else if (collector->published_cpus == NULL || collector->lost == NULL ||
               collector->cpus == NULL || collector->drain == NULL) {
        r = -ENOMEM;
    } else {
        collector->published.idle_source = collector_cpus_idle_source(collector->cpus);
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

void collector_lose_cpu(struct collector *collector, size_t index)
{
    (void)pthread_mutex_lock(&collector->mutex);
    collector->lost[index] = true;
    (void)pthread_mutex_unlock(&collector->mutex);
    signal_fd(collector->request_fd);
}

void collector_replace_cpu(struct collector *collector, struct perf_opening *opening)
{
    (void)pthread_mutex_lock(&collector->mutex);
    perf_opening_push(&collector->openings, opening);
    (void)pthread_mutex_unlock(&collector->mutex);
    signal_fd(collector->request_fd);
}

struct perf_opening *collector_take_replaced(struct collector *collector)
{
    (void)pthread_mutex_lock(&collector->mutex);
    struct perf_opening *opening = perf_opening_pop(&collector->replaced);
    (void)pthread_mutex_unlock(&collector->mutex);
    return opening;
}

int collector_fd(const struct collector *collector)
{
    return collector->event_fd;
}

enum collector_event collector_take_event(struct collector *collector)
{
    /* A drain is told before its finish is asked for: where both are there, the finish is an older
     * one. */
    static const enum collector_event order[] = {COLLECTOR_HUNG, COLLECTOR_REPLACED,
                                                 COLLECTOR_FINISHED, COLLECTOR_DRAINED};
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
                        struct collector_cpu *cpus)
{
    size_t cpu_count = collector->config.source->cpu_count;
    (void)pthread_mutex_lock(&collector->mutex);
    *ret = collector->published;
    memcpy(cpus, collector->published_cpus, cpu_count * sizeof *cpus);
    (void)pthread_mutex_unlock(&collector->mutex);
}

int32_t collector_hung_pid(struct collector *collector)
{
    (void)pthread_mutex_lock(&collector->mutex);
    int32_t pid = collector->published.drain.proc_hung_pid;
    (void)pthread_mutex_unlock(&collector->mutex);
    return pid;
}
