/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The events of a session, by what the session says of itself, and how amounts of them are shown.
 * Events keep their numbers from one session to the next. Pure.
 */

#include "fault.h"
#include "profile_event.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOP_EVENTS_MAX ((size_t)16) /* a session of this daemon has at most 10 */
#define TOP_CLOCK      0

/* An event by the number that the session at hand has for it. */
struct top_session_event {
    uint64_t period;
    uint32_t event; /* of `all` */
};

struct top_events {
    struct profile_event all[TOP_EVENTS_MAX]; /* owned; the first is the clock */
    size_t count;
    struct top_session_event of_session[TOP_EVENTS_MAX];
    size_t session_count;
    char *session_json;      /* owned; what was read last; NULL: no session has said anything yet */
    int64_t clock_period_ns; /* of the session at hand; 0: it does not say it */
};

/* The clock alone. Returns 0, or -ENOMEM. Either way top_events_done() releases it. */
int top_events_init(struct top_events *events);
void top_events_done(struct top_events *events);

/* Reads what the session at hand says (borrowed; NULL: nothing yet). What was read before is not
 * read again. Returns 0, or -ENOMEM. */
int top_events_read(struct top_events *events, const char *session_json);

/* The event of a sample, and what the sample stands for. False, and nothing is written: that is
 * nothing, or the session does not name the event. */
bool top_events_value(const struct top_events *events, const struct told_event *told,
                      uint32_t *ret_event, uint64_t *ret_value);

/*
 * The event that a user calls `wanted` (NULL: the clock). Returns 0, -EAGAIN: no session has named
 * its events yet, or -ESRCH with a sentence in `reterr`: it does not have that one.
 */
int top_events_choose(const struct top_events *events, const char *wanted, uint32_t *ret,
                      struct fault *reterr);

/* The unit of amounts: "ms" of times, "samples" of the clock. Borrowed from the event. */
const char *top_events_unit(const struct profile_event *event);

/* An amount in that unit: "12.34" of times. `into` has room for TOP_AMOUNT_BYTES; returns it. */
#define TOP_AMOUNT_BYTES ((size_t)32)
#define TOP_AMOUNT_WIDTH 12 /* of a column with amounts */
const char *top_events_amount(const struct profile_event *event, uint64_t value, char *into);
