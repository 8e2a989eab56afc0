/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the daemon's Status says of its session, for the verbs that speak of one.
 */

#include "connection.h"

#include <cjson/cJSON.h>
#include <stdint.h>
#include <sys/types.h>

/* After its last request a stopped detached session is closed. */
#define SESSION_UNREAD_S 600

struct session_status {
    cJSON *tree;    /* owned; all of the status */
    const char *id; /* of the session; NULL: there is none, and nothing below means anything */
    const char *state;
    uid_t uid; /* its owner's */
    bool detached;
    uint64_t age_s;
    uint64_t max_duration_s; /* 0: none */
    uint64_t period_ns;
    uint64_t buffer_bytes;
    uint64_t buffer_used_bytes; /* that were not read yet */
    const cJSON *books;         /* NULL: the daemon tells none */
};

/* Asks the daemon. Either way session_status_done() releases it. Returns 0 or -errno, with a
 * sentence in `fault`. */
int session_status_ask(struct profctl *conn, struct session_status *ret,
                       struct profctl_fault *fault);
void session_status_done(struct session_status *status);

/* "root (uid 0)". `into` has room for SESSION_OWNER_BYTES; returns it. */
#define SESSION_OWNER_BYTES ((size_t)80)
const char *session_owner_name(uid_t uid, char *into);

/* The time of day so many seconds from now, "14:02:11". `into` has room for SESSION_CLOCK_BYTES;
 * returns it. */
#define SESSION_CLOCK_BYTES ((size_t)16)
const char *session_clock(int64_t seconds_from_now, char *into);

/*
 * When its sampling, or what is left of it, ends: "by itself in 588 s, at 14:12:03". `into` has
 * room for SESSION_END_BYTES; returns it.
 */
#define SESSION_END_BYTES ((size_t)128)
const char *session_end(const struct session_status *status, char *into);
