/* SPDX-License-Identifier: Apache-2.0 */

/* What the service manager asks of control: who may, what it is doing, and how it ends. */
#include "control_harness.h"

#include <grp.h>

#define OTHER_UID 65534
#define NOT_LISTED                                                                                 \
    ERROR("PermissionDenied", "{\"text\":\"uid 65534 is not in allowed_uids, and none of its "     \
                              "groups in allowed_gids, of daemon.json; the administrator can put " \
                              "it there\"}")
#define ENDING                                                                                     \
    ERROR("Failed", "{\"text\":\"the daemon is ending: what was recorded can be read yet, and "    \
                    "nothing new begins; try again when it is back\"}")

static void assert_describes(const char *begin)
{
    struct control_line line = control_describe(harness.control);
    if (strncmp(line.text, begin, strlen(begin)) != 0) {
        fail_msg("'%s', and not '%s'", line.text, begin);
    }
}

STORY(refuses_every_call_of_who_is_not_listed)
{
    static const char *const calls[] = {CREATE,       CALL("Attach"), CALL("Start"), CALL("Stop"),
                                        CALL("Read"), CALL("Close"),  CALL("Status")};
    if (geteuid() != 0) {
        skip();
    }
    harness.config.has_allow_list = true;
    struct client *client = dial_as(OTHER_UID);
    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        ask(client, calls[i], NOT_LISTED);
    }
    say(client, "{\"method\":\"org.varlink.service.GetInfo\"}");
    assert_contains(hear(client), "\"vendor\"");
    assert_int_equal(fake.new_count, 0);
    hang_up(client);
    /* Root is never locked out. */
    client = dial_and_create(CREATE);
}

STORY(admits_who_is_listed_by_uid_or_group)
{
    static const gid_t before[] = {0};
    gid_t many[100];
    if (geteuid() != 0) {
        skip();
    }
    harness.config.has_allow_list = true;
    harness.config.allowed_uids = (struct daemon_ids){{OTHER_UID}, 1};
    struct client *client = dial_as(OTHER_UID);
    ask(client, CREATE, CREATED);
    hang_up(client);

    /* The last of more groups than are asked for at first. */
    harness.config.allowed_uids.count = 0;
    harness.config.allowed_gids = (struct daemon_ids){{4321}, 1};
    for (gid_t i = 0; i < 100; i++) {
        many[i] = 4222 + i;
    }
    assert_int_equal(setgroups(100, many), 0);
    client = dial_as(OTHER_UID);
    assert_int_equal(setgroups(1, before), 0);
    /* As it was when it connected. */
    ask(client, CREATE, CREATED);
    hang_up(client);
    client = dial_as(OTHER_UID);
    ask(client, CREATE, NOT_LISTED);
    hang_up(client);

    harness.config.allowed_gids.ids[0] = 4400;
    assert_int_equal(setegid(4400), 0);
    client = dial_as(OTHER_UID);
    assert_int_equal(setegid(0), 0);
    ask(client, CREATE, CREATED);
}

CLIENT(holds_sessions_to_the_limits)
{
    harness.config.has_max_frequency = true;
    harness.config.limits.max_frequency_hz = 99;
    harness.config.limits.max_duration_s = 30;
    ask(client, CALL_WITH("Create", "{\"config\":{\"frequency_hz\":100}}"),
        ERROR("InvalidArgs", "{\"member\":\"frequency_hz\",\"text\":\"is above the administrator's "
                             "limit; at most 99 is allowed (max_frequency_hz in daemon.json)\"}"));
    assert_int_equal(fake.new_count, 0);
    ask(client, CREATE, CREATED);
    assert_int_equal(fake.config.frequency_hz, 99);
    assert_int_equal(fake.config.max_duration_s, 30);
}

STORY(holds_members_to_ten_thousand_hertz)
{
    struct client *member = dial_as(OTHER_UID);
    struct client *root = dial();
    ask(member, CALL_WITH("Create", "{\"config\":{\"frequency_hz\":20000}}"),
        ERROR("InvalidArgs",
              "{\"member\":\"frequency_hz\",\"text\":\"is more than users other than "
              "root may ask for; at most 10000 is allowed, unless max_frequency_hz "
              "in daemon.json says more\"}"));
    assert_int_equal(fake.new_count, 0);
    ask(root, CALL_WITH("Create", "{\"config\":{\"frequency_hz\":20000}}"), CREATED);
    assert_int_equal(fake.config.frequency_hz, 20000);
}

STORY(says_what_it_is_doing)
{
    assert_describes("idle, no session");
    assert_true(control_is_idle(harness.control));
    struct client *client = dial();
    assert_false(control_is_idle(harness.control));
    ask(client, CALL_WITH("Create", "{\"config\":{\"frequency_hz\":4000},\"detach\":true}"),
        CREATED);
    assert_describes(spell("a session of uid %u that has not", geteuid()));
    ask(client, CALL("Start"), EMPTY);
    assert_describes(spell("recording at 4000 Hz for uid %u since 20", geteuid()));
    fake_finish_stop("max_duration");
    assert_describes(spell("a session of uid %u that has stopped", geteuid()));
    hang_up(client);
    assert_false(control_is_idle(harness.control));
}

CLIENT(knows_for_how_long_a_collector_is_silent)
{
    fake.silent_ns = 5;
    assert_int_equal(control_silent_ns(harness.control), 0);
    ask(client, CREATE, CREATED);
    assert_int_equal(control_silent_ns(harness.control), 5);
}

CLIENT(ends_at_once_without_anything_to_serve)
{
    assert_true(control_has_ended(harness.control));
    ask(client, CREATE, CREATED);
    control_begin_end(harness.control);
    assert_int_equal(fake.live_count, 0);
    assert_true(control_has_ended(harness.control));
    ask(client, CALL("Start"), NO_SESSION);
}

STORY(serves_an_attached_reader_until_it_closes)
{
    fake.stops_at_once = true;
    fake.ready_bytes = 8;
    struct client *client = dial_and_start(CREATE);
    control_begin_end(harness.control);
    assert_string_equal(fake.stopped_by, "shutdown");
    pump();
    assert_false(control_has_ended(harness.control));
    ask(client, CREATE, ENDING);
    ask(client, CALL("Start"), ENDING);
    ask(client, CALL("Stop"), STOPPED("shutdown"));
    ask(client, CALL("Read"), CHUNK("8", "1", "true"));
    assert_false(control_has_ended(harness.control));
    /* A client that closes has what it has read. */
    ask(client, CALL("Close"), EMPTY);
    assert_int_equal(fake.acknowledged_count, 1);
    assert_true(control_has_ended(harness.control));
}

CLIENT(serves_a_detached_session_until_it_is_read)
{
    struct client *reader;
    fake.stops_at_once = true;
    fake.ready_bytes = 8;
    ask(client, CREATE_DETACHED, CREATED);
    ask(client, CALL("Start"), EMPTY);
    hang_up(client);
    control_begin_end(harness.control);
    pump();
    assert_false(control_has_ended(harness.control));
    reader = dial();
    ask(reader, CALL("Attach"), ATTACHED("stopped"));
    ask(reader, CALL("Read"), CHUNK("8", "1", "true"));
    /* A byte that was handed out has not arrived yet. */
    hang_up(reader);
    assert_false(control_has_ended(harness.control));
    reader = dial();
    ask(reader, CALL("Attach"), ATTACHED("stopped"));
    ask(reader, READ("1"), NO_CHUNK("true"));
    hang_up(reader);
    assert_true(control_has_ended(harness.control));
}

STORY(ends_with_the_connection_of_an_attached_session)
{
    struct client *client = dial_and_start(CREATE);
    control_begin_end(harness.control);
    assert_false(control_has_ended(harness.control));
    hang_up(client);
    assert_true(control_has_ended(harness.control));
}
