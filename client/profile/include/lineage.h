/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which process made which, as the recording says it, and what each was. A process is known by its
 * host, its pid and its beginning, so one that is in several segments is one.
 */

#include "profile.h"

#include <stddef.h>
#include <stdint.h>

/* Texts are the profile's; INTERN_NONE where the recording does not say. */
struct lineage_process {
    uint64_t pid;
    uint64_t begin_ns; /* 0: it was there before the session */
    uint32_t parent;   /* its number, or INTERN_NONE; never a descendant of its own */
    uint32_t name;     /* that it had last */
    uint32_t command;  /* the command line of its last program, with spaces between arguments */
    uint64_t self;     /* samples of it, */
    uint64_t total;    /* and of what descends from it too */
};

/* All zero is empty. */
struct lineage {
    struct lineage_process *processes; /* owned; some have no sample below them */
    size_t capacity;
    size_t count;
};

/* Returns 0, or -ENOMEM. Either way lineage_done() releases it. */
int lineage_build(const struct profile *profile, struct lineage *ret);
void lineage_done(struct lineage *lineage);

/* The command line of the last program of the first process that had a pid, a text of the profile;
 * INTERN_NONE: the recording does not have it. */
uint32_t lineage_command(const struct profile *profile, uint64_t pid);
