/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a comparison calls its sides, and what its numbers are parts of.
 */
#include "diff_parts.h"
#include "measure.h"
#include "utf8.h"

#include <stdio.h>
#include <string.h>

const char *diff_whole_name(const struct diff *diff, char *into)
{
    const char *name = diff->event.is_clock ? "CPU time" : measure_whole(&diff->event);
    (void)utf8_shown(into, DIFF_UNIT_BYTES, name, strlen(name));
    return into;
}

const char *diff_side_name(const struct diff *diff, enum diff_side side, char *into)
{
    const char *name = "";
    for (size_t i = 0; i < diff->part_count; i++) {
        name = diff->parts[i].side == side ? diff->parts[i].name : name;
    }
    if (diff->counts[side] == 1) {
        (void)snprintf(into, DIFF_NAME_BYTES, "%s", name);
    } else {
        (void)snprintf(into, DIFF_NAME_BYTES, "%zu recordings", diff->counts[side]);
    }
    return into;
}
