/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The client library: one call on the wire at a time, and replies turned into return values and
 * sentences. A connection on which something went wrong below the calls (a time limit, a broken
 * reply, the daemon gone) is closed at once, since nobody could tell any more which reply belongs
 * to which call; from then on every call gives -ENOTCONN.
 *
 * What a Read hands out stays in its pipe until the caller's buffer takes it whole; only then is it
 * acknowledged, with the next Read, so that nothing is lost whatever fails in between.
 */
#include "cleanup.h"
#include "json.h"
#include "profctl.h"
#include "sampler.h"
#include "varlink.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#define REPLY_LIMIT_MS 30000 /* for what the daemon answers at once */
#define NO_LIMIT       (-1)

struct profctl {
    int fd; /* -1 once the connection is broken */
    bool was_answered;
    struct varlink_input input;
    int reply_fd; /* that came with the reply being read; -1: none */
    /* What a Read handed out and the caller has not taken. */
    int chunk_fd; /* -1: nothing */
    size_t chunk_bytes;
    bool chunk_end;
    uint64_t chunk_sequence;
    uint64_t ack; /* the sequence of what the caller took last */
};

/* Fills `fault` (may be NULL); control characters become '?'. Returns -code. */
static int fail(struct profctl_fault *fault, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static int fail(struct profctl_fault *fault, int code, const char *format, ...)
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
    memcpy(fault->text, text, sizeof text);
    for (char *byte = fault->text; *byte != '\0'; byte++) {
        *byte = (unsigned char)*byte < ' ' || *byte == 0x7f ? '?' : *byte;
    }
    return -code;
}

/* Ends the connection, and says why. */
static int break_off(struct profctl *conn, struct profctl_fault *fault, int code, const char *text)
{
    conn->fd = close_fd(conn->fd);
    return fail(fault, code, "%s", text);
}

static int64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Waits for `events`, to `deadline_ms` of now_ms() or NO_LIMIT. Returns 0, -ETIMEDOUT or -errno. */
static int wait_for(int fd, short events, int64_t deadline_ms)
{
    for (;;) {
        struct pollfd waited = {.fd = fd, .events = events};
        int64_t left_ms = deadline_ms == NO_LIMIT ? NO_LIMIT : deadline_ms - now_ms();
        if (deadline_ms != NO_LIMIT && left_ms <= 0) {
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

/* Keeps the one descriptor that a reply may bring, and closes what it replaces. */
static void keep_fd(struct profctl *conn, struct msghdr *message)
{
    for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header != NULL;
         header = CMSG_NXTHDR(message, header)) {
        if (header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
            header->cmsg_len == CMSG_LEN(sizeof(int))) {
            conn->reply_fd = close_fd(conn->reply_fd);
            memcpy(&conn->reply_fd, CMSG_DATA(header), sizeof(int));
        }
    }
}

/* One recvmsg() into the input. Returns 0 or -errno, -ECONNRESET at the end. */
static int receive_some(struct profctl *conn)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    char *space = NULL;
    size_t space_bytes = 0;
    int r = varlink_input_space(&conn->input, &space, &space_bytes);
    if (r < 0) {
        return r;
    }
    struct iovec bytes = {.iov_base = space, .iov_len = space_bytes};
    struct msghdr message = {.msg_iov = &bytes,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    ssize_t received = recvmsg(conn->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (received < 0) {
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    }
    keep_fd(conn, &message);
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

static int fail_transport(struct profctl *conn, struct profctl_fault *fault, int r)
{
    switch (-r) {
    case ETIMEDOUT:
        return break_off(conn, fault, ETIMEDOUT, "the daemon did not answer in time");
    case ENOMEM:
        return break_off(conn, fault, ENOMEM, "out of memory");
    case EBADMSG:
    case EMSGSIZE:
        return break_off(conn, fault, EPROTO, "the daemon's answer is not one");
    default:
        return break_off(conn, fault, ENOTCONN,
                         conn->was_answered
                             ? "the daemon closed the connection, or has ended; see its log"
                             : "the daemon closed the connection at once: it serves at most 8 of a "
                               "user; end another client");
    }
}

static const char *get_string(const cJSON *parameters, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(parameters, name);
    return cJSON_IsString(item) ? item->valuestring : "";
}

static int64_t get_integer(const cJSON *parameters, const char *name, int64_t fallback)
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
        return fail(fault, EPROTO, "the daemon does not understand this version of profctl: %s",
                    error);
    }
    const char *name = error + prefix_bytes;
    if (strcmp(name, "AlreadyExists") == 0) {
        return fail(fault, EEXIST,
                    "another session exists, started %" PRId64 " s ago by uid %" PRId64
                    "; wait for its end, or have its owner end it",
                    get_integer(parameters, "age_ms", 0) / 1000,
                    get_integer(parameters, "owner_uid", -1));
    }
    if (strcmp(name, "InvalidArgs") == 0) {
        return fail(fault, EINVAL, "%s: %s", get_string(parameters, "member"),
                    get_string(parameters, "text"));
    }
    for (size_t i = 0; i < sizeof text_errors / sizeof text_errors[0]; i++) {
        if (strcmp(name, text_errors[i].name) == 0) {
            return fail(fault, text_errors[i].code, "%s", get_string(parameters, "text"));
        }
    }
    return fail(fault, EPROTO, "the daemon answered with an unknown error: %s", error);
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

/*
 * Sends a call and waits for its reply. `parameters` is taken, NULL: no memory. `*ret_reply` is the
 * reply's parameters (returned, json_freep()), never for an error reply.
 */
static int call(struct profctl *conn, const char *method, cJSON *parameters, int limit_ms,
                cJSON **ret_reply, struct profctl_fault *fault)
{
    cleanup_(freep) char *text = print_call(method, parameters);
    const char *reply_text = NULL;
    size_t reply_bytes = 0;
    if (conn->fd < 0) {
        return fail(fault, ENOTCONN, "the connection to the daemon is gone");
    }
    if (text == NULL) {
        return fail(fault, ENOMEM, "out of memory");
    }
    if (strlen(text) >= VARLINK_MESSAGE_BYTES_MAX) {
        return fail(fault, EINVAL, "config: is too long; less than %zu bytes are allowed",
                    VARLINK_MESSAGE_BYTES_MAX - 256);
    }
    conn->reply_fd = close_fd(conn->reply_fd);
    int64_t deadline_ms = limit_ms == NO_LIMIT ? NO_LIMIT : now_ms() + limit_ms;
    int r = send_text(conn->fd, text, deadline_ms);
    if (r >= 0) {
        r = receive_text(conn, deadline_ms, &reply_text, &reply_bytes);
    }
    if (r < 0) {
        return fail_transport(conn, fault, r);
    }
    cleanup_(json_freep) cJSON *reply = NULL;
    r = json_parse(reply_text, reply_bytes, SAMPLER_MESSAGE_DEPTH_MAX, &reply, NULL);
    if (r < 0 || !cJSON_IsObject(reply)) {
        return fail_transport(conn, fault, r == -ENOMEM ? r : -EBADMSG);
    }
    const cJSON *error = cJSON_GetObjectItemCaseSensitive(reply, "error");
    if (cJSON_IsString(error)) {
        return fail_reply(fault, error->valuestring,
                          cJSON_GetObjectItemCaseSensitive(reply, "parameters"));
    }
    *ret_reply = cJSON_DetachItemFromObjectCaseSensitive(reply, "parameters");
    return 0;
}

/* A call whose reply says nothing but that it worked. */
static int call_plain(struct profctl *conn, const char *method, int limit_ms,
                      struct profctl_fault *fault)
{
    cleanup_(json_freep) cJSON *reply = NULL;
    return call(conn, method, cJSON_CreateObject(), limit_ms, &reply, fault);
}

static int fail_connect(struct profctl_fault *fault, int code, const char *path)
{
    switch (code) {
    case ENOENT:
        return fail(fault, code,
                    "there is no socket '%.100s'; is the daemon running? "
                    "(systemctl start cpu-profilerd)",
                    path);
    case ECONNREFUSED:
        return fail(fault, code,
                    "nobody listens at '%.100s'; is the daemon running? "
                    "(systemctl start cpu-profilerd)",
                    path);
    case EACCES:
    case EPERM:
        return fail(fault, EACCES,
                    "not allowed to connect to '%.100s'; it takes membership of the group "
                    "'" SAMPLER_GROUP "', or root",
                    path);
    default:
        return fail(fault, code, "cannot connect to '%.100s': %s", path, strerror(code));
    }
}

int profctl_connect(const char *path, struct profctl **ret, struct profctl_fault *fault)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (path == NULL) {
        path = getenv(SAMPLER_SOCKET_ENVIRONMENT);
    }
    if (path == NULL || path[0] == '\0') {
        path = SAMPLER_SOCKET_PATH;
    }
    if (strlen(path) >= sizeof address.sun_path) {
        return fail(fault, ENAMETOOLONG, "the socket's path has more than %zu bytes: '%.100s'",
                    sizeof address.sun_path - 1, path);
    }
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    cleanup_(closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof address) != 0) {
        return fail_connect(fault, errno, path);
    }
    struct profctl *conn = malloc(sizeof *conn);
    if (conn == NULL) {
        return fail(fault, ENOMEM, "out of memory");
    }
    *conn = (struct profctl){.fd = take_fd(fd), .reply_fd = -1, .chunk_fd = -1};
    *ret = conn;
    return 0;
}

struct profctl *profctl_disconnect(struct profctl *conn)
{
    if (conn != NULL) {
        conn->fd = close_fd(conn->fd);
        conn->reply_fd = close_fd(conn->reply_fd);
        conn->chunk_fd = close_fd(conn->chunk_fd);
        varlink_input_done(&conn->input);
        free(conn);
    }
    return NULL;
}

/* Nothing of an earlier session may be acknowledged or handed out in the next. */
static void forget_reads(struct profctl *conn)
{
    conn->chunk_fd = close_fd(conn->chunk_fd);
    conn->ack = 0;
}

int profctl_create(struct profctl *conn, const char *config_json, bool detach,
                   struct profctl_fault *fault)
{
    const char *text = config_json == NULL ? "{}" : config_json;
    cleanup_(json_freep) cJSON *config = NULL;
    cleanup_(json_freep) cJSON *reply = NULL;
    struct fault wrong = {0};
    int r = json_parse(text, strlen(text), SAMPLER_MESSAGE_DEPTH_MAX - 2, &config, &wrong);
    if (r < 0) {
        return fail(fault, -r, "config: %s", wrong.text);
    }
    if (!cJSON_IsObject(config)) {
        return fail(fault, EINVAL, "config: is not an object; an object is allowed");
    }
    cleanup_(json_freep) cJSON *parameters = cJSON_CreateObject();
    if (cJSON_AddBoolToObject(parameters, "detach", detach) == NULL ||
        !cJSON_AddItemToObject(parameters, "config", config)) {
        return fail(fault, ENOMEM, "out of memory");
    }
    config = NULL;
    r = call(conn, SAMPLER_INTERFACE ".Create", take_ptr(parameters), REPLY_LIMIT_MS, &reply,
             fault);
    if (r >= 0) {
        forget_reads(conn);
    }
    return r;
}

int profctl_start(struct profctl *conn, struct profctl_fault *fault)
{
    return call_plain(conn, SAMPLER_INTERFACE ".Start", REPLY_LIMIT_MS, fault);
}

int profctl_stop(struct profctl *conn, struct profctl_fault *fault)
{
    return call_plain(conn, SAMPLER_INTERFACE ".Stop", NO_LIMIT, fault);
}

int profctl_close(struct profctl *conn, struct profctl_fault *fault)
{
    int r = call_plain(conn, SAMPLER_INTERFACE ".Close", REPLY_LIMIT_MS, fault);
    if (r >= 0) {
        forget_reads(conn);
    }
    return r;
}

/* Has the daemon hand out the next chunk. */
static int fetch_chunk(struct profctl *conn, struct profctl_fault *fault)
{
    cleanup_(json_freep) cJSON *reply = NULL;
    cleanup_(json_freep) cJSON *parameters = cJSON_CreateObject();
    if (cJSON_AddNumberToObject(parameters, "ack", (double)conn->ack) == NULL) {
        return fail(fault, ENOMEM, "out of memory");
    }
    int r =
        call(conn, SAMPLER_INTERFACE ".Read", take_ptr(parameters), REPLY_LIMIT_MS, &reply, fault);
    if (r < 0) {
        return r;
    }
    int64_t bytes = get_integer(reply, "size_bytes", -1);
    int64_t sequence = get_integer(reply, "sequence", -1);
    bool has_fd = get_integer(reply, "fd", -1) == 0 && conn->reply_fd >= 0;
    if (bytes < 0 || bytes > SAMPLER_READ_BYTES_MAX || sequence < 0 || (bytes > 0 && !has_fd)) {
        return fail_transport(conn, fault, -EBADMSG);
    }
    conn->chunk_bytes = (size_t)bytes;
    conn->chunk_sequence = (uint64_t)sequence;
    conn->chunk_end = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(reply, "end"));
    conn->chunk_fd = take_fd(conn->reply_fd);
    conn->ack = 0; /* it has arrived */
    return 0;
}

/* Reads the pipe of the chunk, which holds all of it already, and closes it. */
static int take_chunk(struct profctl *conn, char *buffer, struct profctl_fault *fault)
{
    cleanup_(closep) int fd = take_fd(conn->chunk_fd);
    size_t taken_bytes = 0;
    while (taken_bytes < conn->chunk_bytes) {
        ssize_t got = read(fd, buffer + taken_bytes, conn->chunk_bytes - taken_bytes);
        if (got > 0) {
            taken_bytes += (size_t)got;
        } else if (got == 0 || errno != EINTR) {
            return fail(fault, EIO, "the daemon handed out %zu bytes instead of %zu; read again",
                        taken_bytes, conn->chunk_bytes);
        }
    }
    conn->ack = conn->chunk_sequence;
    return 0;
}

int profctl_read(struct profctl *conn, void *buffer, size_t capacity_bytes, size_t *ret_size_bytes,
                 bool *ret_end, struct profctl_fault *fault)
{
    int r = conn->chunk_fd < 0 ? fetch_chunk(conn, fault) : 0;
    if (r < 0) {
        return r;
    }
    if (conn->chunk_bytes > capacity_bytes) {
        *ret_size_bytes = conn->chunk_bytes;
        return fail(fault, EINVAL, "the buffer has %zu bytes; %zu are needed", capacity_bytes,
                    conn->chunk_bytes);
    }
    r = conn->chunk_bytes == 0 ? 0 : take_chunk(conn, buffer, fault);
    if (r >= 0) {
        *ret_size_bytes = conn->chunk_bytes;
        *ret_end = conn->chunk_end;
    }
    return r;
}

int profctl_status(struct profctl *conn, char **ret_json, struct profctl_fault *fault)
{
    cleanup_(json_freep) cJSON *reply = NULL;
    int r = call(conn, SAMPLER_INTERFACE ".Status", cJSON_CreateObject(), REPLY_LIMIT_MS, &reply,
                 fault);
    if (r < 0) {
        return r;
    }
    const cJSON *status = cJSON_GetObjectItemCaseSensitive(reply, "status");
    if (!cJSON_IsObject(status)) {
        return fail_transport(conn, fault, -EBADMSG);
    }
    char *text = cJSON_PrintUnformatted(status);
    if (text == NULL) {
        return fail(fault, ENOMEM, "out of memory");
    }
    *ret_json = text;
    return 0;
}
