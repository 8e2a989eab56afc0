/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What crosses between the main thread and the sampling thread, and the lock over it: nothing in
 * here is reachable but by these functions. Of collector.c only.
 */

#include "collector.h"
#include "perf_source.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct collector_mailbox;

/*
 * For a source of so many sampled CPUs, and of so many with sideband. Returns 0, -ENOMEM, or
 * -EMFILE for whatever the system refused.
 */
int collector_mailbox_new(size_t cpu_count, size_t sideband_count, struct collector_mailbox **ret);
struct collector_mailbox *collector_mailbox_free(struct collector_mailbox *mailbox);

enum collector_request {
    COLLECTOR_RESUME = 1,
    COLLECTOR_DRAIN = 2,
    COLLECTOR_FINISH = 4,
    COLLECTOR_QUIT = 8,
};

/* Of the main thread, as collector.h has them. All but the last wake the other thread. */
void collector_mailbox_request(struct collector_mailbox *mailbox, enum collector_request what);
void collector_mailbox_finish(struct collector_mailbox *mailbox, char *books_json,
                              uint64_t names_limit_ns);
void collector_mailbox_lose_cpu(struct collector_mailbox *mailbox, size_t index);
void collector_mailbox_replace_cpu(struct collector_mailbox *mailbox, struct perf_opening *opening);
/* Until the sampling thread has told that it has read all of /proc, so long at the most. */
void collector_mailbox_await_walk(struct collector_mailbox *mailbox, uint64_t limit_ns);

struct perf_opening *collector_mailbox_take_replaced(struct collector_mailbox *mailbox);
int collector_mailbox_event_fd(const struct collector_mailbox *mailbox); /* borrowed */
enum collector_event collector_mailbox_take_event(struct collector_mailbox *mailbox);
uint64_t collector_mailbox_beat_ns(const struct collector_mailbox *mailbox);
void collector_mailbox_snapshot(struct collector_mailbox *mailbox, struct books *books);
int32_t collector_mailbox_hung_pid(struct collector_mailbox *mailbox);

/* What the main thread has left since the last time. */
struct collector_mail {
    unsigned requests;             /* of enum collector_request */
    char *books_json;              /* with COLLECTOR_FINISH; the taker frees it */
    uint64_t names_limit_ns;       /* with COLLECTOR_FINISH */
    const bool *lost;              /* for each CPU with sideband; until the next mail is taken */
    struct perf_opening *openings; /* taken; those of CPUs that are lost, or were */
};

/* Of the sampling thread. All but the beat and the counts wake the other thread. */
int collector_mailbox_request_fd(const struct collector_mailbox *mailbox); /* borrowed */
struct collector_mail collector_mailbox_take(struct collector_mailbox *mailbox);
void collector_mailbox_end_walk(struct collector_mailbox *mailbox);
/* COLLECTOR_REPLACED and COLLECTOR_HUNG have their own. */
void collector_mailbox_post(struct collector_mailbox *mailbox, enum collector_event event);
void collector_mailbox_post_replaced(struct collector_mailbox *mailbox,
                                     struct perf_opening *opening);
void collector_mailbox_post_hung(struct collector_mailbox *mailbox, int32_t pid);
void collector_mailbox_beat(struct collector_mailbox *mailbox, uint64_t monotonic_ns);
/* `lines` as in collector_snapshot(). */
void collector_mailbox_publish(struct collector_mailbox *mailbox, const struct counters *counters,
                               const struct books_cpu *lines);
