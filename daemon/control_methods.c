/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The methods of io.cpuprofilerd.Sampler, one function each. A method replies, or leaves the peer
 * in a wait whose end replies. The states are session's; what is decided here is who has a session
 * at all, and what a client is told of one that ended by itself.
 */
#include "cleanup.h"
#include "control_peer.h"
#include "json.h"
#include "log.h"
#include "sampler.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>

#define STATUS_INTERVAL_US ((uint64_t)1000000)

extern const char sampler_description[]; /* from common/io.cpuprofilerd.Sampler.varlink */

static int reply_empty(struct peer *peer)
{
    return peer_reply(peer, cJSON_CreateObject(), false);
}

static int reply_text(struct peer *peer, const char *error, const char *text)
{
    cleanup_(json_freep) cJSON *parameters = cJSON_CreateObject();
    if (cJSON_AddStringToObject(parameters, "text", text) == NULL) {
        return -ENOMEM;
    }
    return peer_reply_error(peer, error, take_ptr(parameters));
}

static int reply_text_and(struct peer *peer, const char *error, const char *text,
                          const char *member, const char *value)
{
    cleanup_(json_freep) cJSON *parameters = cJSON_CreateObject();
    if (cJSON_AddStringToObject(parameters, member, value) == NULL ||
        cJSON_AddStringToObject(parameters, "text", text) == NULL) {
        return -ENOMEM;
    }
    return peer_reply_error(peer, error, take_ptr(parameters));
}

/* The session of the peer, or NULL: none, or another's. */
static struct session *own_session(const struct peer *peer)
{
    return peer->control->session_peer == peer ? peer->control->session : NULL;
}

static int reply_bad_state(struct peer *peer, const char *text)
{
    const struct session *session = own_session(peer);
    return reply_text_and(peer, SAMPLER_INTERFACE ".BadState", text, "state",
                          session == NULL ? "none" : session_state_name(session_state(session)));
}

static int reply_no_session(struct peer *peer)
{
    return reply_bad_state(peer, "this connection has no session; call Create first");
}

/* What a call on the session returned, `r` < 0, as the error that says it best. */
static int reply_fault(struct peer *peer, int r, const struct fault *fault)
{
    const char *text = fault->text[0] != '\0' ? fault->text : strerror(-r);
    switch (-r) {
    case EBADFD:
        return reply_bad_state(peer, text);
    case EINVAL:
        return reply_text_and(peer, SAMPLER_INTERFACE ".InvalidArgs", text, "member",
                              fault->member);
    case EACCES:
    case EPERM:
        return reply_text(peer, SAMPLER_INTERFACE ".PermissionDenied", text);
    case ENOSYS:
    case EOPNOTSUPP:
    case ENOENT:
        return reply_text(peer, SAMPLER_INTERFACE ".NotSupported", text);
    default:
        return reply_text(peer, SAMPLER_INTERFACE ".Failed", text);
    }
}

static int reply_stopped(struct peer *peer, const char *by)
{
    cleanup_(json_freep) cJSON *parameters = cJSON_CreateObject();
    if (cJSON_AddStringToObject(parameters, "stopped_by", by) == NULL) {
        return -ENOMEM;
    }
    return peer_reply(peer, take_ptr(parameters), false);
}

/* Called by the session, so it frees nothing: the peer goes on from the loop. */
static void on_stopped(struct session *session, const char *by, void *userdata)
{
    struct control *control = userdata;
    struct peer *peer = control->session_peer;
    log_info("session %s: stopped by %s", session_id(session), by);
    if (peer->wait == PEER_AWAITS_STOP) {
        peer_resume(peer, reply_stopped(peer, by));
    } else {
        control->ended_by_itself = true;
    }
}

static int reply_already_exists(struct peer *peer)
{
    const struct session *session = peer->control->session;
    cleanup_(json_freep) cJSON *parameters = cJSON_CreateObject();
    if (cJSON_AddNumberToObject(parameters, "owner_uid", session_owner(session)->uid) == NULL ||
        cJSON_AddNumberToObject(parameters, "age_ms", (double)session_age_ms(session)) == NULL) {
        return -ENOMEM;
    }
    return peer_reply_error(peer, SAMPLER_INTERFACE ".AlreadyExists", take_ptr(parameters));
}

static int reply_created(struct peer *peer)
{
    const struct session *session = peer->control->session;
    cleanup_(json_freep) cJSON *parameters = cJSON_CreateObject();
    if (cJSON_AddStringToObject(parameters, "session", session_id(session)) == NULL ||
        cJSON_AddNumberToObject(parameters, "holds_s", (double)session_holds_s(session)) == NULL) {
        return -ENOMEM;
    }
    return peer_reply(peer, take_ptr(parameters), false);
}

static int create_session(struct peer *peer, const struct session_config *config)
{
    struct control *control = peer->control;
    struct session_params params = {
        .event = control->params.event,
        .cache = control->params.cache,
        .owner = {.uid = peer->cred.uid, .pid = peer->cred.pid},
        .callbacks = {.userdata = control, .on_stopped = on_stopped},
    };
    struct fault fault = {0};
    int r = session_new(&params, config, &control->session, &fault);
    if (r < 0) {
        return reply_fault(peer, r, &fault);
    }
    control->session_peer = peer;
    log_info("session %s: created for pid %d uid %u", session_id(control->session),
             (int)peer->cred.pid, peer->cred.uid);
    return reply_created(peer);
}

static int call_create(struct peer *peer, const cJSON *const *parameters)
{
    const cJSON *config_object = parameters[0];
    const cJSON *detach = parameters[1];
    if (!cJSON_IsObject(config_object)) {
        return varlink_reply_invalid_parameter(peer, "config");
    }
    if (detach != NULL && !cJSON_IsBool(detach)) {
        return varlink_reply_invalid_parameter(peer, "detach");
    }
    if (cJSON_IsTrue(detach)) {
        return reply_text(peer, SAMPLER_INTERFACE ".NotSupported",
                          "this version has no detached sessions; keep the connection open");
    }
    struct session_config config;
    struct fault fault = {0};
    cleanup_(freep) char *text = cJSON_PrintUnformatted(config_object);
    int r =
        text == NULL ? -ENOMEM : session_config_parse(text, strlen(text), false, &config, &fault);
    if (r < 0) {
        return reply_fault(peer, r, &fault);
    }
    return peer->control->session != NULL ? reply_already_exists(peer)
                                          : create_session(peer, &config);
}

static int call_attach(struct peer *peer, const cJSON *const *parameters)
{
    if (parameters[0] != NULL && !cJSON_IsString(parameters[0])) {
        return varlink_reply_invalid_parameter(peer, "session");
    }
    return reply_text(peer, SAMPLER_INTERFACE ".NotSupported",
                      "this version has no detached sessions to attach to");
}

static int call_start(struct peer *peer, const cJSON *const *parameters)
{
    struct session *session = own_session(peer);
    struct fault fault = {0};
    (void)parameters;
    if (session == NULL) {
        return reply_no_session(peer);
    }
    int r = session_start(session, &fault);
    if (r < 0) {
        return reply_fault(peer, r, &fault);
    }
    peer->control->ended_by_itself = false;
    return reply_empty(peer);
}

static int call_stop(struct peer *peer, const cJSON *const *parameters)
{
    struct session *session = own_session(peer);
    struct fault fault = {0};
    (void)parameters;
    if (session == NULL) {
        return reply_no_session(peer);
    }
    if (peer->control->ended_by_itself) {
        peer->control->ended_by_itself = false;
        return reply_stopped(peer, "max_duration");
    }
    /* One that is just ending by itself is waited for. */
    int r = session_state(session) == SESSION_STOPPING ? 0 : session_stop(session, &fault);
    if (r < 0) {
        return reply_fault(peer, r, &fault);
    }
    peer->wait = PEER_AWAITS_STOP;
    return 0;
}

/* A pipe of as much room as the kernel grants. Returns the room in bytes, or -errno. */
static int make_pipe(int *ret_read_fd, int *ret_write_fd)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) != 0) {
        return -errno;
    }
    (void)fcntl(fds[1], F_SETPIPE_SZ, SAMPLER_READ_BYTES_MAX);
    *ret_read_fd = fds[0];
    *ret_write_fd = fds[1];
    int room_bytes = fcntl(fds[1], F_GETPIPE_SZ);
    return room_bytes < 0 ? -errno : room_bytes;
}

/*
 * Throws away what is left in the pipe of the last Read: what a client leaves in its pipes is
 * memory of ours. splice(), since a client may have made the descriptor that we share a blocking
 * one; bounded, since it may go on writing.
 */
static void empty_last_pipe(struct peer *peer)
{
    ssize_t moved = peer->read_fd < 0 ? 0 : 1;
    for (size_t total = 0; moved > 0 && total < SAMPLER_READ_BYTES_MAX; total += (size_t)moved) {
        moved = splice(peer->read_fd, NULL, peer->control->null_fd, NULL, SAMPLER_READ_BYTES_MAX,
                       SPLICE_F_NONBLOCK);
        if (moved < 0) {
            break;
        }
    }
    peer->read_fd = close_fd(peer->read_fd);
}

static cJSON *print_chunk(const struct session_chunk *chunk)
{
    cleanup_(json_freep) cJSON *parameters = cJSON_CreateObject();
    bool good =
        cJSON_AddNumberToObject(parameters, "fd", chunk->size_bytes > 0 ? 0 : -1) != NULL &&
        cJSON_AddNumberToObject(parameters, "size_bytes", (double)chunk->size_bytes) != NULL &&
        cJSON_AddNumberToObject(parameters, "sequence", (double)chunk->sequence) != NULL &&
        cJSON_AddBoolToObject(parameters, "end", chunk->end) != NULL;
    return good ? take_ptr(parameters) : NULL;
}

static int read_session(struct peer *peer, struct session *session, uint64_t ack)
{
    cleanup_(closep) int read_fd = -1;
    cleanup_(closep) int write_fd = -1;
    struct session_chunk chunk = {0};
    struct fault fault = {0};
    int room_bytes = make_pipe(&read_fd, &write_fd);
    if (room_bytes < 0) {
        return reply_fault(peer, room_bytes, &fault);
    }
    int r = session_read(session, ack, (size_t)room_bytes, &chunk, &fault);
    if (r < 0) {
        return reply_fault(peer, r, &fault);
    }
    if (chunk.size_bytes == 0) {
        return peer_reply(peer, print_chunk(&chunk), false);
    }
    ssize_t written = write(write_fd, chunk.bytes, chunk.size_bytes);
    if (written < 0 || (size_t)written < chunk.size_bytes) {
        return reply_fault(peer, written < 0 ? -errno : -ENOMEM, &fault);
    }
    peer->read_fd = fcntl(read_fd, F_DUPFD_CLOEXEC, 0);
    if (peer->read_fd < 0) {
        return reply_fault(peer, -errno, &fault);
    }
    return peer_reply_fd(peer, print_chunk(&chunk), take_fd(read_fd));
}

static int call_read(struct peer *peer, const cJSON *const *parameters)
{
    struct session *session = own_session(peer);
    int64_t ack = 0;
    if (parameters[0] != NULL && !json_read_integer(parameters[0], 0, JSON_INTEGER_MAX, &ack)) {
        return varlink_reply_invalid_parameter(peer, "ack");
    }
    if (session == NULL) {
        return reply_no_session(peer);
    }
    empty_last_pipe(peer);
    return read_session(peer, session, (uint64_t)ack);
}

static int call_close(struct peer *peer, const cJSON *const *parameters)
{
    (void)parameters;
    if (own_session(peer) == NULL) {
        return reply_no_session(peer);
    }
    empty_last_pipe(peer);
    control_close_session(peer->control);
    return reply_empty(peer);
}

/* A machine with so many CPUs that their books do not fit in a message gets the totals. */
static int reply_status(struct peer *peer, bool continues)
{
    int r = peer_reply(peer, control_status(peer->control, true), continues);
    return r == -EMSGSIZE ? peer_reply(peer, control_status(peer->control, false), continues) : r;
}

static int arm_status_timer(struct peer *peer)
{
    int r = sd_event_source_set_time_relative(peer->status_source, STATUS_INTERVAL_US);
    return r < 0 ? r : sd_event_source_set_enabled(peer->status_source, SD_EVENT_ONESHOT);
}

static int on_status_interval(sd_event_source *source, uint64_t now_us, void *userdata)
{
    struct peer *peer = userdata;
    (void)source;
    (void)now_us;
    int r = arm_status_timer(peer);
    peer_continue(peer, r < 0 ? r : reply_status(peer, true));
    return 0;
}

static int stream_status(struct peer *peer)
{
    const struct control_params *params = &peer->control->params;
    int r = sd_event_add_time_relative(params->event, &peer->status_source, CLOCK_MONOTONIC,
                                       STATUS_INTERVAL_US, 0, on_status_interval, peer);
    if (r >= 0) {
        r = sd_event_source_set_priority(peer->status_source, params->priority);
    }
    if (r >= 0) {
        r = sd_event_source_set_description(peer->status_source, "control-status");
    }
    peer->wait = PEER_STREAMS_STATUS;
    return r < 0 ? r : reply_status(peer, true);
}

static int call_status(struct peer *peer, const cJSON *const *parameters)
{
    (void)parameters;
    return peer->call_more && !peer->call_oneway ? stream_status(peer) : reply_status(peer, false);
}

static const struct varlink_method sampler_methods[] = {
    {"Create", {"config", "detach"}, call_create},
    {"Attach", {"session"}, call_attach},
    {"Start", {NULL}, call_start},
    {"Stop", {NULL}, call_stop},
    {"Read", {"ack"}, call_read},
    {"Close", {NULL}, call_close},
    {"Status", {NULL}, call_status},
};

const struct varlink_interface sampler_interface = {
    SAMPLER_INTERFACE, sampler_description, sampler_methods,
    sizeof sampler_methods / sizeof sampler_methods[0]};
