/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The length of a recording, which every view and export has from here. Books may come from any
 * user's file: numbers that are none, or make no time, count as not there.
 */
#include "recording_length.h"

#include "cleanup.h"
#include "json.h"

#include <string.h>

#define DEPTH_MAX     16
#define LENGTH_NS_MAX 1e18 /* 31 years */

static double positive_number(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsNumber(item) && item->valuedouble > 0 ? item->valuedouble : 0;
}

uint64_t recording_length_ns(const char *books_json, uint64_t otherwise_ns)
{
    cleanup_(json_freep) cJSON *books = NULL;
    const cJSON *cpu = NULL;
    double ticks = 0;
    if (books_json == NULL ||
        json_parse(books_json, strlen(books_json), DEPTH_MAX, &books, NULL) < 0) {
        return otherwise_ns;
    }
    cJSON_ArrayForEach(cpu, cJSON_GetObjectItemCaseSensitive(books, "cpus"))
    {
        double expected = positive_number(cpu, "expected");
        ticks = expected > ticks ? expected : ticks;
    }
    double length_ns = ticks * positive_number(books, "period_ns");
    return length_ns >= 1 && length_ns <= LENGTH_NS_MAX ? (uint64_t)length_ns : otherwise_ns;
}
