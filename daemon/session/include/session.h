/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One recording: created -> running -> stopped -> running ..., as the RFC's sampler has it. Owns
 * the perf source, the process table, the trace and the collector thread; belongs to the main
 * thread.
 */

#include "books.h"
#include "fault.h"
#include "module_cache.h"
#include "perf_source.h"
#include "session_config.h"

#include <systemd/sd-event.h>

enum session_state {
    SESSION_CREATED,
    SESSION_RUNNING,
    SESSION_STOPPING, /* Stop was called; the last samples are being drained */
    SESSION_STOPPED,
};

/* What session_stop() is given when the daemon ends: names are waited for 1 s, and no longer. */
#define SESSION_SHUTDOWN "shutdown"

struct session;

struct session_owner {
    uid_t uid;
    pid_t pid; /* of the client; left out with exclude_self */
    bool detached;
};

struct session_callbacks {
    void *userdata;
    /* A stop is complete: everything sampled can be read. `by` is what session_stop() was given, or
     * "max_duration". */
    void (*on_stopped)(struct session *session, const char *by, void *userdata);
};

struct session_params {
    sd_event *event; /* borrowed for the session's life, as the next */
    struct module_cache *cache;
    struct session_owner owner;
    struct session_callbacks callbacks;
};

/*
 * What can fail for want of rights, memory or a kernel fails here, with a fault. Returns 0 and a
 * session to release with session_free(), which ends sampling whatever the state.
 */
int session_new(const struct session_params *params, const struct session_config *config,
                struct session **ret, struct fault *reterr);
struct session *session_free(struct session *session);

/* Return 0, or -EBADFD in the wrong state (BadState), or another -errno, with a fault. */
int session_start(struct session *session, struct fault *reterr);
/* Begins the stop; on_stopped() follows, never from inside this call. `by` is a static text. */
int session_stop(struct session *session, const char *by, struct fault *reterr);

/*
 * Hands out up to `capacity_bytes` of whole records (borrowed until the next call). `ack` is the
 * sequence number of the last bytes that arrived, or 0: bytes that were handed out and not
 * acknowledged are handed out again, whatever has come since. `end`: stopped, and nothing is left
 * after these.
 */
struct session_chunk {
    const void *bytes;
    size_t size_bytes; /* 0: nothing is ready */
    uint64_t sequence; /* to acknowledge; 0 with no bytes */
    bool end;
};
/*
 * Another connection reads from now on: the next session_read() with bytes begins a self-contained
 * segment, a valid FXT file by itself, with everything that was handed out and not acknowledged,
 * and after it what has come since. An `ack` in that call still goes before it.
 */
void session_begin_segment(struct session *session);
/* Returns 0, or -EINVAL with a fault when `ack` was never handed out. */
int session_read(struct session *session, uint64_t ack, size_t capacity_bytes,
                 struct session_chunk *ret, struct fault *reterr);

enum session_state session_state(const struct session *session);
const char *session_state_name(enum session_state state); /* "created", "running", "stopped" */
const char *session_id(const struct session *session);
const struct session_owner *session_owner(const struct session *session);
/* Its owner's `detached` is true from now on: the session outlives the connection that created it.
 */
void session_detach(struct session *session);
const struct session_config *session_config(const struct session *session);
uint64_t session_age_ms(const struct session *session);
uint64_t session_holds_s(const struct session *session); /* how long it can run unread */

struct session_memory {
    size_t buffer_bytes;
    size_t buffer_used_bytes;
    uint64_t ring_bytes;
};
struct session_memory session_memory(const struct session *session);

/* CPUs that came online while there was a session. */
struct session_hotplug {
    uint64_t returned_count; /* times that one was taken in */
    uint64_t refused_count;  /* and that it could not be: the log says why */
};
struct session_hotplug session_hotplug(const struct session *session);
/* What was handed out has arrived: the last reader says so, and wants no more. */
void session_acknowledge(struct session *session);
/* Samples that were kept, and that no reader has acknowledged. */
uint64_t session_unread_samples(const struct session *session);
/* It has stopped, and all there is has been acknowledged, names and books too. */
bool session_is_read(const struct session *session);
/* For how long its collector has not begun a turn, which it does every 100 ms at the latest. */
uint64_t session_silent_ns(const struct session *session);

/* The books as they are now, as a JSON object; `totals_only`: without those of each CPU. Returned:
 * free(). NULL when there is no memory. */
char *session_books(struct session *session, bool totals_only);
