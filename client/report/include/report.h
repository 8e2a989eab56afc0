/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Where the time went, as rows, each what enum report_by says. `self` counts the samples
 * that were there, `total` those that were there or had been called from there, a stack once: what
 * they stand for, of another event than the clock. Of a
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
    REPORT_BY_UNIT, /* by what profile_label() calls it, as the next two */
    REPORT_BY_CONTAINER,
    REPORT_BY_USER,
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
    uint32_t build_id; /* of the module, in hex; of a function without a name */
    uint32_t process;
    uint32_t host; /* a text; of a process, thread or CPU where the recording is of several hosts */
    bool has_pid;
    bool has_tid;
    uint64_t pid;
    uint64_t tid;
    uint32_t cpu;           /* of a row by CPU, which has no name */
    uint64_t process_count; /* where report_counts_processes() */
    uint32_t file;          /* where in the function, as `line`; only of a profile with lines */
    uint32_t line;          /* 0: not known */
    uint32_t key;           /* by which samples name it */
    const uint64_t *series; /* self in each part of the time; borrowed from the report */
    uint64_t self;
    uint64_t self_inlined; /* of them, in copies that were inlined */
    uint64_t total;
    uint64_t ratio_self; /* of the report's ratio_event */
    uint64_t wait_count; /* of self; as the next, where the report has waits */
    uint64_t longest_ns;
    bool has_waits; /* they are known */
    double ratio;   /* as a person reads it: for each ms, where rows are of time */
};

/* What has one row for all of its samples. */
enum report_keys {
    REPORT_KEYS_OF_CHAINS,
    REPORT_KEYS_OF_TASKS,
    REPORT_KEYS_OF_SAMPLES, /* nothing but each sample itself */
};

struct report {
    enum report_by by;
    enum report_sort sort;
    struct report_row *rows; /* owned; by what `sort` says, then the other, then name */
    size_t row_count;
    uint64_t total; /* of all samples */
    uint32_t *keys; /* owned; of the row that a sample is in itself; report_key() */
    enum report_keys keys_are_of;
    uint64_t *series_counts;                 /* owned; of the rows that have a series */
    size_t series_length;                    /* parts of the time; 0: no row has a series */
    uint64_t series_seconds;                 /* of each part */
    bool has_waits;                          /* rows say how many they have */
    const struct profile_event *ratio_event; /* borrowed; NULL: rows have no ratio */
    uint64_t ratio_total;                    /* of all its samples */
    uint64_t ratio_tick; /* how many of the event's unit a value is: of the clock ns; 0: ticks
                          * differ, or are not known */
    uint64_t row_tick;   /* the same of the event of the rows */
};

/* "function", ... of an enumerator; NULL behind the last. */
const char *report_by_name(size_t by);
/* Whether its rows say how many processes they are of. */
bool report_counts_processes(enum report_by by);

/* Returns 0, or -ENOMEM. Either way report_done() releases it. */
int report_build(const struct profile *profile, enum report_by by, enum report_sort sort,
                 struct report *ret);
void report_done(struct report *report);

/* The key of the row that a sample is in itself: that of a sample of the report's profile. */
uint32_t report_key(const struct report *report, const struct profile *profile, size_t sample);

/*
 * Gives the first rows, at most `limit` of them (0: all), a series over the time of the recording:
 * a part a second, or a few seconds where those would be more than `length_max`. Returns 0, or
 * -ENOMEM.
 */
int report_take_series(const struct profile *profile, size_t limit, size_t length_max,
                       struct report *report);

/* Gives each row of a profile of waits how many it had, and the longest, as far as that is known.
 * Returns 0, or -ENOMEM. */
int report_take_waits(const struct profile *profile, struct report *report);

/*
 * Gives each row what another event of the recording had in it: `other` (borrowed for the report's
 * life) is loaded and selected as the report's profile is. Returns 0, or -ENOMEM.
 */
int report_take_ratio(const struct profile *profile, const struct profile *other,
                      struct report *report);

/* The quotient of a value of ratio_event by one of the rows' event, both in their units, or in
 * samples where ticks are not known. */
double report_ratio(const struct report *report, uint64_t part, uint64_t whole);
/* The same as a person reads it: where only the rows are of time, for each ms. */
bool report_ratio_is_by_ms(const struct report *report, const struct profile *profile);
double report_shown_ratio(const struct report *report, const struct profile *profile, uint64_t part,
                          uint64_t whole);

/* How many rows a limit (0: all) leaves. */
size_t report_count_shown(const struct report *report, size_t limit);

/* At most `limit` rows, 0 for all. What stands below is summary_print_foot()'s. */
void report_print_table(const struct page *page, const struct profile *profile,
                        const struct summary *summary, const struct report *report, size_t limit);
void report_print_json(FILE *file, const struct profile *profile, const struct summary *summary,
                       const struct report *report, size_t limit);
