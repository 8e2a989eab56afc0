/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whether what -p and -t name is still there: when the last of these tasks has ended, nothing is
 * left to record. Their children are not watched.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All zero: watches nothing. */
struct target_watch {
    struct watched_task *tasks; /* owned */
    size_t count;
};

/*
 * Begins to watch the tasks that the targets of a session config name. It watches none where the
 * targets name anything else too, which may go on without them. Returns 0, or -ENOMEM;
 * target_watch_done() releases it in any case.
 */
int target_watch_begin(struct target_watch *watch, const char *config);
void target_watch_done(struct target_watch *watch);

/* Whether there were tasks to watch, and all have ended. Never waits. */
bool target_watch_has_ended(struct target_watch *watch);

/* "process 7 has ended", "all 3 targets have ended". `into` has room for TARGET_WATCH_TEXT_BYTES;
 * returns it. */
#define TARGET_WATCH_TEXT_BYTES ((size_t)64)
const char *target_watch_describe(const struct target_watch *watch, char *into);
