/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Looks into processes whose mappings and files may never answer: a dead network filesystem or one
 * of a user's own is enough for that. A child does it. When it is stuck at a process, it is given
 * up, and another one looks at those behind. So a process costs the caller a wait, and no more.
 */

#include "naming_process.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NAMING_LOOK_MAX 64 /* processes at one time */

struct naming_finding {
    size_t runtime; /* this, and the last two: only of one that was seen */
    bool is_seen;
    bool is_stuck; /* not seen: it was given up. Neither: there was no look */
    bool is_old_python;
    bool names_code; /* by a map or a jitdump */
};

/* What all looks of one walk through /proc may take together. */
struct naming_patience {
    uint64_t stuck_ns; /* of one process */
    uint64_t left_ns;  /* of waiting for those that are stuck */
};

/* How a process is looked at. It may block. */
typedef void naming_look_fn(const struct naming_process *process, struct naming_finding *finding);
naming_look_fn naming_look_inside;

/*
 * Looks at processes (borrowed, with their folders; NAMING_LOOK_MAX at most) and sets a finding for
 * each. A process that is stuck takes its time off the patience. When none is left, the rest is not
 * looked at.
 */
void naming_look_all(const struct naming_process *processes, size_t count, naming_look_fn *look,
                     struct naming_patience *patience, struct naming_finding *ret);
