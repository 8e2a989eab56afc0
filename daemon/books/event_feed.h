/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the records of an event beside the clock, and the kernel's count of it, say of one CPU: how
 * much was lost, and for how long it was not counted. Holds an event back that brings more samples
 * than it may. Pure.
 */

#include "books.h"
#include "perf_record.h"
#include "perf_source.h"

#include <stdbool.h>
#include <stdint.h>

struct event_feed {
    struct perf_count kernel;    /* as of the last reading */
    uint64_t taken_weight;       /* of all samples, as they came: how many periods they stand for */
    uint64_t lost;               /* by records */
    uint64_t throttled;          /* times */
    uint64_t throttled_since_ns; /* 0: it is not */
    uint64_t throttled_ns;
    uint32_t rate_max_hz; /* 0: any */
    uint64_t window_ns;   /* when the time began in which samples are counted */
    uint64_t window_count;
    uint64_t held_since_ns; /* 0: it is not */
    uint64_t held_back_ns;
};

void event_feed_start(struct event_feed *feed, uint64_t time_ns);
/* A record of the event's ring. The samples that followers have with it count against the limit. */
void event_feed_take(struct event_feed *feed, const struct perf_record *record);
/* Of a follower: it has counted so much with a sample of its leader. */
void event_feed_follow(struct event_feed *feed, uint64_t weight);
/* Sampling ended, or the CPU went. */
void event_feed_end(struct event_feed *feed, uint64_t time_ns);

enum event_wish {
    EVENT_KEEP,
    EVENT_DISABLE,
    EVENT_ENABLE,
};
/* What is to be done with the event now: off for the rest of a window in which it brought all
 * samples that it may. */
enum event_wish event_feed_judge(struct event_feed *feed, uint64_t time_ns);

/* Fills in what it knows of a line of the books. */
void event_feed_line(const struct event_feed *feed, struct books_event *line);
