/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Puts beside the rows of a report what another event had in the same rows. The two profiles are of
 * one recording, but each has texts of its own, so rows are matched by what a person reads of them.
 */
#include "report.h"

#include "cleanup.h"
#include "compare.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_MS 1e6

struct row_of {
    const struct profile *profile;
    const struct report_row *row;
};

static int compare_texts(const struct row_of *a, uint32_t a_text, const struct row_of *b,
                         uint32_t b_text)
{
    if (a_text == INTERN_NONE || b_text == INTERN_NONE) {
        return (a_text == INTERN_NONE) - (b_text == INTERN_NONE);
    }
    return strcmp(profile_text(a->profile, a_text), profile_text(b->profile, b_text));
}

static int compare_rows(const void *left, const void *right)
{
    const struct row_of *a = left;
    const struct row_of *b = right;
    int r = compare_texts(a, a->row->name, b, b->row->name);
    r = r == 0 ? compare_texts(a, a->row->module, b, b->row->module) : r;
    r = r == 0 ? compare_texts(a, a->row->build_id, b, b->row->build_id) : r;
    r = r == 0 ? compare_texts(a, a->row->process, b, b->row->process) : r;
    r = r == 0 ? compare_texts(a, a->row->host, b, b->row->host) : r;
    r = r == 0 ? compare_texts(a, a->row->file, b, b->row->file) : r;
    r = r == 0 ? compare_u64(a->row->line, b->row->line) : r;
    r = r == 0 ? compare_u64(a->row->pid, b->row->pid) : r;
    r = r == 0 ? compare_u64(a->row->tid, b->row->tid) : r;
    return r == 0 ? compare_u64(a->row->cpu, b->row->cpu) : r;
}

/* How many of the event's unit a value is. */
static uint64_t find_tick(const struct profile *profile)
{
    return profile->event.is_clock ? profile_period_ns(profile) : 1;
}

double report_ratio(const struct report *report, uint64_t part, uint64_t whole)
{
    double parts = (double)part * (double)(report->ratio_tick > 0 ? report->ratio_tick : 1);
    double wholes = (double)whole * (double)(report->row_tick > 0 ? report->row_tick : 1);
    return whole == 0 ? 0 : parts / wholes;
}

bool report_ratio_is_by_ms(const struct report *report, const struct profile *profile)
{
    return profile->event.is_time && report->row_tick > 0 && !report->ratio_event->is_time;
}

double report_shown_ratio(const struct report *report, const struct profile *profile, uint64_t part,
                          uint64_t whole)
{
    double ratio = report_ratio(report, part, whole);
    return report_ratio_is_by_ms(report, profile) ? ratio * NS_PER_MS : ratio;
}

int report_take_ratio(const struct profile *profile, const struct profile *other,
                      struct report *report)
{
    cleanup_(report_done) struct report others = {0};
    int r = report_build(other, report->by, report->sort, &others);
    cleanup_(freep) struct row_of *rows = calloc(others.row_count + 1, sizeof *rows);
    if (r < 0 || rows == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < others.row_count; i++) {
        rows[i] = (struct row_of){other, &others.rows[i]};
    }
    qsort(rows, others.row_count, sizeof *rows, compare_rows);
    report->ratio_event = &other->event;
    report->ratio_total = others.total;
    report->ratio_tick = find_tick(other);
    report->row_tick = find_tick(profile);
    for (size_t i = 0; i < report->row_count; i++) {
        struct report_row *row = &report->rows[i];
        const struct row_of wanted = {profile, row};
        const struct row_of *found =
            bsearch(&wanted, rows, others.row_count, sizeof *rows, compare_rows);
        row->ratio_self = found == NULL ? 0 : found->row->self;
        row->ratio = report_shown_ratio(report, profile, row->ratio_self, row->self);
    }
    return 0;
}
