/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Has the workers read the loads. module_queue decides which load is next, module_workers which
 * worker reads it. Each load that module_reader_add() takes comes out of module_reader_next(), read
 * or failed. Belongs to the main thread; only module_reader_free() waits.
 */

#include "module_workers.h"

struct module_reader;

/* The result of a load, for the table that its request is for. */
struct module_reading {
    struct module_load *load;    /* returned; borrowed, if */
    bool goes_on;                /* its worker reads the other table already: module_load_go_on() */
    enum module_failure failure; /* _NONE, _UNREADABLE, _WORKER or _LIMIT */
    struct elf_worker_table table; /* returned, where there is no failure */
};

struct module_reader_counts {
    uint64_t restart_count;
    uint64_t renewal_count;
    uint64_t hung_refused_count;
    uint64_t put_back_count;
    unsigned troubles;
    uint64_t foreign_clock_count; /* jitdumps with times of another clock */
    uid_t foreign_clock_uid;      /* that owns the last of them */
};

/* Starts the first worker; `opener` is borrowed. Returns 0 and an object to release with
 * module_reader_free(), or -errno. */
int module_reader_new(const struct elf_worker_config configs[MODULE_WORKERS], struct opener *opener,
                      struct module_reader **ret);
/* Ends the workers. Loads that were not read come out of module_reader_drain(). */
void module_reader_stop(struct module_reader *reader);
/* After module_reader_stop(): a load (returned), or NULL. */
struct module_load *module_reader_drain(struct module_reader *reader);
/* To be called after module_reader_drain() has returned NULL. */
struct module_reader *module_reader_free(struct module_reader *reader);

/* A descriptor (borrowed) that polls readable when module_reader_next() has something to do. */
int module_reader_fd(const struct module_reader *reader);

/* Adds a claim of `uid` to a load, queued or not. Returns 0 or -ENOMEM. */
int module_reader_claim(struct module_reader *reader, struct module_load *load, uid_t uid);
/* Removes the claims of accounts without a ticket from a load that is not queued. */
void module_reader_review(struct module_reader *reader, struct module_load *load);
/* Queues a load (taken on success) that has a claim and `arrived_ns`. Returns 0 or -ENOMEM. */
int module_reader_add(struct module_reader *reader, struct module_load *load);
/* A load (borrowed) that will have this table of this file, or NULL. */
struct module_load *module_reader_find(struct module_reader *reader, enum module_table table,
                                       const struct file_identity *identity);
/* Makes the load urgent: a sample waits for it. */
void module_reader_want(struct module_reader *reader, struct module_load *load);

/* Takes answers, begins loads, and returns one result; false: there is none now. Call it until it
 * returns false. With `only_wanted` nothing is read ahead. */
bool module_reader_next(struct module_reader *reader, uint64_t now_ns, bool only_wanted,
                        struct module_reading *ret);

struct module_reader_counts module_reader_counts(const struct module_reader *reader);
/* The worker's pid, 0 without a worker. */
int module_reader_worker_pid(const struct module_reader *reader, enum module_worker_name name);
