/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a recording says of its session, for a person.
 */

#include "profile.h"

#include <stdbool.h>
#include <stdint.h>

struct session_facts {
    char *host; /* owned, as all texts; NULL: not known */
    char *kernel;
    char *targets;       /* "the whole machine", "process 7 with its children and user 1000" */
    bool is_whole;       /* these: no part was named */
    char *cpus;          /* "0-3"; NULL: all */
    int64_t realtime_ns; /* of the first sample, by the wall clock; 0: not known */
};

/* All that is not known stays 0. */
void session_facts_take(const struct profile *profile, struct session_facts *ret);
void session_facts_done(struct session_facts *facts);
