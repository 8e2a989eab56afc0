/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * At most four threads that open and close foreign files, since either can hang for as long as a
 * filesystem likes. A thread that hangs longer than OPENER_HANG_NS is given up: its request fails,
 * and while it hangs its filesystem is not touched again. Bounded: requests, open files, open files
 * of one uid; what is over the last two waits in the queue.
 *
 * opener_submit() may be called from any thread; everything else belongs to one.
 */

#include "module_file.h"

#define OPENER_THREADS       4
#define OPENER_REQUESTS_MAX  1024
#define OPENER_FILES_MAX     1024
#define OPENER_UID_FILES_MAX 64
#define OPENER_HANG_NS       UINT64_C(2000000000)

struct opener;

struct opener_answer {
    void *userdata; /* as submitted */
    enum module_failure failure;
    struct module_file file; /* if failure is NONE; its fd goes back with opener_release() */
    uid_t uid;
};

/* Starts the threads. Returns 0 and an object to release with opener_free(), or -errno. */
int opener_new(struct opener **ret);
/* After opener_stop(), and after opener_next() has given the last answer. */
struct opener *opener_free(struct opener *opener);

/* A descriptor (borrowed) that polls readable when there are answers. */
int opener_fd(const struct opener *opener);

/* Copies `query`; NULL asks for the kernel's symbols. Returns 0, -EAGAIN when there are too many
 * requests, -ENOMEM. */
int opener_submit(struct opener *opener, const struct module_query *query, void *userdata);

/* Takes one answer, also of what hangs or can never begin; false: none now. Each request gets
 * exactly one. Never blocks. */
bool opener_next(struct opener *opener, struct opener_answer *ret);

/* Has an answer's file closed by a thread. */
void opener_release(struct opener *opener, int fd, uid_t uid);

/* Ends the threads, waiting for those at work no longer than OPENER_HANG_NS. What is left then
 * comes out of opener_next() as failed. */
void opener_stop(struct opener *opener);

uint64_t opener_hang_count(struct opener *opener);
