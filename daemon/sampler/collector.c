/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The collector thread: decides when a round of drain.c is due, and carries out the main thread's
 * requests. Data of both threads is in the mailbox; all else belongs to this thread. Sideband is
 * drained every 10 ms while records arrive, so that short processes are read while they live. Else
 * it is drained every 25 ms, since a round costs about 50 us. Samples are drained every 100 ms, or
 * as soon as a ring is a quarter full.
 */
#include "collector.h"

#include "cleanup.h"
#include "clock.h"
#include "collector_mailbox.h"
#include "drain.h"

#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/resource.h>

#define SIDEBAND_PERIOD_MS   10
#define QUIET_PERIOD_MS      25
#define IDLE_PERIOD_MS       100
#define FIRST_WALK_PERIOD_MS 1 /* while the first one is waited for */
#define SAMPLE_PERIOD_NS     (100 * NS_PER_MS)
#define HORIZON_LAG_NS       NS_PER_MS /* between a record's time stamp and its being visible */
#define HISTORY_NS           (NS_PER_S + DRAIN_HELD_NS)
#define SUSPEND_LEAST_NS     NS_PER_MS /* clocks that are read one after the other differ by less */
#define WALK_PERIOD_NS       (500 * NS_PER_MS)
#define FIRST_WALK_LIMIT_NS  (100 * NS_PER_MS)
#define SESSION_SINK         0 /* whose books are published, and whose end is asked for */
#define WAKE_REQUEST         PERF_CONSUMER_NONE /* where a stream has its consumer */
#define LATE_ROUND_NS        (50 * NS_PER_MS)   /* the least that the rings hold */

struct collector {
    struct drain_config config;
    pthread_t thread;
    struct collector_mailbox *mailbox;

    /* The thread's own from here on. */
    int epoll_fd;
    struct drain *drain;
    struct cpu_books *books;
    struct books_cpu *lines;      /* a draft of what is published */
    struct perf_opening *waiting; /* until the rings that they replace are empty */
    char *finishing_json;         /* not NULL: finishing */
    uint64_t finish_limit_ns;
    uint64_t next_samples_ns;
    uint64_t suspended_ns; /* that the clock is ahead of the one that stops in a suspend */
    bool first_walk_done;
    uint64_t first_walk_limit_ns; /* it is waited for until then */
    bool running;
    bool stopping; /* drained, but for samples that are held */
    bool walk_due; /* sideband was lost since the last walk began */
    bool told_of_hang;
    uint64_t next_walk_ns;
    struct counters counters;
};

/* Tells the main thread that this one lives. */
static void beat(struct collector *collector)
{
    collector_mailbox_beat(collector->mailbox, clock_ns(CLOCK_MONOTONIC));
}

static struct trace *trace_of(const struct collector *collector)
{
    return collector->config.sinks[SESSION_SINK].trace;
}

static void publish(struct collector *collector)
{
    struct counters counters = trace_counters(trace_of(collector));
    struct counters drained = drain_counters(collector->drain, SESSION_SINK);
    counters_add(&counters, &drained);
    counters_add(&counters, &collector->counters);
    for (size_t i = 0; i < collector->config.source->cpu_count; i++) {
        collector->lines[i] = drain_books(collector->drain, SESSION_SINK, i);
    }
    collector_mailbox_publish(collector->mailbox, &counters, collector->lines);
}

static int next_round_ms(const struct collector *collector)
{
    if (!collector->first_walk_done && clock_ns(CLOCK_BOOTTIME) < collector->first_walk_limit_ns) {
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
        sample_ring = sample_ring || events[i].data.u32 == PERF_CONSUMER_SAMPLES;
    }
    return sample_ring;
}

/* A CPU that went is not asked for its ticks any more. */
static void lose_cpu(struct collector *collector, size_t index)
{
    struct perf_source *source = collector->config.source;
    if (index < source->cpu_count && !source->cpus[index].absent) {
        drain_lose_cpu(collector->drain, index, clock_moment());
    }
    source->cpus[index].absent = true;
}

static unsigned take_requests(struct collector *collector)
{
    struct collector_mail mail = collector_mailbox_take(collector->mailbox);
    for (size_t i = 0; i < collector->config.source->sideband_count; i++) {
        if (mail.lost[i]) {
            lose_cpu(collector, i);
        }
    }
    while (mail.openings != NULL) {
        struct perf_opening *opening = perf_opening_pop(&mail.openings);
        drain_gap(collector->drain, opening->index, opening->gap_from_ns, opening->gap_to_ns);
        perf_opening_push(&collector->waiting, opening);
    }
    if ((mail.requests & COLLECTOR_FINISH) != 0) {
        free(collector->finishing_json);
        collector->finishing_json = mail.books_json;
        collector->finish_limit_ns = clock_ns(CLOCK_BOOTTIME) + mail.names_limit_ns;
    }
    return mail.requests;
}

/* The end of a recording: names that are on their way, for a while, then the books, however long it
 * takes. */
static void try_finish(struct collector *collector, uint64_t time_ns)
{
    if (trace_names_pending(trace_of(collector)) && time_ns < collector->finish_limit_ns) {
        return;
    }
    if (trace_finish(trace_of(collector), collector->finishing_json)) {
        free(take_ptr(collector->finishing_json));
        collector_mailbox_post(collector->mailbox, COLLECTOR_FINISHED);
    }
}

/* So that a session that is started at once knows the processes that were there before it. */
static void end_first_walk(struct collector *collector)
{
    drain_prefetch(collector->drain);
    collector->first_walk_done = true;
    collector_mailbox_end_walk(collector->mailbox);
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

/* Reports once that a process hangs its readers. */
static void tell_of_hang(struct collector *collector)
{
    if (!collector->told_of_hang && drain_hung_pid(collector->drain) != 0) {
        collector->told_of_hang = true;
        collector_mailbox_post_hung(collector->mailbox, drain_hung_pid(collector->drain));
    }
}

static void start_sampling(struct collector *collector, uint64_t time_ns)
{
    collector->running = true;
    collector->next_samples_ns = time_ns;
    drain_start(collector->drain);
}

static void stop_sampling(struct collector *collector)
{
    drain_stop(collector->drain);
    cpu_books_read_last(collector->books);
    collector->running = false;
    collector->stopping = true;
}

static void drain_samples(struct collector *collector, uint64_t time_ns, uint64_t horizon_ns)
{
    drain_all(collector->drain, horizon_ns);
    cpu_books_read(collector->books, horizon_ns);
    collector->next_samples_ns = time_ns + SAMPLE_PERIOD_NS;
}

/* No timer runs while the machine is suspended, and the clock of the records goes on. */
static void watch_for_suspend(struct collector *collector, struct clock_moment now)
{
    uint64_t ahead_ns = now.boottime_ns > now.monotonic_ns ? now.boottime_ns - now.monotonic_ns : 0;
    if (ahead_ns >= collector->suspended_ns + SUSPEND_LEAST_NS) {
        cpu_books_suspended(collector->books, ahead_ns - collector->suspended_ns);
        collector->suspended_ns = ahead_ns;
    }
}

static int watch(const struct collector *collector, int fd, enum perf_consumer consumer)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = consumer};
    return fd >= 0 && epoll_ctl(collector->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static int watch_cpu(const struct collector *collector, const struct perf_cpu *cpu)
{
    int r = 0;
    for (size_t i = 0; i < PERF_STREAMS_MAX && r == 0; i++) {
        const struct perf_stream *stream = &cpu->streams[i];
        if (stream->consumer != PERF_CONSUMER_SWITCHES) {
            r = watch(collector, stream->fd, stream->consumer);
        }
    }
    return r;
}

/* A mapping keeps its event open, and watched. */
static void watch_no_more(const struct collector *collector, const struct perf_cpu *cpu)
{
    for (size_t i = 0; i < PERF_STREAMS_MAX; i++) {
        const struct perf_stream *stream = &cpu->streams[i];
        if (stream->fd >= 0) {
            (void)epoll_ctl(collector->epoll_fd, EPOLL_CTL_DEL, stream->fd, NULL);
        }
    }
}

/* Without being watched, rings are drained all the same, at times. */
static void install(struct collector *collector, struct perf_opening *opening)
{
    struct perf_source *source = collector->config.source;
    size_t index = opening->index;
    if (index < source->cpu_count) {
        cpu_books_leave(collector->books, index);
    }
    watch_no_more(collector, &source->cpus[index]);
    bool enabled = perf_source_replace(source, opening);
    (void)watch_cpu(collector, &source->cpus[index]);
    drain_return_cpu(collector->drain, index, enabled && collector->running, opening->gap_to_ns);
    collector_mailbox_post_replaced(collector->mailbox, opening);
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
    struct clock_moment now = clock_moment();
    uint64_t time_ns = now.boottime_ns;
    uint64_t horizon_ns = time_ns - HORIZON_LAG_NS;
    bool samples_drained = false;

    watch_for_suspend(collector, now);
    if ((requests & COLLECTOR_RESUME) != 0) {
        start_sampling(collector, time_ns);
        free(take_ptr(collector->finishing_json)); /* the recording has not ended after all */
    }
    if ((requests & COLLECTOR_DRAIN) != 0) {
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
    for (size_t i = 0; i < collector->config.sink_count; i++) {
        trace_poll(collector->config.sinks[i].trace);
    }
    publish(collector);
    tell_of_hang(collector);
    if (collector->stopping && drained) {
        collector->stopping = false;
        collector_mailbox_post(collector->mailbox, COLLECTOR_DRAINED);
    }
    if ((requests & COLLECTOR_FINISH) != 0) {
        trace_ask_again(trace_of(collector));
    }
    if (collector->finishing_json != NULL) {
        try_finish(collector, time_ns);
    }
    collector->counters.late_rounds +=
        clock_ns(CLOCK_MONOTONIC) - now.monotonic_ns >= LATE_ROUND_NS;
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

    collector->first_walk_limit_ns = clock_ns(CLOCK_BOOTTIME) + FIRST_WALK_LIMIT_NS;
    drain_walk(collector->drain);
    for (;;) {
        beat(collector);
        bool sample_ring = wait_for_work(collector);
        unsigned requests = take_requests(collector);
        if ((requests & COLLECTOR_QUIT) != 0) {
            return NULL;
        }
        run_round(collector, requests, sample_ring);
    }
}

static int watch_all(const struct collector *collector)
{
    int r = watch(collector, collector_mailbox_request_fd(collector->mailbox), WAKE_REQUEST);
    for (size_t i = 0; r == 0 && i < collector->config.source->sideband_count; i++) {
        r = watch_cpu(collector, &collector->config.source->cpus[i]);
    }
    return r;
}

static struct collector *free_parts(struct collector *collector)
{
    (void)close_fd(collector->epoll_fd);
    (void)drain_free(collector->drain);
    (void)cpu_books_free(collector->books);
    (void)collector_mailbox_free(collector->mailbox);
    free(collector->lines);
    free(collector->finishing_json);
    perf_opening_free_all(collector->waiting);
    free(collector);
    return NULL;
}

static int make_parts(struct collector *collector)
{
    struct perf_source *source = collector->config.source;
    collector->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (collector->epoll_fd < 0) {
        return -errno;
    }
    collector->lines = calloc(source->cpu_count, sizeof *collector->lines);
    collector->books = cpu_books_new(source);
    collector->config.books = collector->books;
    if (collector->lines == NULL || collector->books == NULL) {
        return -ENOMEM;
    }
    collector->drain = drain_new(&collector->config);
    if (collector->drain == NULL) {
        return -ENOMEM;
    }
    int r = collector_mailbox_new(source->cpu_count, source->sideband_count, &collector->mailbox);
    return r < 0 ? r : watch_all(collector);
}

int collector_start(const struct drain_config *config, struct collector **ret)
{
    struct collector *collector = calloc(1, sizeof *collector);
    if (collector == NULL) {
        return -ENOMEM;
    }
    collector->config = *config;
    int r = make_parts(collector);
    if (r == 0) {
        beat(collector);
        publish(collector);
        r = -pthread_create(&collector->thread, NULL, run_thread, collector);
    }
    if (r < 0) {
        (void)free_parts(collector);
        return r;
    }
    collector_mailbox_await_walk(collector->mailbox, FIRST_WALK_LIMIT_NS);
    *ret = collector;
    return 0;
}

struct collector *collector_free(struct collector *collector)
{
    if (collector == NULL) {
        return NULL;
    }
    collector_mailbox_request(collector->mailbox, COLLECTOR_QUIT);
    (void)pthread_join(collector->thread, NULL);
    return free_parts(collector);
}

void collector_resume(struct collector *collector)
{
    collector_mailbox_request(collector->mailbox, COLLECTOR_RESUME);
}

void collector_drain(struct collector *collector)
{
    collector_mailbox_request(collector->mailbox, COLLECTOR_DRAIN);
}

void collector_finish(struct collector *collector, char *books_json, uint64_t names_limit_ns)
{
    collector_mailbox_finish(collector->mailbox, books_json, names_limit_ns);
}

void collector_lose_cpu(struct collector *collector, size_t index)
{
    collector_mailbox_lose_cpu(collector->mailbox, index);
}

void collector_replace_cpu(struct collector *collector, struct perf_opening *opening)
{
    collector_mailbox_replace_cpu(collector->mailbox, opening);
}

struct perf_opening *collector_take_replaced(struct collector *collector)
{
    return collector_mailbox_take_replaced(collector->mailbox);
}

int collector_fd(const struct collector *collector)
{
    return collector_mailbox_event_fd(collector->mailbox);
}

enum collector_event collector_take_event(struct collector *collector)
{
    return collector_mailbox_take_event(collector->mailbox);
}

uint64_t collector_beat_ns(const struct collector *collector)
{
    return collector_mailbox_beat_ns(collector->mailbox);
}

void collector_snapshot(struct collector *collector, struct books *books)
{
    collector_mailbox_snapshot(collector->mailbox, books);
}

int32_t collector_hung_pid(struct collector *collector)
{
    return collector_mailbox_hung_pid(collector->mailbox);
}
