/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Opens and closes foreign files on threads, since a filesystem or a process can block either for
 * ever. Four threads work at a time. A thread that sleeps longer than `hang_ns` in one call is
 * given up and its request fails for now (thread_pool.h). While it hangs, its filesystem is not
 * touched (of a local one, the folder or file), nor the process that it asked (hung_processes.h).
 * Another thread replaces it, up to OPENER_THREADS_MAX. The last thread is careful: it opens only
 * paths on local filesystems, which answer unless a user holds a folder of theirs.
 *
 * The accounts (account.h) of the processes share the threads fairly. Each account has a limit of
 * requests (half of what the others leave), open files and threads, and accounts take turns. A file
 * that a sample waits for goes before one that is read ahead. An account whose threads all hang is
 * served by careful opens alone; any other open fails with MODULE_FAILURE_LIMIT. A process that has
 * exited counts as its parent's account; all others without a known account count as one.
 *
 * A request for a debug file comes from a load that has a file open. So it does not wait for one of
 * all open files, but only for one of the OPENER_UID_FILES_MAX debug files.
 *
 * Any thread may call opener_submit(), which takes no lock of ours; all other calls belong to one
 * thread.
 */

#include "module_file.h"

#define OPENER_THREADS         4  /* at work, without those that are slow */
#define OPENER_THREADS_MAX     16 /* with those that hang */
#define OPENER_UID_THREADS_MAX 2
#define OPENER_REQUESTS_MAX    UINT64_C(32768) /* a long path counts as several */
#define OPENER_REQUEST_BYTES   128
#define OPENER_FILES_MAX       1024
#define OPENER_UID_FILES_MAX   64
#define OPENER_OWN_UID         ((uid_t)-2) /* of what is opened for no process */
#define OPENER_HANG_NS         UINT64_C(2000000000)

struct opener;

struct opener_request {
    enum module_source source;
    enum module_urgency urgency;
    const struct module_query *query; /* copied; NULL for what is no process's */
    void *userdata;
};

struct opener_answer {
    enum module_source source; /* that of the request */
    void *userdata;            /* that of the request */
    enum module_failure failure;
    bool is_refused; /* the account has too many requests; the failure is LIMIT */
    uid_t uid;
    struct module_file file; /* if failure is NONE; its fd goes back with opener_release() */
};

/* Starts the first thread; each may take `hang_ns` (OPENER_HANG_NS) for a file. Returns 0 and
 * an object to release with opener_free(), or -errno. */
int opener_new(uint64_t hang_ns, struct opener **ret);

/* A descriptor (borrowed) that polls readable when there are answers. */
int opener_fd(const struct opener *opener);

/* Returns 0, -EAGAIN when too many requests have just come in, or -ENOMEM. */
int opener_submit(struct opener *opener, const struct opener_request *request);

/* Takes one answer; false: there is none now. Each request gets exactly one answer, also one that
 * hangs or can never begin. Never blocks. */
bool opener_next(struct opener *opener, struct opener_answer *ret);

/* Has a thread close an answer's file. Never blocks. */
void opener_release(struct opener *opener, int fd, uid_t uid);

/* Has a thread close a descriptor (taken) of unknown kind, which counts as a file of `uid`. Never
 * blocks. Without memory it stays open. */
void opener_discard(struct opener *opener, int fd, uid_t uid);
/* True while a discarded descriptor of `uid` is open. */
bool opener_is_discarding(struct opener *opener, uid_t uid);

/* Stops opening, and waits up to `hang_ns` for threads at work, but not for those that were given
 * up. The requests that are left come out of opener_next() as failed. */
void opener_stop(struct opener *opener);

/*
 * After opener_stop(), and after opener_next() has given the last answer and every file has been
 * released. Waits for the files to be closed no longer than `hang_ns`: a thread that hangs is
 * left behind with what it holds, and does not keep the process from ending.
 */
struct opener *opener_free(struct opener *opener);

uint64_t opener_hang_count(struct opener *opener);
