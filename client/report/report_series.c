/* SPDX-License-Identifier: Apache-2.0 */

/*
 * When the samples of each row were taken. Times come from a file, so the parts are as long as it
 * takes to have few of them.
 */
#include "report.h"

#include "cleanup.h"

#include <errno.h>
#include <stdlib.h>

#define NANOSECONDS UINT64_C(1000000000)
#define COUNTS_MAX  ((size_t)1 << 22) /* of all rows together */

size_t report_count_shown(const struct report *report, size_t limit)
{
    return limit == 0 || limit > report->row_count ? report->row_count : limit;
}

/* Sets how many parts there are, and how long. */
static void part_time(const struct profile *profile, size_t rows, size_t length_max,
                      struct report *report)
{
    uint64_t seconds = (profile->last_ns - profile->first_ns) / NANOSECONDS + 1;
    size_t most = COUNTS_MAX / rows;
    most = most > length_max ? length_max : most;
    most = most == 0 ? 1 : most;
    report->series_seconds = (seconds + most - 1) / most;
    report->series_length =
        (size_t)((seconds + report->series_seconds - 1) / report->series_seconds);
}

int report_take_series(const struct profile *profile, size_t limit, size_t length_max,
                       struct report *report)
{
    size_t rows = report_count_shown(report, limit);
    uint32_t key_max = 0;
    if (rows == 0) {
        return 0;
    }
    for (size_t i = 0; i < report->row_count; i++) {
        key_max = report->rows[i].key > key_max ? report->rows[i].key : key_max;
    }
    part_time(profile, rows, length_max, report);
    cleanup_(freep) uint64_t **of_key = calloc((size_t)key_max + 1, sizeof *of_key);
    report->series_counts = calloc(rows * report->series_length, sizeof *report->series_counts);
    if (of_key == NULL || report->series_counts == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < rows; i++) {
        of_key[report->rows[i].key] = report->series_counts + i * report->series_length;
        report->rows[i].series = of_key[report->rows[i].key];
    }
    for (size_t i = 0; i < profile->sample_count; i++) {
        uint64_t *series = of_key[report_key(report, profile, i)];
        uint64_t second = (profile->samples[i].time_ns - profile->first_ns) / NANOSECONDS;
        if (series != NULL) {
            series[second / report->series_seconds] += profile_value(profile, i);
        }
    }
    return 0;
}
