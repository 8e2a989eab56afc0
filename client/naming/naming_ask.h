/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Asks processes, all at one time: for each a child, with the credentials of the process, which is
 * killed when the time is over. So nothing that a process does, with its sockets or in a filesystem
 * of its own, keeps the caller.
 */

#include "naming.h"
#include "naming_process.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What became of it, written by the child in one piece. */
#define NAMING_WHY_BYTES ((size_t)160)
struct naming_answer {
    bool is_done;
    char why[NAMING_WHY_BYTES]; /* not: a clause, in which bytes of the process may be */
};

/* One kind of asking: fills the answer (zeros before). It may block, but leaves nothing behind when
 * it has waited `listen_ms` for a process that was told to listen. */
typedef void naming_ask_fn(const struct naming_process *process, uint64_t listen_ms,
                           struct naming_answer *answer);
naming_ask_fn naming_jvm_ask, naming_dotnet_ask;

/* What a process answered, so many bytes and a NUL. Pure. */
void naming_jvm_judge(const char *reply, size_t reply_bytes, struct naming_answer *answer);
void naming_dotnet_judge(const char *reply, size_t reply_bytes, struct naming_answer *answer);

struct naming_question {
    struct naming_process process; /* borrowed */
    naming_ask_fn *ask;
    struct naming_answer answer; /* set by naming_ask_all() */
};

/* Asks all, each with a map of its own user's in its /tmp (own_map.h); returns after `answer_ms` at
 * the latest. */
void naming_ask_all(struct naming_question *questions, size_t count,
                    const struct naming_wait *wait);
