/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Keeps the workers that were killed and have not exited yet. A worker that reads from a filesystem
 * which does not answer exits only when the filesystem does. There are 16 places. Each place names
 * the account (account.h) for which its worker read: an account with two of them gets no third. The
 * last places are for readers of local filesystems, which always answer. Each living worker has a
 * place reserved. Belongs to the main thread.
 */

#include "elf_worker.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define DYING_WORKERS_MAX          16
#define DYING_WORKERS_OF_A_UID_MAX 2
#define DYING_WORKERS_KEPT         4 /* places for what is local */

struct dying_workers {
    struct dying_worker {
        struct elf_worker *worker; /* owned; NULL: a free place */
        bool was_reading;
        uid_t uid; /* for whom */
    } places[DYING_WORKERS_MAX];
    size_t reserved_count; /* of the free places: one for each worker that is alive */
    unsigned troubles;     /* a bit for each enum elf_worker_trouble of those that are gone */
};

/* Frees the places of workers that have exited. */
void dying_workers_look(struct dying_workers *dying);
/* Reserves a place for a worker to be started; false: all are taken or reserved. */
bool dying_workers_reserve(struct dying_workers *dying);
/* Returns the reservation: the worker was not started. */
void dying_workers_unreserve(struct dying_workers *dying);
/* Ends `worker` (taken), which gets its reserved place. `uid`: the account for which it read; NULL:
 * it read nothing. */
void dying_workers_add(struct dying_workers *dying, struct elf_worker *worker, const uid_t *uid);
/* True when no file of `uid` may be read until a dying worker has exited: one of the same account
 * or, for a file that is not local, any. */
bool dying_workers_forbid(const struct dying_workers *dying, uid_t uid, bool is_local);
void dying_workers_done(struct dying_workers *dying);
