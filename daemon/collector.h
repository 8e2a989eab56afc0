/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The sampling thread: drains the rings, keeps the process table, filters, writes the trace.
 * Everything that it is given belongs to it alone until collector_free(). What crosses between the
 * threads is in this header: three requests, three events, a snapshot of the counts, and the beat.
 */

#include "drain.h"

#include <stdbool.h>
#include <stdint.h>

struct collector;

/*
 * Starts the thread, and returns when it has read all of /proc, or after 100 ms. Returns 0 or
 * -errno.
 */
int collector_start(const struct drain_config *config, struct collector **ret);
/* Ends the thread, within the time of one drain. */
struct collector *collector_free(struct collector *collector);

/* Sampling has been enabled: samples come from now on. */
void collector_resume(struct collector *collector);
/* Sampling has been disabled: everything that the rings hold goes into the trace ->
 * COLLECTOR_DRAINED. */
void collector_drain(struct collector *collector);
/*
 * Waits for names that are still being looked up, so long at the most, then writes the books
 * (taken; freed with free()) -> COLLECTOR_FINISHED. After COLLECTOR_DRAINED only.
 */
void collector_finish(struct collector *collector, char *books_json, uint64_t names_limit_ns);

/* To be taken until there is nothing. A resume ends a finish that is under way. */
enum collector_event {
    COLLECTOR_NOTHING,
    COLLECTOR_DRAINED,
    COLLECTOR_FINISHED,
    COLLECTOR_HUNG, /* once: /proc of collector_hung_pid() keeps who reads it waiting */
};
int collector_fd(const struct collector *collector); /* borrowed; readable: an event */
enum collector_event collector_take_event(struct collector *collector);

/* The CLOCK_MONOTONIC time at which the thread last began a turn, which it does every 100 ms at the
 * latest. */
uint64_t collector_beat_ns(const struct collector *collector);

struct collector_counts {
    struct drain_counts drain;
    const char *idle_source; /* that is asked where switch records do not tell */
    uint64_t modules_unread; /* files whose functions stay without names */
};

/*
 * As of the last drain of samples; `cpus` and `kernel` (the kernel's own counts at the same moment)
 * have one element for each CPU of the source, in its order.
 */
void collector_snapshot(struct collector *collector, struct collector_counts *ret,
                        struct drain_cpu_counts *cpus, struct perf_count *kernel);
int32_t collector_hung_pid(struct collector *collector);
