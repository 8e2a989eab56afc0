/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The cost of samples, and what their event is called.
 */
#include "export_cost.h"

#include <ctype.h>
#include <string.h>

struct export_cost export_cost_of(const struct profile *profile)
{
    if (!profile->event.is_clock) {
        return (struct export_cost){.scale = 1, .is_time = profile->event.is_time};
    }
    uint64_t period_ns = profile_period_ns(profile);
    if (period_ns == 0 && profile_has_periods(profile)) {
        return (struct export_cost){.scale = 0, .is_time = true};
    }
    return (struct export_cost){.scale = period_ns > 0 ? period_ns : 1, .is_time = period_ns > 0};
}

const char *export_event_name(const struct profile_event *event, char *into)
{
    size_t used = 0;
    for (const char *at = event->name; *at != '\0' && used + 1 < EXPORT_EVENT_BYTES; at++) {
        bool is_plain = isalnum((unsigned char)*at) != 0 || strchr("-_:=/,.", *at) != NULL;
        into[used++] = is_plain ? *at : '?';
    }
    into[used] = '\0';
    return into;
}
