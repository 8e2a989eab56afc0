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
    for (size_t i = 0; i < report->row_count; i++) {
        const struct row_of wanted = {profile, &report->rows[i]};
        const struct row_of *found =
            bsearch(&wanted, rows, others.row_count, sizeof *rows, compare_rows);
        report->rows[i].ratio_self = found == NULL ? 0 : found->row->self;
    }
    report->ratio_event = &other->event;
    report->ratio_total = others.total;
    return 0;
}
