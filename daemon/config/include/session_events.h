/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which events a session samples: the member "events" of its config. The clock is always the first
 * of them, asked for or not, since the books of a recording are those of its ticks.
 */

#include "event_code.h"
#include "event_names.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SESSION_EVENTS_MAX             8
#define SESSION_EVENT_FREQUENCY_HZ_MAX 100000
#define SESSION_EVENT_FREQUENCY_HZ     999 /* where an event says neither a rate nor a period */
#define SESSION_EVENT_PERIOD_MAX       ((int64_t)1 << 40)

struct session_event {
    char name[EVENT_NAME_BYTES]; /* as it was asked for */
    struct event_code code;
    uint64_t period;       /* a sample each time that so many were counted; 0: by the rate */
    uint32_t frequency_hz; /* about so many samples a second on each CPU; 0: by the period. The
                            * clock has neither, as its period stands in the config */
    bool is_follower;      /* it has no samples of its own, so neither rate nor period: each sample
                            * of its leader says what it has counted */
    uint32_t leader;       /* of a follower: the place of its leader, before its own */
};

struct session_events {
    struct session_event all[SESSION_EVENTS_MAX]; /* the first: the clock, whose rate stands in the
                                                   * config; the followers of an event stand
                                                   * together, in the order of the config */
    size_t count;        /* 0: there is no member, and the clock alone is sampled */
    bool clock_is_asked; /* the clock has an element */
};
