/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Has loads read by the workers: which load is next says module_queue, at which worker
 * module_workers. A load goes in by module_reader_add() and comes out of module_reader_next(), read
 * or not. Belongs to the main thread; nothing waits but module_reader_free().
 */

#include "module_workers.h"

struct module_reader;

/* What became of a load. */
struct module_reading {
    struct module_load *load;      /* returned */
    enum module_failure failure;   /* _NONE, _UNREADABLE, _WORKER or _LIMIT */
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
/* Ends the workers. What has not been read comes out of module_reader_drain() then. */
void module_reader_stop(struct module_reader *reader);
/* After module_reader_stop(): a load (returned), or NULL. */
struct module_load *module_reader_drain(struct module_reader *reader);
/* After module_reader_drain() has given NULL. */
struct module_reader *module_reader_free(struct module_reader *reader);

/* A descriptor (borrowed) that polls readable when module_reader_next() has something to do. */
int module_reader_fd(const struct module_reader *reader);

/* Has a load, wherever it is, be read by the turn of `uid` too. Returns 0 or -ENOMEM. */
int module_reader_claim(struct module_reader *reader, struct module_load *load, uid_t uid);
/* Takes a load with a claim, whose `arrived_ns` is set. Returns 0 or -ENOMEM. */
int module_reader_add(struct module_reader *reader, struct module_load *load);
/* A load (borrowed) for this table of this file, or NULL. */
struct module_load *module_reader_find(struct module_reader *reader, enum module_table table,
                                       const struct file_identity *identity);
/* A sample waits for it now. */
void module_reader_want(struct module_reader *reader, struct module_load *load);

/* Lets the workers go on, with `only_wanted` with nothing that is only likely to be needed, and
 * gives one load that came out; false: none now. To be called until then. */
bool module_reader_next(struct module_reader *reader, uint64_t now_ns, bool only_wanted,
                        struct module_reading *ret);

struct module_reader_counts module_reader_counts(const struct module_reader *reader);
/* 0 while there is none. */
int module_reader_worker_pid(const struct module_reader *reader, enum module_worker_name name);
