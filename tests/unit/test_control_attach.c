/* SPDX-License-Identifier: Apache-2.0 */

/* Detached sessions: who may hold one, and when it ends by itself. */
#include "control_harness.h"

#include <stdio.h>

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

static void lets_one_connection_hold_a_session(void **state)
{
    static const char *const calls[] = {CALL("Start"), CALL("Stop"), CALL("Read"), CALL("Close")};
    struct client first = dial();
    struct client second = dial();
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
    struct client third = dial();
    ask(&third, ATTACH, held);
    hang_up(&third);
    ask(&second, CALL("Start"), EMPTY);
    hang_up(&second);
    assert_int_equal(fake.live_count, 1);
}

static void keeps_an_attached_session_to_its_connection(void **state)
{
    struct client owner = dial();
    struct client other = dial();
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

static void ends_a_detached_session_that_is_never_started(void **state)
{
    (void)state;
    leave_a_session(SESSION_CREATED);
    pump_for_ms(SHORT_LEASE_CREATED_MS / 2);
    assert_int_equal(fake.live_count, 1);
    pump_for_ms(SHORT_LEASE_CREATED_MS);
    assert_int_equal(fake.live_count, 0);
}

static void ends_a_detached_session_some_time_after_it_has_stopped(void **state)
{
    (void)state;
    leave_a_session(SESSION_STOPPED);
    pump_for_ms(SHORT_LEASE_CREATED_MS * 3 / 2);
    assert_int_equal(fake.live_count, 1);
    pump_for_ms(SHORT_LEASE_STOPPED_MS);
    assert_int_equal(fake.live_count, 0);

    leave_a_session(SESSION_RUNNING); /* which has no lease until it ends */
    pump_for_ms(SHORT_LEASE_STOPPED_MS * 3 / 2);
    fake_begin_own_stop();
    pump_for_ms(SHORT_LEASE_STOPPED_MS * 3 / 2);
    assert_int_equal(fake.live_count, 1);
    fake_finish_stop("max_duration");
    pump_for_ms(SHORT_LEASE_STOPPED_MS / 2);
    assert_int_equal(fake.live_count, 1);
    pump_for_ms(SHORT_LEASE_STOPPED_MS);
    assert_int_equal(fake.live_count, 0);
}

static void renews_a_lease_with_every_request(void **state)
{
    (void)state;
    leave_a_session(SESSION_STOPPED);
    struct client client = dial();
    struct client watcher = dial();
    ask(&client, ATTACH, ATTACHED("stopped"));
    for (unsigned i = 0; i < 4; i++) {
        pump_for_ms(SHORT_LEASE_STOPPED_MS / 2);
        ask(&client, i % 2 == 0 ? CALL("Stop") : ATTACH,
            i % 2 == 0 ? BAD_STATE("stopped", "the session does not run") : ATTACHED("stopped"));
    }
    /* To look at it is no request, and to hold it is none. */
    pump_for_ms(SHORT_LEASE_STOPPED_MS / 2);
    say(&watcher, CALL("Status"));
    assert_non_null(hear(&watcher));
    pump_for_ms(SHORT_LEASE_STOPPED_MS);
    assert_int_equal(fake.live_count, 0);
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
        TEST(finishes_a_stop_whose_connection_has_ended),
        TEST(tells_whoever_attaches_that_a_session_ended_by_itself),
        TEST(limits_detached_sessions_to_ten_minutes_of_sampling),
        TEST_LEASE(ends_a_detached_session_that_is_never_started),
        TEST_LEASE(ends_a_detached_session_some_time_after_it_has_stopped),
        TEST_LEASE(renews_a_lease_with_every_request),
        TEST_LEASE(leaves_an_attached_session_as_long_as_its_connection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
