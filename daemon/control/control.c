/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Accepts connections on the control socket, and decides which clients may use the sampler. The
 * socket's mode comes first: other users cannot connect. Beyond that the administrator may have a
 * list of users and groups. It is checked once, when a connection is made, against the credentials
 * that the kernel noted then; later changes of the client's ids have no effect. A client that is
 * not on the list may use org.varlink.service only; other calls are refused with the reason.
 *
 * A connection gets a place (control_places.c) or is closed at once. control_peer.c handles its
 * bytes and replies, control_dispatch.c its calls, control_methods.c the methods, and
 * control_session.c the one session and the peer that holds it.
 */
#include "cleanup.h"
#include "clock.h"
#include "control_peer.h"
#include "json.h"
#include "log.h"
#include "sampler.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#define GROUPS_AT_FIRST     32
#define GROUPS_MAX          65536 /* the kernel's own limit */
#define ACCEPTS_PER_EVENT   32
#define ACCEPT_EVENTS_PER_S 1000 /* so that a failing accept() cannot take the CPU */

/* The supplementary groups. Returned: free(). Returns 0 or -errno. */
static int read_groups(int fd, gid_t **ret_gids, size_t *ret_count)
{
    for (size_t room = GROUPS_AT_FIRST; room <= GROUPS_MAX; room = GROUPS_MAX) {
        cleanup_(freep) gid_t *gids = calloc(room, sizeof *gids);
        socklen_t bytes = (socklen_t)(room * sizeof *gids);
        if (gids == NULL) {
            return -ENOMEM;
        }
        if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, gids, &bytes) == 0) {
            *ret_count = bytes / sizeof *gids;
            *ret_gids = take_ptr(gids);
            return 0;
        }
        if (errno != ERANGE || room == GROUPS_MAX) {
            return -errno;
        }
    }
    return -ERANGE;
}

/* Whether the administrator lets the user that was at the other end of `fd` when it connected, or
 * one of its groups, use the sampler. What cannot be found out is a no. */
static bool admits(const struct control *control, int fd, const struct ucred *cred)
{
    const struct daemon_config *config = control->params.config;
    cleanup_(freep) gid_t *gids = NULL;
    size_t count = 0;
    if (daemon_config_admits(config, cred->uid, &cred->gid, 1)) {
        return true;
    }
    int r = read_groups(fd, &gids, &count);
    if (r < 0) {
        (void)log_warning(r, "peer pid %d uid %u: its groups are not known, so none is allowed",
                          (int)cred->pid, cred->uid);
    }
    return daemon_config_admits(config, cred->uid, gids, count);
}

int control_reply_not_admitted(struct peer *peer)
{
    struct fault fault = {0};
    cleanup_(json_freep) cJSON *parameters = cJSON_CreateObject();
    (void)fault_set(&fault, EACCES,
                    "uid %u is not in allowed_uids, and none of its groups in allowed_gids, of "
                    "%.120s; the administrator can put it there",
                    peer->cred.uid, peer->control->params.config->limits.path);
    if (cJSON_AddStringToObject(parameters, "text", fault.text) == NULL) {
        return -ENOMEM;
    }
    return peer_reply_error(peer, SAMPLER_INTERFACE ".PermissionDenied", take_ptr(parameters));
}

/* Returns 0, and `fd` is taken; or -errno. */
static int admit(struct control *control, int fd, const struct ucred *cred)
{
    int r = control_make_place(control, cred->uid);
    return r < 0 ? r : peer_new(control, fd, cred, admits(control, fd, cred));
}

static void serve(struct control *control, int fd)
{
    struct ucred cred = {.uid = (uid_t)-1};
    socklen_t cred_bytes = sizeof cred;
    int r = socket_prepare(fd);
    if (r >= 0) {
        r = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &cred_bytes) != 0
                ? -errno
                : admit(control, fd, &cred);
    }
    if (r >= 0) {
        return;
    }
    const struct control_subject subject = {.uid = cred.uid, .pid = cred.pid};
    control_log(control, CONTROL_REFUSED, &subject, "peer pid %d uid %u: refused: %s",
                (int)cred.pid, cred.uid,
                r == -EUSERS ? "there are too many connections of its user, or of all users"
                             : strerror(-r));
    socket_close(control, fd, cred.uid);
}

/* Whatever becomes of one more connection, there must be a place for it to linger. */
static bool has_room(struct control *control)
{
    return control->peer_count + control_lingering_count(control, NULL) < CONTROL_LINGERING_MAX;
}

static int on_connection(sd_event_source *source, int listen_fd, uint32_t revents, void *userdata)
{
    struct control *control = userdata;
    (void)source;
    (void)revents;
    for (unsigned i = 0; i < ACCEPTS_PER_EVENT && has_room(control); i++) {
        int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) {
            return 0;
        }
        serve(control, fd);
    }
    return 0;
}

struct control *control_free(struct control *control)
{
    if (control == NULL) {
        return NULL;
    }
    control_close_session(control, "the daemon ends");
    while (control->peers != NULL) {
        (void)peer_free(control->peers);
    }
    control_end_lingering(control);
    control->listen_source = sd_event_source_disable_unref(control->listen_source);
    control->lease_source = sd_event_source_disable_unref(control->lease_source);
    control->unread_source = sd_event_source_disable_unref(control->unread_source);
    control->listen_fd = close_fd(control->listen_fd);
    control_stream_done(control);
    free(control);
    return NULL;
}

static void control_freep(struct control **control)
{
    *control = control_free(*control);
}

void control_tick(struct control *control)
{
    control_tell_left_out(control);
    control_end_idle(control);
    control_stream_tick(control);
}

bool control_is_idle(const struct control *control)
{
    return control->session == NULL && control->peer_count == 0;
}

uint64_t control_silent_ns(const struct control *control)
{
    return control->session == NULL ? 0 : session_silent_ns(control->session);
}

uint64_t control_uptime_s(const struct control *control)
{
    return (clock_ns(CLOCK_BOOTTIME) - control->started_ns) / NS_PER_S;
}

static int watch_listener(struct control *control, int listen_fd)
{
    int r = sd_event_add_io(control->params.event, &control->listen_source, listen_fd, EPOLLIN,
                            on_connection, control);
    if (r >= 0) {
        r = sd_event_source_set_priority(control->listen_source, control->params.priority);
    }
    if (r >= 0) {
        r = sd_event_source_set_ratelimit(control->listen_source, 1000000, ACCEPT_EVENTS_PER_S);
    }
    return r < 0 ? r : sd_event_source_set_description(control->listen_source, "control-listen");
}

int control_new(int listen_fd, const struct control_params *params, struct control **ret)
{
    /* A socket that was passed in may be a blocking one. */
    int flags = fcntl(listen_fd, F_GETFL);
    if (flags < 0 || fcntl(listen_fd, F_SETFL, flags | O_NONBLOCK) != 0) {
        return -errno;
    }
    cleanup_(control_freep) struct control *control = calloc(1, sizeof *control);
    if (control == NULL) {
        return -ENOMEM;
    }
    control->params = *params;
    control->on_call = varlink_call;
    control->listen_fd = -1; /* not taken yet */
    control->started_ns = clock_ns(CLOCK_BOOTTIME);
    control_init_quotas(control);
    int r = control_stream_init(control);
    if (r >= 0) {
        r = control_add_lease(control);
    }
    if (r >= 0) {
        r = watch_listener(control, listen_fd);
    }
    if (r < 0) {
        return r;
    }
    socket_refuse_descriptors(listen_fd);
    control->listen_fd = listen_fd;
    *ret = take_ptr(control);
    return 0;
}
