/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Workers that were killed and are not gone: one that reads from a filesystem which does not answer
 * dies only when that lets go of it. There is a place for 16; each knows for which account
 * (account.h) it was reading, so that an account with two of them there gets no third. The last few
 * places are kept for readers of local filesystems, which let go at once. A worker that is alive
 * has a place reserved for its end. Belongs to the main thread.
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

/* Releases those that can be. */
void dying_workers_look(struct dying_workers *dying);
/* Before a worker is started: reserves a place for its end, or returns false. */
bool dying_workers_reserve(struct dying_workers *dying);
/* It was not started. */
void dying_workers_unreserve(struct dying_workers *dying);
/* Ends a worker, which is taken and gets its reserved place. `uid`: for whom it was reading, NULL:
 * for nobody. */
void dying_workers_add(struct dying_workers *dying, struct elf_worker *worker, const uid_t *uid);
/* Whether a file is not to be read for this uid until a worker that is dying is gone: one of the
 * uid's own or, of a file that is not local, anybody's. */
bool dying_workers_forbid(const struct dying_workers *dying, uid_t uid, bool is_local);
void dying_workers_done(struct dying_workers *dying);
