/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFCTL_H
#define PROFCTL_H

/*
 * libprofctl: a client of cpu-profilerd, the system-wide CPU sampling profiler.
 *
 * A connection (struct profctl) is used for one session at a time:
 *
 *     struct profctl *conn = NULL;
 *     struct profctl_fault fault;
 *     static char bytes[PROFCTL_READ_BYTES_MAX];
 *     size_t size_bytes = 0;
 *     bool end = false;
 *     if (profctl_connect(NULL, &conn, &fault) < 0 ||
 *         profctl_create(conn, "{\"frequency_hz\":999}", false, &fault) < 0 ||
 *         profctl_start(conn, &fault) < 0) {
 *         (void)fprintf(stderr, "%s\n", fault.text);
 *         ...
 *     }
 *     sleep(1);
 *     profctl_stop(conn, &fault);
 *     while (!end && profctl_read(conn, bytes, sizeof bytes, &size_bytes, &end) == 0) {
 *         fwrite(bytes, 1, size_bytes, file);
 *     }
 *     conn = profctl_disconnect(conn);
 *
 * What is read, put together in its order, is a recording: a file of the Fuchsia trace format, as
 * `profctl report` reads it. Build with `pkg-config --cflags --libs profctl`.
 *
 * Ownership. "Borrowed" is used for the time of the call only; "returned" is the caller's to
 * release, by the function that is named there.
 *
 * Errors. Every function that returns an int returns 0, or a negative errno value and leaves its
 * outputs as they were, unless its comment says otherwise. Where there is a `fault` (it may be
 * NULL), it says in a sentence what went wrong. What to do where a connection fails is said by
 * `profctl doctor`. Besides what each comment lists:
 *   -ENOTCONN   the daemon closed the connection, or ended, now or before
 *   -ETIMEDOUT  the daemon did not answer in time; the connection is closed
 *   -EPROTO     the daemon's answer is not one that this library understands
 *   -EACCES     the daemon says that this user may not, or that it lacks a right itself
 *   -EIO        the machine is short of something
 *   -ENOMEM
 * After -ENOTCONN and -ETIMEDOUT only profctl_disconnect() is of use.
 *
 * Waiting. Every call waits for the daemon's reply: profctl_connect(), profctl_attach(),
 * profctl_status() and profctl_events() for 5 s at the most, profctl_stop() for as long as it
 * takes, the others for 30 s. No call is interrupted by a signal.
 *
 * Threads. A connection is used by one thread at a time. Several connections know nothing of each
 * other. There is no global state. A connection does not outlive fork() in the child: it must not
 * be used there. Descriptors are close-on-exec.
 */

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The most bytes that one read gives: a buffer of this size is never too small. */
#define PROFCTL_READ_BYTES_MAX 1048576

struct profctl;

struct profctl_fault {
    int code;       /* a positive errno value */
    char text[384]; /* one sentence without a newline or other control characters */
};

/*
 * Connects to the daemon's socket at `path` (borrowed); NULL: $CPU_PROFILERD_SOCKET, else
 * /run/cpu-profilerd/control.sock. `*ret` is returned: profctl_disconnect().
 *   -ENOENT, -ECONNREFUSED  no daemon listens there
 *   -ENOTSOCK               what is there is no socket
 *   -EACCES                 this user may not connect
 *   -ENAMETOOLONG           no socket can have such a path
 */
int profctl_connect(const char *path, struct profctl **ret, struct profctl_fault *fault);

/*
 * Creates a session, with all its buffers, that does not sample yet. `config_json` (borrowed) is
 * a session config, a JSON object; NULL takes all defaults. There is one session on a machine.
 *
 * Without `detach` the session belongs to the connection and ends with it. With it, it belongs to
 * the user, survives the connection, and ends by itself: 60 s after it was created if it is never
 * started; 600 s after the last request once it has stopped. A session without it that is not read
 * for the time that the administrator says (max_unread_s, 600 s) is stopped, and goes on as one
 * with it.
 *   -EEXIST      there is a session already
 *   -EINVAL      the config; the sentence begins with the member that is wrong
 *   -EOPNOTSUPP  this daemon, or its kernel, cannot do it
 */
int profctl_create(struct profctl *conn, const char *config_json, bool detach,
                   struct profctl_fault *fault);

/*
 * Takes over a detached session of this user. Root takes over any session, detached or not, from
 * the connection that holds it too; that connection has no session then. `session` (borrowed) is
 * its id, as profctl_status() shows it; NULL: whichever there is. One connection at a time holds a
 * session.
 *   -EBADFD  there is no such session, or another connection holds it
 *   -EINVAL  `session` is the id of no session
 */
int profctl_attach(struct profctl *conn, const char *session, struct profctl_fault *fault);

/*
 * Begins sampling; after a stop, goes on with the same session.
 *   -EBADFD  it runs already, or this connection has no session
 */
int profctl_start(struct profctl *conn, struct profctl_fault *fault);

/*
 * Ends sampling. Everything that was sampled can be read after it. A session that has ended by
 * itself (the config's max_duration_s) can be stopped once after its end.
 *   -EBADFD  it does not run, or this connection has no session
 */
int profctl_stop(struct profctl *conn, struct profctl_fault *fault);

/*
 * Reads what is ready, whole records, into `buffer` (borrowed) of `capacity_bytes`. Valid while the
 * session runs and after its stop. `*ret_size_bytes` is how much came, 0 when nothing is ready
 * (try again later: data comes about ten times a second); `*ret_end` is true once the session has
 * stopped and nothing is left after these bytes. The first bytes that a connection reads of a
 * session begin a recording of their own: what one connection reads is a whole file.
 *
 * The daemon keeps what it handed out until the next read, by which the caller confirms that it has
 * dealt with it. If the connection ends before that, the next reader of the session (there can be
 * one if it is detached) gets the same once more. To lose and double nothing, a program
 * stores the bytes first, and reads again afterwards, down to 0 bytes.
 *
 *   -EINVAL  the buffer is too small: `*ret_size_bytes` is what it takes; nothing is lost
 *   -EBADFD  this connection has no session
 *   -EIO     also: less came than was announced; read again
 */
int profctl_read(struct profctl *conn, void *buffer, size_t capacity_bytes, size_t *ret_size_bytes,
                 bool *ret_end);

/*
 * The same as a descriptor: `*ret_fd` (returned: close()) is a stream to read from, a socket. Its
 * `*ret_size_bytes` bytes are all there already, and the end of file follows them; -1 with 0 bytes.
 * The next read confirms that it was dealt with, so read and close it before.
 *   -EBADFD  this connection has no session, or the last stream still holds bytes
 */
int profctl_read_fd(struct profctl *conn, int *ret_fd, size_t *ret_size_bytes, bool *ret_end);

/*
 * The daemon, its kernel and the session of any user: one JSON object in one line, as
 * `profctl status --json` prints it. `*ret_json` is returned: free().
 */
int profctl_status(struct profctl *conn, char **ret_json);

/*
 * The events by which this machine can sample, and by which not: one JSON array in one line, as
 * `profctl events --json` prints it. `*ret_json` is returned: free().
 */
int profctl_events(struct profctl *conn, char **ret_json);

/*
 * Ends the session, whatever its state; what was not read is gone.
 *   -EBADFD  this connection has no session
 */
int profctl_close(struct profctl *conn, struct profctl_fault *fault);

/*
 * Ends the connection and frees it; NULL is allowed. Always returns NULL, so that
 * `conn = profctl_disconnect(conn)` leaves nothing that could be used again.
 */
struct profctl *profctl_disconnect(struct profctl *conn);

#ifdef __cplusplus
}
#endif

#endif
