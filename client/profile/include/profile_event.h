/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The event that the samples of a profile are of. Of the clock a sample stands for a tick; of
 * another event it stands for so many of the event's unit: its weight, times the event's period.
 */

#include "event_code.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROFILE_EVENT_CLOCK     "cpu-clock"
#define PROFILE_EVENT_OFF_CPU   "off-cpu"
#define PROFILE_EVENT_PREEMPTED "preempted"

struct profile;

struct profile_event {
    char *name; /* owned; as the recording has it, "page-faults" */
    char *unit; /* owned; "ns", "faults" */
    bool is_clock;
    bool is_time; /* the unit is nanoseconds; the clock's values are ticks all the same */
    bool is_wait; /* a sample is the whole of a wait that ended then: "off-cpu", "preempted" */
    bool is_of_switches; /* stacks are of threads that leave their CPU: a wait's, and those of
                          * context-switches */
};

/* What the record of a sample says of its event. */
struct told_event {
    uint64_t weight;
    uint32_t number; /* of the session's events; 0: the clock's */
};

/*
 * Whether a user who writes `wanted` means the event that a recording calls `name`: names are those
 * of `profctl record -e`, with perf's other ones ("cs" for "context-switches").
 */
bool profile_event_is_meant(const char *wanted, const char *name);

/*
 * The name that `profctl events` has for an event: "page-faults" for "faults", "cycles:u" for
 * "cpu-cycles:u". An event that is not listed keeps its name. `into` has room for
 * PROFILE_EVENT_NAME_BYTES; returns it, or `name`.
 */
#define PROFILE_EVENT_NAME_BYTES ((size_t)128)
const char *profile_event_listed_name(const char *name, char *into);

/* The numbers by which the kernel knows the event. False, and nothing is written: it does not, as
 * it knows no wait. */
bool profile_event_code(const struct profile_event *event, struct event_code *ret);

/* What threads are in a wait of the event, for a person: "blocked", "ready"; "" of another event. A
 * wait of off-cpu ends when the thread has a CPU, so it has the time after it was woken as well. */
const char *profile_event_state(const struct profile_event *event);

/* Whether a user who asks for such an event asks for waits: by an event of them, or by the state of
 * a thread, which is none. */
bool profile_event_is_of_waits(const char *wanted);
/* Whether the recording has events of waits. */
bool profile_has_waits(const struct profile *profile);
/* Which events have the time that threads are in a state, "ready" or "blocked", for a person; NULL:
 * it is no state. */
const char *profile_event_where(const char *state);

/* Returns 0, or -ENOMEM. */
int profile_event_set(struct profile_event *event, const char *name, const char *unit);
void profile_event_done(struct profile_event *event);
