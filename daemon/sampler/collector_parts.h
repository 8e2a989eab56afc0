/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a collector consists of. Of collector.c and collector_mail.c only. */

#include "collector.h"
#include "thread_news.h"

struct rounds;

struct collector {
    struct rounds *rounds; /* the sampling thread's; NULL: there is no thread */
    pthread_t thread;
    size_t cpu_count;
    size_t sideband_count;
    int request_fd; /* eventfd: main -> collector */
    int event_fd;   /* eventfd: collector -> main */
    _Atomic uint64_t beat_ns;

    pthread_mutex_t mutex; /* over all that follows */
    struct thread_news walked;
    bool first_walk_done;
    unsigned requests;
    char *books_json;
    uint64_t names_limit_ns;
    uint64_t sampling_limit_ns;
    bool *lost;       /* told, and not taken yet */
    bool *taken_lost; /* the sampling thread's, without the mutex */
    struct perf_opening *openings;
    struct perf_opening *replaced;
    unsigned events; /* a bit for each enum collector_event */
    struct counters counters;
    struct books_cpu *lines;
    int32_t hung_pid;
};
