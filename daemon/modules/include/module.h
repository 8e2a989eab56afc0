/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the daemon knows of a file with code: how it is asked for, by what it is known, and the
 * tables that were made of it, or why there are none.
 */

#include "cfi_table.h"
#include "code_spans.h"
#include "symbol_table.h"

#include <stdbool.h>
#include <stdint.h>

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
    MODULE_FAILURE_LIMIT, /* for now: a queue or table of ours was full, or a filesystem hangs */
};

/* What is made of a file; each by itself. */
enum module_table {
    MODULE_SYMBOLS,
    MODULE_CFI,  /* the file's own call frames */
    MODULE_CODE, /* these, and rows for code that they do not cover, made from its instructions */
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
    /* Of the disk: another one for each that the kernel has met under that device number. 0: it is
     * on no disk, or before Linux 5.15. */
    uint64_t disk_sequence;
    uint32_t generation; /* of the inode; 0 where the filesystem tells none */
    uint32_t account; /* for which alone it was opened, where a user says all of the above; or 0 */
};

static inline bool file_identity_equal(const struct file_identity *a, const struct file_identity *b)
{
    return a->device == b->device && a->inode == b->inode && a->size_bytes == b->size_bytes &&
           a->changed_s == b->changed_s && a->changed_ns == b->changed_ns &&
           a->disk_sequence == b->disk_sequence && a->generation == b->generation &&
           a->account == b->account;
}

/* One table of one file: shared by all tickets that turned out to name it. Alive while a ticket
 * that shows it is. */
struct module {
    struct file_identity identity; /* all zero: the kernel */
    enum module_table table;       /* which of the next two is there */
    struct symbol_table symbols;
    struct cfi_table cfi;    /* MODULE_CFI, MODULE_CODE */
    struct code_spans spans; /* of a jitdump */
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
    uint64_t mapped_ns;  /* the mapping was there then, CLOCK_BOOTTIME; 0: unknown. A file that
                            was written since is not the one that was mapped */
    uint64_t map_device; /* of a perf map that was read before: as its module has it */
};

/* What has been asked of the module cache, and what came of it. For any one thread. */
struct module_ticket;

enum module_state module_ticket_state(const struct module_ticket *ticket);
enum module_failure module_ticket_failure(const struct module_ticket *ticket);
/* Once ready: borrowed for as long as the ticket is held. Equal files give equal pointers. */
const struct module *module_ticket_module(const struct module_ticket *ticket);
/* Once ready: 0, or when (CLOCK_BOOTTIME) the process of the query had a mapping of the file there,
 * which is the one that is meant unless another took its place before. Then the file can have been
 * written in between. */
uint64_t module_ticket_shown_ns(const struct module_ticket *ticket);
void module_ticket_release(struct module_ticket *ticket);
