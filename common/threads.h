/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <pthread.h>
#include <signal.h>
#include <time.h>

/* Starts a thread that nobody joins and that takes no signals, which are the main thread's
 * business. Returns 0, or -errno. */
static inline int threads_start(void *(*run)(void *), void *userdata)
{
    sigset_t all;
    sigset_t before;
    pthread_t thread;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int r = -pthread_create(&thread, NULL, run, userdata);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return r < 0 ? r : -pthread_detach(thread);
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
