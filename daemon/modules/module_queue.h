/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The files that wait for a worker, and whose turn it is: that of the account which has had the
 * least of the workers' time, what its next file is expected to take included. Files that a sample
 * waits for come before those that are only likely to be needed. Among the files of one account a
 * file stands as if it had come later by what it is expected to take, so quick ones pass it for
 * that long and no longer. Thus one user's slow files cost the others no more than the time of one
 * of them.
 *
 * A file that several accounts want has a claim of each, and its turn is the earliest of theirs: an
 * account that wants everybody's libraries first delays nobody. Belongs to the main thread.
 */

#include "elf_worker.h"
#include "module_file.h"

#define MODULE_QUEUE_USERS_MAX 1024 /* who are remembered although nothing of theirs waits */

/* A file whose table is wanted, and who wants it. */
struct module_load {
    struct module_load *next;
    struct module_request request;
    uid_t uid;               /* for whom it was opened */
    struct module_file file; /* goes back to the opener */
    int debug_fd;            /* so does this; -1: none */
    uint64_t debug_bytes;
    struct elf_worker_table first; /* owned: what the file gave alone; its map NULL: not read yet */
    struct module_ticket *tickets;
    struct module_claim *claims; /* whose turn it waits for; module_queue's own */
    uint64_t arrived_ns;         /* when it was wanted first */
    uint64_t expected_ns;        /* what reading it takes, as far as is known */
    bool is_for_first;           /* too slow or too large for the second worker */
    bool is_waiting;             /* module_queue's own */
};

/* What may be begun now. */
struct module_turn {
    bool is_for_second; /* without what is for the first worker only */
    size_t busy_count;
    uid_t busy[2]; /* accounts with a file at a worker: of theirs only what a sample waits for, and
                      after what samples of the others wait for */
};

struct module_queue;

struct module_queue *module_queue_new(void);
/* There is nothing left in it. */
struct module_queue *module_queue_free(struct module_queue *queue);

/* Has a load, which may wait already, wait for the turn of `uid` too. Returns 0 or -ENOMEM. */
int module_queue_claim(struct module_queue *queue, struct module_load *load, uid_t uid);
/* The load does not wait for the turn of `uid` any more. True: it has no claim left. */
bool module_queue_unclaim(struct module_queue *queue, struct module_load *load, uid_t uid);
/* Takes the load, which has a claim; `arrived_ns` and what follows is set. Returns 0 or -ENOMEM. */
int module_queue_add(struct module_queue *queue, struct module_load *load);
/* The load whose turn it is, which stays, or NULL: none waits that may be begun. `ret_uid` (may be
 * NULL): by whose claim. */
struct module_load *module_queue_first(struct module_queue *queue, const struct module_turn *turn,
                                       uid_t *ret_uid);
/* Takes out (returned) a load that waits; its claims stay with it. */
void module_queue_remove(struct module_queue *queue, struct module_load *load);
/* The same, since it is the turn of `uid`. */
void module_queue_serve(struct module_queue *queue, struct module_load *load, uid_t uid);
/* Frees the claims of a load that does not wait. */
void module_load_free_claims(struct module_load *load);
/* A load (borrowed) for this table of this file, or NULL. */
struct module_load *module_queue_find(struct module_queue *queue, enum module_table table,
                                      const struct file_identity *identity);
/* Whether that is what a load is for: the kernel, whose symbols change, has no identity. */
bool module_load_is(const struct module_load *load, enum module_table table,
                    const struct file_identity *identity);
/* A sample waits for it now. */
void module_queue_want(struct module_queue *queue, struct module_load *load);
/* A worker has spent so much time for a uid. */
void module_queue_charge(struct module_queue *queue, uid_t uid, uint64_t time_ns);
