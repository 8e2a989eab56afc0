/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One worker of the module cache and the load that it reads. A worker that dies is replaced. A
 * worker that has read a file of an unprivileged user is renewed before it reads any other user's
 * file. Belongs to the main thread; only module_worker_done() waits.
 */

#include "dying_workers.h"
#include "module_load.h"
#include "opener.h"

struct module_worker_place {
    struct opener *opener;       /* borrowed, as all of it */
    int epoll_fd;                /* where the worker's socket is watched */
    struct dying_workers *dying; /* where a worker goes that is ended */
};

struct module_worker {
    struct elf_worker_config config;
    struct module_worker_place place;
    struct elf_worker *current; /* NULL while there is none */
    struct module_load *load;   /* what it reads; NULL: nothing */
    uint64_t since_ns;          /* when it was given `load`; without: when it finished or started */
    uint64_t charged_ns;        /* up to when its account has been charged for that */
    bool reads_both; /* it reads call frames, and will read symbols without being asked */
    bool was_lost;   /* the one before died, or took too long */
    uint64_t restart_delay_ns;
    uint64_t restart_ns; /* not before */
    uid_t uid;           /* for whom it reads, or read last */
    uid_t author;        /* the user whose files may have taken it over; 0: none */
    uint64_t restart_count;
    uint64_t renewal_count;
};

/* `worker` is zeroed. */
void module_worker_init(struct module_worker *worker, const struct elf_worker_config *config,
                        const struct module_worker_place *place);
/* Ends the worker, which reads nothing, and waits a moment for its exit. */
void module_worker_done(struct module_worker *worker);

/* Starts the worker if it is missing and its restart delay is over. Returns 0, also during that
 * delay; -EBUSY when too many workers are dying; or -errno, and then a delay begins. */
int module_worker_start(struct module_worker *worker, uint64_t now_ns);
/* Ends a worker that has died or takes too long. The restart delay grows each time. */
void module_worker_drop(struct module_worker *worker, uint64_t now_ns);
/* Ends the worker without a restart delay. */
void module_worker_retire(struct module_worker *worker);
/* Resets the restart delay: the worker has answered. */
void module_worker_works(struct module_worker *worker);

/* True when the worker may read `load`. A worker that may not is renewed if there is a place for
 * the old one. */
bool module_worker_prepare(struct module_worker *worker, const struct module_load *load,
                           uint64_t now_ns);
/* Notes that the worker reads `load` (taken) for the account `uid`, one table or both. */
void module_worker_reads(struct module_worker *worker, struct module_load *load, bool both,
                         uid_t uid, uint64_t now_ns);
/* Takes its load (returned) away, with or without a result. */
struct module_load *module_worker_take(struct module_worker *worker, uint64_t now_ns);
