/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The control socket: listens, knows its peers, turns their messages into calls on the one session
 * that there can be, and their connections' ends into its end. Belongs to the main thread and its
 * sd_event; never blocks.
 */

#include "daemon_config.h"
#include "fault.h"
#include "module_cache.h"
#include "perf_source.h"

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

struct control;

/* How long what is not used lives. 0: the default. */
struct control_leases {
    uint64_t created_ms; /* a detached session, after its last request: was never started; 60,000 */
    uint64_t stopped_ms; /* or has run, and does no more; 600,000 */
    uint64_t unread_ms;  /* an attached session that is not read; as the daemon's config says */
    uint64_t idle_ms;    /* a connection without a session, after its last call; 60,000 */
};

struct control_params {
    sd_event *event;                    /* borrowed for control's life, as the next */
    struct module_cache *cache;         /* what sessions are created with */
    const struct daemon_config *config; /* who may, and how much; borrowed likewise */
    struct perf_features features;      /* for Status */
    int64_t priority;                   /* of all its event sources */
    struct control_leases leases;
};

/*
 * Binds and listens at `path`. A socket that is there already is replaced when no process listens
 * on it. The mode is 0600, or 0660 of the group cpu-profiler where there is one and the caller may
 * give to it. The folder of the default path is made when it is missing. Returns a descriptor
 * (returned: close()), or -errno with a fault, -EADDRINUSE when another daemon listens there.
 */
int control_listen(const char *path, struct fault *reterr);
/* Removes what control_listen() has left at `path`, once its descriptor is closed; a socket on
 * which somebody listens stays. */
void control_unlisten(const char *path);

/*
 * Serves a listening SOCK_STREAM socket (taken), its own or one that was passed in. Returns 0 and
 * an object to release with control_free(), which ends all connections and the session, or -errno.
 */
int control_new(int listen_fd, const struct control_params *params, struct control **ret);
struct control *control_free(struct control *control);

/* To be called about once a second: tells what was left out of the log, ends idle connections and
 * lets go of streams that clients have closed. */
void control_tick(struct control *control);

/* Neither a session nor a connection. */
bool control_is_idle(const struct control *control);
/* What the daemon is doing, as one short line: "recording at 999 Hz for uid 1000 since ...". */
struct control_line {
    char text[128];
};
struct control_line control_describe(const struct control *control);
/* For how long the session's collector has not moved; 0 without a session. */
uint64_t control_silent_ns(const struct control *control);

/*
 * The daemon is to end: sampling ends, what was recorded is served, and no session is created or
 * started any more. control_has_ended(): there is nothing left to be served, or nobody to serve
 * will come back for it: the session is closed, or all of it has been acknowledged and nobody holds
 * it.
 */
void control_begin_end(struct control *control);
bool control_has_ended(const struct control *control);
