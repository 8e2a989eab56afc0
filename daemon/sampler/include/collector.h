/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The sampling thread: drains the rings, keeps the process table, filters, writes the trace.
 * Everything that it is given belongs to it alone until collector_free(), but for what
 * perf_source.h says. What crosses between the threads is in this header: three requests, four
 * events, CPUs that come and go, a snapshot of the counts, and the beat.
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

/* Sampling has been enabled: samples come from now on. At that limit of CLOCK_BOOTTIME (0: none)
 * the thread disables it, if that has not been done: at a rate that is too high for the machine,
 * no other thread may get a CPU. */
void collector_resume(struct collector *collector, uint64_t sampling_limit_ns);
/* Sampling will be disabled: what /proc says of the times of threads is read for their books, which
 * is given up after two seconds -> COLLECTOR_READ. */
void collector_read_times(struct collector *collector);
/* Sampling has been disabled: everything that the rings hold goes into the trace ->
 * COLLECTOR_DRAINED. */
void collector_drain(struct collector *collector);
/*
 * Waits for names that are still being looked up, so long at the most, then writes the books
 * (taken; freed with free()) -> COLLECTOR_FINISHED. After COLLECTOR_DRAINED only.
 */
void collector_finish(struct collector *collector, char *books_json, uint64_t names_limit_ns);

/* The source's CPU at `index` is offline, or was, and its events are of no use any more. */
void collector_lose_cpu(struct collector *collector, size_t index);
/* What takes their place (taken), after that; one at a time for each CPU -> COLLECTOR_REPLACED when
 * it is in use. */
void collector_replace_cpu(struct collector *collector, struct perf_opening *opening);
/* What was replaced, one after the other (returned: perf_opening_free()); NULL: none. */
struct perf_opening *collector_take_replaced(struct collector *collector);

/* To be taken until there is nothing. A resume ends a finish that is under way. */
enum collector_event {
    COLLECTOR_NOTHING,
    COLLECTOR_DRAINED,
    COLLECTOR_FINISHED,
    COLLECTOR_HUNG, /* once: reading /proc of collector_hung_pid() hangs */
    COLLECTOR_REPLACED,
    COLLECTOR_READ,
};
int collector_fd(const struct collector *collector); /* borrowed; readable: an event */
enum collector_event collector_take_event(struct collector *collector);

/* The CLOCK_MONOTONIC time at which the thread last began a turn, which it does every 100 ms at the
 * latest. */
uint64_t collector_beat_ns(const struct collector *collector);

/* Fills in counters and lines as of the last round; `cpus` has one element for each sampled CPU of
 * the source, in its order. */
void collector_snapshot(struct collector *collector, struct books *books);
int32_t collector_hung_pid(struct collector *collector);
