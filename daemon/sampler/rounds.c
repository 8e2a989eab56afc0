/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Decides when a round of drain.c is due, and carries out the main thread's requests. Sideband is
 * drained every 10 ms while records arrive, so that short processes are read while they live. Else
 * it is drained every 25 ms, since a round costs about 50 us. Samples are drained every 100 ms, or
 * as soon as a ring is a quarter full.
 */
#include "rounds.h"

#include "cleanup.h"
#include "clock.h"
#include "collector_mail.h"
#include "sideband_feed.h"

#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/resource.h>

#define SIDEBAND_PERIOD_MS   10
#define QUIET_PERIOD_MS      25
#define IDLE_PERIOD_MS       100
#define FIRST_WALK_PERIOD_MS 1 /* while the first one is waited for */
#define READING_PERIOD_MS    2 /* while times of threads are read, and waits stand still */
#define SAMPLE_PERIOD_NS     (100 * NS_PER_MS)
#define HORIZON_LAG_NS       NS_PER_MS /* between a record's time stamp and its being visible */
#define HISTORY_NS           (NS_PER_S + DRAIN_HELD_NS)
#define SUSPEND_LEAST_NS     NS_PER_MS /* clocks that are read one after the other differ by less */
#define WALK_PERIOD_NS       (500 * NS_PER_MS)
#define SESSION_SINK         0 /* whose books are published, and whose end is asked for */
#define WAKE_REQUEST         PERF_CONSUMER_NONE /* where a stream has its consumer */
#define LATE_ROUND_NS        (50 * NS_PER_MS)   /* the least that the rings hold */

struct rounds {
    struct drain_config config;
    struct collector *collector;
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
    uint64_t sampling_limit_ns; /* sampling is disabled then; 0: no limit, or it has passed */
    bool stopping;              /* drained, but for samples that are held */
    bool reading_last_times;    /* the main thread waits for that to stop */
    bool walk_due;              /* sideband was lost since the last walk began */
    bool told_of_hang;
    uint64_t next_walk_ns;
    struct counters counters;
};

/* Tells the main thread that this one lives. */
static void beat(struct rounds *rounds)
{
    collector_beat(rounds->collector, clock_ns(CLOCK_MONOTONIC));
}

static struct trace *trace_of(const struct rounds *rounds)
{
    return rounds->config.sinks[SESSION_SINK].trace;
}

static void publish(struct rounds *rounds)
{
    struct counters counters = trace_counters(trace_of(rounds));
    struct counters drained = drain_counters(rounds->drain, SESSION_SINK);
    counters_add(&counters, &drained);
    counters_add(&counters, &rounds->counters);
    for (size_t i = 0; i < rounds->config.source->cpu_count; i++) {
        rounds->lines[i] = drain_books(rounds->drain, SESSION_SINK, i);
    }
    collector_publish(rounds->collector, &counters, rounds->lines);
}

static int next_round_ms(const struct rounds *rounds)
{
    if (!rounds->first_walk_done && clock_ns(CLOCK_BOOTTIME) < rounds->first_walk_limit_ns) {
        return FIRST_WALK_PERIOD_MS;
    }
    if (drain_is_reading_times(rounds->drain)) {
        return READING_PERIOD_MS;
    }
    if (rounds->stopping || sideband_feed_is_walking(drain_feed(rounds->drain)) ||
        rounds->finishing_json != NULL) {
        return SIDEBAND_PERIOD_MS;
    }
    if (!rounds->running) {
        return IDLE_PERIOD_MS;
    }
    return drain_is_quiet(rounds->drain) ? QUIET_PERIOD_MS : SIDEBAND_PERIOD_MS;
}

/* Waits for a ring, a request or the next round. True: a sample ring asked for it. */
static bool wait_for_work(struct rounds *rounds)
{
    struct epoll_event events[64];
    int count = epoll_wait(rounds->epoll_fd, events, sizeof events / sizeof events[0],
                           next_round_ms(rounds));
    bool sample_ring = false;
    for (int i = 0; i < count; i++) {
        sample_ring = sample_ring || events[i].data.u32 == PERF_CONSUMER_SAMPLES ||
                      events[i].data.u32 == PERF_CONSUMER_WAITS;
    }
    return sample_ring;
}

/* A CPU that went is not asked for its ticks any more. */
static void lose_cpu(struct rounds *rounds, size_t index)
{
    struct perf_source *source = rounds->config.source;
    if (index < source->cpu_count && !source->cpus[index].absent) {
        drain_lose_cpu(rounds->drain, index, clock_moment());
    }
    source->cpus[index].absent = true;
}

static unsigned take_requests(struct rounds *rounds)
{
    struct collector_mail mail = collector_take_mail(rounds->collector);
    for (size_t i = 0; i < rounds->config.source->sideband_count; i++) {
        if (mail.lost[i]) {
            lose_cpu(rounds, i);
        }
    }
    while (mail.openings != NULL) {
        struct perf_opening *opening = perf_opening_pop(&mail.openings);
        sideband_feed_gap(drain_feed(rounds->drain), opening->index, opening->gap_from_ns,
                          opening->gap_to_ns);
        perf_opening_push(&rounds->waiting, opening);
    }
    if ((mail.requests & COLLECTOR_RESUME) != 0) {
        rounds->sampling_limit_ns = mail.sampling_limit_ns;
    }
    if ((mail.requests & COLLECTOR_FINISH) != 0) {
        free(rounds->finishing_json);
        rounds->finishing_json = mail.books_json;
        rounds->finish_limit_ns = clock_ns(CLOCK_BOOTTIME) + mail.names_limit_ns;
    }
    return mail.requests;
}

/* The end of a recording: names that are on their way, for a while, then the books, however long it
 * takes. */
static void try_finish(struct rounds *rounds, uint64_t time_ns)
{
    if (trace_names_pending(trace_of(rounds)) && time_ns < rounds->finish_limit_ns) {
        return;
    }
    if (drain_write_threads(rounds->drain, SESSION_SINK) &&
        trace_finish(trace_of(rounds), rounds->finishing_json)) {
        free(take_ptr(rounds->finishing_json));
        collector_post(rounds->collector, COLLECTOR_FINISHED);
    }
}

/* So that a session that is started at once knows the processes that were there before it. */
static void end_first_walk(struct rounds *rounds)
{
    drain_prefetch(rounds->drain);
    rounds->first_walk_done = true;
    collector_end_walk(rounds->collector);
}

/* Begins a walk of /proc, if one is due. What is lost during a walk needs another one; but they do
 * not follow one another without a pause. */
static void walk(struct rounds *rounds, uint64_t time_ns)
{
    bool walking = sideband_feed_is_walking(drain_feed(rounds->drain));
    rounds->walk_due = sideband_feed_take_rescan(drain_feed(rounds->drain)) || rounds->walk_due;
    if (!walking && !rounds->first_walk_done) {
        end_first_walk(rounds);
    }
    if (!walking && rounds->walk_due && time_ns >= rounds->next_walk_ns) {
        rounds->walk_due = false;
        rounds->next_walk_ns = time_ns + WALK_PERIOD_NS;
        sideband_feed_walk(drain_feed(rounds->drain));
    }
}

/* Reports once that a process hangs its readers. */
static void tell_of_hang(struct rounds *rounds)
{
    if (!rounds->told_of_hang && sideband_feed_hung_pid(drain_feed(rounds->drain)) != 0) {
        rounds->told_of_hang = true;
        collector_post_hung(rounds->collector, sideband_feed_hung_pid(drain_feed(rounds->drain)));
    }
}

static void start_sampling(struct rounds *rounds, uint64_t time_ns)
{
    rounds->running = true;
    rounds->next_samples_ns = time_ns;
    drain_start(rounds->drain);
}

static void stop_sampling(struct rounds *rounds)
{
    rounds->sampling_limit_ns = 0;
    drain_stop(rounds->drain);
    cpu_books_read_last(rounds->books);
    rounds->running = false;
    rounds->stopping = true;
}

static void drain_samples(struct rounds *rounds, uint64_t time_ns, uint64_t horizon_ns)
{
    drain_all(rounds->drain, horizon_ns);
    cpu_books_read(rounds->books, horizon_ns);
    rounds->next_samples_ns = time_ns + SAMPLE_PERIOD_NS;
}

/* No timer runs while the machine is suspended, and the clock of the records goes on. */
static void watch_for_suspend(struct rounds *rounds, struct clock_moment now)
{
    uint64_t ahead_ns = now.boottime_ns > now.monotonic_ns ? now.boottime_ns - now.monotonic_ns : 0;
    if (ahead_ns >= rounds->suspended_ns + SUSPEND_LEAST_NS) {
        cpu_books_suspended(rounds->books, ahead_ns - rounds->suspended_ns);
        rounds->suspended_ns = ahead_ns;
    }
}

static int watch(const struct rounds *rounds, int fd, enum perf_consumer consumer)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = consumer};
    return fd >= 0 && epoll_ctl(rounds->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static int watch_cpu(const struct rounds *rounds, const struct perf_cpu *cpu)
{
    int r = 0;
    for (size_t i = 0; i < PERF_STREAMS_MAX && r == 0; i++) {
        const struct perf_stream *stream = &cpu->streams[i];
        /* Switches are read together with what depends on them. */
        bool has_waits = rounds->config.source->config.has_waits;
        bool has_ring = stream->consumer != PERF_CONSUMER_LEADER;
        if (has_ring && (stream->consumer != PERF_CONSUMER_SWITCHES || has_waits)) {
            r = watch(rounds, stream->fd,
                      stream->consumer == PERF_CONSUMER_SWITCHES ? PERF_CONSUMER_WAITS
                                                                 : stream->consumer);
        }
    }
    return r;
}

/* A mapping keeps its event open, and watched. */
static void watch_no_more(const struct rounds *rounds, const struct perf_cpu *cpu)
{
    for (size_t i = 0; i < PERF_STREAMS_MAX; i++) {
        const struct perf_stream *stream = &cpu->streams[i];
        if (stream->fd >= 0 && stream->consumer != PERF_CONSUMER_LEADER) {
            (void)epoll_ctl(rounds->epoll_fd, EPOLL_CTL_DEL, stream->fd, NULL);
        }
    }
}

/* Without being watched, rings are drained all the same, at times. */
static void install(struct rounds *rounds, struct perf_opening *opening)
{
    struct perf_source *source = rounds->config.source;
    size_t index = opening->index;
    if (index < source->cpu_count) {
        cpu_books_leave(rounds->books, index);
    }
    watch_no_more(rounds, &source->cpus[index]);
    bool enabled = perf_source_replace(source, opening);
    (void)watch_cpu(rounds, &source->cpus[index]);
    drain_return_cpu(rounds->drain, index, enabled && rounds->running, opening->gap_to_ns);
    collector_post_replaced(rounds->collector, opening);
}

/* New rings take the place of those that are empty for good; the others have another round. */
static void install_openings(struct rounds *rounds)
{
    struct perf_opening *left = NULL;
    while (rounds->waiting != NULL) {
        struct perf_opening *opening = perf_opening_pop(&rounds->waiting);
        if (drain_is_empty(rounds->drain, opening->index)) {
            install(rounds, opening);
        } else {
            perf_opening_push(&left, opening);
        }
    }
    rounds->waiting = left;
}

/* The main thread, whose timer is earlier, may be without a CPU. */
static void keep_limit(struct rounds *rounds, uint64_t time_ns)
{
    if (rounds->sampling_limit_ns > 0 && time_ns >= rounds->sampling_limit_ns) {
        rounds->sampling_limit_ns = 0;
        (void)perf_source_disable_sampling(rounds->config.source);
    }
}

static void run_round(struct rounds *rounds, unsigned requests, bool sample_ring)
{
    struct clock_moment now = clock_moment();
    uint64_t time_ns = now.boottime_ns;
    uint64_t horizon_ns = time_ns - HORIZON_LAG_NS;
    bool samples_drained = false;

    watch_for_suspend(rounds, now);
    keep_limit(rounds, time_ns);
    if ((requests & COLLECTOR_RESUME) != 0) {
        start_sampling(rounds, time_ns);
        free(take_ptr(rounds->finishing_json)); /* the recording has not ended after all */
        trace_resume(trace_of(rounds));
    }
    if ((requests & COLLECTOR_READ_TIMES) != 0) {
        drain_read_times(rounds->drain);
        rounds->reading_last_times = true;
    }
    if ((requests & COLLECTOR_DRAIN) != 0) {
        stop_sampling(rounds);
    } else if (rounds->running && (sample_ring || time_ns >= rounds->next_samples_ns ||
                                   rounds->waiting != NULL || drain_is_pressed(rounds->drain))) {
        drain_samples(rounds, time_ns, horizon_ns);
        samples_drained = true;
    } else {
        drain_sideband(rounds->drain, horizon_ns);
    }
    install_openings(rounds);
    walk(rounds, time_ns);
    bool drained = drain_held(rounds->drain, time_ns) == 0;
    /* After a late round, too, what waited too long has found its time. */
    if (samples_drained || !rounds->running) {
        process_table_prune(rounds->config.processes,
                            horizon_ns < HISTORY_NS ? 0 : horizon_ns - HISTORY_NS);
    }
    for (size_t i = 0; i < rounds->config.sink_count; i++) {
        trace_poll(rounds->config.sinks[i].trace);
    }
    publish(rounds);
    tell_of_hang(rounds);
    if (rounds->reading_last_times && !drain_is_reading_times(rounds->drain)) {
        rounds->reading_last_times = false;
        collector_post(rounds->collector, COLLECTOR_READ);
    }
    if (rounds->stopping && drained) {
        rounds->stopping = false;
        collector_post(rounds->collector, COLLECTOR_DRAINED);
    }
    if ((requests & COLLECTOR_FINISH) != 0) {
        trace_ask_again(trace_of(rounds));
    }
    if (rounds->finishing_json != NULL) {
        try_finish(rounds, time_ns);
    }
    rounds->counters.late_rounds += clock_ns(CLOCK_MONOTONIC) - now.monotonic_ns >= LATE_ROUND_NS;
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

void *rounds_run(void *userdata)
{
    struct rounds *rounds = userdata;
    (void)pthread_setname_np(pthread_self(), "collector");
    go_first();

    rounds->first_walk_limit_ns = clock_ns(CLOCK_BOOTTIME) + COLLECTOR_FIRST_WALK_NS;
    sideband_feed_walk(drain_feed(rounds->drain));
    for (;;) {
        beat(rounds);
        bool sample_ring = wait_for_work(rounds);
        unsigned requests = take_requests(rounds);
        if ((requests & COLLECTOR_QUIT) != 0) {
            return NULL;
        }
        run_round(rounds, requests, sample_ring);
    }
}

static int watch_all(const struct rounds *rounds)
{
    int r = watch(rounds, collector_request_fd(rounds->collector), WAKE_REQUEST);
    for (size_t i = 0; r == 0 && i < rounds->config.source->sideband_count; i++) {
        r = watch_cpu(rounds, &rounds->config.source->cpus[i]);
    }
    return r;
}

struct rounds *rounds_free(struct rounds *rounds)
{
    if (rounds != NULL) {
        (void)close_fd(rounds->epoll_fd);
        (void)drain_free(rounds->drain);
        (void)cpu_books_free(rounds->books);
        free(rounds->lines);
        free(rounds->finishing_json);
        perf_opening_free_all(rounds->waiting);
        free(rounds);
    }
    return NULL;
}

static int make_parts(struct rounds *rounds)
{
    struct perf_source *source = rounds->config.source;
    rounds->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (rounds->epoll_fd < 0) {
        return -errno;
    }
    rounds->lines = calloc(source->cpu_count, sizeof *rounds->lines);
    rounds->books = cpu_books_new(source);
    rounds->config.books = rounds->books;
    if (rounds->lines == NULL || rounds->books == NULL) {
        return -ENOMEM;
    }
    rounds->drain = drain_new(&rounds->config);
    return rounds->drain == NULL ? -ENOMEM : watch_all(rounds);
}

int rounds_new(const struct drain_config *config, struct collector *collector, struct rounds **ret)
{
    struct rounds *rounds = calloc(1, sizeof *rounds);
    if (rounds == NULL) {
        return -ENOMEM;
    }
    rounds->config = *config;
    rounds->collector = collector;
    int r = make_parts(rounds);
    if (r < 0) {
        (void)rounds_free(rounds);
        return r;
    }
    beat(rounds);
    publish(rounds);
    *ret = rounds;
    return 0;
}
