/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Finds and opens the file behind a mapping, and proves that it is that file as far as this is
 * possible without reading it. Every function may hang for as long as a filesystem likes: for
 * opener threads only.
 */

#include "module.h"
#include "module_path.h"

#include <sys/types.h>

#define MODULE_AUTHOR_UNKNOWN ((uid_t)-1)

/* The identities of the two vDSOs: no file has such a device. */
#define MODULE_VDSO_DEVICE      UINT64_MAX
#define MODULE_VDSO_INODE       1
#define MODULE_VDSO_INODE_32BIT 2

enum module_source {
    MODULE_FILE,
    MODULE_KERNEL,
    MODULE_VDSO,
    MODULE_VDSO_32BIT,
    MODULE_PERF_MAP,
    MODULE_JITDUMP,
    MODULE_DEBUG, /* what was split off a file */
};

/* What a ticket is for. */
struct module_request {
    enum module_source source;
    enum module_table table;
    enum module_urgency urgency;
    uint32_t known_bytes; /* of a perf map or a jitdump: as many as were read of it before */
};

/* The questions of a thread on its way to a file, before steps that may hang. */
struct module_guard {
    /* Before each step that may wait for the filesystem of that place, or for a user who holds the
     * lock of the place itself; false: do not touch it. */
    module_path_guard_fn place;
    /* Before the memory of a process is looked at, which it can keep locked; false: do not. */
    bool (*process)(int32_t pid, uint64_t start_time_ns, void *userdata);
    void *userdata;
    /* Use paths on local filesystems only (mount_table.h), and no process's memory: then a step
     * waits for no user but one who holds the lock of a folder. */
    bool is_careful;
};

struct module_file {
    int fd; /* returned: close, where closing may hang */
    struct file_identity identity;
    /* As it was when it was opened: to ask again could hang. */
    uid_t owner;
    gid_t group;
    mode_t mode;
    nlink_t link_count;
    /* 0: the content is that which was mapped. Else it can have been written since, by its time;
     * the process had a mapping of it at the query's address at this time, CLOCK_BOOTTIME. */
    uint64_t shown_ns;
    bool is_local;     /* on a local filesystem (mount_table.h) */
    bool is_forgeable; /* a user may answer for the filesystem, or have made its image, and so
                          choose the identity: its device's number is another filesystem's when it
                          is gone */
    uid_t author; /* the only user, but for root, that can have written it; where the machine's own
                     root does not show the file: unknown */
};

/*
 * Opens the file that `query` describes for reading, which is the one with its device, inode and,
 * where both are known, generation. Returns MODULE_FAILURE_NONE, _NOT_FOUND, _NOT_FILE, _IDENTITY
 * or _LIMIT.
 */
enum module_failure module_file_open(const struct module_query *query,
                                     const struct module_guard *guard, struct module_file *ret);

/* Opens the kernel's own list of symbols. */
enum module_failure module_file_open_kernel(struct module_file *ret);

/* A copy of what the kernel maps as [vdso] into this process, under an identity that is no file's.
 */
enum module_failure module_file_open_vdso(struct module_file *ret);
/* The same of what the kernel maps into 32-bit processes. MODULE_FAILURE_NOT_FOUND: the kernel does
 * not give it, as one without CONFIG_CHECKPOINT_RESTORE. */
enum module_failure module_file_open_vdso_32bit(struct module_file *ret);

/*
 * Opens /tmp/perf-PID.map as the process itself sees it: in its root, by its pid in its own
 * namespace. Only a regular file of its uid that no other user may write, and that has no second
 * name; once the process is gone, only the file that the query names, in the machine's root. The
 * identity is not that of a module made of the same file. Returns MODULE_FAILURE_NONE, _NOT_FOUND,
 * _NOT_FILE, _IDENTITY or _LIMIT.
 */
enum module_failure module_file_open_perf_map(const struct module_query *query,
                                              const struct module_guard *guard,
                                              struct module_file *ret);

/*
 * Opens the jitdump that the query's mapping shows, if it is named jit-PID.dump by the pid that the
 * process has in its own namespace, and is a file such as above; once the process is gone, only if
 * it was read before. The identity and the answer are as above.
 */
enum module_failure module_file_open_jitdump(const struct module_query *query,
                                             const struct module_guard *guard,
                                             struct module_file *ret);

/*
 * Opens a path in the machine's root, or else our own, a symbolic link to a file there too, if
 * only root can have written it: for files that the machine itself keeps for all. Returns as
 * above.
 */
enum module_failure module_file_open_own(const char *path, const struct module_guard *guard,
                                         struct module_file *ret);
