/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A double of session.h (and of module_cache_counts()) for the tests of the control socket: the
 * states are the real ones, the data is what a test puts here, and a stop ends when the test, or
 * the event loop, says so.
 */

#include "session.h"

struct fake {
    /* What a test sets. */
    int new_result;   /* returned by session_new() when negative, with the fault */
    int start_result; /* likewise by session_start() */
    struct fault fault;
    bool stops_at_once;  /* from the loop, without fake_finish_stop() */
    char ready[1048576]; /* what session_read() hands out */
    size_t ready_bytes;
    size_t handed_out_bytes;
    uint64_t worker_restarts;
    size_t books_bytes; /* length of a filler in the books of CPUs; 0: none */
    uint64_t unread_samples;
    uint64_t silent_ns;
    /* What a test looks at. */
    unsigned live_count;
    const char *stopped_by; /* what session_stop() was given last */
    unsigned new_count;
    struct session *last;
    struct session_config config;
    struct session_owner owner;
    unsigned segment_count;      /* calls of session_begin_segment() */
    unsigned acknowledged_count; /* calls of session_acknowledge() */
    uint64_t last_ack;
    size_t last_capacity_bytes;
};

extern struct fake fake;

void fake_reset(void);
/* Ends a stop, or a running session by itself, with on_stopped(). */
void fake_finish_stop(const char *by);
/* Makes the session SESSION_STOPPING as its own time limit does. */
void fake_begin_own_stop(void);
