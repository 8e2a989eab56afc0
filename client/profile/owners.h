/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whose each process was, as the recording says it: lines of JSON,
 *     {"pid":12,"boot_ts_ns":"47992453532040","uid":1000,"cgroup":"/system.slice/cron.service",...}
 * each of which holds until the next one of its process. First all are added, then the table is
 * sealed, then looked up in.
 */

#include "intern.h"
#include "names.h"
#include "process_lines.h"
#include "profile.h"
#include "recording.h"

/* What an owner is called; texts. */
struct owner_labels {
    uint32_t texts[PROFILE_LABELS];
};

/* All zero is an empty table. */
struct owners {
    struct intern owners;       /* struct profile_owner */
    struct names of_processes;  /* items of it */
    struct process_lines lines; /* what they say of parents and command lines */
    struct owner_labels
        *labels;              /* owned; by item, and one more for unknown owners; from seal() on */
    uint64_t malformed_count; /* lines that could not be read */
    bool has_session;
    bool is_of_others; /* some session was of another host: its users are not ours */
};

void owners_done(struct owners *table);

/* Adds a segment's lines; their texts go into `texts`. Returns 0, or -ENOMEM. */
int owners_add_lines(struct owners *table, struct intern *texts, uint32_t segment,
                     const struct fxt_data *data);

/* Takes note of a session's host. Returns 0, or -ENOMEM. */
int owners_take_session(struct owners *table, const struct fxt_data *data);

/* Lets all that was added be looked up, and names the owners. Returns 0, or -ENOMEM. */
int owners_seal(struct owners *table, struct intern *texts);

/* For profile_owner() and profile_label(), of what owners_find() gave. */
const struct profile_owner *owners_get(const struct owners *table, uint32_t item);
uint32_t owners_label(const struct owners *table, uint32_t item, enum profile_label label);

/* The number of a process's owner at a time, or INTERN_NONE, and for which times it is that. */
uint32_t owners_find(const struct owners *table, uint32_t segment, uint64_t pid, uint64_t time_ns,
                     struct names_span *ret_span);
