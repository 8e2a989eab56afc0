/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Has runtimes name the code that they make: those that run are asked to write their perf map, and
 * a command that is started is told so by its environment. A process of another user is left alone,
 * unless the caller is root: then it is asked with that user's credentials.
 */

#include "session_targets.h"

#include <stdint.h>
#include <sys/types.h>

/* Asked at one time, and half of what other users leave for the processes of one; more are left
 * out, which is said. */
#define NAMING_PROCESSES_MAX 128

/* For the answers of all that are asked at one time, since they are asked together. */
#define NAMING_ANSWER_MS 2000

/* For looking at processes whose mappings and files do not answer, all together. */
#define NAMING_LOOK_MS 4000

/* Both. */
#define NAMING_MS (NAMING_ANSWER_MS + NAMING_LOOK_MS)

/*
 * How long is waited. A program that gets no CPU for so long has not answered, so tests of what
 * others answer give more.
 */
struct naming_wait {
    uint64_t answer_ms; /* for those that are asked at one time, together */
    uint64_t listen_ms; /* of it, until a Java that was told to listen does */
    uint64_t stuck_ms;  /* for the mappings and files of one process */
    uint64_t look_ms;   /* for those that do not answer, all together */
};

struct naming;

/*
 * Of the processes that are targets (borrowed); `command`, if above 0, is the pid of a command that
 * will be started: what it starts is asked by naming_ask_again(). `wait` NULL: NAMING_ANSWER_MS and
 * NAMING_LOOK_MS. `*ret` is returned: naming_free(). Returns 0, or -ENOMEM.
 */
int naming_new(const struct session_targets *targets, pid_t command, const struct naming_wait *wait,
               struct naming **ret);
struct naming *naming_free(struct naming *naming);

/*
 * Asks all targets that run, and says of each on standard error what it did, or why it could not.
 * Returns after NAMING_MS at the latest, whatever they do, and the time to walk through /proc.
 */
void naming_ask(struct naming *naming);

/* Asks those again that have answered, for the code that they have made since, and what the command
 * has started. Says something of new ones only, and of those that answer no more. */
void naming_ask_again(struct naming *naming);

/* Sets in the environment of the caller what has runtimes write their maps from their start on,
 * where it is not set; for Node.js and .NET unless links are followed. For a child that is about to
 * become the command. */
void naming_set_environment(bool links_are_followed);

/* Whether a link of another user's in /tmp leads a program elsewhere (fs.protected_symlinks). */
bool naming_links_are_followed(void);
