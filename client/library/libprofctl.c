/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The client library: what each call means. What a Read hands out stays in its stream until
 * the caller's buffer takes it whole, or the caller takes the stream; only then is it acknowledged,
 * with the next Read, so that nothing is lost whatever fails in between.
 */
#include "cleanup.h"
#include "json.h"
#include "rpc.h"
#include "sampler.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>

#define CONNECT_LIMIT_S 5

static bool is_no_socket(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && !S_ISSOCK(status.st_mode);
}

static int fail_connect(struct profctl_fault *fault, int code, const char *path)
{
    switch (code) {
    case ENOENT:
    case ECONNREFUSED:
        return is_no_socket(path)
                   ? rpc_fail(fault, ENOTSOCK, "'%.100s' is no socket", path)
                   : rpc_fail(fault, code, "%s '%.100s'",
                              code == ENOENT ? "there is no socket" : "no daemon listens at", path);
    case EACCES:
    case EPERM:
        return rpc_fail(fault, EACCES, "not allowed to connect to '%.100s'", path);
    case EAGAIN:
        return rpc_fail(
            fault, ETIMEDOUT,
            "the daemon at '%.100s' has taken no connection for %d s; it is stopped, or "
            "has too much to do: see its log, %s",
            path, CONNECT_LIMIT_S, rpc_log_place());
    default:
        return rpc_fail(fault, code, "cannot connect to '%.100s': %s", path, strerror(code));
    }
}

/* A socket that is connected, or -errno. The wait for a daemon that accepts no connection is
 * bounded.
 */
static int dial(const struct sockaddr_un *address)
{
    const struct timeval limit = {.tv_sec = CONNECT_LIMIT_S};
    cleanup_(closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) < 0) {
        return -errno;
    }
    int r = 0;
    do {
        r = connect(fd, (const struct sockaddr *)address, sizeof *address);
    } while (r < 0 && errno == EINTR);
    return r < 0 ? -errno : take_fd(fd);
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
        return rpc_fail(fault, ENAMETOOLONG, "the socket's path has more than %zu bytes: '%.100s'",
                        sizeof address.sun_path - 1, path);
    }
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    cleanup_(closep) int fd = dial(&address);
    if (fd < 0) {
        return fail_connect(fault, -fd, path);
    }
    struct profctl *conn = malloc(sizeof *conn);
    if (conn == NULL) {
        return rpc_fail(fault, ENOMEM, "out of memory");
    }
    *conn = (struct profctl){.fd = take_fd(fd), .reply_fd = -1, .chunk_fd = -1};
    _Static_assert(sizeof conn->path == sizeof address.sun_path, "any path fits");
    (void)snprintf(conn->path, sizeof conn->path, "%s", path);
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

/* Keeps the sentences that fit. */
static void take_remarks(struct connection_notes *notes, const cJSON *reply)
{
    const cJSON *remark = NULL;
    cJSON_ArrayForEach(remark, cJSON_GetObjectItemCaseSensitive(reply, "notes"))
    {
        if (cJSON_IsString(remark) && notes->remark_count < CONNECTION_REMARKS_MAX) {
            (void)snprintf(notes->remarks[notes->remark_count++], CONNECTION_REMARK_BYTES, "%s",
                           remark->valuestring);
        }
    }
}

/* Nothing of an earlier session may be acknowledged, handed out or told in the next. `reply` names
 * that; NULL: there is none. */
static void enter_session(struct profctl *conn, const cJSON *reply)
{
    conn->chunk_fd = close_fd(conn->chunk_fd);
    conn->ack = 0;
    conn->notes = (struct connection_notes){.holds_s = rpc_integer(reply, "holds_s", 0)};
    (void)snprintf(conn->notes.session, sizeof conn->notes.session, "%s",
                   rpc_string(reply, "session"));
    (void)snprintf(conn->notes.state, sizeof conn->notes.state, "%s", rpc_string(reply, "state"));
    take_remarks(&conn->notes, reply);
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
        return rpc_fail(fault, -r, "config: %s", wrong.text);
    }
    if (!cJSON_IsObject(config)) {
        return rpc_fail(fault, EINVAL, "config: is not an object; an object is allowed");
    }
    cleanup_(json_freep) cJSON *parameters = cJSON_CreateObject();
    if (cJSON_AddBoolToObject(parameters, "detach", detach) == NULL ||
        !cJSON_AddItemToObject(parameters, "config", config)) {
        return rpc_fail(fault, ENOMEM, "out of memory");
    }
    config = NULL;
    r = rpc_call(conn, SAMPLER_INTERFACE ".Create", take_ptr(parameters), RPC_LONG_MS, &reply,
                 fault);
    if (r >= 0) {
        enter_session(conn, reply);
    }
    return r;
}

int profctl_attach(struct profctl *conn, const char *session, struct profctl_fault *fault)
{
    cleanup_(json_freep) cJSON *reply = NULL;
    cleanup_(json_freep) cJSON *parameters = cJSON_CreateObject();
    if (session != NULL && cJSON_AddStringToObject(parameters, "session", session) == NULL) {
        return rpc_fail(fault, ENOMEM, "out of memory");
    }
    int r = rpc_call(conn, SAMPLER_INTERFACE ".Attach", take_ptr(parameters), RPC_SHORT_MS, &reply,
                     fault);
    if (r >= 0) {
        enter_session(conn, reply);
    }
    return r;
}

int profctl_start(struct profctl *conn, struct profctl_fault *fault)
{
    cleanup_(json_freep) cJSON *reply = NULL;
    return rpc_call(conn, SAMPLER_INTERFACE ".Start", cJSON_CreateObject(), RPC_LONG_MS, &reply,
                    fault);
}

int profctl_stop(struct profctl *conn, struct profctl_fault *fault)
{
    cleanup_(json_freep) cJSON *reply = NULL;
    int r =
        rpc_call(conn, SAMPLER_INTERFACE ".Stop", cJSON_CreateObject(), RPC_FOREVER, &reply, fault);
    if (r >= 0) {
        (void)snprintf(conn->notes.stopped_by, sizeof conn->notes.stopped_by, "%s",
                       rpc_string(reply, "stopped_by"));
    }
    return r;
}

int profctl_close(struct profctl *conn, struct profctl_fault *fault)
{
    cleanup_(json_freep) cJSON *reply = NULL;
    int r = rpc_call(conn, SAMPLER_INTERFACE ".Close", cJSON_CreateObject(), RPC_LONG_MS, &reply,
                     fault);
    if (r >= 0) {
        enter_session(conn, NULL);
    }
    return r;
}

/* Begins a call that has no fault to fill: its sentence goes to the notes. */
static struct profctl_fault *note_fault(struct profctl *conn)
{
    conn->notes.fault = (struct profctl_fault){0};
    return &conn->notes.fault;
}

/* Has the daemon hand out the next chunk. */
static int fetch_chunk(struct profctl *conn, struct profctl_fault *fault)
{
    cleanup_(json_freep) cJSON *reply = NULL;
    cleanup_(json_freep) cJSON *parameters = cJSON_CreateObject();
    if (conn->ack > 0 && cJSON_AddNumberToObject(parameters, "ack", (double)conn->ack) == NULL) {
        return rpc_fail(fault, ENOMEM, "out of memory");
    }
    int r =
        rpc_call(conn, SAMPLER_INTERFACE ".Read", take_ptr(parameters), RPC_LONG_MS, &reply, fault);
    if (r < 0) {
        return r;
    }
    int64_t bytes = rpc_integer(reply, "size_bytes", -1);
    int64_t sequence = rpc_integer(reply, "sequence", -1);
    bool has_fd = rpc_integer(reply, "fd", -1) == 0 && conn->reply_fd >= 0;
    if (bytes < 0 || bytes > PROFCTL_READ_BYTES_MAX || sequence < 0 || (bytes > 0 && !has_fd)) {
        return rpc_fail_transport(conn, fault, -EBADMSG);
    }
    conn->chunk_bytes = (size_t)bytes;
    conn->chunk_sequence = (uint64_t)sequence;
    conn->chunk_end = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(reply, "end"));
    conn->chunk_fd = bytes > 0 ? take_fd(conn->reply_fd) : -1;
    conn->ack = 0; /* it has arrived */
    return 0;
}

/* Gives the stream of the chunk away; the next Read confirms it. */
static int take_chunk(struct profctl *conn)
{
    if (conn->chunk_fd >= 0) {
        conn->ack = conn->chunk_sequence;
        conn->notes.sequence = conn->chunk_sequence;
    }
    return take_fd(conn->chunk_fd);
}

int profctl_read_fd(struct profctl *conn, int *ret_fd, size_t *ret_size_bytes, bool *ret_end)
{
    struct profctl_fault *fault = note_fault(conn);
    int r = conn->chunk_fd < 0 ? fetch_chunk(conn, fault) : 0;
    if (r < 0) {
        return r;
    }
    *ret_fd = take_chunk(conn);
    *ret_size_bytes = conn->chunk_bytes;
    *ret_end = conn->chunk_end;
    return 0;
}

/* Reads `size_bytes` of a stream which holds all of them. Returns how many came. */
static size_t read_stream(int fd, char *into, size_t size_bytes)
{
    size_t taken_bytes = 0;
    while (taken_bytes < size_bytes) {
        ssize_t got = read(fd, into + taken_bytes, size_bytes - taken_bytes);
        if (got > 0) {
            taken_bytes += (size_t)got;
        } else if (got == 0 || errno != EINTR) {
            break;
        }
    }
    return taken_bytes;
}

int profctl_read(struct profctl *conn, void *buffer, size_t capacity_bytes, size_t *ret_size_bytes,
                 bool *ret_end)
{
    struct profctl_fault *fault = note_fault(conn);
    int r = conn->chunk_fd < 0 ? fetch_chunk(conn, fault) : 0;
    if (r < 0) {
        return r;
    }
    if (conn->chunk_bytes > capacity_bytes) {
        *ret_size_bytes = conn->chunk_bytes;
        return rpc_fail(fault, EINVAL, "the buffer has %zu bytes; %zu are needed", capacity_bytes,
                        conn->chunk_bytes);
    }
    cleanup_(closep) int fd = take_chunk(conn);
    size_t taken_bytes = read_stream(fd, buffer, conn->chunk_bytes);
    if (taken_bytes < conn->chunk_bytes) {
        conn->ack = 0;
        return rpc_fail(fault, EIO, "the daemon handed out %zu bytes instead of %zu; read again",
                        taken_bytes, conn->chunk_bytes);
    }
    *ret_size_bytes = conn->chunk_bytes;
    *ret_end = conn->chunk_end;
    return 0;
}

/* Calls a method without parameters, and prints the member of its reply that is all of it. */
static int ask_json(struct profctl *conn, const char *method, const char *member, char **ret_json)
{
    struct profctl_fault *fault = note_fault(conn);
    cleanup_(json_freep) cJSON *reply = NULL;
    int r = rpc_call(conn, method, cJSON_CreateObject(), RPC_SHORT_MS, &reply, fault);
    if (r < 0) {
        return r;
    }
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(reply, member);
    if (!cJSON_IsObject(value) && !cJSON_IsArray(value)) {
        return rpc_fail_transport(conn, fault, -EBADMSG);
    }
    char *text = cJSON_PrintUnformatted(value);
    if (text == NULL) {
        return rpc_fail(fault, ENOMEM, "out of memory");
    }
    *ret_json = text;
    return 0;
}

int profctl_status(struct profctl *conn, char **ret_json)
{
    return ask_json(conn, SAMPLER_INTERFACE ".Status", "status", ret_json);
}

int profctl_events(struct profctl *conn, char **ret_json)
{
    return ask_json(conn, SAMPLER_INTERFACE ".Events", "events", ret_json);
}
