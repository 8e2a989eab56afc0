/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the files of control share: the state of control and of one connection. Nobody else includes
 * it.
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

#define CONTROL_PEERS_MAX         32
#define CONTROL_PEERS_PER_UID_MAX 8
#define CONTROL_LINGERING_MAX     64 /* connections served and lingering together */
#define PEER_PENDING_MAX          16
#define PEER_OUTPUT_BYTES_MAX     ((size_t)262144)

/* A pipe that a Read has handed out. */
struct handed_pipe {
    const struct peer *peer; /* whose Read it was; NULL: it is gone */
    uid_t uid;
    bool held;   /* somebody still has it; as pipes_fd says, see control_pipe.c */
    bool unread; /* and it holds bytes */
};

/* A connection that is being closed by a thread of its own, see control_socket.c. */
struct lingering {
    bool used;
    bool started;
    int fd;
    uid_t uid;
    pthread_t thread;
};

struct control {
    struct control_params params;
    int listen_fd; /* owned */
    sd_event_source *listen_source;
    struct peer *peers;
    size_t peer_count;
    struct lingering lingering[CONTROL_LINGERING_MAX];

    struct session *session; /* owned; NULL: none */
    struct peer *holder;     /* NULL: there is no session, or nobody holds it, a detached one */
    bool segment_begun;      /* the holder has read from the session */
    const char *ended_by;    /* what stopped the session without a Stop; NULL: a Stop knows */
    time_t started_s;        /* when it was started last, in UTC */
    bool is_ending;          /* the daemon is */
    sd_event_source *lease_source;
    uint64_t worker_restarts_before; /* the session */

    int pipes_fd; /* owned; an epoll of its own */
    struct handed_pipe pipes[CONTROL_PEERS_MAX];
    uint64_t started_ns;
    struct log_quota session_quota; /* of lines about sessions, and about refusals */
    struct log_quota refusal_quota;
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
    bool is_admitted; /* by the administrator, see control_access.c */
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
    int error; /* what ended it while its callbacks could not */
};

/* A connection of `cred` (`fd` taken). Returns 0 or -errno. */
int peer_new(struct control *control, int fd, const struct ucred *cred);
/* Ends the connection, and with it its session, unless that is a detached one. */
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

/*
 * The session, and who holds it (control_session.c).
 */
int control_add_lease(struct control *control);
/* The peer, which has created the session or attached to it, holds it from now on. */
void control_hold_session(struct control *control, struct peer *peer);
/* The session that the peer holds, whose lease begins anew; NULL: none. */
struct session *control_use_session(struct peer *peer);
/* A detached session that is not used again ends by itself, some time after this call. */
void control_renew_lease(struct control *control);
/* The connection ends: its attached session ends too, a detached one is let go. */
void control_release_session(struct peer *peer);
/* Frees the session, if there is one. `why` goes to the log. */
void control_close_session(struct control *control, const char *why);

/*
 * Who may (control_access.c). control_admits() asks the kernel who was at the other end of `fd`
 * when it connected: whether the administrator lets that user, or one of its groups, use the
 * sampler. What cannot be found out is a no.
 */
bool control_admits(const struct control *control, int fd, const struct ucred *cred);
int control_reply_not_admitted(struct peer *peer);

/*
 * What clients do, in the log (control_log.c), within the quota of their user.
 */
enum control_event {
    CONTROL_CREATED,
    CONTROL_ATTACHED,
    CONTROL_STOPPED,
    CONTROL_CLOSED,
    CONTROL_REFUSED,
    CONTROL_DENIED, /* for want of a right */
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
/* An error that a peer is replied to. */
void control_log_error(struct peer *peer, const char *error, const cJSON *parameters);
void control_tell_left_out(struct control *control);
void control_init_quotas(struct control *control);

/*
 * The pipes of Reads (control_pipe.c). control_pipe_new() makes one (returned: close() each end) of
 * as much room as the kernel grants, `*ret_room_bytes`. Returns 0, or -EBUSY when the peer's last
 * pipe holds bytes yet, -EDQUOT when its user holds CONTROL_PEERS_PER_UID_MAX pipes or all together
 * CONTROL_PEERS_MAX, with a fault, or another -errno.
 */
int control_pipe_new(struct peer *peer, int ret_fds[2], size_t *ret_room_bytes,
                     struct fault *reterr);
/* Counts the pipe as handed out to the peer, until nobody has `read_fd` any more. Its write end
 * must be closed. Returns 0 or -errno. */
int control_pipe_count(struct peer *peer, int read_fd);
void control_pipe_forget(const struct peer *peer);

/*
 * Sockets on which a client may send descriptors (control_socket.c).
 */
int socket_prepare(int fd); /* before anything else */
/* Receives bytes. Returns how many, 0 at the end, -EBADMSG when a descriptor comes with the next
 * ones (it stays in the socket), or another -errno. */
ssize_t socket_receive(int fd, void *buffer, size_t room_bytes);
/* Ends a connection of `uid` (`fd` taken). Never blocks. There must be room in the table. */
void socket_close(struct control *control, int fd, uid_t uid);
/* How many connections linger, all or those of `uid`; forgets the ones that have ended. */
size_t control_lingering_count(struct control *control, const uid_t *uid);
/* Waits for a moment for those that linger. */
void control_end_lingering(struct control *control);
