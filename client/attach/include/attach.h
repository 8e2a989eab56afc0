/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Connects to the daemon, and attaches to the detached session that `start` began. Where that
 * cannot be, a sentence says why, and what to do.
 */

#include "connection.h"
#include "options.h"
#include "session_status.h"

/* The options that the verbs on a session have in common. */
struct attach_request {
    const char *socket_path; /* NULL: where the daemon usually is */
    bool is_json;
};

/* --json and --socket, of a verb whose request is a struct attach_request. */
extern const struct verb_option attach_options[];

/* Connects. `*ret` is returned: profctl_disconnect(). Returns EXIT_DONE, or EXIT_FAILED after a
 * complaint with its remedy (doctor.h). */
int attach_connect(const char *socket_path, struct profctl **ret);

/* Connects and attaches. `*ret` is returned: profctl_disconnect(). Returns EXIT_DONE, or
 * EXIT_FAILED after a complaint. */
int attach_session(const char *socket_path, struct profctl **ret);

/* Prints what Create had to remark on the session, on standard error. */
void attach_print_remarks(const struct profctl *conn);
