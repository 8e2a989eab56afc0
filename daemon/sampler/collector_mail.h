/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The sampling thread's side of a collector: what the main thread has left for it, and what it
 * leaves. Nothing of a collector is reachable but by these functions and those of collector.h.
 */

#include "collector.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * One without a thread, for a source of so many sampled CPUs, and of so many with sideband. Returns
 * 0, -ENOMEM, or -EMFILE for whatever the system refused.
 */
int collector_new(size_t cpu_count, size_t sideband_count, struct collector **ret);
/* Frees one whose thread has ended, or that has none. */
struct collector *collector_discard(struct collector *collector);
/* Asks the thread to end. */
void collector_quit(struct collector *collector);

enum collector_request {
    COLLECTOR_RESUME = 1,
    COLLECTOR_DRAIN = 2,
    COLLECTOR_FINISH = 4,
    COLLECTOR_QUIT = 8,
    COLLECTOR_READ_TIMES = 16,
};

/* What the main thread has left since the last time. */
struct collector_mail {
    unsigned requests;             /* of enum collector_request */
    char *books_json;              /* with COLLECTOR_FINISH; the taker frees it */
    uint64_t names_limit_ns;       /* with COLLECTOR_FINISH */
    uint64_t sampling_limit_ns;    /* with COLLECTOR_RESUME */
    const bool *lost;              /* for each CPU with sideband; until the next mail is taken */
    struct perf_opening *openings; /* taken; those of CPUs that are lost, or were */
};

int collector_request_fd(const struct collector *collector); /* borrowed; readable: there is mail */
struct collector_mail collector_take_mail(struct collector *collector);

/* The first walk of /proc is waited for so long. */
#define COLLECTOR_FIRST_WALK_NS UINT64_C(100000000)

/* All but the beat and the counts wake the main thread. All of /proc has been read: */
void collector_end_walk(struct collector *collector);
/* The main thread's side of that: it waits so long at the most. */
void collector_await_walk(struct collector *collector, uint64_t limit_ns);
/* COLLECTOR_REPLACED and COLLECTOR_HUNG have their own. */
void collector_post(struct collector *collector, enum collector_event event);
void collector_post_replaced(struct collector *collector, struct perf_opening *opening);
void collector_post_hung(struct collector *collector, int32_t pid);
void collector_beat(struct collector *collector, uint64_t monotonic_ns);
/* `lines` as in collector_snapshot(). */
void collector_publish(struct collector *collector, const struct counters *counters,
                       const struct books_cpu *lines);
