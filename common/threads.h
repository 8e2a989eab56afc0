/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define THREADS_STACK_BYTES ((size_t)256 << 10) /* of a thread that may be lost with it */

/* Starts a thread with a small stack that is never joined and takes no signals, which are the
 * main thread's business. Returns 0, or -errno. */
static inline int threads_start(void *(*run)(void *), void *userdata)
{
    sigset_t all;
    sigset_t before;
    pthread_t thread;
    pthread_attr_t attributes;
    int r = -pthread_attr_init(&attributes);
    if (r < 0) {
        return r;
    }
    (void)pthread_attr_setstacksize(&attributes, THREADS_STACK_BYTES);
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    r = -pthread_create(&thread, &attributes, run, userdata);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attributes);
    return r;
}

/* A condition whose limits are of CLOCK_MONOTONIC. Returns 0, or -errno. */
static inline int threads_init_condition(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    int r = -pthread_condattr_init(&attributes);
    if (r == 0) {
        (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
        r = -pthread_cond_init(condition, &attributes);
        (void)pthread_condattr_destroy(&attributes);
    }
    return r;
}

/* A lock whose holder inherits the priority of the thread that waits for it, where the kernel can
 * do that (CONFIG_FUTEX_PI). Else a thread that is urgent waits until the holder gets a CPU. */
static inline void threads_init_lock(pthread_mutex_t *lock)
{
    pthread_mutexattr_t inheriting;
    (void)pthread_mutexattr_init(&inheriting);
    (void)pthread_mutexattr_setprotocol(&inheriting, PTHREAD_PRIO_INHERIT);
    if (pthread_mutex_init(lock, &inheriting) != 0) {
        (void)pthread_mutex_init(lock, NULL);
    }
    (void)pthread_mutexattr_destroy(&inheriting);
}
