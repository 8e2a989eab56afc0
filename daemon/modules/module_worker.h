/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One worker of the module cache, what it reads, and those that were in its place before: started,
 * replaced when it dies, and renewed when it has read what it must not have read before another
 * user's file. Belongs to the main thread; nothing waits but module_worker_done().
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
    uint64_t since_ns;          /* when it was given that, or has read or begun last */
    bool was_lost;              /* the one before died, or took too long */
    uint64_t restart_delay_ns;
    uint64_t restart_ns; /* not before */
    uid_t uid;           /* for whom it reads, or read last */
    uid_t author;        /* whose files it may have been taken over by; 0: nobody's */
    uint64_t restart_count;
    uint64_t renewal_count;
};

/* Of zero bytes. */
void module_worker_init(struct module_worker *worker, const struct elf_worker_config *config,
                        const struct module_worker_place *place);
/* Ends it, and waits a moment for it. There is nothing that it reads any more. */
void module_worker_done(struct module_worker *worker);

/* Starts one if there is none, and it is time. Returns 0, also when it is not time yet, -EBUSY when
 * too many are dying, or -errno; then it is not tried again for a while. */
int module_worker_start(struct module_worker *worker, uint64_t now_ns);
/* Ends the current one, which has died or takes too long: the next one waits, each time longer. */
void module_worker_drop(struct module_worker *worker, uint64_t now_ns);
/* Ends the current one, which is to blame for nothing. */
void module_worker_retire(struct module_worker *worker);
/* It has answered: the next one need not wait. */
void module_worker_works(struct module_worker *worker);

/* Whether the current one may read `load` now; one that may not is renewed, where that can be. */
bool module_worker_prepare(struct module_worker *worker, const struct module_load *load,
                           uint64_t now_ns);
/* It was given `load` (taken) to read, for the account `uid`. */
void module_worker_reads(struct module_worker *worker, struct module_load *load, uid_t uid,
                         uint64_t now_ns);
/* What it was given (returned), which it reads no more; whatever came of it. */
struct module_load *module_worker_take(struct module_worker *worker, uint64_t now_ns);
