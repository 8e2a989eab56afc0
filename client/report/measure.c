/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Amounts of the clock are samples, since a sample is a tick. Those of another event are in its
 * unit, which the recording says: its text is not to be trusted, and callers print it by
 * text_out.h.
 */
#include "measure.h"

#include "text_out.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NS_PER_MS       UINT64_C(1000000)
#define NS_PER_S        UINT64_C(1000000000)
#define SHOWN_IN_S_FROM (10 * NS_PER_S)

static bool is_time(const struct profile_event *event)
{
    return event->is_time && !event->is_clock;
}

struct measure measure_of(const struct profile *profile)
{
    char widest[MEASURE_CELL_BYTES];
    uint64_t total = profile_total(profile);
    struct measure measure = {.unit = ""};
    if (is_time(&profile->event)) {
        bool is_long = total >= SHOWN_IN_S_FROM;
        measure.divisor = is_long ? NS_PER_S : NS_PER_MS;
        measure.unit = is_long ? " s" : " ms";
    }
    int width = (int)strlen(measure_cell(&measure, total, widest));
    bool is_wide = width > MEASURE_WIDTH_MIN && !profile->event.is_clock;
    measure.width = is_wide ? width : MEASURE_WIDTH_MIN;
    return measure;
}

const char *measure_cell(const struct measure *measure, uint64_t value, char *into)
{
    if (measure->divisor > 0) {
        (void)snprintf(into, MEASURE_CELL_BYTES, "%.3f", (double)value / (double)measure->divisor);
    } else {
        (void)snprintf(into, MEASURE_CELL_BYTES, "%" PRIu64, value);
    }
    return into;
}

const char *measure_words(const struct profile_event *event, uint64_t value, char *into)
{
    return event->is_clock ? text_samples(value, into)
                           : text_amount(value, event->unit, into, MEASURE_WORDS_BYTES);
}

static const char *wait_time(const struct profile_event *event)
{
    return strcmp(event->name, PROFILE_EVENT_PREEMPTED) == 0 ? "preempted time" : "blocked time";
}

const char *measure_whole(const struct profile_event *event)
{
    return event->is_clock  ? "samples"
           : event->is_wait ? wait_time(event)
           : event->is_time ? "time"
                            : event->unit;
}

bool measure_is_one(const struct profile_event *event)
{
    return is_time(event);
}
