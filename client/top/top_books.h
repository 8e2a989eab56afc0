/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the books say of the last seconds: the difference between what the daemon's Status says now
 * and what it said then. Pure.
 */

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOP_CPUS_MAX      ((size_t)1024)
#define TOP_SESSION_BYTES ((size_t)64)

struct top_cpu {
    uint32_t cpu;
    uint64_t expected; /* ticks, as the next */
    uint64_t busy;
};

/* In ticks; what was not measured counts as 0. */
struct top_books {
    uint64_t time_ns; /* of CLOCK_BOOTTIME, when they were asked for */
    char session[TOP_SESSION_BYTES];
    uint64_t period_ns;
    uint64_t expected;
    uint64_t lost;
    uint64_t missed;      /* with those that are throttled */
    uint64_t dropped;     /* samples */
    uint64_t wanted;      /* samples since the session's beginning that are or will be handed out */
    struct top_cpu *cpus; /* owned */
    size_t cpu_count;
};

/* Reads the books of a Status (borrowed). Returns 0, -EBADMSG: they are none, or -ENOMEM. */
int top_books_read(const cJSON *books, const char *session, uint64_t time_ns,
                   struct top_books *ret);
void top_books_done(struct top_books *books);

/* Those of a window, at times that divide it. All zero but `window_ns` is empty. */
#define TOP_BOOKS_POINTS ((size_t)32)
struct top_history {
    uint64_t window_ns;
    struct top_books points[TOP_BOOKS_POINTS + 1]; /* owned; by time */
    size_t count;
};

/* Adds books (taken), and forgets those from before the window, or of another session. */
void top_history_add(struct top_history *history, struct top_books *books);
void top_history_done(struct top_history *history);

/* The first look is printed so long after it is due in any case: samples may be kept back for 2 s,
 * and for 2 s before that behind earlier ones. */
#define TOP_FIRST_LOOK_NS UINT64_C(5000000000)

/* When it may be printed: the daemon keeps samples back while it reads their files. All zero but
 * `due_ns`, by CLOCK_BOOTTIME, is one that waits. */
struct top_first_look {
    uint64_t due_ns;
    uint64_t wanted_count; /* samples that were taken until it was due */
    bool is_counted;       /* the next books say no more of it */
};

/* Whether `taken_count` samples of the session are all that were taken until the look was due. */
bool top_first_look_is_due(struct top_first_look *look, const struct top_history *history,
                           uint64_t now_ns, uint64_t taken_count);

/* How many samples of the session, by the newest books, are not among `taken_count`. */
uint64_t top_history_pending(const struct top_history *history, uint64_t taken_count);

/* What has come between the first and the last; of one alone since its session's beginning; all
 * zero of none. `wanted` is that of the last. Returns 0, or -ENOMEM. top_books_done() releases it.
 */
int top_history_difference(const struct top_history *history, struct top_books *ret);
