/* SPDX-License-Identifier: Apache-2.0 */

/* Detached sessions: who may hold one, and when it ends by itself. */
#include "control_harness.h"

#include "clock.h"

#include <stdio.h>
#include <sys/socket.h>

#define ATTACH          CALL("Attach")
#define ATTACHED(state) "{\"parameters\":{\"session\":\"7\",\"state\":\"" state "\"}}"
#define NO_SUCH_SESSION                                                                            \
    ERROR("InvalidArgs", "{\"member\":\"session\",\"text\":\"there is no session of this name; "   \
                         "'7' is allowed\"}")

/* Creates a detached session, brings it to a state, and leaves it alone. */
static void leave_a_session(enum session_state state)
{
    struct client client = dial();
    ask(&client, CREATE_DETACHED, CREATED);
    if (state != SESSION_CREATED) {
        ask(&client, CALL("Start"), EMPTY);
    }
    if (state == SESSION_STOPPING || state == SESSION_STOPPED) {
        say(&client, CALL("Stop"));
    }
    if (state == SESSION_STOPPED) {
        fake_finish_stop("client");
        assert_string_equal(hear(&client), STOPPED("client"));
    }
    hang_up(&client);
    assert_int_equal(fake.live_count, 1);
}

static void keeps_a_detached_session_when_its_connection_ends(void **state)
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
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        leave_a_session(cases[i].state);
        assert_true(fake.owner.detached);
        struct client client = dial();
        ask(&client, CALL("Read"), NO_SESSION);
        ask(&client, CALL_WITH("Attach", "{\"session\":\"7\"}"), cases[i].attached);
        ask(&client, ATTACH, cases[i].attached); /* which it holds already */
        ask(&client, CALL("Close"), EMPTY);
        assert_int_equal(fake.live_count, 0);
        hang_up(&client);
    }
}

static void says_why_it_does_not_attach(void **state)
{
    struct client client = dial();
    (void)state;
    ask(&client, ATTACH, BAD_STATE("none", "there is no session; call Create first"));
    ask(&client, CALL_WITH("Attach", "{\"session\":\"7\"}"),
        BAD_STATE("none", "there is no session; call Create first"));
    leave_a_session(SESSION_RUNNING);
    ask(&client, CALL_WITH("Attach", "{\"session\":\"8\"}"), NO_SUCH_SESSION);
    ask(&client, CALL_WITH("Attach", "{\"session\":\"\"}"), NO_SUCH_SESSION);
    ask(&client, CALL("Start"), NO_SESSION);
    hang_up(&client);
}

/* Root takes what it attaches to. */
static struct client dial_as_user(void)
{
    return geteuid() == 0 ? dial_as(60001) : dial();
}

static void lets_one_connection_hold_a_session(void **state)
{
    static const char *const calls[] = {CALL("Start"), CALL("Stop"), CALL("Read"), CALL("Close")};
    struct client first = dial_as_user();
    struct client second = dial_as_user();
    char held[256];
    (void)state;
    (void)snprintf(held, sizeof held,
                   BAD_STATE("created", "the connection of pid %d holds the session; attach when "
                                        "it has ended"),
                   (int)getpid());
    ask(&first, CREATE_DETACHED, CREATED);
    ask(&second, ATTACH, held);
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        ask(&second, calls[i], NO_SESSION);
    }
    hang_up(&first);
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        ask(&second, calls[i], NO_SESSION);
    }
    ask(&second, ATTACH, ATTACHED("created"));
    struct client third = dial_as_user();
    ask(&third, ATTACH, held);
    hang_up(&third);
    ask(&second, CALL("Start"), EMPTY);
    hang_up(&second);
    assert_int_equal(fake.live_count, 1);
}

static void keeps_an_attached_session_to_its_connection(void **state)
{
    struct client owner = dial_as_user();
    struct client other = dial_as_user();
    char held[256];
    (void)state;
    (void)snprintf(held, sizeof held,
                   BAD_STATE("created", "the session belongs to the connection of pid %d and ends "
                                        "with it"),
                   (int)getpid());
    ask(&owner, CREATE, CREATED);
    ask(&other, ATTACH, held);
    ask(&owner, ATTACH, ATTACHED("created"));
    hang_up(&owner);
    assert_int_equal(fake.live_count, 0);
    ask(&other, ATTACH, BAD_STATE("none", "there is no session; call Create first"));
    hang_up(&other);
}

static void attaches_its_user_and_root_only(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        skip();
    }
    struct client owner = dial_as(60001);
    ask(&owner, CREATE_DETACHED, CREATED);
    hang_up(&owner);
    struct client other = dial_as(60002);
    ask(&other, ATTACH,
        ERROR(
            "PermissionDenied",
            "{\"text\":\"the session belongs to uid 60001, and only that user and root may attach "
            "to it; Status shows it to everybody (profctl status)\"}"));
    ask(&other, CALL("Close"), NO_SESSION);
    ask(&other, CREATE, ERROR("AlreadyExists", "{\"owner_uid\":60001,\"age_ms\":2500}"));
    hang_up(&other);
    owner = dial_as(60001);
    ask(&owner, ATTACH, ATTACHED("created"));
    hang_up(&owner);
    struct client root = dial();
    ask(&root, ATTACH, ATTACHED("created"));
    ask(&root, CALL("Start"), EMPTY);
    assert_int_equal(fake.owner.uid, 60001);
    ask(&root, CALL("Close"), EMPTY);
    assert_int_equal(fake.live_count, 0);
    hang_up(&root);
}

#define TAKEN_BY_ROOT                                                                              \
    "{\"error\":\"" SAMPLER                                                                        \
    "BadState\",\"parameters\":{\"state\":\"none\",\"text\":\"root (pid %d) "                      \
    "took the session from this connection; unless root closes it, Attach works again when "       \
    "root's connection has ended\"}}"

static void lets_root_take_any_session(void **state)
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
    char taken[512];
    (void)state;
    if (geteuid() != 0) {
        skip();
    }
    (void)snprintf(taken, sizeof taken, TAKEN_BY_ROOT, (int)getpid());
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct client owner = dial_as(60001);
        struct client other = dial_as(60002);
        struct client root = dial();
        ask(&owner, cases[i].create, CREATED);
        if (cases[i].state != SESSION_CREATED) {
            ask(&owner, CALL("Start"), EMPTY);
        }
        if (cases[i].state >= SESSION_STOPPING) {
            say(&owner, CALL("Stop"));
        }
        if (cases[i].state == SESSION_STOPPED) {
            fake_finish_stop("client");
            assert_string_equal(hear(&owner), STOPPED("client"));
        }
        say(&other, ATTACH);
        assert_non_null(strstr(hear(&other), "PermissionDenied"));
        ask(&root, ATTACH, cases[i].attached);
        assert_true(fake.owner.detached);
        if (cases[i].state == SESSION_STOPPING) {
            assert_string_equal(hear(&owner), taken); /* to its Stop */
        }
        ask(&owner, CALL("Read"), taken);
        ask(&owner, CALL("Close"), taken);
        say(&owner, ATTACH);
        assert_non_null(strstr(hear(&owner), "attach when it has ended"));
        hang_up(&owner); /* ends nothing */
        assert_int_equal(fake.live_count, 1);
        if (cases[i].state == SESSION_RUNNING) {
            say(&root, CALL("Stop"));
            fake_finish_stop("client");
            assert_string_equal(hear(&root), STOPPED("client"));
        }
        hang_up(&root); /* nor does this */
        assert_int_equal(fake.live_count, 1);
        owner = dial_as(60001);
        say(&owner, ATTACH);
        assert_null(strstr(hear(&owner), "error"));
        root = dial();
        say(&root, ATTACH);
        assert_null(strstr(hear(&root), "error"));
        ask(&root, CALL("Close"), EMPTY);
        assert_int_equal(fake.live_count, 0);
        ask(&owner, CALL("Read"), taken);
        ask(&owner, CREATE, CREATED);
        ask(&owner, CALL("Close"), EMPTY);
        ask(&owner, CALL("Read"), NO_SESSION);
        hang_up(&owner);
        hang_up(&other);
        hang_up(&root);
    }
}

static void stops_and_keeps_what_is_not_read(void **state)
{
    struct client client = dial_as_user();
    struct client other = dial_as_user();
    char lost[512];
    (void)state;
    (void)snprintf(lost, sizeof lost,
                   BAD_STATE("none", "the session was not read in time (max_unread_s), and another "
                                     "client of its user (pid %d) took it since; call Attach when "
                                     "that has ended"),
                   (int)getpid());
    ask(&client, CREATE, CREATED);
    ask(&client, CALL("Start"), EMPTY);
    /* As long as it is read it goes on. */
    for (unsigned i = 0; i < 4; i++) {
        pump_for_ms(SHORT_UNREAD_MS / 2);
        ask(&client, CALL("Read"),
            "{\"parameters\":{\"fd\":-1,\"size_bytes\":0,\"sequence\":0,\"end\":false}}");
    }
    assert_int_equal(session_state(fake.last), SESSION_RUNNING);
    assert_false(fake.owner.detached);
    pump_for_ms(SHORT_UNREAD_MS + 50);
    assert_int_equal(session_state(fake.last), SESSION_STOPPING);
    assert_string_equal(fake.stopped_by, "max_unread");
    assert_true(fake.owner.detached);
    fake_finish_stop("max_unread");

    /* A client that goes on finds it as it is; another one of its user may take it. */
    ask(&client, CALL("Stop"), STOPPED("max_unread"));
    ask(&other, ATTACH, ATTACHED("stopped"));
    ask(&client, CALL("Read"), lost);
    hang_up(&client);
    assert_int_equal(fake.live_count, 1);
    ask(&other, CALL("Start"), EMPTY); /* and must read it in time */
    pump_for_ms(SHORT_UNREAD_MS + 50);
    assert_int_equal(session_state(fake.last), SESSION_STOPPING);
    hang_up(&other);
    assert_int_equal(fake.live_count, 1);
    client = dial_as_user();
    ask(&client, ATTACH, ATTACHED("running"));
    ask(&client, CALL("Close"), EMPTY);

    /* One that stands still holds nothing for ever, started or not; a detached one is as before. */
    ask(&client, CREATE, CREATED);
    pump_for_ms(SHORT_UNREAD_MS + 50);
    assert_true(fake.owner.detached);
    ask(&client, CALL("Close"), EMPTY);
    ask(&client, CREATE_DETACHED, CREATED);
    ask(&client, CALL("Start"), EMPTY);
    pump_for_ms(SHORT_UNREAD_MS + 50);
    assert_int_equal(session_state(fake.last), SESSION_RUNNING);
    hang_up(&client);
}

/* Nobody waits for the end of a Stop any more, and it is not one by itself. */
static void finishes_a_stop_whose_connection_has_ended(void **state)
{
    (void)state;
    leave_a_session(SESSION_STOPPING);
    fake_finish_stop("client");
    struct client client = dial();
    ask(&client, ATTACH, ATTACHED("stopped"));
    ask(&client, CALL("Stop"), BAD_STATE("stopped", "the session does not run"));
    ask(&client, CALL("Start"), EMPTY);
    hang_up(&client);

    client = dial();
    ask(&client, ATTACH, ATTACHED("running"));
    say(&client, CALL("Stop"));
    hang_up(&client);
    client = dial();
    ask(&client, ATTACH, ATTACHED("running"));
    ask(&client, CALL("Start"), BAD_STATE("running", "the session runs already"));
    say(&client, CALL("Stop"));
    hear_nothing(&client);
    fake_finish_stop("client");
    assert_string_equal(hear(&client), STOPPED("client"));
    hang_up(&client);
}

static void does_what_a_client_asked_for_before_it_went(void **state)
{
    static const char calls[] = CREATE_DETACHED "\0" CALL("Start");
    static const char oneway[] = "{\"method\":\"" SAMPLER "Attach\",\"oneway\":true}\0"
                                 "{\"method\":\"" SAMPLER "Stop\",\"oneway\":true}";
    struct client client = dial();
    (void)state;
    fake.stops_at_once = true;
    ask(&client, CREATE_DETACHED, CREATED);
    ask(&client, CALL("Close"), EMPTY);
    assert_int_equal(send(client.fd, calls, sizeof calls, 0), sizeof calls);
    hang_up(&client);
    assert_int_equal(fake.live_count, 1);
    assert_int_equal(session_state(fake.last), SESSION_RUNNING);
    client = dial();
    assert_int_equal(send(client.fd, oneway, sizeof oneway, 0), sizeof oneway);
    hang_up(&client);
    assert_int_equal(session_state(fake.last), SESSION_STOPPED);
}

static void tells_whoever_attaches_that_a_session_ended_by_itself(void **state)
{
    (void)state;
    leave_a_session(SESSION_RUNNING);
    fake_finish_stop("max_duration");
    for (unsigned i = 0; i < 2; i++) {
        struct client client = dial();
        ask(&client, ATTACH, ATTACHED("stopped"));
        ask(&client, CALL("Stop"),
            i == 0 ? STOPPED("max_duration") : BAD_STATE("stopped", "the session does not run"));
        hang_up(&client);
    }
}

static void limits_detached_sessions_to_ten_minutes_of_sampling(void **state)
{
    struct client client = dial();
    (void)state;
    ask(&client, CREATE_DETACHED, CREATED);
    assert_int_equal(fake.config.max_duration_s, 600);
    ask(&client, CALL("Close"), EMPTY);
    ask(&client, CALL_WITH("Create", "{\"config\":{\"max_duration_s\":5},\"detach\":true}"),
        CREATED);
    assert_int_equal(fake.config.max_duration_s, 5);
    ask(&client, CALL("Close"), EMPTY);
    ask(&client, CREATE, CREATED);
    assert_int_equal(fake.config.max_duration_s, 0);
    hang_up(&client);
}

/* Serves until no session is left, however slow the machine is: that is not before `lease_ms` have
 * passed since `begin_ns`, a time before the last request. */
static void expect_end(uint64_t begin_ns, unsigned lease_ms)
{
    while (fake.live_count > 0) {
        pump_for_ms(10);
    }
    assert_true(clock_ns(CLOCK_MONOTONIC) - begin_ns >= lease_ms * NS_PER_MS);
}

static void ends_a_detached_session_that_is_never_started(void **state)
{
    (void)state;
    const uint64_t begin_ns = clock_ns(CLOCK_MONOTONIC);
    leave_a_session(SESSION_CREATED);
    expect_end(begin_ns, SHORT_LEASE_CREATED_MS);
}

static void ends_a_detached_session_some_time_after_it_has_stopped(void **state)
{
    (void)state;
    uint64_t begin_ns = clock_ns(CLOCK_MONOTONIC);
    leave_a_session(SESSION_STOPPED);
    expect_end(begin_ns, SHORT_LEASE_STOPPED_MS);

    leave_a_session(SESSION_RUNNING); /* which has no lease until it ends */
    pump_for_ms(SHORT_LEASE_STOPPED_MS * 3 / 2);
    fake_begin_own_stop();
    pump_for_ms(SHORT_LEASE_STOPPED_MS * 3 / 2);
    assert_int_equal(fake.live_count, 1);
    begin_ns = clock_ns(CLOCK_MONOTONIC);
    fake_finish_stop("max_duration");
    expect_end(begin_ns, SHORT_LEASE_STOPPED_MS);
}

/* Asks half a lease after `*begin_ns`, which becomes the time before this request. False: the
 * machine stood still for the other half, and the session may be gone. */
static bool ask_in_time(struct client *client, uint64_t *begin_ns, const char *text,
                        const char *reply)
{
    const uint64_t last_ns = *begin_ns;
    pump_for_ms(SHORT_LEASE_STOPPED_MS / 2);
    *begin_ns = clock_ns(CLOCK_MONOTONIC);
    say(client, text);
    const char *heard = hear(client);
    assert_non_null(heard);
    if (clock_ns(CLOCK_MONOTONIC) - last_ns >= SHORT_LEASE_STOPPED_MS * NS_PER_MS) {
        return false;
    }
    assert_string_equal(heard, reply);
    return true;
}

static void renews_a_lease_with_every_request(void **state)
{
    (void)state;
    uint64_t begin_ns = clock_ns(CLOCK_MONOTONIC);
    leave_a_session(SESSION_STOPPED);
    struct client client = dial();
    struct client watcher = dial();
    bool in_time = true;
    for (unsigned i = 0; i < 5 && in_time; i++) {
        in_time = ask_in_time(&client, &begin_ns, i % 2 == 1 ? CALL("Stop") : ATTACH,
                              i % 2 == 1 ? BAD_STATE("stopped", "the session does not run")
                                         : ATTACHED("stopped"));
    }
    /* To look at it is no request, and to hold it is none: this comes to an end. */
    while (fake.live_count > 0) {
        say(&watcher, CALL("Status"));
        assert_non_null(hear(&watcher));
        pump_for_ms(10);
    }
    if (in_time) {
        expect_end(begin_ns, SHORT_LEASE_STOPPED_MS);
    }
    ask(&client, CALL("Start"), NO_SESSION);
    hang_up(&watcher);
    hang_up(&client);
}

static void leaves_an_attached_session_as_long_as_its_connection(void **state)
{
    struct client client = dial();
    (void)state;
    fake.stops_at_once = true;
    ask(&client, CREATE, CREATED);
    pump_for_ms(SHORT_LEASE_CREATED_MS * 2);
    ask(&client, CALL("Start"), EMPTY);
    ask(&client, CALL("Stop"), STOPPED("client"));
    pump_for_ms(SHORT_LEASE_STOPPED_MS * 2);
    assert_int_equal(fake.live_count, 1);
    hang_up(&client);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, harness_setup, harness_teardown)
#define TEST_LEASE(name)                                                                           \
    cmocka_unit_test_setup_teardown(name, harness_setup_short_leases, harness_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(keeps_a_detached_session_when_its_connection_ends),
        TEST(says_why_it_does_not_attach),
        TEST(lets_one_connection_hold_a_session),
        TEST(keeps_an_attached_session_to_its_connection),
        TEST(attaches_its_user_and_root_only),
        TEST(lets_root_take_any_session),
        cmocka_unit_test_setup_teardown(stops_and_keeps_what_is_not_read,
                                        harness_setup_short_patience, harness_teardown),
        TEST(finishes_a_stop_whose_connection_has_ended),
        TEST(does_what_a_client_asked_for_before_it_went),
        TEST(tells_whoever_attaches_that_a_session_ended_by_itself),
        TEST(limits_detached_sessions_to_ten_minutes_of_sampling),
        TEST_LEASE(ends_a_detached_session_that_is_never_started),
        TEST_LEASE(ends_a_detached_session_some_time_after_it_has_stopped),
        TEST_LEASE(renews_a_lease_with_every_request),
        TEST_LEASE(leaves_an_attached_session_as_long_as_its_connection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
