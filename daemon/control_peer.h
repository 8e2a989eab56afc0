/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the files of control share: the state of control and of one connection. Nobody else includes
 * it.
 */

#include "control.h"
#include "session.h"
#include "varlink.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#define CONTROL_PEERS_MAX         32
#define CONTROL_PEERS_PER_UID_MAX 8
#define PEER_PENDING_MAX          16
#define PEER_OUTPUT_BYTES_MAX     ((size_t)262144)

struct control {
    struct control_params params;
    int listen_fd; /* owned */
    int null_fd;   /* owned; /dev/null */
    sd_event_source *listen_source;
    struct peer *peers;
    size_t peer_count;
    struct session *session;   /* owned; NULL: none */
    struct peer *session_peer; /* whose it is; NULL exactly when there is no session */
    bool ended_by_itself;      /* the session did, and no Stop has been told so */
    uint64_t started_ns;
};

/* One reply on its way out. */
struct reply {
    struct reply *next;
    char *text;        /* owned */
    size_t size_bytes; /* with its NUL */
    size_t sent_bytes;
    int fd; /* owned; sent with the first byte; -1: none */
};

enum peer_wait {
    PEER_READY,         /* the next call may be taken */
    PEER_AWAITS_STOP,   /* on_stopped() replies */
    PEER_STREAMS_STATUS /* until the connection ends */
};

struct peer {
    struct control *control;
    struct peer *next;
    struct peer *previous;
    int fd; /* owned */
    struct ucred cred;
    sd_event_source *io_source;
    sd_event_source *resume_source;
    sd_event_source *status_source; /* NULL but in PEER_STREAMS_STATUS */
    struct varlink_input input;
    bool input_ended;      /* it has shut down its side */
    bool input_starved;    /* no whole message waits */
    struct reply *replies; /* the oldest first */
    struct reply **replies_end;
    size_t reply_count;
    size_t output_bytes;
    enum peer_wait wait;
    bool call_more; /* of the call in hand, or of the one that is waited for */
    bool call_oneway;
    int error;   /* what ended it while its callbacks could not */
    int read_fd; /* owned; of the pipe that the last Read handed out; -1: none */
};

/* A connection of `cred` (`fd` taken). Returns 0 or -errno. */
int peer_new(struct control *control, int fd, const struct ucred *cred);
/* Ends the connection, and with it the session if it is its own. */
struct peer *peer_free(struct peer *peer);

/*
 * Queue a reply to the call in hand; nothing for a oneway call. `parameters` is taken always; NULL
 * is -ENOMEM. Return 0, -EMSGSIZE when the reply is longer than a message may be (nothing is
 * queued), -ENOBUFS when the peer does not read its replies, or another -errno of its socket.
 */
int peer_reply(struct peer *peer, cJSON *parameters, bool continues);
int peer_reply_fd(struct peer *peer, cJSON *parameters, int fd); /* `fd` is taken always */
int peer_reply_error(struct peer *peer, const char *error, cJSON *parameters);

/* From an event callback of the peer's own: goes on with its calls and replies, or ends it for r <
 * 0. The peer may be gone afterwards. */
void peer_continue(struct peer *peer, int r);
/* From anywhere else: ends the wait, and has peer_continue(peer, r) called from the loop. */
void peer_resume(struct peer *peer, int r);

/* Takes one message for a call and replies to it. Returns 0, or -errno: the peer must go. */
int varlink_call(struct peer *peer, const char *text, size_t text_bytes);

/* An interface that is served. A method gets its parameters in the order of their names, NULL for
 * those that are absent or null. It returns as varlink_call(). */
#define METHOD_PARAMETERS_MAX 2
struct varlink_method {
    const char *name;
    const char *parameters[METHOD_PARAMETERS_MAX];
    int (*call)(struct peer *peer, const cJSON *const *parameters);
};
struct varlink_interface {
    const char *name;
    const char *description;
    const struct varlink_method *methods;
    size_t method_count;
};
extern const struct varlink_interface sampler_interface;

/* org.varlink.service.InvalidParameter, for whichever method. */
int varlink_reply_invalid_parameter(struct peer *peer, const char *parameter);

/* {"status": ...}, without each CPU's own books unless `with_cpus`. Returned; NULL when there is no
 * memory. */
cJSON *control_status(struct control *control, bool with_cpus);

uint64_t control_uptime_s(const struct control *control);

/* Frees the session, if there is one. */
void control_close_session(struct control *control);
