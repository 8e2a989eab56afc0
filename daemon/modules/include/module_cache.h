/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Tables (of symbols, of call frames) by the identity of the opened file (device, inode, size,
 * ctime), never by build-id alone: a build-id is bytes that its author chose. A mapping's first
 * sample makes a ticket; an opener thread opens the file; a worker, which alone parses it, answers
 * with a table; the ticket becomes ready. The cache outlives sessions, is bounded, and is trimmed
 * when nobody needs a table for 60 s.
 *
 * Threads: module_cache_request() and the module_ticket_*() functions may be called from the
 * collector; everything else belongs to the main thread.
 */

#include "cfi_table.h"
#include "elf_worker.h"
#include "symbol_table.h"

#include <stdbool.h>
#include <stdint.h>

struct module_cache;
struct module_ticket;

enum module_state {
    MODULE_PENDING,
    MODULE_READY,
    MODULE_FAILED,
};

enum module_failure {
    MODULE_FAILURE_NONE,
    MODULE_FAILURE_NOT_FOUND,  /* gone, or not to be opened with the daemon's rights */
    MODULE_FAILURE_NOT_FILE,   /* not a regular file */
    MODULE_FAILURE_IDENTITY,   /* what is at the path now is not what was mapped */
    MODULE_FAILURE_UNREADABLE, /* not ELF, or too broken or too large for the worker */
    MODULE_FAILURE_WORKER,     /* the worker died over it */
    MODULE_FAILURE_LIMIT,      /* a queue or table of ours was full */
};

/* What is made of a file; each by itself. */
enum module_table {
    MODULE_SYMBOLS,
    MODULE_CFI,
    MODULE_TABLES,
};

/* The more urgent one first. */
enum module_urgency {
    MODULE_WANTED,   /* a sample waits for it */
    MODULE_PREFETCH, /* it is likely to be needed */
    MODULE_URGENCIES,
};

/* What the cache knows a file by. Equal identity, equal contents. */
struct file_identity {
    uint64_t device;
    uint64_t inode;
    uint64_t size_bytes;
    int64_t changed_s; /* st_ctim */
    int64_t changed_ns;
    uint32_t generation; /* of the inode; 0 where the filesystem tells none */
};

static inline bool file_identity_equal(const struct file_identity *a, const struct file_identity *b)
{
    return a->device == b->device && a->inode == b->inode && a->size_bytes == b->size_bytes &&
           a->changed_s == b->changed_s && a->changed_ns == b->changed_ns &&
           a->generation == b->generation;
}

/* One table of one file: shared by all tickets that turned out to name it. Alive while a ticket
 * that shows it is. */
struct module {
    struct file_identity identity; /* all zero: the kernel */
    enum module_table table;       /* which of the two is there */
    struct symbol_table symbols;
    struct cfi_table cfi;
};

/*
 * What is known of a mapping whose file is wanted. Copied by the request. Device and inode are what
 * the record of the mapping, or /proc, said, and only a file that is this one counts: relatives
 * share what was known of a mapping before they parted, so the answer for one names the frames of
 * all, whatever that one has done to its memory and its mounts since.
 */
struct module_query {
    int32_t pid;            /* that maps it, possibly gone by now */
    int32_t parent_pid;     /* under whose root the path is tried when the pid is gone */
    uint64_t start_time_ns; /* of the process, CLOCK_BOOTTIME to 10 ms; 0, UINT64_MAX: unknown */
    uint64_t start;
    uint64_t end;
    uint64_t file_offset;
    const char *path; /* as mapped, absolute */
    uint32_t device_major;
    uint32_t device_minor;
    uint64_t inode;
    uint64_t inode_generation; /* 0: unknown */
    uint64_t map_device;       /* of a perf map that was read before: as its module has it */
};

struct module_table_counts {
    uint64_t ready_count; /* tickets */
    uint64_t failed_count;
    uint64_t module_count; /* tables held now */
    uint64_t table_bytes;  /* and their size */
};

struct module_cache_counts {
    uint64_t requested_count;
    uint64_t refused_count;        /* requests beyond a uid's share, which got no ticket */
    uint64_t worker_restart_count; /* since it died or took too long */
    uint64_t worker_renewal_count; /* since the next file was another user's */
    uint64_t hung_refused_count;   /* loads for whom two workers hang in a filesystem */
    uint64_t put_back_count;       /* loads that the second worker did not finish */
    unsigned worker_troubles;      /* a bit for each enum elf_worker_trouble that there was */
    uint64_t hang_count; /* opens and closes given up because a filesystem did not answer */
    struct module_table_counts tables[MODULE_TABLES];
};

#define MODULE_CACHE_WORKERS 2

struct module_cache_config {
    struct elf_worker_config worker;
    uint64_t second_memory_bytes; /* what the second worker may use; 0: as much as the first */
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

/* Returned: release with module_ticket_release(). NULL when there is no memory, or the uid whose
 * process it is has too many requests. What was asked for early and is asked for again because a
 * sample waits now moves up. */
struct module_ticket *module_cache_request(struct module_cache *cache, enum module_table table,
                                           enum module_urgency urgency,
                                           const struct module_query *query);
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

enum module_state module_ticket_state(const struct module_ticket *ticket);
enum module_failure module_ticket_failure(const struct module_ticket *ticket);
/* Once ready: borrowed for as long as the ticket is held. Equal files give equal pointers. */
const struct module *module_ticket_module(const struct module_ticket *ticket);
void module_ticket_release(struct module_ticket *ticket);
