/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What samples cost in formats that have one number for it. Of the clock that is time where the
 * recording says its period, else a number of samples; of another event what samples stand for, in
 * its unit.
 */

#include "profile.h"

#include <stdbool.h>
#include <stdint.h>

struct export_cost {
    uint64_t scale; /* the cost of a value of 1 */
    bool is_time;   /* costs are nanoseconds */
};

struct export_cost export_cost_of(const struct profile *profile);

/* The cost of a sample, by its number. */
static inline uint64_t export_cost_at(const struct export_cost *cost, const struct profile *profile,
                                      size_t sample)
{
    return profile_value(profile, sample) * cost->scale;
}

/* The event's name as formats of lines can have it, as readers of perf's names take it: other
 * characters are '?'. `into` has room for EXPORT_EVENT_BYTES; returns it. */
#define EXPORT_EVENT_BYTES ((size_t)64)
const char *export_event_name(const struct profile_event *event, char *into);
