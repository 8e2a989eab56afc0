/* SPDX-License-Identifier: Apache-2.0 */

/*
 * ticks takes events in the order of their time, and a CPU's events come from two rings. So one
 * record is always read ahead, and kept until its time. A loss is passed on at once, since the time
 * that it concerns begins with the record before it. A full ring counts as a loss, too: the kernel
 * may not have written its LOST record yet.
 */
#include "switch_feed.h"

#include "clock.h"

/* A switch record with a LOST record before it needs this much room. */
#define ROOM_BYTES 128

/* A rate is measured over this time, so that a short burst is none. */
#define RATE_SPAN_NS UINT64_C(100000000)

void switch_feed_init(struct switch_feed *feed, struct perf_ring *ring,
                      const struct perf_record_layout *layout, struct ticks *ticks)
{
    *feed = (struct switch_feed){
        .ring = ring,
        .layout = layout,
        .ticks = ticks,
        .rate_max = SWITCH_FEED_RATE_MAX,
        .retry_after_ns = SWITCH_FEED_RETRY_NS,
    };
}

void switch_feed_share(struct switch_feed *feed, const struct perf_ring *view, uint64_t rate_max)
{
    feed->other = view;
    feed->rate_max = rate_max;
    feed->retry_after_ns = NS_PER_S;
}

void switch_feed_start(struct switch_feed *feed, uint64_t time_ns)
{
    feed->off = false;
    feed->off_from_ns = feed->off_to_ns = 0;
    feed->rate_since_ns = time_ns;
    feed->rate_count = 0;
}

/* Up to where all readers have read. */
static uint64_t read_by_all(const struct switch_feed *feed)
{
    const uint64_t own = feed->ring->tail;
    return feed->other != NULL && feed->other->tail < own ? feed->other->tail : own;
}

void switch_feed_refresh(struct switch_feed *feed)
{
    if (feed->ring != NULL) {
        perf_ring_refresh(feed->ring);
        feed->full = feed->ring->head - read_by_all(feed) > feed->ring->data_bytes - ROOM_BYTES;
    }
}

static void take_record(struct switch_feed *feed, const struct perf_record *record)
{
    if (record->kind == PERF_KIND_LOST) {
        ticks_switches_lost(feed->ticks);
        feed->rate_count += record->lost.count;
    } else if (record->kind == PERF_KIND_SWITCH) {
        bool out = record->context_switch.out;
        bool other_is_idle = record->context_switch.other_pid == 0;
        bool self_is_idle = record->pid == 0;
        feed->has_next = true;
        feed->next.time_ns = record->time_ns;
        feed->next.was_idle = out ? self_is_idle : other_is_idle;
        feed->next.is_idle = out ? other_is_idle : self_is_idle;
        feed->rate_count++;
    }
}

/* Reads the next record, if there is one, into `next`. */
static void take_ahead(struct switch_feed *feed)
{
    const uint8_t *bytes = NULL;
    size_t size_bytes = 0;
    while (!feed->has_next) {
        int r = perf_ring_peek(feed->ring, &bytes, &size_bytes);
        if (r == 0) {
            break;
        }
        struct perf_record record;
        if (r < 0 || perf_record_parse(feed->layout, bytes, size_bytes, &record) < 0) {
            feed->bad_count++;
            ticks_switches_lost(feed->ticks);
        } else {
            take_record(feed, &record);
        }
        if (r > 0) {
            perf_ring_advance(feed->ring, size_bytes);
        }
    }
    if (!feed->has_next && feed->full) {
        ticks_switches_lost(feed->ticks);
        feed->full = false;
    }
}

void switch_feed_until(struct switch_feed *feed, uint64_t time_ns)
{
    if (feed->ring == NULL) {
        return;
    }
    take_ahead(feed);
    while (feed->has_next && feed->next.time_ns <= time_ns) {
        ticks_switch(feed->ticks, feed->next.time_ns, feed->next.was_idle, feed->next.is_idle);
        feed->has_next = false;
        take_ahead(feed);
    }
}

void switch_feed_publish(struct switch_feed *feed)
{
    if (feed->ring != NULL) {
        struct perf_ring read = *feed->ring;
        read.tail = read_by_all(feed);
        (void)perf_ring_publish(&read);
    }
}

bool switch_feed_is_empty(const struct switch_feed *feed)
{
    return feed->ring == NULL || (!feed->has_next && feed->ring->head == read_by_all(feed));
}

enum switch_wish switch_feed_judge(struct switch_feed *feed, uint64_t time_ns)
{
    if (feed->ring == NULL || time_ns < feed->rate_since_ns + RATE_SPAN_NS) {
        return SWITCH_KEEP;
    }
    /* Two records a switch: out of the one task, and in to the other. */
    uint64_t switches = feed->rate_count / 2;
    uint64_t span_ns = time_ns - feed->rate_since_ns;
    feed->rate_since_ns = time_ns;
    feed->rate_count = 0;
    if (!feed->off && switches > feed->rate_max * span_ns / NS_PER_S) {
        feed->off = true;
        feed->retry_ns = time_ns + feed->retry_after_ns;
        ticks_use_switches(feed->ticks, time_ns, false);
        return SWITCH_DISABLE;
    }
    if (feed->off && time_ns >= feed->retry_ns) {
        feed->off = false;
        ticks_use_switches(feed->ticks, time_ns, true);
        return SWITCH_ENABLE;
    }
    return SWITCH_KEEP;
}
