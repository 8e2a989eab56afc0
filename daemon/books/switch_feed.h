/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Moves one CPU's switch records from their ring into its ticks, up to a time. Decides whether
 * their rate is so high that they had better be off. Pure.
 */

#include "perf_record.h"
#include "perf_ring.h"
#include "ticks.h"

#include <stdbool.h>
#include <stdint.h>

/* More switches a second cost more than they are worth; they are tried again after a while. Both
 * are others where there is another reader of them. */
#define SWITCH_FEED_RATE_MAX UINT64_C(20000)
#define SWITCH_FEED_RETRY_NS UINT64_C(10000000000)

struct switch_feed {
    struct perf_ring *ring; /* borrowed, as the next two; NULL: no records */
    const struct perf_record_layout *layout;
    struct ticks *ticks;
    const struct perf_ring *other; /* the view of another reader, which is never ahead of the
                                    * kernel's room; borrowed; NULL: none */
    uint64_t rate_max;             /* switches a second; see above, as the next */
    uint64_t retry_after_ns;
    bool full; /* the ring was full, so later records may be lost */
    bool has_next;
    struct {
        uint64_t time_ns;
        bool was_idle, is_idle;
    } next;
    bool off;
    uint64_t off_from_ns; /* the records were off lately, by the caller's note; 0: never */
    uint64_t off_to_ns;   /* UINT64_MAX: they are */
    uint64_t rate_since_ns;
    uint64_t rate_count; /* records since then */
    uint64_t retry_ns;
    uint64_t bad_count; /* records that could not be parsed */
};

void switch_feed_init(struct switch_feed *feed, struct perf_ring *ring,
                      const struct perf_record_layout *layout, struct ticks *ticks);

/* Sampling has been enabled, and the records with it. */
void switch_feed_start(struct switch_feed *feed, uint64_t time_ns);

/* In a round: reads how far the kernel has written; moves records up to a time, any number of
 * times; gives the ring's room back. */
void switch_feed_refresh(struct switch_feed *feed);
void switch_feed_until(struct switch_feed *feed, uint64_t time_ns);
void switch_feed_publish(struct switch_feed *feed);
/* True when all that the kernel had written at the last refresh was moved. */
bool switch_feed_is_empty(const struct switch_feed *feed);

/* Has another reader read them too, who may have so many switches a second and is to have them
 * again after a second. */
void switch_feed_share(struct switch_feed *feed, const struct perf_ring *view, uint64_t rate_max);

/* What to do with the CPU's switch event, after a round up to `time_ns`. */
enum switch_wish {
    SWITCH_KEEP,
    SWITCH_DISABLE,
    SWITCH_ENABLE,
};
enum switch_wish switch_feed_judge(struct switch_feed *feed, uint64_t time_ns);
