/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFCTL_H
#define PROFCTL_H

/*
 * libprofctl: a client of cpu-profilerd. One connection is one struct profctl; it is not
 * thread-safe, and every call but profctl_read() waits for the daemon's reply. A session that is
 * created here belongs to the connection and ends with it.
 *
 * All functions return 0 or -errno. Where a `fault` is passed (it may be NULL), it says in a
 * sentence what went wrong. After -ENOTCONN only profctl_disconnect() is valid.
 */

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct profctl;

struct profctl_fault {
    int code;       /* a positive errno value */
    char text[384]; /* one sentence, without a newline */
};

/*
 * Connects to the socket at `path`; NULL: $CPU_PROFILERD_SOCKET, else
 * /run/cpu-profilerd/control.sock. -ENOENT, -ECONNREFUSED  no daemon; -EACCES  not allowed to
 */
int profctl_connect(const char *path, struct profctl **ret, struct profctl_fault *fault);

/* Creates a session of a JSON config (borrowed; NULL: all defaults).
 *   -EEXIST another session exists; -EINVAL the config; -EACCES; -EOPNOTSUPP */
int profctl_create(struct profctl *conn, const char *config_json, bool detach,
                   struct profctl_fault *fault);

/* -EBADFD in the wrong state, for these two. */
int profctl_start(struct profctl *conn, struct profctl_fault *fault);
int profctl_stop(struct profctl *conn, struct profctl_fault *fault);

/*
 * Reads what is ready into `buffer`. `*ret_size_bytes` is how much, 0 when nothing is ready;
 * `*ret_end` is true once the session has stopped and these were its last bytes. What a buffer
 * cannot hold is kept: -EINVAL  too small; `*ret_size_bytes` is what it takes, and nothing is lost
 */
int profctl_read(struct profctl *conn, void *buffer, size_t capacity_bytes, size_t *ret_size_bytes,
                 bool *ret_end, struct profctl_fault *fault);

/* The daemon's status as a JSON text. Returned: free(). */
int profctl_status(struct profctl *conn, char **ret_json, struct profctl_fault *fault);

/* Closes the session. */
int profctl_close(struct profctl *conn, struct profctl_fault *fault);

/* Ends the connection and frees it; NULL is allowed. Always returns NULL. */
struct profctl *profctl_disconnect(struct profctl *conn);

#ifdef __cplusplus
}
#endif

#endif
