/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The names of events, those that perf has for them: "page-faults", "cycles:u", "LLC-load-misses",
 * "r01c2", "cpu/event=0x3c/". Pure: what a device's terms mean is asked of the machine later.
 */

#include "event_code.h"
#include "fault.h"

#include <stdbool.h>
#include <stddef.h>

#define EVENT_NAME_BYTES 64

#define EVENT_CLOCK "cpu-clock"

/*
 * Finds the event of a name, with modifiers behind a ':' (u: of programs alone, k: of the kernel
 * alone, p to ppp: at the exact instruction). Returns 0, or -EINVAL with a fault whose member is
 * `member` and whose text says what is allowed. Of EVENT_OF_PMU the caller finds the numbers.
 */
int event_names_find(const char *name, const char *member, struct event_code *ret,
                     struct fault *reterr);

/* What an administrator allows or not: what the kernel counts; what the machine's counters count,
 * of its caches too; and what only the machine's maker has names for. */
enum event_kind {
    EVENT_KIND_SOFTWARE,
    EVENT_KIND_HARDWARE,
    EVENT_KIND_RAW,
    EVENT_KINDS,
};
extern const char *const event_kind_names[EVENT_KINDS];
enum event_kind event_names_kind(const struct event_code *code);

/* What one of them is: "ns", "faults", "cycles"; static. */
const char *event_names_unit(const struct event_code *code);

/* The events that have names of their own, those of caches last, by rising `index`. `into` has room
 * for EVENT_NAME_BYTES. False: no more. */
bool event_names_at(size_t index, char *into, struct event_code *ret);
