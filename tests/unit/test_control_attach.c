/* SPDX-License-Identifier: Apache-2.0 */

/* Detached sessions: who may hold one, and when it ends by itself. */
#include "control_harness.h"

#include <sys/socket.h>

#define ATTACH CALL("Attach")
#define NO_SUCH_SESSION                                                                            \
    ERROR("InvalidArgs", "{\"member\":\"session\",\"text\":\"there is no session of this name; "   \
                         "'7' is allowed\"}")

/* Brings a created session so far. Its client has no reply to a Stop that goes on. */
static void bring(struct client *client, enum session_state state)
{
    if (state != SESSION_CREATED) {
        ask(client, CALL("Start"), EMPTY);
    }
    if (state == SESSION_STOPPING || state == SESSION_STOPPED) {
        say(client, CALL("Stop"));
    }
    if (state == SESSION_STOPPED) {
        fake_finish_stop("client");
        expect_reply(client, STOPPED("client"));
    }
}

/* Creates a detached session, brings it to a state, and leaves it alone. */
static void leave_a_session(enum session_state state)
{
    struct client *client = dial_and_create(CREATE_DETACHED);
    bring(client, state);
    hang_up(client);
    assert_int_equal(fake.live_count, 1);
}

static struct client *dial_and_attach(const char *attached)
{
    struct client *client = dial();
    ask(client, ATTACH, attached);
    return client;
}

STORY(keeps_a_detached_session_when_its_connection_ends)
{
    static const struct {
        enum session_state state;
        const char *attached;
    } cases[] = {
        {SESSION_CREATED, ATTACHED("created")},
        {SESSION_RUNNING, ATTACHED("running")},
        {SESSION_STOPPING, ATTACHED("running")},
        {SESSION_STOPPED, ATTACHED("stopped")},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        leave_a_session(cases[i].state);
        assert_true(fake.owner.detached);
        struct client *client = dial();
        ask(client, CALL("Read"), NO_SESSION);
        ask(client, CALL_WITH("Attach", "{\"session\":\"7\"}"), cases[i].attached);
        ask(client, ATTACH, cases[i].attached); /* which it holds already */
        ask(client, CALL("Close"), EMPTY);
        assert_int_equal(fake.live_count, 0);
        hang_up(client);
    }
}

CLIENT(says_why_it_does_not_attach)
{
    ask(client, ATTACH, BAD_STATE("none", "there is no session; call Create first"));
    ask(client, CALL_WITH("Attach", "{\"session\":\"7\"}"),
        BAD_STATE("none", "there is no session; call Create first"));
    leave_a_session(SESSION_RUNNING);
    ask(client, CALL_WITH("Attach", "{\"session\":\"8\"}"), NO_SUCH_SESSION);
    ask(client, CALL_WITH("Attach", "{\"session\":\"\"}"), NO_SUCH_SESSION);
    ask(client, CALL("Start"), NO_SESSION);
}

STORY(lets_one_connection_hold_a_session)
{
    static const char *const calls[] = {CALL("Start"), CALL("Stop"), CALL("Read"), CALL("Close")};
    struct client *first = dial_as_user();
    struct client *second = dial_as_user();
    const char *held =
        spell(BAD_STATE("created", "the connection of pid %d holds the session; attach when "
                                   "it has ended"),
              (int)getpid());
    /* There is none; the first has one; it is without a holder. */
    for (size_t i = 0; i < 3 * COUNT_OF(calls); i++) {
        if (i == COUNT_OF(calls)) {
            ask(first, CREATE_DETACHED, CREATED);
            ask(second, ATTACH, held);
        } else if (i == 2 * COUNT_OF(calls)) {
            hang_up(first);
        }
        ask(second, calls[i % COUNT_OF(calls)], NO_SESSION);
    }
    ask(second, ATTACH, ATTACHED("created"));
    struct client *third = dial_as_user();
    ask(third, ATTACH, held);
    hang_up(third);
    ask(second, CALL("Start"), EMPTY);
    hang_up(second);
    assert_int_equal(fake.live_count, 1);
}

STORY(keeps_an_attached_session_to_its_connection)
{
    struct client *owner = dial_as_user();
    struct client *other = dial_as_user();
    const char *held =
        spell(BAD_STATE("created", "the session belongs to the connection of pid %d and ends "
                                   "with it"),
              (int)getpid());
    ask(owner, CREATE, CREATED);
    ask(other, ATTACH, held);
    ask(owner, ATTACH, ATTACHED("created"));
    hang_up(owner);
    assert_int_equal(fake.live_count, 0);
    ask(other, ATTACH, BAD_STATE("none", "there is no session; call Create first"));
}

STORY(attaches_its_user_and_root_only)
{
    if (geteuid() != 0) {
        skip();
    }
    struct client *owner = dial_as(60001);
    ask(owner, CREATE_DETACHED, CREATED);
    hang_up(owner);
    struct client *other = dial_as(60002);
    ask(other, ATTACH,
        ERROR(
            "PermissionDenied",
            "{\"text\":\"the session belongs to uid 60001, and only that user and root may attach "
            "to it; Status shows it to everybody (profctl status)\"}"));
    ask(other, CALL("Close"), NO_SESSION);
    ask(other, CREATE, ERROR("AlreadyExists", "{\"owner_uid\":60001,\"age_ms\":2500}"));
    hang_up(other);
    owner = dial_as(60001);
    ask(owner, ATTACH, ATTACHED("created"));
    hang_up(owner);
    struct client *root = dial();
    ask(root, ATTACH, ATTACHED("created"));
    ask(root, CALL("Start"), EMPTY);
    assert_int_equal(fake.owner.uid, 60001);
    ask(root, CALL("Close"), EMPTY);
    assert_int_equal(fake.live_count, 0);
}

#define TAKEN_BY_ROOT                                                                              \
    "{\"error\":\"" SAMPLER                                                                        \
    "BadState\",\"parameters\":{\"state\":\"none\",\"text\":\"root (pid %d) "                      \
    "took the session from this connection; unless root closes it, Attach works again when "       \
    "root's connection has ended\"}}"

STORY(lets_root_take_any_session)
{
    static const struct {
        const char *create;
        enum session_state state;
        const char *attached;
    } cases[] = {
        {CREATE, SESSION_CREATED, ATTACHED("created")},
        {CREATE, SESSION_RUNNING, ATTACHED("running")},
        {CREATE, SESSION_STOPPING, ATTACHED("running")},
        {CREATE, SESSION_STOPPED, ATTACHED("stopped")},
        {CREATE_DETACHED, SESSION_RUNNING, ATTACHED("running")},
        {CREATE_DETACHED, SESSION_STOPPED, ATTACHED("stopped")},
    };
    if (geteuid() != 0) {
        skip();
    }
    const char *taken = spell(TAKEN_BY_ROOT, (int)getpid());
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct client *owner = dial_as(60001);
        struct client *other = dial_as(60002);
        struct client *root = dial();
        ask(owner, cases[i].create, CREATED);
        bring(owner, cases[i].state);
        assert_contains(answer(other, ATTACH), "PermissionDenied");
        ask(root, ATTACH, cases[i].attached);
        assert_true(fake.owner.detached);
        if (cases[i].state == SESSION_STOPPING) {
            expect_reply(owner, taken); /* to its Stop */
        }
        ask(owner, CALL("Read"), taken);
        ask(owner, CALL("Close"), taken);
        assert_contains(answer(owner, ATTACH), "attach when it has ended");
        hang_up(owner); /* ends nothing */
        assert_int_equal(fake.live_count, 1);
        if (cases[i].state == SESSION_RUNNING) {
            say(root, CALL("Stop"));
            fake_finish_stop("client");
            expect_reply(root, STOPPED("client"));
        }
        hang_up(root); /* nor does this */
        assert_int_equal(fake.live_count, 1);
        owner = dial_as(60001);
        assert_null(strstr(answer(owner, ATTACH), "error"));
        root = dial();
        assert_null(strstr(answer(root, ATTACH), "error"));
        ask(root, CALL("Close"), EMPTY);
        assert_int_equal(fake.live_count, 0);
        ask(owner, CALL("Read"), taken);
        ask(owner, CREATE, CREATED);
        ask(owner, CALL("Close"), EMPTY);
        ask(owner, CALL("Read"), NO_SESSION);
        hang_up(owner);
        hang_up(other);
        hang_up(root);
    }
}

STORY(stops_and_keeps_what_is_not_read)
{
    struct client *client = dial_as_user();
    struct client *other = dial_as_user();
    const char *lost =
        spell(BAD_STATE("none", "the session was not read in time (max_unread_s), and another "
                                "client of its user (pid %d) took it since; call Attach when "
                                "that has ended"),
              (int)getpid());
    ask(client, CREATE, CREATED);
    ask(client, CALL("Start"), EMPTY);
    /* As long as it is read it goes on. */
    for (unsigned i = 0; i < 4; i++) {
        pump_for_ms(LEASE_UNREAD_MS * 9 / 10);
        ask(client, CALL("Read"), NO_CHUNK("false"));
    }
    assert_int_equal(session_state(fake.last), SESSION_RUNNING);
    assert_false(fake.owner.detached);
    pump_for_ms(LEASE_UNREAD_MS);
    assert_int_equal(session_state(fake.last), SESSION_STOPPING);
    assert_string_equal(fake.stopped_by, "max_unread");
    assert_true(fake.owner.detached);
    fake_finish_stop("max_unread");

    /* A client that goes on finds it as it is; another one of its user may take it. */
    ask(client, CALL("Stop"), STOPPED("max_unread"));
    ask(other, ATTACH, ATTACHED("stopped"));
    ask(client, CALL("Read"), lost);
    hang_up(client);
    assert_int_equal(fake.live_count, 1);
    ask(other, CALL("Start"), EMPTY); /* and must read it in time */
    pump_for_ms(LEASE_UNREAD_MS);
    assert_int_equal(session_state(fake.last), SESSION_STOPPING);
    hang_up(other);
    assert_int_equal(fake.live_count, 1);
    client = dial_as_user();
    ask(client, ATTACH, ATTACHED("running"));
    ask(client, CALL("Close"), EMPTY);

    /* One that stands still holds nothing for ever, started or not; a detached one is as before. */
    ask(client, CREATE, CREATED);
    pump_for_ms(LEASE_UNREAD_MS);
    assert_true(fake.owner.detached);
    ask(client, CALL("Close"), EMPTY);
    ask(client, CREATE_DETACHED, CREATED);
    ask(client, CALL("Start"), EMPTY);
    pump_for_ms(LEASE_UNREAD_MS);
    assert_int_equal(session_state(fake.last), SESSION_RUNNING);
}

/* No client waits for the end of the Stop any more, and it does not end by itself. */
STORY(finishes_a_stop_whose_connection_has_ended)
{
    leave_a_session(SESSION_STOPPING);
    fake_finish_stop("client");
    struct client *client = dial_and_attach(ATTACHED("stopped"));
    ask(client, CALL("Stop"), RUNS_NOT("stopped"));
    ask(client, CALL("Start"), EMPTY);
    hang_up(client);

    client = dial_and_attach(ATTACHED("running"));
    say(client, CALL("Stop"));
    hang_up(client);
    client = dial_and_attach(ATTACHED("running"));
    ask(client, CALL("Start"), RUNS_ALREADY);
    say(client, CALL("Stop"));
    hear_nothing(client);
    fake_finish_stop("client");
    expect_reply(client, STOPPED("client"));
}

STORY(does_what_a_client_asked_for_before_it_went)
{
    static const char calls[] = CREATE_DETACHED "\0" CALL("Start");
    static const char oneway[] = "{\"method\":\"" SAMPLER "Attach\",\"oneway\":true}\0"
                                 "{\"method\":\"" SAMPLER "Stop\",\"oneway\":true}";
    fake.stops_at_once = true;
    struct client *client = dial_and_create(CREATE_DETACHED);
    ask(client, CALL("Close"), EMPTY);
    assert_int_equal(send(client->fd, calls, sizeof calls, 0), sizeof calls);
    hang_up(client);
    assert_int_equal(fake.live_count, 1);
    assert_int_equal(session_state(fake.last), SESSION_RUNNING);
    client = dial();
    assert_int_equal(send(client->fd, oneway, sizeof oneway, 0), sizeof oneway);
    hang_up(client);
    assert_int_equal(session_state(fake.last), SESSION_STOPPED);
}

STORY(tells_whoever_attaches_that_a_session_ended_by_itself)
{
    leave_a_session(SESSION_RUNNING);
    fake_finish_stop("max_duration");
    for (unsigned i = 0; i < 2; i++) {
        struct client *client = dial_and_attach(ATTACHED("stopped"));
        ask(client, CALL("Stop"), i == 0 ? STOPPED("max_duration") : RUNS_NOT("stopped"));
        hang_up(client);
    }
}

STORY(limits_detached_sessions_to_ten_minutes_of_sampling)
{
    struct client *client = dial_and_create(CREATE_DETACHED);
    assert_int_equal(fake.config.max_duration_s, 600);
    ask(client, CALL("Close"), EMPTY);
    ask(client, CALL_WITH("Create", "{\"config\":{\"max_duration_s\":5},\"detach\":true}"),
        CREATED);
    assert_int_equal(fake.config.max_duration_s, 5);
    ask(client, CALL("Close"), EMPTY);
    ask(client, CREATE, CREATED);
    assert_int_equal(fake.config.max_duration_s, 0);
}

/* The session is there until `lease_ms` have passed, and no longer. */
static void expect_end(unsigned lease_ms)
{
    pump_for_ms(lease_ms - lease_ms / 10);
    assert_int_equal(fake.live_count, 1);
    pump_for_ms(lease_ms / 10);
    assert_int_equal(fake.live_count, 0);
}

STORY(ends_a_detached_session_that_is_never_started)
{
    leave_a_session(SESSION_CREATED);
    expect_end(LEASE_CREATED_MS);
}

STORY(ends_a_detached_session_some_time_after_it_has_stopped)
{
    leave_a_session(SESSION_STOPPED);
    expect_end(LEASE_STOPPED_MS);

    leave_a_session(SESSION_RUNNING); /* which has no lease until it ends */
    pump_for_ms(LEASE_STOPPED_MS * 2);
    fake_begin_own_stop();
    pump_for_ms(LEASE_STOPPED_MS * 2);
    assert_int_equal(fake.live_count, 1);
    fake_finish_stop("max_duration");
    expect_end(LEASE_STOPPED_MS);
}

CLIENT(renews_a_lease_with_every_request)
{
    leave_a_session(SESSION_STOPPED);
    struct client *watcher = dial();
    for (unsigned i = 0; i < 5; i++) {
        pump_for_ms(LEASE_STOPPED_MS * 9 / 10);
        ask(client, i % 2 == 1 ? CALL("Stop") : ATTACH,
            i % 2 == 1 ? RUNS_NOT("stopped") : ATTACHED("stopped"));
    }
    /* To look at it is no request, and to hold it is none: this comes to an end. */
    pump_for_ms(LEASE_STOPPED_MS * 9 / 10);
    assert_non_null(answer(watcher, CALL("Status")));
    assert_int_equal(fake.live_count, 1);
    pump_for_ms(LEASE_STOPPED_MS / 10);
    assert_int_equal(fake.live_count, 0);
    ask(client, CALL("Start"), NO_SESSION);
}

STORY(leaves_an_attached_session_as_long_as_its_connection)
{
    fake.stops_at_once = true;
    struct client *client = dial_and_create(CREATE);
    pump_for_ms(LEASE_CREATED_MS * 2);
    ask(client, CALL("Start"), EMPTY);
    ask(client, CALL("Stop"), STOPPED("client"));
    pump_for_ms(LEASE_STOPPED_MS * 2);
    assert_int_equal(fake.live_count, 1);
}
