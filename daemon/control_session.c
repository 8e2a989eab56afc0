/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The one session: which connection holds it, and when it ends by itself. Only the holder may call
 * its methods. An attached session is held by the connection that created it until both end. A
 * detached one is held by one connection at a time, or by none; where it does not run, it has a
 * lease, which every use renews, and at the lease's end it is closed.
 */
#include "control_peer.h"
#include "log.h"

#include <inttypes.h>
#include <time.h>

#define LEASE_ACCURACY_US UINT64_C(1000)
#define LEASE_CREATED_MS  UINT64_C(60000)
#define LEASE_STOPPED_MS  UINT64_C(600000)

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
    }
    control->holder = NULL;
    control->ended_by = NULL;
    (void)sd_event_source_set_enabled(control->lease_source, SD_EVENT_OFF);
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
        control_close_session(control, "nobody has used it since it stopped");
        break;
    case SESSION_RUNNING:
    case SESSION_STOPPING:
        break; /* its lease begins when it has stopped */
    }
    return 0;
}

int control_add_lease(struct control *control)
{
    struct control_leases *leases = &control->params.leases;
    leases->created_ms = leases->created_ms == 0 ? LEASE_CREATED_MS : leases->created_ms;
    leases->stopped_ms = leases->stopped_ms == 0 ? LEASE_STOPPED_MS : leases->stopped_ms;
    int r =
        sd_event_add_time_relative(control->params.event, &control->lease_source, CLOCK_MONOTONIC,
                                   0, LEASE_ACCURACY_US, on_lease_end, control);
    if (r >= 0) {
        r = sd_event_source_set_enabled(control->lease_source, SD_EVENT_OFF);
    }
    if (r >= 0) {
        r = sd_event_source_set_priority(control->lease_source, control->params.priority);
    }
    return r < 0 ? r : sd_event_source_set_description(control->lease_source, "control-lease");
}

void control_renew_lease(struct control *control)
{
    if (!is_detached(control)) {
        return;
    }
    const struct control_leases *leases = &control->params.leases;
    bool created = session_state(control->session) == SESSION_CREATED;
    uint64_t lease_us = 1000 * (created ? leases->created_ms : leases->stopped_ms);
    int r = sd_event_source_set_time_relative(control->lease_source, lease_us);
    if (r >= 0) {
        r = sd_event_source_set_enabled(control->lease_source, SD_EVENT_ONESHOT);
    }
    if (r < 0) {
        (void)log_warning(r, "session %s: its lease has no end, ignoring",
                          session_id(control->session));
    }
}

void control_hold_session(struct control *control, struct peer *peer)
{
    control->holder = peer;
    control->segment_begun = false;
    control_renew_lease(control);
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
