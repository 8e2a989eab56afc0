/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Reads /proc on threads, since a process can block a reader of its maps for as long as it likes. A
 * thread that has slept for a while is slow, and another one goes on beside it. A reading that
 * sleeps longer than a limit is given up: it has failed, and its thread is lost until it returns.
 *
 * The mappings of that process are not read meanwhile, and never again unless the late reading is
 * whole. Those of an account (account.h) are not read while PROC_POOL_UID_LOST_MAX threads are slow
 * or lost for it. A lost thread is replaced, up to PROC_POOL_THREADS_MAX for all pools of the
 * program. The last few threads read the mappings of root's processes only, and the very last one
 * reads none. When all threads are lost each request fails at once.
 *
 * Requests that samples wait for go first, then those of a walk, then repeated readings. Among
 * these the account is next that has had least of the threads' time, and an account has half of the
 * room for requests that the others leave. Each request has exactly one answer. All calls come from
 * one thread; only proc_pool_free() waits.
 */

#include "counters.h"
#include "proc_read.h"

#define PROC_POOL_THREADS_MAX  16 /* one works, the others are slow or lost */
#define PROC_POOL_UID_LOST_MAX 2
#define PROC_POOL_HANG_NS      UINT64_C(2000000000) /* the limit of the daemon */
#define PROC_POOL_REQUESTS_MAX 512                  /* that are not answered, of each urgency */
#define PROC_POOL_BYTES_MAX    ((size_t)16 << 20)   /* with so much unread, nothing is begun */

enum proc_urgency {
    PROC_SAMPLED, /* samples wait for it */
    PROC_LISTED,  /* a walk */
    PROC_AGAIN,   /* of a process that is known */
    PROC_URGENCIES,
};

struct proc_pool;

/* Starts the first thread. With `cgroups` each reading has the process's cgroups. A reading is
 * given up after `hang_ns`, and a thread is slow after a twentieth of that. Returns 0 and an object
 * to release with proc_pool_free(), or -errno. */
int proc_pool_new(bool cgroups, uint64_t hang_ns, struct proc_pool **ret);

/* Lets later requests read command lines as far as the right goes; before, none is read. */
void proc_pool_read_commands(struct proc_pool *reader, const struct command_right *right);

/* Requests a part of a process. Returns 0; 1 when the same request waits already (one answer is for
 * both); or -EAGAIN when too many requests wait, there is no memory, or a PROC_PART_COMMAND is of a
 * process that has gone, or that the right does not cover. */
int proc_pool_ask(struct proc_pool *reader, enum proc_urgency urgency, enum proc_part part,
                  int32_t pid);

/* The next answer (returned: free()); NULL: there is none now. `error` is -ETIMEDOUT for a reading
 * that was given up, and -EBUSY for a request that no thread is left to read. */
struct proc_reading *proc_pool_next(struct proc_pool *reader);

/* Waits up to 100 ms for threads at work, but not for lost ones. A thread that is still at work
 * then is lost; if it is slow, its process counts as one that hangs. */
struct proc_pool *proc_pool_free(struct proc_pool *reader);

struct proc_pool_counts {
    struct counters counters;
    int32_t hung_pid; /* of the first reading that was given up; 0: none */
};
struct proc_pool_counts proc_pool_counts(struct proc_pool *reader);
