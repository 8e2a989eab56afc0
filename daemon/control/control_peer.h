/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The state of control and of one connection, for the files of this room only.
 */

#include "control.h"
#include "log_quota.h"
#include "session.h"
#include "varlink.h"

#include <cjson/cJSON.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <time.h>

/* Connections. Root has CONTROL_PEERS_PER_ACCOUNT_MAX of its own, beside CONTROL_PEERS_MAX. */
#define CONTROL_PEERS_MAX             32
#define CONTROL_PEERS_PER_ACCOUNT_MAX 8
#define CONTROL_PEERS_ALL_MAX         (CONTROL_PEERS_MAX + CONTROL_PEERS_PER_ACCOUNT_MAX)
#define CONTROL_LINGERING_MAX         128 /* connections served and lingering together */
#define PEER_PENDING_MAX              16
#define PEER_OUTPUT_BYTES_MAX         ((size_t)262144)

/* Streams that clients hold, and the kernel's memory of their unread bytes. Beside the shared ones,
 * each account that holds none may have one, and root as many as an account. */
#define CONTROL_STREAMS_MAX                  64
#define CONTROL_STREAMS_SHARED               32
#define CONTROL_STREAMS_PER_ACCOUNT_MAX      8
#define CONTROL_STREAM_BYTES_SHARED          ((size_t)16 << 20)
#define CONTROL_STREAM_BYTES_PER_ACCOUNT_MAX ((size_t)4 << 20)

/* How often one connection may get the same bytes. */
#define CONTROL_REPEATS_MAX 16

/* A stream that a reply to Read has carried, see control_stream.c. */
struct handed_stream {
    const struct peer *peer; /* the one that called Read; NULL: it is gone */
    uid_t uid;
    int fill_fd; /* owned; the daemon's end; -1: none */
    bool used;   /* the place is in use */
    bool held;   /* a process has the other end open, by the last look at streams_fd */
};

/* A connection that is being closed by a thread of its own, see control_socket.c. */
struct lingering {
    bool used;
    bool started;
    int fd;
    uid_t uid;
    pthread_t thread;
};

/* Handles one message of a peer: varlink_call(). */
typedef int (*peer_call_fn)(struct peer *peer, const char *text, size_t text_bytes);

struct control {
    struct control_params params;
    peer_call_fn on_call;
    int listen_fd; /* owned */
    sd_event_source *listen_source;
    struct peer *peers;
    size_t peer_count;
    struct lingering lingering[CONTROL_LINGERING_MAX];

    struct session *session; /* owned; NULL: none */
    struct peer *holder;     /* NULL: there is no session, or it is detached and not held */
    bool segment_begun;      /* the holder has read from the session */
    uint64_t read_sequence;  /* of the bytes that the holder got last */
    unsigned repeat_count;   /* how often it got them */
    bool must_be_read;       /* the session was created attached, so it must be read in time */
    bool is_unread;          /* it was not read in time: any connection of its user may attach */
    const char *ended_by;    /* what stopped the session without a Stop; NULL: a Stop knows */
    time_t started_s;        /* when it was started last, in UTC */
    bool is_ending;          /* the daemon ends */
    sd_event_source *lease_source;
    sd_event_source *unread_source;  /* on while the session must be read */
    uint64_t worker_restarts_before; /* as of the session's creation */

    int streams_fd; /* owned; an epoll of its own */
    struct handed_stream streams[CONTROL_STREAMS_MAX];
    size_t stream_room_bytes; /* the most that a stream holds, and the kernel's memory for it */
    size_t stream_cost_bytes;
    uint64_t started_ns;
    struct log_quota session_quota; /* of lines about sessions, and about refusals */
    struct log_quota refusal_quota;
};

/* A reply that waits to be sent. */
struct reply {
    struct reply *next;
    char *text;        /* owned */
    size_t size_bytes; /* with its NUL */
    size_t sent_bytes;
    int fd; /* owned; sent with the first byte; -1: none */
};

enum peer_wait {
    PEER_READY,         /* for the next call */
    PEER_AWAITS_STOP,   /* on_stopped() replies */
    PEER_STREAMS_STATUS /* until the connection ends */
};

/* Why a connection does not hold the session that it held. */
enum peer_loss {
    PEER_LOST_NOTHING,
    PEER_LOST_TO_ROOT,
    PEER_LOST_UNREAD, /* to another connection of its user */
};

struct peer {
    struct control *control;
    struct peer *next;
    struct peer *previous;
    int fd; /* owned */
    struct ucred cred;
    bool is_admitted; /* by the administrator: admits() in control.c */
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
    uint64_t called_ns; /* of its last call, CLOCK_MONOTONIC; at first of its beginning */
    enum peer_loss loss;
    pid_t loss_pid;
    bool call_more; /* of the present call, or of the one whose reply waits */
    bool call_oneway;
    int error; /* the reason to end the connection, once its callbacks have returned */
};

/* A connection of `cred` (`fd` taken), which may use the sampler or not. Returns 0 or -errno. */
int peer_new(struct control *control, int fd, const struct ucred *cred, bool is_admitted);
/* Ends the connection, and with it its session, unless that is a detached one. */
struct peer *peer_free(struct peer *peer);
/* The same, not from its own callbacks. First sends the reason as an error reply, as far as the
 * socket takes it. */
void peer_end(struct peer *peer, const char *text);

/*
 * Queue a reply to the present call; a oneway call gets none. `parameters` is always taken; NULL
 * means -ENOMEM. Return 0, -EMSGSIZE when the reply is longer than a message may be (then it is not
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

/* Handles one message as a call, and replies to it. Returns 0, or -errno: the peer must be ended.
 */
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

/* org.varlink.service.InvalidParameter, for any method. */
int varlink_reply_invalid_parameter(struct peer *peer, const char *parameter);

/* {"status": ...}, without each CPU's own books unless `with_cpus`. Returned; NULL when there is no
 * memory. */
cJSON *control_status(struct control *control, bool with_cpus);

/* The reply to Events, for a user. Returned: json_freep(); NULL: no memory. */
cJSON *control_events(const struct control *control, uid_t uid);

uint64_t control_uptime_s(const struct control *control);

/*
 * The session and the peer that holds it (control_session.c).
 */
int control_add_lease(struct control *control);
/* The peer, which has created the session or attached to it, holds it from now on. */
void control_hold_session(struct control *control, struct peer *peer);
/* The peer holds it from now on, and the former holder gets the reason: the session outlives both.
 */
void control_take_session(struct control *control, struct peer *peer, enum peer_loss loss);
/* A Read of the session succeeded, or it was begun: the time limit of one that was created attached
 * begins anew. */
void control_note_read(struct control *control);
/* The session that the peer holds, whose lease begins anew; NULL: none. */
struct session *control_use_session(struct peer *peer);
/* Begins a detached session's lease: unless it is used again, it ends by itself after a time. */
void control_renew_lease(struct control *control);
/* The connection ends: its attached session ends, too, and a detached one has no holder. */
void control_release_session(struct peer *peer);
/* Frees the session, if there is one. `why` goes to the log. */
void control_close_session(struct control *control, const char *why);

/* Replies to a peer that is not on the administrator's list. */
int control_reply_not_admitted(struct peer *peer);

/*
 * Log entries about clients (control_log.c), within the quota of their account.
 */
enum control_event {
    CONTROL_CREATED,
    CONTROL_NOTED, /* a session differs from its config */
    CONTROL_ATTACHED,
    CONTROL_STOPPED,
    CONTROL_CLOSED,
    CONTROL_REFUSED,
    CONTROL_DENIED, /* the client lacks a right */
    CONTROL_LEFT_OUT,
};
struct control_subject {
    uid_t uid;
    pid_t pid;
    const char *session; /* NULL: none; borrowed */
};
void control_log(struct control *control, enum control_event event,
                 const struct control_subject *subject, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* An error reply. */
void control_log_error(struct peer *peer, const char *error, const cJSON *parameters);
void control_tell_left_out(struct control *control);
void control_init_quotas(struct control *control);

/*
 * Places for connections (control_places.c). control_make_place() ends another connection if
 * necessary. Returns 0, or -EUSERS: a connection of `uid` gets no place.
 */
int control_make_place(struct control *control, uid_t uid);
/* Ends connections without a session that made no call for leases.idle_ms. */
void control_end_idle(struct control *control);

/*
 * The streams of Read (control_stream.c). control_stream_check() returns 0 if the peer may have one
 * more; with a fault, -EBUSY if its last one still has bytes, and -EDQUOT if its account, or all
 * accounts together, hold too much. control_stream_new() makes a stream with at most
 * `stream_room_bytes` bytes in it (`*ret_fd` returned: close()), and counts it until no process has
 * it open. Returns 0, or -errno with or without a fault.
 */
int control_stream_init(struct control *control);
void control_stream_done(struct control *control);
int control_stream_check(struct peer *peer, struct fault *reterr);
int control_stream_new(struct peer *peer, const void *bytes, size_t size_bytes, int *ret_fd,
                       struct fault *reterr);
void control_stream_forget(const struct peer *peer);
void control_stream_tick(struct control *control); /* forgets streams that clients have closed */

/*
 * Sockets on which a client may send descriptors (control_socket.c).
 */
/* Makes the kernel refuse descriptors from clients of a listening socket, from Linux 6.16 on. */
void socket_refuse_descriptors(int listen_fd);
int socket_prepare(int fd); /* to be called first */
/* Receives bytes. Returns how many, 0 at the end, -EBADMSG when a descriptor comes with the next
 * ones (it stays in the socket), or another -errno. */
ssize_t socket_receive(int fd, void *buffer, size_t room_bytes);
/* Closes a connection of `uid` (`fd` taken). Never blocks. There must be room in the table. */
void socket_close(struct control *control, int fd, uid_t uid);
/* The number of connections that linger, of all or of an account. Forgets those that have ended. */
size_t control_lingering_count(struct control *control, const uint32_t *account);
/* Waits a moment for the connections that linger. */
void control_end_lingering(struct control *control);
