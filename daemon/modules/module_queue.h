/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Orders the files that wait for a worker. The next file is of the account that has used the least
 * worker time, the expected time of that file included. Files that a sample waits for go before
 * files that are read ahead. Within an account, files are ordered by arrival plus expected time:
 * quick files pass a slow one for as long as it is expected to take. So the slow files of one user
 * delay the others by the time of one file. Call frames pass symbols that arrived up to
 * MODULE_QUEUE_NAMES_SPARE_NS before: a stack that has waited too long for its call frames is cut,
 * but a name only comes later.
 *
 * A file that several accounts want has a claim of each, and the earliest claim counts: an account
 * that requests common libraries early delays no other. Belongs to the main thread.
 */

#include "clock.h"
#include "elf_worker.h"
#include "module_file.h"

#define MODULE_QUEUE_NAMES_SPARE_NS NS_PER_S
#define MODULE_QUEUE_USERS_MAX      1024 /* users without waiting loads whose time is remembered */

/* A file of which a table is wanted, or call frames and then symbols, and the tickets and claims
 * for it. `request` is for the table that is next, or that a worker reads. */
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
    bool then_symbols;           /* are wanted too, once the call frames have been read */
    bool is_waiting;             /* module_queue's own */
};

/* Which loads a worker may begin now. */
struct module_turn {
    bool is_for_second; /* without what is for the first worker only */
    size_t busy_count;
    uid_t busy[2]; /* accounts with a file at a worker: of theirs only what a sample waits for, and
                      after what samples of the others wait for */
};

struct module_queue;

struct module_queue *module_queue_new(void);
/* The queue must be empty. */
struct module_queue *module_queue_free(struct module_queue *queue);

/* Adds a claim of `uid` to a load, whether the load waits or not. Returns 0 or -ENOMEM. */
int module_queue_claim(struct module_queue *queue, struct module_load *load, uid_t uid);
/* Removes the claim of `uid`. True: the load has no claim left. */
bool module_queue_unclaim(struct module_queue *queue, struct module_load *load, uid_t uid);
/* Removes the claims of accounts that have no ticket for the load any more. */
void module_queue_review(struct module_queue *queue, struct module_load *load);
/* Queues the load (taken), which has a claim; `arrived_ns` and the members after it are set.
 * Returns 0 or -ENOMEM. */
int module_queue_add(struct module_queue *queue, struct module_load *load);
/* The next load (borrowed: it stays queued); NULL: no load may be begun. `ret_uid` (may be NULL):
 * the account whose claim made it the next. */
struct module_load *module_queue_first(struct module_queue *queue, const struct module_turn *turn,
                                       uid_t *ret_uid);
/* Takes a load (returned) out of the queue; it keeps its claims. */
void module_queue_remove(struct module_queue *queue, struct module_load *load);
/* The same for a load that is begun by the claim of `uid`. */
void module_queue_serve(struct module_queue *queue, struct module_load *load, uid_t uid);
/* Frees the claims of a load that does not wait. */
void module_load_free_claims(struct module_load *load);
/* A load (borrowed) that will have this table of this file, or NULL. */
struct module_load *module_queue_find(struct module_queue *queue, enum module_table table,
                                      const struct file_identity *identity);
/* True when the load will have this table of this file. The kernel has no identity: its symbols
 * change. */
bool module_load_is(const struct module_load *load, enum module_table table,
                    const struct file_identity *identity);
/* Makes the load urgent: a sample waits for it. */
void module_queue_want(struct module_queue *queue, struct module_load *load);
/* Charges worker time to an account. */
void module_queue_charge(struct module_queue *queue, uid_t uid, uint64_t time_ns);
