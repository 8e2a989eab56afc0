/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A part of a recording: what was sampled between two times, of some tasks, in some modules. A
 * sample is selected if it lies between the times, and, where tasks are named, one of them is its
 * own, and, where modules are named, one of them has its innermost frame. Of a wait, which was
 * there for as long as it stands for, what lies between the times is selected: its sample is then
 * at the end of that, and stands for it. Users, units and control groups are those that the process
 * had when it was sampled; of a recording that does not say them none is selected. The profile's
 * threads are selected by their tasks; of a part of the time, or of modules, none is.
 */

#include "profile.h"
#include "unit_glob.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How many tasks of a kind, or modules, may be named. */
#define SELECTION_MAX 64

/* Times of the wall clock are those of the local time zone. */
enum selection_time_kind {
    SELECTION_ANY_TIME,
    SELECTION_OFFSET,      /* since the first sample */
    SELECTION_TIME_OF_DAY, /* the first from an hour before the first sample on */
    SELECTION_DATE,
};

struct selection_time {
    enum selection_time_kind kind;
    uint64_t offset_ns; /* of an offset; else the part of a second */
    int year;           /* of a date, as the next two */
    int month;          /* 1 to 12 */
    int day;
    int hour;
    int minute;
    int second;
};

/* All zero selects everything of the clock. Texts are borrowed. */
struct selection {
    const char *event;          /* which a profile is loaded of; NULL: the clock */
    struct selection_time from; /* the first that is selected */
    struct selection_time to;   /* the first that is not any more */
    uint64_t pids[SELECTION_MAX];
    size_t pid_count;
    uint64_t tids[SELECTION_MAX];
    size_t tid_count;
    const char *comms[SELECTION_MAX]; /* globs, of a thread's name or its process's */
    size_t comm_count;
    const char *modules[SELECTION_MAX]; /* globs, of a module's path or of its last part */
    size_t module_count;
    uint32_t uids[SELECTION_MAX];
    size_t uid_count;
    char units[SELECTION_MAX][UNIT_GLOB_BYTES_MAX + 1]; /* unit_glob.h, of a unit or a user's */
    size_t unit_count;
    const char *cgroups[SELECTION_MAX]; /* prefixes of a path, of whole components */
    size_t cgroup_count;
};

/* Whether all samples of the event are selected. */
bool selection_is_empty(const struct selection *selection);

/*
 * Reads a time: "1.5", "90s", "250ms", "2m", "1h" since the first sample; "14:05", "14:05:09.25" of
 * the day; "2026-01-31 14:05". False, and nothing is written: it is none of these.
 */
bool selection_parse_time(const char *text, struct selection_time *ret);

/*
 * Takes from the profile the threads that are not selected, and leaves its samples. Returns how
 * many are left.
 */
size_t selection_apply_to_threads(const struct selection *selection, struct profile *profile);

/*
 * Takes from the profile all samples that are not selected, and threads; their number is added to
 * its `unselected_count`. Returns 0, or with a sentence in `reterr` -ENODATA  a time of the day was
 * named, and the recording does not say what time it was -EINVAL   it begins where it ends, or
 * later -ESRCH    no sample is selected of a profile that has some, or none at all has its
 * innermost frame in a module that is named; the profile stays as it is -ENOMEM
 */
int selection_apply(const struct selection *selection, struct profile *profile,
                    struct fault *reterr);
