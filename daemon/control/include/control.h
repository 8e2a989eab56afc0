/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Serves the control socket: accepts connections, handles their calls on the one session, and ends
 * an attached session with its connection. Belongs to the main thread and its sd_event; never
 * blocks.
 */

#include "daemon_config.h"
#include "fault.h"
#include "module_cache.h"
#include "perf_source.h"

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

struct control;

/* Time limits for what is not used. 0: the default. */
struct control_leases {
    uint64_t created_ms; /* a detached session that was not started, after its last use; 60,000 */
    uint64_t stopped_ms; /* a detached session that has stopped; 600,000 */
    uint64_t unread_ms;  /* an attached session that is not read; from the daemon's config */
    uint64_t idle_ms;    /* a connection without a session, after its last call; 60,000 */
};

struct control_params {
    sd_event *event;                    /* borrowed meanwhile, as the next two */
    struct module_cache *cache;         /* for sessions */
    const struct daemon_config *config; /* rights and limits of clients */
    struct perf_features features;      /* for Status */
    int64_t priority;                   /* of all event sources */
    struct control_leases leases;
};

/*
 * Binds and listens at `path`. A socket that exists is replaced if no process listens on it. The
 * mode is 0600; it is 0660 and the group cpu-profiler, if there is one and the caller may set it.
 * The folder of the default path is made if it is missing. Returns a descriptor (returned:
 * close()), or -errno with a fault; -EADDRINUSE: another daemon listens there.
 */
int control_listen(const char *path, struct fault *reterr);
/* Removes the socket of control_listen() at `path`, after its descriptor was closed. A socket on
 * which another process listens stays. */
void control_unlisten(const char *path);

/*
 * Serves a listening SOCK_STREAM socket (taken), of control_listen() or of the service manager.
 * Returns 0 and an object to release with control_free(), which ends all connections and the
 * session, or -errno.
 */
int control_new(int listen_fd, const struct control_params *params, struct control **ret);
struct control *control_free(struct control *control);

/* To be called about once a second: logs how many lines were left out, ends idle connections, and
 * forgets streams that clients have closed. */
void control_tick(struct control *control);

/* True when there is neither a session nor a connection. */
bool control_is_idle(const struct control *control);
/* The daemon's state as one short line: "recording at 999 Hz for uid 1000 since ...". */
struct control_line {
    char text[128];
};
struct control_line control_describe(const struct control *control);
/* The time for which the session's collector has made no progress; 0 without a session. */
uint64_t control_silent_ns(const struct control *control);

/*
 * The daemon is to end: sampling stops, recorded data is still served, and no session can be
 * created or started. control_has_ended(): no data is left to be served. The session is closed, or
 * all of it was acknowledged and no connection holds it.
 */
void control_begin_end(struct control *control);
bool control_has_ended(const struct control *control);
