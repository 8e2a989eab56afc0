/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The listening side of the control socket. A connection is admitted or closed at once: 32 of them
 * and 8 of one uid. What a connection says is control_peer.c's (bytes and replies),
 * varlink_service.c's (calls) and control_methods.c's (what they do). The one session belongs to
 * the peer that created it; control holds both pointers so that neither outlives the other.
 */
#include "cleanup.h"
#include "control_peer.h"
#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>

#define ACCEPTS_PER_EVENT   32
#define ACCEPT_EVENTS_PER_S 1000 /* so that a failing accept() cannot take the CPU */

static size_t count_peers_of(const struct control *control, uid_t uid)
{
    size_t count = 0;
    for (const struct peer *peer = control->peers; peer != NULL; peer = peer->next) {
        count += peer->cred.uid == uid;
    }
    return count;
}

static void admit(struct control *control, int accepted_fd)
{
    cleanup_(closep) int fd = accepted_fd;
    struct ucred cred;
    socklen_t cred_bytes = sizeof cred;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &cred_bytes) != 0) {
        log_debug("control: a peer without credentials, closing it");
        return;
    }
    if (control->peer_count >= CONTROL_PEERS_MAX ||
        count_peers_of(control, cred.uid) >= CONTROL_PEERS_PER_UID_MAX) {
        log_debug("peer pid %d uid %u: too many connections, closing it", (int)cred.pid, cred.uid);
        return;
    }
    int r = peer_new(control, fd, &cred);
    if (r < 0) {
        (void)log_warning(r, "peer pid %d uid %u: cannot be served, ignoring", (int)cred.pid,
                          cred.uid);
        return;
    }
    (void)take_fd(fd);
    log_debug("peer pid %d uid %u: connected", (int)cred.pid, cred.uid);
}

static int on_connection(sd_event_source *source, int listen_fd, uint32_t revents, void *userdata)
{
    struct control *control = userdata;
    (void)source;
    (void)revents;
    for (unsigned i = 0; i < ACCEPTS_PER_EVENT; i++) {
        int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) {
            return 0;
        }
        admit(control, fd);
    }
    return 0;
}

void control_close_session(struct control *control)
{
    if (control->session != NULL) {
        log_info("session %s: closed", session_id(control->session));
        control->session = session_free(control->session);
    }
    control->session_peer = NULL;
    control->ended_by_itself = false;
}

struct control *control_free(struct control *control)
{
    if (control == NULL) {
        return NULL;
    }
    while (control->peers != NULL) {
        (void)peer_free(control->peers);
    }
    control->listen_source = sd_event_source_disable_unref(control->listen_source);
    control->listen_fd = close_fd(control->listen_fd);
    control->null_fd = close_fd(control->null_fd);
    free(control);
    return NULL;
}

static void control_freep(struct control **control)
{
    *control = control_free(*control);
}

static uint64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t control_uptime_s(const struct control *control)
{
    return (now_ns() - control->started_ns) / 1000000000;
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
    cleanup_(control_freep) struct control *control = calloc(1, sizeof *control);
    if (control == NULL) {
        return -ENOMEM;
    }
    control->params = *params;
    control->listen_fd = -1;
    control->started_ns = now_ns();
    control->null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (control->null_fd < 0) {
        return -errno;
    }
    /* A socket that was passed in may be a blocking one. */
    int flags = fcntl(listen_fd, F_GETFL);
    if (flags < 0 || fcntl(listen_fd, F_SETFL, flags | O_NONBLOCK) != 0) {
        return -errno;
    }
    int r = watch_listener(control, listen_fd);
    if (r < 0) {
        return r;
    }
    control->listen_fd = listen_fd;
    *ret = take_ptr(control);
    return 0;
}
