/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The one session: which connection holds it, and when it ends by itself. Only the holder may call
 * its methods. An attached session is held by the connection that created it until both end. A
 * detached one is held by one connection at a time, or by none. While it does not run, it has a
 * lease, which each use renews. At the lease's end it is closed.
 *
 * An attached session becomes a detached one when root takes it, or when it is not read for the
 * time that the administrator's config names. The latter also stops it, since a client that does
 * not read would block the machine's one session. A session that was created attached must be read
 * in time even when it is detached, since it may have no other limit.
 */
#include "control_peer.h"
#include "log.h"

#include <inttypes.h>
#include <malloc.h>
#include <time.h>

#define LEASE_ACCURACY_US UINT64_C(1000)
#define LEASE_CREATED_MS  UINT64_C(60000)
#define LEASE_STOPPED_MS  UINT64_C(600000)
#define LEASE_IDLE_MS     UINT64_C(60000)
#define STOPPED_UNREAD    "max_unread"

static void log_close(struct control *control, const char *why)
{
    const struct session *session = control->session;
    const struct session_owner *owner = session_owner(session);
    const struct control_subject subject = {owner->uid, owner->pid, session_id(session)};
    uint64_t unread_count = session_unread_samples(session);
    if (unread_count > 0) {
        control_log(control, CONTROL_CLOSED, &subject,
                    "session %s: closed, %s; %" PRIu64 " samples of it were not read",
                    subject.session, why, unread_count);
    } else {
        control_log(control, CONTROL_CLOSED, &subject, "session %s: closed, %s", subject.session,
                    why);
    }
}

void control_close_session(struct control *control, const char *why)
{
    if (control->session != NULL) {
        log_close(control, why);
        control->session = session_free(control->session);
        /* Each session's threads leave their arena full of holes: 200 MiB were kept for 300 KB. */
        (void)malloc_trim(0);
    }
    control->holder = NULL;
    control->ended_by = NULL;
    control->must_be_read = false;
    control->is_unread = false;
    (void)sd_event_source_set_enabled(control->lease_source, SD_EVENT_OFF);
    (void)sd_event_source_set_enabled(control->unread_source, SD_EVENT_OFF);
}

static bool is_detached(const struct control *control)
{
    return control->session != NULL && session_owner(control->session)->detached;
}

static int on_lease_end(sd_event_source *source, uint64_t now_us, void *userdata)
{
    struct control *control = userdata;
    (void)source;
    (void)now_us;
    switch (session_state(control->session)) {
    case SESSION_CREATED:
        control_close_session(control, "it was never started");
        break;
    case SESSION_STOPPED:
        control_close_session(control, "it was not used since it stopped");
        break;
    case SESSION_RUNNING:
    case SESSION_STOPPING:
        break; /* its lease begins when it has stopped */
    }
    return 0;
}

/* For a client that stands still: whatever it asks for later, it finds the session as it is. */
static int on_unread(sd_event_source *source, uint64_t now_us, void *userdata)
{
    struct control *control = userdata;
    struct session *session = control->session;
    const struct session_owner *owner = session_owner(session);
    bool is_running = session_state(session) == SESSION_RUNNING;
    (void)source;
    (void)now_us;
    control_log(control, CONTROL_STOPPED,
                &(struct control_subject){owner->uid, owner->pid, session_id(session)},
                "session %s: not read for %" PRIu64 " s (max_unread_s): %sit is kept for its user "
                "as a detached one",
                session_id(session), control->params.leases.unread_ms / 1000,
                is_running ? "sampling ends, and " : "");
    if (is_running) {
        (void)session_stop(session, STOPPED_UNREAD, NULL);
    }
    session_detach(session);
    control->is_unread = true;
    control_renew_lease(control);
    return 0;
}

/* A timer that is off. Returns 0 or -errno. */
static int add_timer(struct control *control, sd_event_source **source,
                     sd_event_time_handler_t handler, const char *description)
{
    int r = sd_event_add_time_relative(control->params.event, source, CLOCK_MONOTONIC, 0,
                                       LEASE_ACCURACY_US, handler, control);
    if (r >= 0) {
        r = sd_event_source_set_enabled(*source, SD_EVENT_OFF);
    }
    if (r >= 0) {
        r = sd_event_source_set_priority(*source, control->params.priority);
    }
    return r < 0 ? r : sd_event_source_set_description(*source, description);
}

static uint64_t or_default(uint64_t value, uint64_t default_value)
{
    return value == 0 ? default_value : value;
}

int control_add_lease(struct control *control)
{
    struct control_leases *leases = &control->params.leases;
    leases->created_ms = or_default(leases->created_ms, LEASE_CREATED_MS);
    leases->stopped_ms = or_default(leases->stopped_ms, LEASE_STOPPED_MS);
    leases->idle_ms = or_default(leases->idle_ms, LEASE_IDLE_MS);
    leases->unread_ms =
        or_default(leases->unread_ms, UINT64_C(1000) * control->params.config->max_unread_s);
    int r = add_timer(control, &control->lease_source, on_lease_end, "control-lease");
    return r < 0 ? r : add_timer(control, &control->unread_source, on_unread, "control-unread");
}

/* Switches a timer on. */
static int arm(sd_event_source *source, uint64_t milliseconds)
{
    int r = sd_event_source_set_time_relative(source, 1000 * milliseconds);
    return r < 0 ? r : sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

void control_note_read(struct control *control)
{
    control->is_unread = false;
    int r =
        control->must_be_read ? arm(control->unread_source, control->params.leases.unread_ms) : 0;
    if (r < 0) {
        (void)log_warning(r, "session %s: it may stay unread for ever, ignoring",
                          session_id(control->session));
    }
}

void control_renew_lease(struct control *control)
{
    if (!is_detached(control)) {
        return;
    }
    const struct control_leases *leases = &control->params.leases;
    bool created = session_state(control->session) == SESSION_CREATED;
    int r = arm(control->lease_source, created ? leases->created_ms : leases->stopped_ms);
    if (r < 0) {
        (void)log_warning(r, "session %s: its lease has no end, ignoring",
                          session_id(control->session));
    }
}

void control_hold_session(struct control *control, struct peer *peer)
{
    control->holder = peer;
    control->segment_begun = false;
    control->read_sequence = 0;
    peer->loss = PEER_LOST_NOTHING;
    control_note_read(control);
    control_renew_lease(control);
}

void control_take_session(struct control *control, struct peer *peer, enum peer_loss loss)
{
    if (control->holder != NULL) {
        control->holder->loss = loss;
        control->holder->loss_pid = peer->cred.pid;
    }
    session_detach(control->session);
    control_hold_session(control, peer);
}

struct session *control_use_session(struct peer *peer)
{
    struct control *control = peer->control;
    if (control->holder != peer) {
        return NULL;
    }
    control_renew_lease(control);
    return control->session;
}

void control_release_session(struct peer *peer)
{
    struct control *control = peer->control;
    if (control->holder != peer) {
        return;
    }
    if (is_detached(control)) {
        control->holder = NULL;
    } else {
        control_close_session(control, "its connection has ended");
    }
}

void control_begin_end(struct control *control)
{
    control->is_ending = true;
    if (control->session == NULL) {
        return;
    }
    switch (session_state(control->session)) {
    case SESSION_CREATED:
        control_close_session(control, "the daemon ends, and it was never started");
        break;
    case SESSION_RUNNING:
        (void)session_stop(control->session, SESSION_SHUTDOWN, NULL);
        break;
    case SESSION_STOPPING:
    case SESSION_STOPPED:
        break;
    }
}

bool control_has_ended(const struct control *control)
{
    return control->session == NULL ||
           (control->holder == NULL && session_is_read(control->session));
}
