/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Reads /proc on a thread of its own, since a process can keep whoever reads its maps waiting for
 * as long as it likes. After a while asleep a thread is slow, and another one goes on beside it; a
 * reading that sleeps longer than a limit is given up: it has failed, and its thread is lost until
 * it comes back.
 *
 * Mappings of that process are not read meanwhile, nor again unless what the thread brings is
 * whole; nor, for the time being, any of an account (account.h) of which PROC_POOL_UID_LOST_MAX
 * threads are slow or lost. A thread that is lost is replaced, until there are
 * PROC_POOL_THREADS_MAX, of all readers of the program together. The last few read mappings of
 * root's processes only, and the very last one none. When all are lost everything fails at once.
 *
 * What samples wait for comes first, then a walk, then what is read once more. Each request has
 * exactly one answer. All calls come from one thread, and none ever waits but proc_pool_free().
 */

#include "counters.h"
#include "proc_read.h"

#define PROC_POOL_THREADS_MAX  16 /* one works, the others are slow or lost */
#define PROC_POOL_UID_LOST_MAX 2
#define PROC_POOL_HANG_NS      UINT64_C(2000000000) /* the limit of the daemon */
#define PROC_POOL_REQUESTS_MAX 256                  /* that are not answered, of each urgency */
#define PROC_POOL_BYTES_MAX    ((size_t)16 << 20)   /* with so much unread, nothing is begun */

enum proc_urgency {
    PROC_SAMPLED, /* samples wait for it */
    PROC_LISTED,  /* a walk */
    PROC_AGAIN,   /* of a process that is known */
    PROC_URGENCIES,
};

struct proc_pool;

/* Starts the first thread; with `cgroups` readings have them. After `hang_ns` one is given up, and
 * a thread is slow after a twentieth of it. Returns 0 and an object to release with
 * proc_pool_free(), or -errno. */
int proc_pool_new(bool cgroups, uint64_t hang_ns, struct proc_pool **ret);

/* Returns 0, 1 when the same is asked already and not yet begun (then one answer is for both), or
 * -EAGAIN when there are too many. */
int proc_pool_ask(struct proc_pool *reader, enum proc_urgency urgency, enum proc_part part,
                  int32_t pid);

/* The next answer (returned: free()); NULL: none now. `error` is -ETIMEDOUT for what was given up,
 * -EBUSY for what nobody is left to read. */
struct proc_reading *proc_pool_next(struct proc_pool *reader);

/* Threads at work are waited for, for 100 ms at the most; one that is still at work then is lost,
 * and its process hangs, as if it had been given up. One that is lost is never waited for. */
struct proc_pool *proc_pool_free(struct proc_pool *reader);

struct proc_pool_counts {
    struct counters counters;
    int32_t hung_pid; /* of the first reading that was given up; 0: none */
};
struct proc_pool_counts proc_pool_counts(struct proc_pool *reader);
