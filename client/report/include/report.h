/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Where the time went, as rows, each what enum report_by says. `self` counts the samples
 * that were there, `total` those that were there or had been called from there, a stack once. Of a
 * profile with inlined functions each of these is a row as any other function is; of one with
 * lines, each line of a function.
 */

#include "page.h"
#include "profile.h"
#include "summary.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum report_by {
    REPORT_BY_FUNCTION,
    REPORT_BY_MODULE,
    REPORT_BY_PROCESS,
    REPORT_BY_COMMAND, /* all processes of one name */
    REPORT_BY_THREAD,
    REPORT_BY_CPU,
    REPORT_BY_LINE, /* of a function; of a profile with lines */
};

enum report_sort {
    REPORT_SORT_SELF,
    REPORT_SORT_TOTAL,
};

/* Texts are the profile's; INTERN_NONE where a member does not apply. */
struct report_row {
    uint32_t name;
    uint32_t module;
    uint32_t process;
    bool has_pid;
    bool has_tid;
    uint64_t pid;
    uint64_t tid;
    uint32_t cpu;           /* of a row by CPU, which has no name */
    uint64_t process_count; /* of a row by command */
    uint32_t file;          /* where in the function, as `line`; only of a profile with lines */
    uint32_t line;          /* 0: not known */
    uint64_t self;
    uint64_t self_inlined; /* of them, in copies that were inlined */
    uint64_t total;
};

struct report {
    enum report_by by;
    enum report_sort sort;
    struct report_row *rows; /* owned; by what `sort` says, then the other, then name */
    size_t row_count;
    uint64_t sample_count;
};

/* The enumerator called `name` ("function", ...). */
bool report_by_parse(const char *name, enum report_by *ret);
const char *report_by_name(enum report_by by);

/* Returns 0, or -ENOMEM. Either way report_done() releases it. */
int report_build(const struct profile *profile, enum report_by by, enum report_sort sort,
                 struct report *ret);
void report_done(struct report *report);

/* At most `limit` rows, 0 for all. What stands below is summary_print_foot()'s. */
void report_print_table(const struct page *page, const struct profile *profile,
                        const struct summary *summary, const struct report *report, size_t limit);
void report_print_json(FILE *file, const struct profile *profile, const struct summary *summary,
                       const struct report *report, size_t limit);
