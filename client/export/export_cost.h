/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What samples cost in formats that have one number for it. Of the clock that is time where the
 * recording says the period of each, else a number of samples; of another event what samples stand
 * for, in its unit.
 */

#include "profile.h"

#include <stdbool.h>
#include <stdint.h>

struct export_cost {
    uint64_t scale; /* the cost of a value of 1; 0: it is the period of the sample's session */
    bool is_time;   /* costs are nanoseconds */
};

struct export_cost export_cost_of(const struct profile *profile);

/* What a value of 1 costs in a sample: of the clock, if costs are times, its period. */
static inline uint64_t export_cost_of_one(const struct export_cost *cost,
                                          const struct profile *profile,
                                          const struct profile_sample *sample)
{
    return cost->scale > 0 ? cost->scale : profile_sample_period_ns(profile, sample);
}

/* The cost of a sample, by its number. */
static inline uint64_t export_cost_at(const struct export_cost *cost, const struct profile *profile,
                                      size_t sample)
{
    return profile_value(profile, sample) *
           export_cost_of_one(cost, profile, &profile->samples[sample]);
}

/* The same of one of the profile's own. */
static inline uint64_t export_cost_of_sample(const struct export_cost *cost,
                                             const struct profile *profile,
                                             const struct profile_sample *sample)
{
    return export_cost_at(cost, profile, (size_t)(sample - profile->samples));
}

/* The event's name as formats of lines can have it, as readers of perf's names take it: other
 * characters are '?'. `into` has room for EXPORT_EVENT_BYTES; returns it. */
#define EXPORT_EVENT_BYTES ((size_t)64)
const char *export_event_name(const struct profile_event *event, char *into);
