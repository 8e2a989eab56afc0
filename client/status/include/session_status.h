/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the daemon's Status says of its session, for the verbs that speak of one.
 */

#include "connection.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* After its last request a stopped detached session is closed. */
#define SESSION_UNREAD_S 600

struct session_status {
    cJSON *tree;    /* owned; all of the status */
    const char *id; /* of the session; NULL: there is none, and nothing below means anything */
    const char *state;
    uid_t uid; /* its owner's */
    pid_t pid; /* of the client that created it; 0: not known */
    bool detached;
    uint64_t age_s;
    uint64_t max_duration_s; /* 0: none */
    uint64_t period_ns;
    uint64_t buffer_bytes;
    uint64_t buffer_used_bytes; /* that were not read yet */
    bool is_read;               /* it has stopped, and reads have had all of it, to the end */
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

/* The session's holder and since when, "root (uid 0) since 14:02:11 (12 s ago)". `into` has room
 * for SESSION_HOLDER_BYTES; returns it. */
#define SESSION_HOLDER_BYTES (SESSION_OWNER_BYTES + SESSION_CLOCK_BYTES + 48)
const char *session_holder(const struct session_status *status, char *into);

/* "root is recording (profctl, pid 13963, for 596 s)"; `already` ("", "already ") stands before the
 * verb. `into` has room for SESSION_RECORDER_BYTES; returns it. */
#define SESSION_RECORDER_BYTES (SESSION_OWNER_BYTES + SESSION_CLIENT_BYTES + 64)
const char *session_recorder(const struct session_status *status, const char *already, char *into);

/* The client that holds an attached session: "profctl, pid 13963". `into` has room for
 * SESSION_CLIENT_BYTES; returns it. */
#define SESSION_CLIENT_BYTES ((size_t)64)
const char *session_client(const struct session_status *status, char *into);

/* The time of day so many seconds from now, "14:02:11", with the date where that is another day.
 * `into` has room for SESSION_CLOCK_BYTES; returns it. */
#define SESSION_CLOCK_BYTES ((size_t)24)
const char *session_clock(int64_t seconds_from_now, char *into);

/*
 * When its sampling, or what is left of it, ends: "by itself in 588 s, at 14:12:03". `into` has
 * room for SESSION_END_BYTES; returns it.
 */
#define SESSION_END_BYTES ((size_t)128)
const char *session_end(const struct session_status *status, char *into);
