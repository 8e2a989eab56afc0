/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A control on a real socket, driven by the test's own thread, and clients of it. What is opened in
 * a test must be closed at its end: harness_teardown() counts descriptors.
 */

#include "cleanup.h"
#include "control.h"
#include "fake_session.h"
#include "varlink.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
/* cmocka wants the four above */
#include <cmocka.h>

#define SAMPLER "io.cpuprofilerd.Sampler."
/* A call without parameters, as a string literal. */
#define CALL(name) "{\"method\":\"" SAMPLER name "\"}"
#define CALL_WITH(name, parameters)                                                                \
    "{\"method\":\"" SAMPLER name "\",\"parameters\":" parameters "}"
#define CREATE                  CALL_WITH("Create", "{\"config\":{}}")
#define CREATED                 "{\"parameters\":{\"session\":\"7\",\"holds_s\":60}}"
#define CREATE_DETACHED         CALL_WITH("Create", "{\"config\":{},\"detach\":true}")
#define EMPTY                   "{\"parameters\":{}}"
#define STOPPED(by)             "{\"parameters\":{\"stopped_by\":\"" by "\"}}"
#define ERROR(name, parameters) "{\"error\":\"" SAMPLER name "\",\"parameters\":" parameters "}"
#define NO_SESSION                                                                                 \
    ERROR("BadState",                                                                              \
          "{\"state\":\"none\",\"text\":\"this connection has no session; call Create or Attach "  \
          "first\"}")

#define BAD_STATE(state, text) ERROR("BadState", "{\"state\":\"" state "\",\"text\":\"" text "\"}")

#define SHORT_LEASE_CREATED_MS 1000
#define SHORT_LEASE_STOPPED_MS 300
#define SHORT_UNREAD_MS        400
#define SHORT_IDLE_MS          200

struct harness {
    sd_event *event;
    struct control *control;
    struct daemon_config config; /* everything is allowed, unless a test changes it */
    char path[64];
    unsigned fd_count; /* before */
    int listen_fd;     /* borrowed from control */
};
extern struct harness harness;

int harness_setup(void **state);
int harness_setup_short_leases(void **state);
int harness_setup_short_patience(void **state); /* with who does not read, or call */
int harness_setup_old_kernel(void **state);     /* where clients can send descriptors */
int harness_teardown(void **state);
unsigned count_fds(void);

/* Runs the loop until nothing is left to do at once. */
void pump(void);
void pump_for_ms(unsigned milliseconds);

struct client {
    int fd;
    struct varlink_input input;
    int got_fd; /* that came last; -1: none */
    bool ended; /* the other side has closed */
};

struct client knock(void); /* connects, and leaves it to the next pump() to be accepted */
struct client dial(void);
struct client knock_as(uid_t uid); /* takes root */
struct client dial_as(uid_t uid);
void hang_up(struct client *client);
void say_bytes(struct client *client, const void *bytes, size_t size);
void say(struct client *client, const char *text); /* with its NUL */
/* The next message, borrowed until the next call; NULL when the other side has closed. */
const char *hear(struct client *client);
/* Asserts that nothing comes, and nothing ends. */
void hear_nothing(struct client *client);
/* Says, hears, compares. */
void ask(struct client *client, const char *text, const char *reply);
