/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Coming to the detached session that `start` began, or saying in a sentence why that cannot be
 * and what to do.
 */

#include "connection.h"
#include "options.h"

/* The options that the verbs on a session have in common. */
struct attach_request {
    const char *socket_path; /* NULL: where the daemon usually is */
    bool is_json;
};

/* --json, --socket, --help. */
extern const struct option attach_options[];

/*
 * Reads the options of a verb that has those and no operand. Returns whether to go on; else
 * `*ret_status` is the exit status.
 */
bool attach_take_options(const struct command_line *line, int argc, char **argv,
                         struct attach_request *ret, int *ret_status);

/* Connects and attaches. `*ret` is returned: profctl_disconnect(). Returns EXIT_DONE, or
 * EXIT_FAILED after a complaint. */
int attach_session(const char *socket_path, struct profctl **ret);

/* Prints what Create had to remark on the session, on standard error. */
void attach_print_remarks(const struct profctl *conn);

/* Complains about what Create refused with `fault`; about a session that is in the way, in full.
 * Returns EXIT_FAILED. */
int attach_complain_create(struct profctl *conn, const struct profctl_fault *fault);
