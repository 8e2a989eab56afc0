/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The worker of the module cache and those before it: started, replaced when it dies, and renewed
 * when it has read what it must not have read before another user's file. Belongs to the main
 * thread; nothing waits but module_worker_done().
 */

#include "dying_workers.h"
#include "module_load.h"
#include "opener.h"

struct module_worker {
    struct elf_worker_config config;
    struct opener *opener;      /* borrowed, as the next */
    int epoll_fd;               /* where the worker's socket is watched */
    struct elf_worker *current; /* NULL while there is none */
    struct dying_workers dying; /* killed, not gone yet */
    uint64_t restart_delay_ns;
    uint64_t restart_ns; /* not before */
    uid_t uid;           /* for whom it read last */
    uid_t author;        /* whose files it may have been taken over by; 0: nobody's */
    uint64_t restart_count;
    uint64_t renewal_count;
};

/* Of zero bytes but for `config`: starts the first one. Returns 0, or -errno. */
int module_worker_init(struct module_worker *worker, struct opener *opener, int epoll_fd);
/* Ends all, and waits a moment for each. */
void module_worker_done(struct module_worker *worker);

/* Ends the current one, which was reading `load`, or nothing (NULL). */
void module_worker_drop(struct module_worker *worker, const struct module_load *load,
                        uint64_t now_ns);
/* Starts one if there is none, and it is time. */
void module_worker_replace(struct module_worker *worker, uint64_t now_ns);
/* It has answered: the next one need not wait. */
void module_worker_works(struct module_worker *worker);

/* Whether the current one may read `load` now; one that may not is renewed, where that can be. */
bool module_worker_prepare(struct module_worker *worker, const struct module_load *load);
/* It was given `load` to read. */
void module_worker_reads(struct module_worker *worker, const struct module_load *load);
