/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A connection on which something went wrong below the calls (a time limit, a broken reply, the
 * daemon gone) is closed at once, since it would be unknown which reply belongs to which
 * call; from then on every call gives -ENOTCONN.
 */
#include "rpc.h"

#include "cleanup.h"
#include "clock.h"
#include "descriptors.h"
#include "json.h"
#include "sampler.h"
#include "utf8.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

const char *rpc_log_place(void)
{
    return access("/run/systemd/system", F_OK) == 0
               ? "journalctl -u cpu-profilerd"
               : "the standard error of cpu-profilerd, where that was started";
}

int rpc_fail(struct profctl_fault *fault, int code, const char *format, ...)
{
    char text[sizeof fault->text];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (fault == NULL) {
        return -code;
    }
    fault->code = code;
    (void)utf8_shown(fault->text, sizeof fault->text, text, strlen(text));
    return -code;
}

/* Ends the connection, and says why. */
static int break_off(struct profctl *conn, struct profctl_fault *fault, int code, const char *text)
{
    conn->fd = close_fd(conn->fd);
    return rpc_fail(fault, code, "%s", text);
}

/* The daemon closed the connection. */
static int break_off_closed(struct profctl *conn, struct profctl_fault *fault)
{
    conn->fd = close_fd(conn->fd);
    return conn->was_answered
               ? rpc_fail(fault, ENOTCONN,
                          "the daemon closed the connection, or has ended; its log says why: %s",
                          rpc_log_place())
               : rpc_fail(fault, ENOTCONN,
                          "the daemon closed the connection without an answer: it has ended, or "
                          "serves 8 of a user already; see its log (%s), or end another client",
                          rpc_log_place());
}

static int64_t now_ms(void)
{
    return (int64_t)(clock_ns(CLOCK_MONOTONIC) / NS_PER_MS);
}

/* Waits for `events`, to `deadline_ms` of now_ms() or RPC_FOREVER. Returns 0, -ETIMEDOUT or -errno.
 */
static int wait_for(int fd, short events, int64_t deadline_ms)
{
    for (;;) {
        struct pollfd waited = {.fd = fd, .events = events};
        int64_t left_ms = deadline_ms == RPC_FOREVER ? RPC_FOREVER : deadline_ms - now_ms();
        if (deadline_ms != RPC_FOREVER && left_ms <= 0) {
            return -ETIMEDOUT;
        }
        int ready = poll(&waited, 1, (int)left_ms);
        if (ready > 0) {
            return 0;
        }
        if (ready < 0 && errno != EINTR) {
            return -errno;
        }
    }
}

/* Sends a whole message, its NUL included. Returns 0 or -errno. */
static int send_text(int fd, const char *text, int64_t deadline_ms)
{
    size_t left_bytes = strlen(text) + 1;
    while (left_bytes > 0) {
        ssize_t sent = send(fd, text, left_bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
        int r = 0;
        if (sent > 0) {
            text += sent;
            left_bytes -= (size_t)sent;
        } else if (errno == EAGAIN) {
            r = wait_for(fd, POLLOUT, deadline_ms);
        } else if (errno != EINTR) {
            r = -errno;
        }
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

/* One recvmsg() into the input. Returns 0 or -errno, -ECONNRESET at the end. */
static int receive_some(struct profctl *conn)
{
    int fds[DESCRIPTORS_MAX];
    size_t fd_count = 0;
    char *space = NULL;
    size_t space_bytes = 0;
    int r = varlink_input_space(&conn->input, &space, &space_bytes);
    if (r < 0) {
        return r;
    }
    ssize_t received =
        descriptors_receive(conn->fd, space, space_bytes, MSG_DONTWAIT, fds, &fd_count);
    if (received < 0) {
        return received == -EAGAIN || received == -EINTR ? 0 : (int)received;
    }
    /* A reply brings at most one, which takes the place of another that was not asked for. */
    for (size_t i = 0; i < fd_count; i++) {
        conn->reply_fd = close_fd(conn->reply_fd);
        conn->reply_fd = fds[i];
    }
    varlink_input_filled(&conn->input, (size_t)received);
    return received == 0 ? -ECONNRESET : 0;
}

/* Waits for the next message. Returns 0 or -errno. */
static int receive_text(struct profctl *conn, int64_t deadline_ms, const char **ret_text,
                        size_t *ret_bytes)
{
    for (;;) {
        int r = varlink_input_next(&conn->input, ret_text, ret_bytes);
        if (r != 0) {
            conn->was_answered = conn->was_answered || r > 0;
            return r < 0 ? r : 0;
        }
        r = wait_for(conn->fd, POLLIN, deadline_ms);
        if (r >= 0) {
            r = receive_some(conn);
        }
        if (r < 0) {
            return r;
        }
    }
}

int rpc_fail_transport(struct profctl *conn, struct profctl_fault *fault, int r)
{
    switch (-r) {
    case ENOMEM:
        return break_off(conn, fault, ENOMEM, "out of memory");
    case EBADMSG:
    case EMSGSIZE:
        return break_off(conn, fault, EPROTO, "the daemon's answer is not one");
    default:
        return break_off_closed(conn, fault);
    }
}

const char *rpc_string(const cJSON *parameters, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(parameters, name);
    return cJSON_IsString(item) ? item->valuestring : "";
}

int64_t rpc_integer(const cJSON *parameters, const char *name, int64_t fallback)
{
    int64_t value = fallback;
    (void)json_read_integer(cJSON_GetObjectItemCaseSensitive(parameters, name), -JSON_INTEGER_MAX,
                            JSON_INTEGER_MAX, &value);
    return value;
}

/* The errors whose only parameter of interest is a sentence. */
static const struct {
    const char *name;
    int code;
} text_errors[] = {
    {"BadState", EBADFD},
    {"PermissionDenied", EACCES},
    {"NotSupported", EOPNOTSUPP},
    {"Failed", EIO},
};

/* An error reply as a sentence. */
static int fail_reply(struct profctl_fault *fault, const char *error, const cJSON *parameters)
{
    size_t prefix_bytes = strlen(SAMPLER_INTERFACE ".");
    if (strncmp(error, SAMPLER_INTERFACE ".", prefix_bytes) != 0) {
        return rpc_fail(fault, EPROTO, "the daemon does not understand this version of profctl: %s",
                        error);
    }
    const char *name = error + prefix_bytes;
    if (strcmp(name, "AlreadyExists") == 0) {
        return rpc_fail(fault, EEXIST,
                        "another session exists, started %" PRId64 " s ago by uid %" PRId64
                        "; wait for its end, or have its owner end it",
                        rpc_integer(parameters, "age_ms", 0) / 1000,
                        rpc_integer(parameters, "owner_uid", -1));
    }
    if (strcmp(name, "InvalidArgs") == 0) {
        return rpc_fail(fault, EINVAL, "%s: %s", rpc_string(parameters, "member"),
                        rpc_string(parameters, "text"));
    }
    for (size_t i = 0; i < sizeof text_errors / sizeof text_errors[0]; i++) {
        if (strcmp(name, text_errors[i].name) == 0) {
            return rpc_fail(fault, text_errors[i].code, "%s", rpc_string(parameters, "text"));
        }
    }
    return rpc_fail(fault, EPROTO, "the daemon answered with an unknown error: %s", error);
}

/* {"method": ..., "parameters": ...} as a text; `parameters` is taken, NULL: no memory. */
static char *print_call(const char *method, cJSON *parameters)
{
    cleanup_(json_freep) cJSON *call = cJSON_CreateObject();
    bool named = cJSON_AddStringToObject(call, "method", method) != NULL;
    if (!cJSON_AddItemToObject(call, "parameters", parameters)) {
        cJSON_Delete(parameters);
        return NULL;
    }
    return named ? cJSON_PrintUnformatted(call) : NULL;
}

int rpc_call(struct profctl *conn, const char *method, cJSON *parameters, int limit_ms,
             cJSON **ret_reply, struct profctl_fault *fault)
{
    cleanup_(freep) char *text = print_call(method, parameters);
    const char *reply_text = NULL;
    size_t reply_bytes = 0;
    if (conn->fd < 0) {
        return rpc_fail(fault, ENOTCONN, "the connection to the daemon is gone");
    }
    if (text == NULL) {
        return rpc_fail(fault, ENOMEM, "out of memory");
    }
    if (strlen(text) >= VARLINK_MESSAGE_BYTES_MAX) {
        return rpc_fail(fault, EINVAL, "config: is too long; less than %zu bytes are allowed",
                        VARLINK_MESSAGE_BYTES_MAX - 256);
    }
    conn->reply_fd = close_fd(conn->reply_fd);
    int64_t deadline_ms = limit_ms == RPC_FOREVER ? RPC_FOREVER : now_ms() + limit_ms;
    int r = send_text(conn->fd, text, deadline_ms);
    if (r >= 0 || r == -EPIPE) { /* a daemon that ended the connection may have said why */
        r = receive_text(conn, deadline_ms, &reply_text, &reply_bytes);
    }
    if (r == -ETIMEDOUT) {
        conn->fd = close_fd(conn->fd);
        return rpc_fail(fault, ETIMEDOUT,
                        "the daemon did not answer within %d s; it is stopped, or has too much to "
                        "do: see its log, %s",
                        limit_ms / 1000, rpc_log_place());
    }
    if (r < 0) {
        return rpc_fail_transport(conn, fault, r);
    }
    cleanup_(json_freep) cJSON *reply = NULL;
    r = json_parse(reply_text, reply_bytes, SAMPLER_MESSAGE_DEPTH_MAX, &reply, NULL);
    if (r < 0 || !cJSON_IsObject(reply)) {
        return rpc_fail_transport(conn, fault, r == -ENOMEM ? r : -EBADMSG);
    }
    const cJSON *error = cJSON_GetObjectItemCaseSensitive(reply, "error");
    if (cJSON_IsString(error)) {
        return fail_reply(fault, error->valuestring,
                          cJSON_GetObjectItemCaseSensitive(reply, "parameters"));
    }
    *ret_reply = cJSON_DetachItemFromObjectCaseSensitive(reply, "parameters");
    return 0;
}
