/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How many waits the rows of a report have, and the longest. Each sample is a wait, as long as it
 * stands for, unless it stands for others too: how many these are its weight does not say, so of a
 * row with such samples nothing is known.
 */
#include "report_waits.h"

#include "books_print.h"
#include "cleanup.h"
#include "doubts_threads.h"
#include "page.h"
#include "wait_sums.h"

#include <errno.h>
#include <stdlib.h>

bool report_waits_are_sampled(const struct profile *profile)
{
    int64_t count = 0;
    return !books_print_event(profile->books_json, profile->event.name, "not_sampled", &count) ||
           count > 0;
}

int report_take_waits(const struct profile *profile, struct report *report)
{
    const bool is_sampled = report_waits_are_sampled(profile);
    uint32_t key_max = 0;
    for (size_t i = 0; i < report->row_count; i++) {
        key_max = report->rows[i].key > key_max ? report->rows[i].key : key_max;
    }
    cleanup_(freep) struct report_row **of_key =
        calloc((size_t)key_max + 1, sizeof(struct report_row *));
    if (of_key == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < report->row_count; i++) {
        of_key[report->rows[i].key] = &report->rows[i];
        report->rows[i].has_waits = true;
    }
    for (size_t i = 0; i < profile->sample_count; i++) {
        struct report_row *row = of_key[report_key(report, profile, i)];
        const uint64_t value_ns = profile_value(profile, i);
        row->wait_count++;
        row->longest_ns = value_ns > row->longest_ns ? value_ns : row->longest_ns;
        row->has_waits = row->has_waits &&
                         !(is_sampled && wait_sums_stand_for_others(profile, &profile->samples[i]));
    }
    report->has_waits = true;
    return 0;
}

void report_waits_print(const struct page *page, const struct profile *profile,
                        const struct report *report, size_t shown)
{
    int64_t short_count = 0;
    bool is_known = true;
    for (size_t i = 0; i < shown; i++) {
        is_known = is_known && report->rows[i].has_waits;
    }
    if (!is_known) {
        char whole[] =
            "-: waits were too many to record each, and samples do not say how many they stand "
            "for; profctl report --threads --wide has the switches of each thread";
        char part[] =
            "-: waits were too many to record each, and samples do not say how many they stand "
            "for; profctl report --threads --wide has the switches of each thread, as far as "
            "these were recorded";
        page_print_lines(page, PAGE_PLAIN, doubts_threads_have_switches(profile) ? whole : part);
    }
    if (books_print_event(profile->books_json, profile->event.name, "short", &short_count) &&
        short_count > 0) {
        char line[] = "waits shorter than min_wait_us (--min-wait) are not counted";
        page_print_lines(page, PAGE_PLAIN, line);
    }
}
