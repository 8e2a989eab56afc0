/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a recording says of its session, or of all its sessions, for a person.
 */

#include "profile.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct session_facts {
    size_t session_count;
    char *host; /* owned, as all texts; NULL: not known, or sessions differ, as in the others */
    char *kernel;
    char *targets; /* "the whole machine", "process 7 with its children and user 1000" */
    char *command; /* of the only process that was named; NULL: not known, or another target */
    char *cpus;    /* "0-3"; NULL: all */
    bool is_whole; /* no session named a part */
    bool has_kernel_stacks;   /* of all sessions, the kernel's functions were recorded */
    struct intern hosts;      /* of several sessions: their names, as they came first */
    struct intern parts;      /* of several: what was recorded, "process 7 on CPUs 0-3" */
    int64_t realtime_ns;      /* when it began, or the part that is selected; 0: not known */
    int64_t last_realtime_ns; /* of the last sample */
};

/* All that is not known stays 0. */
void session_facts_take(const struct profile *profile, struct session_facts *ret);
void session_facts_done(struct session_facts *facts);

/* The facts of one session's object; it has no times. */
void session_facts_take_one(const char *session_json, struct session_facts *ret);

/* "web1 (Linux 6.1.0)", or "2 hosts: web1, web2" */
void session_facts_write_host(FILE *file, const struct session_facts *facts);

/* "the whole machine on CPUs 0-3", "./lock (process 7 with its children)", "2 sessions of user 7",
 * "2 sessions, of user 7, of user 8" */
void session_facts_write_targets(FILE *file, const struct session_facts *facts);
/* Whether a view of the profile is of less than the whole machine, all of the time: so the books,
 * which are of that, say nothing of its sums. */
bool session_facts_are_of_part(const struct profile *profile);
