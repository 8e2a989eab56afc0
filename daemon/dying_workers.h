/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Workers that were killed and are not gone: one that reads from a filesystem which does not answer
 * dies only when that lets go of it. There is a place for 16; each knows for which account
 * (account.h) it was reading, so that an account with two of them there gets no third. The last few
 * places are kept for readers of local filesystems, which let go at once. Belongs to the main
 * thread.
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
    unsigned troubles; /* a bit for each enum elf_worker_trouble of those that are gone */
};

/* Whether there is a place for one more. Releases those that can be. */
bool dying_workers_have_room(struct dying_workers *dying);
/* Ends a worker, which is taken. There is room. `uid`: for whom it was reading, NULL: for nobody.
 */
void dying_workers_add(struct dying_workers *dying, struct elf_worker *worker, const uid_t *uid);
/* Whether a file is not to be read for this uid until a worker that is dying is gone: one of the
 * uid's own or, of a file that is not local, anybody's. */
bool dying_workers_forbid(const struct dying_workers *dying, uid_t uid, bool is_local);
void dying_workers_done(struct dying_workers *dying);
