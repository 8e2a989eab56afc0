/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * From one CPU's ring of switch records into its ticks, as far as the ticks's time has come; and
 * whether there are so many of them that it is better to do without. Pure.
 */

#include "cpu_ticks.h"
#include "perf_record.h"
#include "perf_ring.h"

#include <stdbool.h>
#include <stdint.h>

/* More switches a second than this cost more than they tell; after a while it is tried again. */
#define SWITCH_FEED_RATE_MAX UINT64_C(20000)
#define SWITCH_FEED_RETRY_NS UINT64_C(10000000000)

struct switch_feed {
    struct perf_ring *ring; /* borrowed, as the next two; NULL: no records */
    const struct perf_record_layout *layout;
    struct cpu_ticks *ticks;
    bool full; /* the ring was, so that later records may be lost */
    bool has_next;
    struct {
        uint64_t time_ns;
        bool was_idle, is_idle;
    } next;
    bool off;
    uint64_t rate_since_ns; /* and how many records there were since */
    uint64_t rate_count;
    uint64_t retry_ns;
    uint64_t bad_count; /* records that could not be parsed */
};

void switch_feed_init(struct switch_feed *feed, struct perf_ring *ring,
                      const struct perf_record_layout *layout, struct cpu_ticks *ticks);

/* Sampling has been enabled, and the records with it. */
void switch_feed_start(struct switch_feed *feed, uint64_t time_ns);

/* Takes note of what the kernel has written; then up to some times; then its room is given back. */
void switch_feed_refresh(struct switch_feed *feed);
void switch_feed_until(struct switch_feed *feed, uint64_t time_ns);
void switch_feed_publish(struct switch_feed *feed);
/* Whether nothing is left of what it took note of. */
bool switch_feed_is_empty(const struct switch_feed *feed);

/* After a drain up to `time_ns`: what is to be done with the CPU's switch event. */
enum switch_wish {
    SWITCH_KEEP,
    SWITCH_DISABLE,
    SWITCH_ENABLE,
};
enum switch_wish switch_feed_judge(struct switch_feed *feed, uint64_t time_ns);
