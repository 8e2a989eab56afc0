/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The methods of io.cpuprofilerd.Sampler, one function each. A method replies, or leaves the peer
 * in a wait whose end replies. session.c has the session's states, and control_session.c the peer
 * that holds it. The methods decide which peer may hold it, and what a client learns of a session
 * that ended by itself.
 */
#include "account.h"
#include "cleanup.h"
#include "control_peer.h"
#include "json.h"
#include "log.h"
#include "sampler.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#define STATUS_INTERVAL_US ((uint64_t)1000000)
#define STOPPED_BY_CLIENT  "client"

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

static int reply_bad_state(struct peer *peer, const char *text)
{
    const struct control *control = peer->control;
    bool holds = control->session != NULL && control->holder == peer;
    return reply_text_and(peer, SAMPLER_INTERFACE ".BadState", text, "state",
                          holds ? session_state_name(session_state(control->session)) : "none");
}

static int reply_no_session(struct peer *peer)
{
    struct fault fault = {0};
    switch (peer->loss) {
    case PEER_LOST_NOTHING:
        (void)fault_set(&fault, EBADFD,
                        "this connection has no session; call Create or Attach first");
        break;
    case PEER_LOST_TO_ROOT:
        (void)fault_set(&fault, EBADFD,
                        "root (pid %d) took the session from this connection; unless root closes "
                        "it, Attach works again when root's connection has ended",
                        (int)peer->loss_pid);
        break;
    case PEER_LOST_UNREAD:
        (void)fault_set(&fault, EBADFD,
                        "the session was not read in time (max_unread_s), and another client of "
                        "its user (pid %d) took it since; call Attach when that has ended",
                        (int)peer->loss_pid);
        break;
    }
    return reply_bad_state(peer, fault.text);
}

static int reply_ending(struct peer *peer)
{
    return reply_text(peer, SAMPLER_INTERFACE ".Failed",
                      "the daemon is ending: what was recorded can be read yet, and nothing new "
                      "begins; try again when it is back");
}

/* What a call on the session returned, `r` < 0, as the error that says it best. */
static int reply_fault(struct peer *peer, int r, const struct fault *fault)
{
    const char *text = fault->text[0] != '\0' ? fault->text : strerror(-r);
    switch (-r) {
    case EBADFD:
    case EBUSY:
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

/*
 * Called by the session, so it frees nothing: the peer goes on from the loop. A Stop whose
 * connection is gone by now has been obeyed all the same, and no client is left to reply to.
 */
static void on_stopped(struct session *session, const char *by, void *userdata)
{
    struct control *control = userdata;
    struct peer *peer = control->holder;
    const struct session_owner *owner = session_owner(session);
    control_log(control, CONTROL_STOPPED,
                &(struct control_subject){owner->uid, owner->pid, session_id(session)},
                "session %s: stopped by %s", session_id(session), by);
    if (peer != NULL && peer->wait == PEER_AWAITS_STOP) {
        peer_resume(peer, reply_stopped(peer, by));
    } else {
        control->ended_by = strcmp(by, STOPPED_BY_CLIENT) == 0 ? NULL : by;
    }
    control_renew_lease(control);
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
    const struct session_notes *notes = &session_config(session)->notes;
    cleanup_(json_freep) cJSON *parameters = cJSON_CreateObject();
    cleanup_(freep) char *text = notes->count == 0 ? NULL : session_notes_print(notes);
    if (cJSON_AddStringToObject(parameters, "session", session_id(session)) == NULL ||
        cJSON_AddNumberToObject(parameters, "holds_s", (double)session_holds_s(session)) == NULL ||
        (notes->count > 0 &&
         (text == NULL || cJSON_AddRawToObject(parameters, "notes", text) == NULL))) {
        return -ENOMEM;
    }
    return peer_reply(peer, take_ptr(parameters), false);
}

static void log_notes(struct control *control, const struct control_subject *subject)
{
    const struct session_notes *notes = &session_config(control->session)->notes;
    for (size_t i = 0; i < notes->count; i++) {
        control_log(control, CONTROL_NOTED, subject, "session %s: %s %s", subject->session,
                    notes->notes[i].member, notes->notes[i].text);
    }
}

static int create_session(struct peer *peer, const struct session_config *config, bool detached)
{
    struct control *control = peer->control;
    struct session_params params = {
        .event = control->params.event,
        .cache = control->params.cache,
        .owner = {.uid = peer->cred.uid, .pid = peer->cred.pid, .detached = detached},
        .callbacks = {.userdata = control, .on_stopped = on_stopped},
    };
    struct fault fault = {0};
    /* Users may have been added since; a file that cannot be read leaves the accounts as they are.
     */
    (void)account_load(ACCOUNT_FILES_OF_MACHINE);
    int r = session_new(&params, config, &control->session, &fault);
    if (r < 0) {
        return reply_fault(peer, r, &fault);
    }
    control->worker_restarts_before =
        module_cache_counts(control->params.cache).worker_restart_count;
    control->must_be_read = !detached;
    control_hold_session(control, peer);
    const char *id = session_id(control->session);
    const struct control_subject subject = {peer->cred.uid, peer->cred.pid, id};
    control_log(control, CONTROL_CREATED, &subject, "session %s: created for pid %d uid %u%s", id,
                (int)peer->cred.pid, peer->cred.uid, detached ? ", detached" : "");
    log_notes(control, &subject);
    return reply_created(peer);
}

static int call_create(struct peer *peer, const cJSON *const *parameters)
{
    const cJSON *config_object = parameters[0];
    const cJSON *detach = parameters[1];
    if (peer->control->is_ending) {
        return reply_ending(peer);
    }
    if (!cJSON_IsObject(config_object)) {
        return varlink_reply_invalid_parameter(peer, "config");
    }
    if (detach != NULL && !cJSON_IsBool(detach)) {
        return varlink_reply_invalid_parameter(peer, "detach");
    }
    bool detached = cJSON_IsTrue(detach);
    struct session_config config;
    struct fault fault = {0};
    struct session_limits limits =
        daemon_config_limits(peer->control->params.config, peer->cred.uid);
    cleanup_(freep) char *text = cJSON_PrintUnformatted(config_object);
    int r = text == NULL ? -ENOMEM
                         : session_config_parse_within(text, strlen(text), detached, &limits,
                                                       &config, &fault);
    if (r < 0) {
        return reply_fault(peer, r, &fault);
    }
    return peer->control->session != NULL ? reply_already_exists(peer)
                                          : create_session(peer, &config, detached);
}

static int reply_attached(struct peer *peer)
{
    const struct session *session = peer->control->session;
    cleanup_(json_freep) cJSON *parameters = cJSON_CreateObject();
    if (cJSON_AddStringToObject(parameters, "session", session_id(session)) == NULL ||
        cJSON_AddStringToObject(parameters, "state", session_state_name(session_state(session))) ==
            NULL) {
        return -ENOMEM;
    }
    return peer_reply(peer, take_ptr(parameters), false);
}

/* To a peer that may attach to the session, but for its holder. */
static int reply_held(struct peer *peer, const struct peer *holder)
{
    const struct session *session = peer->control->session;
    struct fault fault = {0};
    (void)fault_set(&fault, EBUSY,
                    session_owner(session)->detached
                        ? "the connection of pid %d holds the session; attach when it has ended"
                        : "the session belongs to the connection of pid %d and ends with it",
                    (int)holder->cred.pid);
    return reply_text_and(peer, SAMPLER_INTERFACE ".BadState", fault.text, "state",
                          session_state_name(session_state(session)));
}

/* The former holder gets an error for its next call; its own pending Stop is still replied to. */
static void take_session(struct peer *peer)
{
    struct control *control = peer->control;
    struct peer *holder = control->holder;
    const char *id = session_id(control->session);
    const struct control_subject subject = {peer->cred.uid, peer->cred.pid, id};
    control_take_session(control, peer, peer->cred.uid == 0 ? PEER_LOST_TO_ROOT : PEER_LOST_UNREAD);
    if (holder == NULL) {
        control_log(control, CONTROL_ATTACHED, &subject, "session %s: attached to by pid %d uid %u",
                    id, (int)peer->cred.pid, peer->cred.uid);
        return;
    }
    control_log(control, CONTROL_ATTACHED, &subject,
                "session %s: taken by pid %d uid %u from pid %d uid %u", id, (int)peer->cred.pid,
                peer->cred.uid, (int)holder->cred.pid, holder->cred.uid);
    if (holder->wait == PEER_AWAITS_STOP) {
        peer_resume(holder, reply_no_session(holder));
    }
}

static int attach(struct peer *peer, const char *id)
{
    struct control *control = peer->control;
    const struct session *session = control->session;
    struct fault fault = {0};
    if (session == NULL) {
        return reply_bad_state(peer, "there is no session; call Create first");
    }
    uid_t owner_uid = session_owner(session)->uid;
    bool is_root = peer->cred.uid == 0;
    if (id != NULL && strcmp(id, session_id(session)) != 0) {
        (void)fault_set_member(&fault, "session",
                               "there is no session of this name; '%s' is allowed",
                               session_id(session));
        return reply_fault(peer, -EINVAL, &fault);
    }
    if (peer->cred.uid != owner_uid && !is_root) {
        int r = fault_set(&fault, EACCES,
                          "the session belongs to uid %u, and only that user and root may attach "
                          "to it; Status shows it to everybody (profctl status)",
                          owner_uid);
        return reply_fault(peer, r, &fault);
    }
    bool is_held = control->holder != NULL && control->holder != peer;
    if (is_held && !is_root && !control->is_unread) {
        return reply_held(peer, control->holder);
    }
    if (control->holder != peer) {
        take_session(peer);
    }
    return reply_attached(peer);
}

static int call_attach(struct peer *peer, const cJSON *const *parameters)
{
    if (parameters[0] != NULL && !cJSON_IsString(parameters[0])) {
        return varlink_reply_invalid_parameter(peer, "session");
    }
    (void)control_use_session(peer);
    return attach(peer, cJSON_GetStringValue(parameters[0]));
}

static int call_start(struct peer *peer, const cJSON *const *parameters)
{
    struct session *session = control_use_session(peer);
    struct fault fault = {0};
    (void)parameters;
    if (session == NULL) {
        return reply_no_session(peer);
    }
    if (peer->control->is_ending) {
        return reply_ending(peer);
    }
    int r = session_start(session, &fault);
    if (r < 0) {
        return reply_fault(peer, r, &fault);
    }
    control_note_read(peer->control);
    peer->control->ended_by = NULL;
    peer->control->started_s = time(NULL);
    return reply_empty(peer);
}

static int call_stop(struct peer *peer, const cJSON *const *parameters)
{
    struct session *session = control_use_session(peer);
    struct fault fault = {0};
    (void)parameters;
    if (session == NULL) {
        return reply_no_session(peer);
    }
    const char *ended_by = peer->control->ended_by;
    if (ended_by != NULL) {
        peer->control->ended_by = NULL;
        return reply_stopped(peer, ended_by);
    }
    /* One that is just ending by itself is waited for. */
    int r = session_state(session) == SESSION_STOPPING
                ? 0
                : session_stop(session, STOPPED_BY_CLIENT, &fault);
    if (r < 0) {
        return reply_fault(peer, r, &fault);
    }
    peer->wait = PEER_AWAITS_STOP;
    return 0;
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

/* A holder's first Read begins a segment, so that what it reads is a file of its own. */
static void begin_segment(struct control *control)
{
    if (!control->segment_begun) {
        session_begin_segment(control->session);
        control->segment_begun = true;
    }
}

/* Whether the holder may be given these bytes once more. Returns 0, or -EDQUOT with a fault. */
static int check_repeat(const struct control *control, const struct session_chunk *chunk,
                        struct fault *reterr)
{
    if (chunk->sequence == control->read_sequence && control->repeat_count >= CONTROL_REPEATS_MAX) {
        return fault_set(reterr, EDQUOT,
                         "this connection was given these bytes %d times; call Read with "
                         "\"ack\": %" PRIu64 " for what follows them",
                         CONTROL_REPEATS_MAX, chunk->sequence);
    }
    return 0;
}

static void count_repeat(struct control *control, const struct session_chunk *chunk)
{
    control->repeat_count =
        chunk->sequence == control->read_sequence ? control->repeat_count + 1 : 1;
    control->read_sequence = chunk->sequence;
}

static int read_session(struct peer *peer, struct session *session, uint64_t ack)
{
    struct control *control = peer->control;
    struct session_chunk chunk = {0};
    struct fault fault = {0};
    int fd = -1;
    int r = control_stream_check(peer, &fault);
    if (r < 0) {
        return reply_fault(peer, r, &fault);
    }
    begin_segment(control);
    r = session_read(session, ack, control->stream_room_bytes, &chunk, &fault);
    if (r >= 0 && chunk.size_bytes > 0) {
        r = check_repeat(control, &chunk, &fault);
    }
    if (r >= 0 && chunk.size_bytes > 0) {
        r = control_stream_new(peer, chunk.bytes, chunk.size_bytes, &fd, &fault);
    }
    if (r < 0) {
        return reply_fault(peer, r, &fault);
    }
    control_note_read(control);
    if (chunk.size_bytes == 0) {
        return peer_reply(peer, print_chunk(&chunk), false);
    }
    count_repeat(control, &chunk);
    return peer_reply_fd(peer, print_chunk(&chunk), fd);
}

static int call_read(struct peer *peer, const cJSON *const *parameters)
{
    struct session *session = control_use_session(peer);
    int64_t ack = 0;
    if (parameters[0] != NULL && !json_read_integer(parameters[0], 0, JSON_INTEGER_MAX, &ack)) {
        return varlink_reply_invalid_parameter(peer, "ack");
    }
    return session == NULL ? reply_no_session(peer) : read_session(peer, session, (uint64_t)ack);
}

static int call_close(struct peer *peer, const cJSON *const *parameters)
{
    (void)parameters;
    if (control_use_session(peer) == NULL) {
        return reply_no_session(peer);
    }
    if (peer->control->segment_begun) {
        session_acknowledge(peer->control->session);
    }
    control_close_session(peer->control, "by a client");
    return reply_empty(peer);
}

/* A machine with so many CPUs that their books do not fit in a message gets the totals. */
static int reply_status(struct peer *peer, bool continues)
{
    int r = peer_reply(peer, control_status(peer->control, true), continues);
    return r == -EMSGSIZE ? peer_reply(peer, control_status(peer->control, false), continues) : r;
}

static int call_events(struct peer *peer, const cJSON *const *parameters)
{
    cJSON *events = control_events(peer->control, peer->cred.uid);
    (void)parameters;
    return events == NULL ? -ENOMEM : peer_reply(peer, events, false);
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
    {"Events", {NULL}, call_events},
};

const struct varlink_interface sampler_interface = {
    SAMPLER_INTERFACE, sampler_description, sampler_methods,
    sizeof sampler_methods / sizeof sampler_methods[0]};
