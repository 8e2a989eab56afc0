/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lies between the sampling thread and the main thread: carries requests, CPUs and books from the
 * main thread to the collector, and events, counts and CPUs that were replaced back. Putting wakes
 * the other thread by its eventfd. Taking takes all that is there at one moment, so that a CPU's
 * loss is never seen after its replacement.
 */
#include "collector_mail.h"

#include "cleanup.h"
#include "clock.h"
#include "collector_parts.h"
#include "threads.h"

#include <string.h>
#include <sys/eventfd.h>

static void lock(struct collector *collector)
{
    (void)pthread_mutex_lock(&collector->mutex);
}

static void unlock(struct collector *collector)
{
    (void)pthread_mutex_unlock(&collector->mutex);
}

static void wake(int fd)
{
    uint64_t one = 1;
    (void)!write(fd, &one, sizeof one);
}

static void request(struct collector *collector, enum collector_request what)
{
    lock(collector);
    collector->requests |= what;
    unlock(collector);
    wake(collector->request_fd);
}

struct collector *collector_discard(struct collector *collector)
{
    if (collector != NULL) {
        (void)close_fd(collector->request_fd);
        (void)close_fd(collector->event_fd);
        (void)pthread_mutex_destroy(&collector->mutex);
        free(collector->books_json);
        free(collector->lost);
        free(collector->taken_lost);
        free(collector->lines);
        perf_opening_free_all(collector->openings);
        perf_opening_free_all(collector->replaced);
        free(collector);
    }
    return NULL;
}

int collector_new(size_t cpu_count, size_t sideband_count, struct collector **ret)
{
    struct collector *collector = calloc(1, sizeof *collector);
    if (collector == NULL) {
        return -ENOMEM;
    }
    collector->cpu_count = cpu_count;
    collector->sideband_count = sideband_count;
    threads_init_lock(&collector->mutex);
    collector->request_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    collector->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    collector->lost = calloc(sideband_count, sizeof *collector->lost);
    collector->taken_lost = calloc(sideband_count, sizeof *collector->taken_lost);
    collector->lines = calloc(cpu_count, sizeof *collector->lines);

    int r = 0;
    if (collector->request_fd < 0 || collector->event_fd < 0) {
        r = -EMFILE;
    } else if (collector->lost == NULL || collector->taken_lost == NULL ||
               collector->lines == NULL) {
        r = -ENOMEM;
    }
    if (r < 0) {
        (void)collector_discard(collector);
        return r;
    }
    *ret = collector;
    return 0;
}

void collector_resume(struct collector *collector, uint64_t sampling_limit_ns)
{
    lock(collector);
    collector->sampling_limit_ns = sampling_limit_ns;
    unlock(collector);
    request(collector, COLLECTOR_RESUME);
}

void collector_drain(struct collector *collector)
{
    request(collector, COLLECTOR_DRAIN);
}

void collector_read_times(struct collector *collector)
{
    request(collector, COLLECTOR_READ_TIMES);
}

void collector_quit(struct collector *collector)
{
    request(collector, COLLECTOR_QUIT);
}

void collector_finish(struct collector *collector, char *books_json, uint64_t names_limit_ns)
{
    lock(collector);
    collector->requests |= COLLECTOR_FINISH;
    collector->names_limit_ns = names_limit_ns;
    free(collector->books_json);
    collector->books_json = books_json;
    unlock(collector);
    wake(collector->request_fd);
}

void collector_lose_cpu(struct collector *collector, size_t index)
{
    lock(collector);
    collector->lost[index] = true;
    unlock(collector);
    wake(collector->request_fd);
}

void collector_replace_cpu(struct collector *collector, struct perf_opening *opening)
{
    lock(collector);
    perf_opening_push(&collector->openings, opening);
    unlock(collector);
    wake(collector->request_fd);
}

void collector_await_walk(struct collector *collector, uint64_t limit_ns)
{
    const struct timespec limit = clock_timespec(clock_ns(CLOCK_MONOTONIC) + limit_ns);
    bool has_time = true;
    lock(collector);
    while (!collector->first_walk_done && has_time) {
        unsigned int news = thread_news_number(&collector->walked);
        has_time = thread_news_wait(&collector->walked, news, &collector->mutex, &limit);
    }
    unlock(collector);
}

struct perf_opening *collector_take_replaced(struct collector *collector)
{
    lock(collector);
    struct perf_opening *opening = perf_opening_pop(&collector->replaced);
    unlock(collector);
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
    static const enum collector_event order[] = {COLLECTOR_HUNG, COLLECTOR_REPLACED, COLLECTOR_READ,
                                                 COLLECTOR_FINISHED, COLLECTOR_DRAINED};
    enum collector_event taken = COLLECTOR_NOTHING;
    uint64_t ignored = 0;
    (void)!read(collector->event_fd, &ignored, sizeof ignored);
    lock(collector);
    for (size_t i = 0; i < sizeof order / sizeof order[0] && taken == COLLECTOR_NOTHING; i++) {
        if ((collector->events & 1U << order[i]) != 0) {
            collector->events &= ~(1U << order[i]);
            taken = order[i];
        }
    }
    unlock(collector);
    return taken;
}

uint64_t collector_beat_ns(const struct collector *collector)
{
    return atomic_load_explicit(&collector->beat_ns, memory_order_relaxed);
}

void collector_snapshot(struct collector *collector, struct books *books)
{
    lock(collector);
    books->counters = collector->counters;
    memcpy(books->cpus, collector->lines, collector->cpu_count * sizeof *books->cpus);
    unlock(collector);
}

int32_t collector_hung_pid(struct collector *collector)
{
    lock(collector);
    int32_t pid = collector->hung_pid;
    unlock(collector);
    return pid;
}

int collector_request_fd(const struct collector *collector)
{
    return collector->request_fd;
}

struct collector_mail collector_take_mail(struct collector *collector)
{
    uint64_t ignored = 0;
    (void)!read(collector->request_fd, &ignored, sizeof ignored);
    lock(collector);
    struct collector_mail mail = {
        .requests = collector->requests,
        .books_json = take_ptr(collector->books_json),
        .names_limit_ns = collector->names_limit_ns,
        .sampling_limit_ns = collector->sampling_limit_ns,
        .lost = collector->taken_lost,
        .openings = take_ptr(collector->openings),
    };
    collector->requests = 0;
    memcpy(collector->taken_lost, collector->lost,
           collector->sideband_count * sizeof *collector->lost);
    memset(collector->lost, 0, collector->sideband_count * sizeof *collector->lost);
    unlock(collector);
    return mail;
}

void collector_end_walk(struct collector *collector)
{
    lock(collector);
    collector->first_walk_done = true;
    unlock(collector);
    thread_news_tell(&collector->walked, 1);
}

static void post_locked(struct collector *collector, enum collector_event event)
{
    collector->events |= 1U << event;
    wake(collector->event_fd);
}

void collector_post(struct collector *collector, enum collector_event event)
{
    lock(collector);
    post_locked(collector, event);
    unlock(collector);
}

void collector_post_replaced(struct collector *collector, struct perf_opening *opening)
{
    lock(collector);
    perf_opening_push(&collector->replaced, opening);
    post_locked(collector, COLLECTOR_REPLACED);
    unlock(collector);
}

void collector_post_hung(struct collector *collector, int32_t pid)
{
    lock(collector);
    collector->hung_pid = pid;
    post_locked(collector, COLLECTOR_HUNG);
    unlock(collector);
}

void collector_beat(struct collector *collector, uint64_t monotonic_ns)
{
    atomic_store_explicit(&collector->beat_ns, monotonic_ns, memory_order_relaxed);
}

void collector_publish(struct collector *collector, const struct counters *counters,
                       const struct books_cpu *lines)
{
    lock(collector);
    collector->counters = *counters;
    memcpy(collector->lines, lines, collector->cpu_count * sizeof *lines);
    unlock(collector);
}
