/* SPDX-License-Identifier: Apache-2.0 */

/*
 * When the samples of each row were taken. Times come from a file, so the parts are as long as it
 * takes to have few of them. A wait is in every part that it lies in, with so much of it; what lies
 * before the first part is in that. How many waits fill a part is noted at the first and behind the
 * last that each of them fills, so a long wait costs no more than a short one.
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

/* Of the rows that have a series. */
struct taking {
    const struct profile *profile;
    struct report *report;
    uint64_t origin_ns; /* where the first part begins */
    uint64_t part_ns;
    uint64_t **of_key; /* owned; the series of a row, by its key; NULL: it has none */
    int64_t *changes;  /* owned; of how many waits fill a part, as series are; NULL: of no waits */
};

static void taking_done(struct taking *taking)
{
    free(taking->of_key);
    free(taking->changes);
}

/* Waits begin before the first of them ends: with what is shown, as all views say. */
static uint64_t find_origin_ns(const struct profile *profile)
{
    const uint64_t begin_ns = profile_span(profile).begin_ns;
    return profile->event.is_wait && begin_ns < profile->first_ns ? begin_ns : profile->first_ns;
}

/* Sets how many parts there are, and how long. */
static void part_time(const struct profile *profile, size_t rows, size_t length_max,
                      struct report *report)
{
    uint64_t seconds = (profile->last_ns - find_origin_ns(profile)) / NANOSECONDS + 1;
    size_t most = COUNTS_MAX / rows;
    most = most > length_max ? length_max : most;
    most = most == 0 ? 1 : most;
    report->series_seconds = (seconds + most - 1) / most;
    report->series_length =
        (size_t)((seconds + report->series_seconds - 1) / report->series_seconds);
}

/* Finds the rows that have a series, at most `rows`. */
static int begin(struct taking *taking, size_t rows)
{
    struct report *report = taking->report;
    const size_t length = report->series_length;
    uint32_t key_max = 0;
    for (size_t i = 0; i < report->row_count; i++) {
        key_max = report->rows[i].key > key_max ? report->rows[i].key : key_max;
    }
    taking->of_key = calloc((size_t)key_max + 1, sizeof *taking->of_key);
    report->series_counts = calloc(rows * length, sizeof *report->series_counts);
    taking->changes =
        taking->profile->event.is_wait ? calloc(rows * length, sizeof *taking->changes) : NULL;
    if (taking->of_key == NULL || report->series_counts == NULL ||
        (taking->changes == NULL && taking->profile->event.is_wait)) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < rows; i++) {
        taking->of_key[report->rows[i].key] = report->series_counts + i * length;
        report->rows[i].series = taking->of_key[report->rows[i].key];
    }
    return 0;
}

static size_t find_part(const struct taking *taking, uint64_t time_ns)
{
    return time_ns < taking->origin_ns ? 0
                                       : (size_t)((time_ns - taking->origin_ns) / taking->part_ns);
}

/* Adds a wait to the parts that it lies in. */
static void add_wait(struct taking *taking, uint64_t *series, size_t sample)
{
    const uint64_t value_ns = profile_value(taking->profile, sample);
    const uint64_t end_ns = taking->profile->samples[sample].time_ns;
    const uint64_t begin_ns = profile_begin_ns(taking->profile, sample);
    const size_t first = find_part(taking, begin_ns);
    const size_t last = find_part(taking, end_ns > begin_ns ? end_ns - 1 : end_ns);
    if (first == last) {
        series[first] += value_ns;
        return;
    }
    int64_t *changes = taking->changes + (series - taking->report->series_counts);
    const uint64_t last_ns = end_ns - (taking->origin_ns + last * taking->part_ns);
    series[last] += last_ns;
    series[first] += value_ns - last_ns - (last - first - 1) * taking->part_ns;
    changes[first + 1]++;
    changes[last]--;
}

/* Adds the parts that waits fill. */
static void fill_parts(struct taking *taking, size_t rows)
{
    const size_t length = taking->report->series_length;
    for (size_t row = 0; row < rows; row++) {
        int64_t filling_count = 0;
        for (size_t i = row * length; i < (row + 1) * length; i++) {
            filling_count += taking->changes[i];
            taking->report->series_counts[i] += (uint64_t)filling_count * taking->part_ns;
        }
    }
}

int report_take_series(const struct profile *profile, size_t limit, size_t length_max,
                       struct report *report)
{
    const size_t rows = report_count_shown(report, limit);
    if (rows == 0) {
        return 0;
    }
    part_time(profile, rows, length_max, report);
    cleanup_(taking_done) struct taking taking = {
        .profile = profile,
        .report = report,
        .origin_ns = find_origin_ns(profile),
        .part_ns = report->series_seconds * NANOSECONDS,
    };
    if (begin(&taking, rows) < 0) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < profile->sample_count; i++) {
        uint64_t *series = taking.of_key[report_key(report, profile, i)];
        if (series != NULL && profile->event.is_wait) {
            add_wait(&taking, series, i);
        } else if (series != NULL) {
            series[find_part(&taking, profile->samples[i].time_ns)] += profile_value(profile, i);
        }
    }
    if (taking.changes != NULL) {
        fill_parts(&taking, rows);
    }
    return 0;
}
