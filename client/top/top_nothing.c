/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A process that waits has no sample of the clock, and one that hangs none of waits either, since a
 * wait has its sample when it ends. So an empty table says why, and where something is.
 */
#include "top_nothing.h"

#include <stdio.h>

const char *top_nothing_text(const struct top_model *model, const struct top_events *events,
                             uint32_t shown, bool has_screen, char *into)
{
    struct top_sums sums = {0};
    uint32_t other = 0;
    while (other < events->count && sums.sample_count == 0) {
        top_model_sum(model, other, &sums);
        other += sums.sample_count == 0;
    }
    int used = snprintf(into, TOP_NOTHING_BYTES, "%s",
                        events->all[shown].is_wait ? "no wait has ended yet" : "no samples yet");
    if (other < events->count && other != shown) {
        (void)snprintf(into + used, TOP_NOTHING_BYTES - (size_t)used,
                       has_screen ? "; %.80s has some: e" : "; %.80s has some: --event",
                       events->all[other].name);
    }
    return into;
}
