/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The detached session: coming to it, and what the daemon says of it.
 */

#include "connection.h"
#include "options.h"

#include <cjson/cJSON.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Coming to the detached session that `start` began, or saying in a sentence why that cannot be
 * and what to do.
 */

/* The options that the verbs on a session have in common. */
struct attach_request {
    const char *socket_path; /* NULL: where the daemon usually is */
    bool is_json;
};

/* --json and --socket, of a verb whose request is a struct attach_request. */
extern const struct verb_option attach_options[];

/* Connects and attaches. `*ret` is returned: profctl_disconnect(). Returns EXIT_DONE, or
 * EXIT_FAILED after a complaint. */
int attach_session(const char *socket_path, struct profctl **ret);

/* Prints what Create had to remark on the session, on standard error. */
void attach_print_remarks(const struct profctl *conn);

/* Complains about what Create refused with `fault`; about a session that is in the way, in full.
 * Returns EXIT_FAILED. */
int attach_complain_create(struct profctl *conn, const struct profctl_fault *fault);

/*
 * What the daemon's Status says of its session, for the verbs that speak of one.
 */

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
