/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Carries requests, CPUs and books from the main thread to the collector, and events, counts and
 * CPUs that were replaced back. Putting wakes the other thread by its eventfd. Taking takes all
 * that is there at one moment, so that a CPU's loss is never seen after its replacement.
 */
#include "collector_mailbox.h"

#include "cleanup.h"
#include "clock.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>

struct collector_mailbox {
    size_t cpu_count;
    size_t sideband_count;
    int request_fd; /* eventfd: main -> collector */
    int event_fd;   /* eventfd: collector -> main */
    _Atomic uint64_t beat_ns;

    pthread_mutex_t mutex; /* over all that follows */
    pthread_cond_t walked;
    bool first_walk_done;
    unsigned requests;
    char *books_json;
    uint64_t names_limit_ns;
    bool *lost;       /* told, and not taken yet */
    bool *taken_lost; /* the sampling thread's, without the mutex */
    struct perf_opening *openings;
    struct perf_opening *replaced;
    unsigned events; /* a bit for each enum collector_event */
    struct counters counters;
    struct books_cpu *lines;
    int32_t hung_pid;
};

static void lock(struct collector_mailbox *mailbox)
{
    (void)pthread_mutex_lock(&mailbox->mutex);
}

static void unlock(struct collector_mailbox *mailbox)
{
    (void)pthread_mutex_unlock(&mailbox->mutex);
}

static void wake(int fd)
{
    uint64_t one = 1;
    (void)!write(fd, &one, sizeof one);
}

struct collector_mailbox *collector_mailbox_free(struct collector_mailbox *mailbox)
{
    if (mailbox == NULL) {
        return NULL;
    }
    (void)close_fd(mailbox->request_fd);
    (void)close_fd(mailbox->event_fd);
    (void)pthread_cond_destroy(&mailbox->walked);
    (void)pthread_mutex_destroy(&mailbox->mutex);
    free(mailbox->books_json);
    free(mailbox->lost);
    free(mailbox->taken_lost);
    free(mailbox->lines);
    perf_opening_free_all(mailbox->openings);
    perf_opening_free_all(mailbox->replaced);
    free(mailbox);
    return NULL;
}

int collector_mailbox_new(size_t cpu_count, size_t sideband_count, struct collector_mailbox **ret)
{
    struct collector_mailbox *mailbox = calloc(1, sizeof *mailbox);
    if (mailbox == NULL) {
        return -ENOMEM;
    }
    mailbox->cpu_count = cpu_count;
    mailbox->sideband_count = sideband_count;
    (void)pthread_mutex_init(&mailbox->mutex, NULL);
    (void)pthread_cond_init(&mailbox->walked, NULL);
    mailbox->request_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    mailbox->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    mailbox->lost = calloc(sideband_count, sizeof *mailbox->lost);
    mailbox->taken_lost = calloc(sideband_count, sizeof *mailbox->taken_lost);
    mailbox->lines = calloc(cpu_count, sizeof *mailbox->lines);

    int r = 0;
    if (mailbox->request_fd < 0 || mailbox->event_fd < 0) {
        r = -EMFILE;
    } else if (mailbox->lost == NULL || mailbox->taken_lost == NULL || mailbox->lines == NULL) {
        r = -ENOMEM;
    }
    if (r < 0) {
        (void)collector_mailbox_free(mailbox);
        return r;
    }
    *ret = mailbox;
    return 0;
}

void collector_mailbox_request(struct collector_mailbox *mailbox, enum collector_request what)
{
    lock(mailbox);
    mailbox->requests |= what;
    unlock(mailbox);
    wake(mailbox->request_fd);
}

void collector_mailbox_finish(struct collector_mailbox *mailbox, char *books_json,
                              uint64_t names_limit_ns)
{
    lock(mailbox);
    mailbox->requests |= COLLECTOR_FINISH;
    mailbox->names_limit_ns = names_limit_ns;
    free(mailbox->books_json);
    mailbox->books_json = books_json;
    unlock(mailbox);
    wake(mailbox->request_fd);
}

void collector_mailbox_lose_cpu(struct collector_mailbox *mailbox, size_t index)
{
    lock(mailbox);
    mailbox->lost[index] = true;
    unlock(mailbox);
    wake(mailbox->request_fd);
}

void collector_mailbox_replace_cpu(struct collector_mailbox *mailbox, struct perf_opening *opening)
{
    lock(mailbox);
    perf_opening_push(&mailbox->openings, opening);
    unlock(mailbox);
    wake(mailbox->request_fd);
}

void collector_mailbox_await_walk(struct collector_mailbox *mailbox, uint64_t limit_ns)
{
    const struct timespec limit = clock_timespec(clock_ns(CLOCK_MONOTONIC) + limit_ns);
    int r = 0;
    lock(mailbox);
    while (!mailbox->first_walk_done && r == 0) {
        r = pthread_cond_clockwait(&mailbox->walked, &mailbox->mutex, CLOCK_MONOTONIC, &limit);
    }
    unlock(mailbox);
}

struct perf_opening *collector_mailbox_take_replaced(struct collector_mailbox *mailbox)
{
    lock(mailbox);
    struct perf_opening *opening = perf_opening_pop(&mailbox->replaced);
    unlock(mailbox);
    return opening;
}

int collector_mailbox_event_fd(const struct collector_mailbox *mailbox)
{
    return mailbox->event_fd;
}

enum collector_event collector_mailbox_take_event(struct collector_mailbox *mailbox)
{
    /* A drain is told before its finish is asked for: where both are there, the finish is an older
     * one. */
    static const enum collector_event order[] = {COLLECTOR_HUNG, COLLECTOR_REPLACED,
                                                 COLLECTOR_FINISHED, COLLECTOR_DRAINED};
    enum collector_event taken = COLLECTOR_NOTHING;
    uint64_t ignored = 0;
    (void)!read(mailbox->event_fd, &ignored, sizeof ignored);
    lock(mailbox);
    for (size_t i = 0; i < sizeof order / sizeof order[0] && taken == COLLECTOR_NOTHING; i++) {
        if ((mailbox->events & 1U << order[i]) != 0) {
            mailbox->events &= ~(1U << order[i]);
            taken = order[i];
        }
    }
    unlock(mailbox);
    return taken;
}

uint64_t collector_mailbox_beat_ns(const struct collector_mailbox *mailbox)
{
    return atomic_load_explicit(&mailbox->beat_ns, memory_order_relaxed);
}

void collector_mailbox_snapshot(struct collector_mailbox *mailbox, struct books *books)
{
    lock(mailbox);
    books->counters = mailbox->counters;
    memcpy(books->cpus, mailbox->lines, mailbox->cpu_count * sizeof *books->cpus);
    unlock(mailbox);
}

int32_t collector_mailbox_hung_pid(struct collector_mailbox *mailbox)
{
    lock(mailbox);
    int32_t pid = mailbox->hung_pid;
    unlock(mailbox);
    return pid;
}

int collector_mailbox_request_fd(const struct collector_mailbox *mailbox)
{
    return mailbox->request_fd;
}

struct collector_mail collector_mailbox_take(struct collector_mailbox *mailbox)
{
    uint64_t ignored = 0;
    (void)!read(mailbox->request_fd, &ignored, sizeof ignored);
    lock(mailbox);
    struct collector_mail mail = {
        .requests = mailbox->requests,
        .books_json = take_ptr(mailbox->books_json),
        .names_limit_ns = mailbox->names_limit_ns,
        .lost = mailbox->taken_lost,
        .openings = take_ptr(mailbox->openings),
    };
    mailbox->requests = 0;
    memcpy(mailbox->taken_lost, mailbox->lost, mailbox->sideband_count * sizeof *mailbox->lost);
    memset(mailbox->lost, 0, mailbox->sideband_count * sizeof *mailbox->lost);
    unlock(mailbox);
    return mail;
}

void collector_mailbox_end_walk(struct collector_mailbox *mailbox)
{
    lock(mailbox);
    mailbox->first_walk_done = true;
    (void)pthread_cond_signal(&mailbox->walked);
    unlock(mailbox);
}

static void post_locked(struct collector_mailbox *mailbox, enum collector_event event)
{
    mailbox->events |= 1U << event;
    wake(mailbox->event_fd);
}

void collector_mailbox_post(struct collector_mailbox *mailbox, enum collector_event event)
{
    lock(mailbox);
    post_locked(mailbox, event);
    unlock(mailbox);
}

void collector_mailbox_post_replaced(struct collector_mailbox *mailbox,
                                     struct perf_opening *opening)
{
    lock(mailbox);
    perf_opening_push(&mailbox->replaced, opening);
    post_locked(mailbox, COLLECTOR_REPLACED);
    unlock(mailbox);
}

void collector_mailbox_post_hung(struct collector_mailbox *mailbox, int32_t pid)
{
    lock(mailbox);
    mailbox->hung_pid = pid;
    post_locked(mailbox, COLLECTOR_HUNG);
    unlock(mailbox);
}

void collector_mailbox_beat(struct collector_mailbox *mailbox, uint64_t monotonic_ns)
{
    atomic_store_explicit(&mailbox->beat_ns, monotonic_ns, memory_order_relaxed);
}

void collector_mailbox_publish(struct collector_mailbox *mailbox, const struct counters *counters,
                               const struct books_cpu *lines)
{
    lock(mailbox);
    mailbox->counters = *counters;
    memcpy(mailbox->lines, lines, mailbox->cpu_count * sizeof *lines);
    unlock(mailbox);
}
