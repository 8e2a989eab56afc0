/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Tables (of symbols, of call frames) by the identity of the opened file (struct file_identity),
 * never by build-id alone: a build-id is bytes that its author chose. A mapping's first sample
 * makes a ticket; an opener thread opens the file; a worker, which alone parses it, answers with a
 * table; the ticket becomes ready. The cache outlives sessions, is bounded, and is trimmed when a
 * table was unused for 60 s.
 *
 * Threads: the functions that return a ticket may be called from the collector; everything else
 * belongs to the main thread.
 */

#include "elf_worker.h"
#include "module.h"

#include <stdbool.h>
#include <stdint.h>

struct module_cache;

struct module_table_counts {
    uint64_t ready_count; /* tickets */
    uint64_t failed_count;
    uint64_t module_count; /* tables held now */
    uint64_t table_bytes;  /* and their size */
};

struct module_cache_counts {
    uint64_t requested_count;      /* openings */
    uint64_t refused_count;        /* requests beyond a uid's share, or without any room */
    uint64_t worker_restart_count; /* since it died or took too long */
    uint64_t worker_renewal_count; /* since the next file was another user's */
    uint64_t hung_refused_count;   /* loads for whom two workers hang in a filesystem */
    uint64_t put_back_count;       /* loads that the second worker did not finish */
    unsigned worker_troubles;      /* a bit for each enum elf_worker_trouble that there was */
    uint64_t foreign_clock_count;  /* jitdumps that were refused for their times' clock */
    uid_t foreign_clock_uid;       /* that owns the last of them */
    uint64_t hang_count; /* opens and closes given up because a filesystem did not answer */
    struct module_table_counts tables[MODULE_TABLES];
};

#define MODULE_CACHE_WORKERS 2

struct module_cache_config {
    struct elf_worker_config worker;
    uint64_t second_memory_bytes; /* what the second worker may use; 0: as much as the first */
    uint64_t table_bytes_max;     /* of all tables */
};

/*
 * Starts the openers and the first worker. Returns 0 and an object to release with
 * module_cache_free(), or -errno. There may be no outstanding ticket when it is released.
 */
int module_cache_new(const struct module_cache_config *config, struct module_cache **ret);
struct module_cache *module_cache_free(struct module_cache *cache);

/* A descriptor (borrowed) that polls readable when module_cache_dispatch() has something to do. */
int module_cache_fd(const struct module_cache *cache);
/* Never blocks. Call also about once a second: it watches time limits and trims. */
void module_cache_dispatch(struct module_cache *cache);

struct module_cache_counts module_cache_counts(struct module_cache *cache);
/* Of one of MODULE_CACHE_WORKERS; 0 while there is none. The second is there now and then only. */
int module_cache_worker_pid(const struct module_cache *cache, size_t index);

/* Returned: release with module_ticket_release(). NULL when there is no memory, or no room for what
 * comes in. Where the uid whose process it is has too many requests, the ticket fails with
 * MODULE_FAILURE_LIMIT. What was asked for early and is asked for again because a sample waits now
 * moves up. Takes no lock of ours. */
struct module_ticket *module_cache_request(struct module_cache *cache, enum module_table table,
                                           enum module_urgency urgency,
                                           const struct module_query *query);
/* Asks for the call frames of a file, wanted, and by the same opening for its symbols. `*ret_names`
 * (set on success, returned: module_ticket_release()) is the ticket for these; else as above. */
struct module_ticket *module_cache_request_both(struct module_cache *cache,
                                                const struct module_query *query,
                                                struct module_ticket **ret_names);
/* The kernel's own symbols (/proc/kallsyms), addresses as they run. As module_cache_request(). */
struct module_ticket *module_cache_request_kernel(struct module_cache *cache);
/* The code that the kernel maps into every process ("[vdso]"), which is the same for all of 64
 * bits, and for all of 32. File offsets count from the mapping's start. As module_cache_request(),
 * wanted.
 */
struct module_ticket *module_cache_request_vdso(struct module_cache *cache, enum module_table table,
                                                bool is_32bit);

/*
 * What a process's runtime says of the code that it has made (/tmp/perf-PID.map), addresses as they
 * run. Of the query, the pid and when it began are asked for; of a process that is gone, the file
 * that was read before (device, inode and generation, as its module has them) is asked for. The
 * table says of `known_bytes` whether the text still begins as it did. As module_cache_request(),
 * wanted; asking again reads what has been added since.
 */
struct module_ticket *module_cache_request_perf_map(struct module_cache *cache,
                                                    const struct module_query *query,
                                                    uint32_t known_bytes);

/*
 * The same from a jitdump (/tmp/jit-PID.dump, or wherever the runtime has it), which the process
 * has mapped: the query is of that mapping. The table has spans. Once the process is gone, only a
 * file is read that was read before (`map_device` is not 0).
 */
struct module_ticket *module_cache_request_jitdump(struct module_cache *cache,
                                                   const struct module_query *query,
                                                   uint32_t known_bytes);
