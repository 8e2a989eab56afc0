/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The files that wait for the worker, and whose turn it is: that of the uid which has had the least
 * of the worker's time, files that a sample waits for before those that are only likely to be
 * needed. So one user's slow files cost the others no more than the time of one of them. Belongs to
 * the main thread.
 */

#include "module_file.h"

#define MODULE_QUEUE_USERS_MAX 1024 /* who are remembered although nothing of theirs waits */

/* A file whose table is wanted, and who wants it. */
struct module_load {
    struct module_load *next;
    struct module_request request;
    uid_t uid;
    struct module_file file; /* goes back to the opener */
    int debug_fd;            /* so does this; -1: none */
    uint64_t debug_bytes;
    struct elf_worker_table first; /* owned: what the file gave alone; its map NULL: not read yet */
    struct module_ticket *tickets;
};

struct module_queue;

struct module_queue *module_queue_new(void);
/* There is nothing left in it. */
struct module_queue *module_queue_free(struct module_queue *queue);

/* Takes the load. Returns 0 or -ENOMEM. */
int module_queue_add(struct module_queue *queue, struct module_load *load);
/* The load whose turn it is, which stays, or NULL. */
struct module_load *module_queue_first(struct module_queue *queue);
/* Takes out (returned) a load that waits. */
void module_queue_remove(struct module_queue *queue, struct module_load *load);
/* A load (borrowed) for this table of this file, or NULL. */
struct module_load *module_queue_find(struct module_queue *queue, enum module_table table,
                                      const struct file_identity *identity);
/* Whether that is what a load is for: the kernel, whose symbols change, has no identity. */
bool module_load_is(const struct module_load *load, enum module_table table,
                    const struct file_identity *identity);
/* A sample waits for it now. */
void module_queue_want(struct module_queue *queue, struct module_load *load);
/* The worker has spent so much time for a uid. */
void module_queue_charge(struct module_queue *queue, uid_t uid, uint64_t time_ns);
