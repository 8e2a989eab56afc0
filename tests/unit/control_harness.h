/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A control on a real socket, driven by the test's own thread, and clients of it. What is opened in
 * a test must be closed at its end: harness_teardown() counts descriptors.
 */
#include "cleanup.h"
#include "control.h"
#include "fake_session.h"
#include "open_descriptors.h"
#include "varlink.h"

#define SAMPLER "io.cpuprofilerd.Sampler."
/* A call without parameters, as a string literal. */
#define CALL(name) "{\"method\":\"" SAMPLER name "\"}"
#define CALL_WITH(name, parameters)                                                                \
    "{\"method\":\"" SAMPLER name "\",\"parameters\":" parameters "}"
#define CREATE                  CALL_WITH("Create", "{\"config\":{}}")
#define CREATED                 "{\"parameters\":{\"session\":\"7\",\"holds_s\":60}}"
#define CREATE_DETACHED         CALL_WITH("Create", "{\"config\":{},\"detach\":true}")
#define ATTACHED(state)         "{\"parameters\":{\"session\":\"7\",\"state\":\"" state "\"}}"
#define MORE_STATUS             "{\"method\":\"" SAMPLER "Status\",\"more\":true}"
#define EMPTY                   "{\"parameters\":{}}"
#define STOPPED(by)             "{\"parameters\":{\"stopped_by\":\"" by "\"}}"
#define ERROR(name, parameters) "{\"error\":\"" SAMPLER name "\",\"parameters\":" parameters "}"
#define NO_SESSION                                                                                 \
    ERROR("BadState",                                                                              \
          "{\"state\":\"none\",\"text\":\"this connection has no session; call Create or Attach "  \
          "first\"}")

#define CHUNK(size, sequence, end)                                                                 \
    "{\"parameters\":{\"fd\":0,\"size_bytes\":" size ",\"sequence\":" sequence ",\"end\":" end "}}"
#define NO_CHUNK(end)          "{\"parameters\":{\"fd\":-1,\"size_bytes\":0,\"sequence\":0,\"end\":" end "}}"
#define READ(ack)              CALL_WITH("Read", "{\"ack\":" ack "}")
#define RUNS_ALREADY           BAD_STATE("running", "the session runs already")
#define RUNS_NOT(state)        BAD_STATE(state, "the session does not run")
#define BAD_STATE(state, text) ERROR("BadState", "{\"state\":\"" state "\",\"text\":\"" text "\"}")

#define USER_UID    60001 /* of knock_as_user() */
#define CLIENTS_MAX 64

/* Longer than any test takes: only pump_for_ms() brings them about. */
#define LEASE_CREATED_MS 100000
#define LEASE_STOPPED_MS 30000
#define LEASE_UNREAD_MS  400000
#define LEASE_IDLE_MS    60000 /* the daemon's own */

struct client {
    int fd; /* -1: none */
    struct varlink_input input;
    int got_fd; /* that came last; -1: none */
    bool ended; /* the other side has closed */
};

struct harness {
    sd_event *event;
    struct control *control;
    struct daemon_config config; /* everything is allowed, unless a test changes it */
    char path[64];
    size_t fd_count; /* before */
    int listen_fd;   /* borrowed from control */
    struct client clients[CLIENTS_MAX];
};
extern struct harness harness;

int harness_setup(void **state);
int harness_setup_old_kernel(void **state); /* where clients can send descriptors */
int harness_setup_client(void **state);     /* one that is dialled is the state */
int harness_teardown(void **state);

#define STORY(name)  TEST_WITH(name, harness_setup, harness_teardown)
#define CLIENT(name) TEST_OF(struct client *client, name, harness_setup_client, harness_teardown)

/* Runs the loop until nothing is left to do at once. */
void pump(void);
/* As if so much time had passed, for the daemon and for its event loop. */
void pump_for_ms(unsigned milliseconds);

/* Each is valid until hang_up(), which the end of the test does for all that are left. */
struct client *knock(void); /* connects, and leaves it to the next pump() to be accepted */
struct client *dial(void);
struct client *knock_as(uid_t uid); /* takes root */
struct client *dial_as(uid_t uid);
/* As a user who is not root, who may do more; where the test runs as such a user, as that. */
struct client *knock_as_user(void);
struct client *dial_as_user(void);
/* One that asked for Create or Start, too: `create` is a whole call. */
struct client *dial_and_create(const char *create);
struct client *dial_and_start(const char *create);
/* A client, once the daemon has answered that it has no session. */
struct client *served(struct client *client);
void hang_up(struct client *client);
void say_bytes(struct client *client, const void *bytes, size_t size);
void say(struct client *client, const char *text); /* with its NUL */
/* The next message, borrowed until the next call; NULL when the other side has closed. */
const char *hear(struct client *client);
/* Asserts that nothing comes, and nothing ends. */
void hear_nothing(struct client *client);
/* Says, and hears, something. */
const char *answer(struct client *client, const char *text);
/* A reply with numbers in it, borrowed until the next call. */
__attribute__((format(printf, 1, 2))) const char *spell(const char *format, ...);
void expect_reply(struct client *client, const char *reply);
/* The other side has closed, and so does this one. */
void expect_closed(struct client *client);
/* Says, hears, compares. */
void ask(struct client *client, const char *text, const char *reply);
