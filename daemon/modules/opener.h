/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Threads that open and close foreign files, since either can hang for as long as a filesystem or a
 * process likes. Four work at a time. A thread that hangs longer than `hang_ns` is given up: its
 * request fails; while it hangs its filesystem is not touched again, and its process, if that is
 * what hangs, never again (hung_processes.h). Another thread takes its place, until there are
 * OPENER_THREADS_MAX. The last of them is careful: it goes by paths on local filesystems, where
 * nothing waits for a user.
 *
 * Shared fairly among the accounts (account.h) whose processes are asked about: each may have so
 * many requests (half of what the others leave), open files and threads; whose turn it is goes
 * round; and a file that a sample waits for comes before one that is only likely to be needed. An
 * account all of whose threads hang is served carefully. What can only be opened otherwise fails
 * with MODULE_FAILURE_LIMIT. Processes that are gone count as their parent's account, else together
 * as one.
 *
 * A debug file is asked for by who holds a file already, so it waits for no place among all open
 * files, but only for one of the OPENER_UID_FILES_MAX that there are for debug files.
 *
 * opener_submit() may be called from any thread; everything else belongs to one.
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
    enum module_source source; /* this and */
    void *userdata;            /* this as submitted */
    enum module_failure failure;
    uid_t uid;
    struct module_file file; /* if failure is NONE; its fd goes back with opener_release() */
};

/* Starts the first thread; each may take `hang_ns` (OPENER_HANG_NS) for a file. Returns 0 and
 * an object to release with opener_free(), or -errno. */
int opener_new(uint64_t hang_ns, struct opener **ret);

/* A descriptor (borrowed) that polls readable when there are answers. */
int opener_fd(const struct opener *opener);

/* Returns 0, -EAGAIN when there are too many requests, or of this uid, or -ENOMEM. */
int opener_submit(struct opener *opener, const struct opener_request *request);

/* Takes one answer, also of what hangs or can never begin; false: none now. Each request gets
 * exactly one. Never blocks. */
bool opener_next(struct opener *opener, struct opener_answer *ret);

/* Has an answer's file closed by a thread. Never blocks. */
void opener_release(struct opener *opener, int fd, uid_t uid);

/* Takes a descriptor of unknown kind, to be closed by a thread, as one of that uid's files. Never
 * blocks. Without memory it stays open. */
void opener_discard(struct opener *opener, int fd, uid_t uid);
/* Whether any of these is not closed yet. */
bool opener_is_discarding(struct opener *opener, uid_t uid);

/* Opens nothing more, waiting for threads at work no longer than `hang_ns`, and not at all for
 * those given up. What is left then comes out of opener_next() as failed. */
void opener_stop(struct opener *opener);

/*
 * After opener_stop(), and after opener_next() has given the last answer and every file has been
 * released. Waits for the files to be closed no longer than `hang_ns`: a thread that hangs is
 * left behind with what it holds, and does not keep the process from ending.
 */
struct opener *opener_free(struct opener *opener);

uint64_t opener_hang_count(struct opener *opener);
