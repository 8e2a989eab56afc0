/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How a process that parses other people's files gives up its rights, for good. The caller has
 * executed this program anew, has one thread, and holds the descriptors that it needs.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* System calls are numbers of <sys/syscall.h>. All arrays are borrowed. */
struct confine_rules {
    uid_t uid; /* to become, where the process is root; (uid_t)-1: keep both */
    gid_t gid;
    uint64_t address_bytes_max; /* of addresses; 0: no limit, as both that follow */
    uint64_t data_bytes_max;    /* of memory that the process may write to */
    uint64_t file_bytes_max;    /* of a file that it writes */
    const int *calls;           /* allowed with any arguments, beside those that all have */
    size_t call_count;
    const int *refused; /* fail with EPERM, where a library tries them in passing */
    size_t refused_count;
    const unsigned int *fcntl_commands;
    size_t fcntl_command_count;
    unsigned int memfd_flags; /* those, and no others, make a memfd; 0: none is made */
    bool may_map_files;       /* privately, and never to be executed */
};

/* Has the process killed first when memory runs out, whatever its parent's score: another one can
 * be started at once. Needs /proc, so it comes before confine(). Where the file cannot be written
 * the score stays the parent's. */
void confine_offer_to_be_killed(void);

/* Drops what is not in `kept` (a bit for each capability) from the bounding set. Returns 0, also
 * where the process may not change the set, or -errno. */
int confine_bounding_set(uint64_t kept);

/*
 * Goes into an empty root and takes uid and gid (where the process is root and may), drops all
 * capabilities and the right to regain any, limits memory and files, dies with its parent, and
 * loads the filter. Returns 0, or -errno with the process half confined: it must not go on.
 * -EOPNOTSUPP: the kernel takes no filter.
 */
int confine(const struct confine_rules *rules);

/*
 * Loads the filter alone: a system call that is not listed kills the process. All have read,
 * pread64, write, close, fstat, memory that is anonymous and not executable, futex, getrandom and
 * the end of the process. Returns 0, -EOPNOTSUPP when the kernel does not take it, or another
 * -errno.
 */
int confine_filter(const struct confine_rules *rules);
