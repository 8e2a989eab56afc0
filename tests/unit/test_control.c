/* SPDX-License-Identifier: Apache-2.0 */

/* The control socket below the methods: connections, messages, limits, org.varlink.service. */
#include "control_harness.h"

#include <cjson/cJSON.h>
#include <sys/socket.h>

#define SERVICE "org.varlink.service."

CLIENT(answers_who_it_is)
{
    ask(client, "{\"method\":\"" SERVICE "GetInfo\"}",
        "{\"parameters\":{\"interfaces\":[\"org.varlink.service\",\"io.cpuprofilerd.Sampler\"],"
        "\"vendor\":\"cpu-profilerd\",\"product\":\"cpu-profilerd\",\"version\":"
        "\"" CPU_PROFILERD_VERSION "\",\"url\":\"\"}}");
}

/* The description must be the file, byte for byte. */
static void assert_description(struct client *client, const char *interface)
{
    char text[256];
    char *file_text = calloc(1, 16384);
    assert_non_null(file_text);
    (void)snprintf(text, sizeof text, TEST_DATA_DIR "/../../common/%s.varlink", interface);
    FILE *file = fopen(text, "r");
    assert_non_null(file);
    assert_true(fread(file_text, 1, 16383, file) > 0);
    assert_int_equal(fclose(file), 0);

    (void)snprintf(text, sizeof text,
                   "{\"method\":\"" SERVICE
                   "GetInterfaceDescription\",\"parameters\":{\"interface\":\"%s\"}}",
                   interface);
    say(client, text);
    cJSON *reply = cJSON_Parse(hear(client));
    const cJSON *parameters = cJSON_GetObjectItem(reply, "parameters");
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(parameters, "description")),
                        file_text);
    cJSON_Delete(reply);
    free(file_text);
}

CLIENT(serves_the_text_of_its_interfaces)
{
    assert_description(client, "io.cpuprofilerd.Sampler");
    assert_description(client, "org.varlink.service");
}

#define INVALID(name)                                                                              \
    "{\"error\":\"" SERVICE "InvalidParameter\",\"parameters\":{\"parameter\":\"" name "\"}}"

CLIENT(answers_wrong_calls_with_errors)
{
    static const struct {
        const char *call;
        const char *reply;
    } cases[] = {
        {"{\"method\":\"com.example.Foo\"}",
         "{\"error\":\"" SERVICE
         "InterfaceNotFound\",\"parameters\":{\"interface\":\"com.example\"}}"},
        {"{\"method\":\"" SAMPLER "Foo\"}",
         "{\"error\":\"" SERVICE "MethodNotFound\",\"parameters\":{\"method\":\"" SAMPLER
         "Foo\"}}"},
        {"{\"method\":\"" SERVICE "create\"}",
         "{\"error\":\"" SERVICE "MethodNotFound\",\"parameters\":{\"method\":\"" SERVICE
         "create\"}}"},
        {"{\"method\":\"Status\"}", INVALID("method")},
        {"{\"method\":\"" SAMPLER "Status\",\"flags\":1}", INVALID("flags")},
        {"{\"method\":\"" SAMPLER "Status\",\"method\":\"x\"}", INVALID("method")},
        {"{\"method\":\"" SAMPLER "Status\",\"more\":false,\"more\":false}", INVALID("more")},
        {"{\"method\":\"" SAMPLER "Status\",\"more\":1}", INVALID("more")},
        {"{\"method\":\"" SAMPLER "Status\",\"oneway\":null}", INVALID("oneway")},
        {"{\"method\":\"" SAMPLER "Status\",\"upgrade\":true}", INVALID("upgrade")},
        {CALL_WITH("Status", "[]"), INVALID("parameters")},
        {CALL_WITH("Status", "{\"verbose\":true}"), INVALID("verbose")},
        {CALL_WITH("Read", "{\"ack\":1,\"ack\":1}"), INVALID("ack")},
        {CALL_WITH("Read", "{\"ack\":-1}"), INVALID("ack")},
        {CALL_WITH("Read", "{\"ack\":1.5}"), INVALID("ack")},
        {CALL_WITH("Read", "{\"ack\":\"1\"}"), INVALID("ack")},
        {CALL("Create"), INVALID("config")},
        {CALL_WITH("Create", "{\"config\":null}"), INVALID("config")},
        {CALL_WITH("Create", "{\"config\":[]}"), INVALID("config")},
        {CALL_WITH("Create", "{\"config\":{},\"detach\":1}"), INVALID("detach")},
        {CALL_WITH("Create", "{\"configuration\":{}}"), INVALID("configuration")},
        {CALL_WITH("Attach", "{\"session\":7}"), INVALID("session")},
        {CALL_WITH("Attach", "{\"detach\":true}"), INVALID("detach")},
        {"{\"method\":\"" SERVICE "GetInterfaceDescription\"}", INVALID("interface")},
        {"{\"method\":\"" SERVICE
         "GetInterfaceDescription\",\"parameters\":{\"interface\":\"com.example\"}}",
         "{\"error\":\"" SERVICE
         "InterfaceNotFound\",\"parameters\":{\"interface\":\"com.example\"}}"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ask(client, cases[i].call, cases[i].reply);
    }
    assert_int_equal(fake.new_count, 0);
}

CLIENT(takes_null_for_an_absent_parameter)
{
    ask(client, "{\"method\":\"" SAMPLER "Close\",\"parameters\":null}", NO_SESSION);
    ask(client, CALL_WITH("Read", "{\"ack\":null}"), NO_SESSION);
    ask(client, CALL_WITH("Create", "{\"config\":{},\"detach\":null}"), CREATED);
}

STORY(cuts_off_a_peer_whose_messages_are_no_calls)
{
    static const char *const messages[] = {
        "",
        "x",
        "[]",
        "{}",
        "null",
        "{\"method\":1}",
        "{\"method\":\"" SAMPLER "Status\"} {}",
        "{\"method\":\"" SAMPLER "Status\",\"parameters\":{\"a\":\"\xff\"}}",
        "{\"method\":\"" SAMPLER "Status\\u0000\"}",
        CALL_WITH("Status", "[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]"),
    };
    struct client *other = dial();
    for (size_t i = 0; i < COUNT_OF(messages); i++) {
        struct client *client = dial();
        say(client, messages[i]);
        expect_closed(client);
    }
    ask(other, CALL("Start"), NO_SESSION);
}

CLIENT(cuts_off_a_message_without_an_end)
{
    char *message = malloc(VARLINK_MESSAGE_BYTES_MAX);
    assert_non_null(message);
    memset(message, ' ', VARLINK_MESSAGE_BYTES_MAX);
    /* With its NUL within the limit it is a message; white space around a call is allowed. */
    memcpy(message, CALL("Start"), strlen(CALL("Start")));
    message[VARLINK_MESSAGE_BYTES_MAX - 1] = '\0';
    say_bytes(client, message, VARLINK_MESSAGE_BYTES_MAX);
    expect_reply(client, NO_SESSION);
    memset(message, ' ', VARLINK_MESSAGE_BYTES_MAX);
    say_bytes(client, message, VARLINK_MESSAGE_BYTES_MAX);
    say_bytes(client, "", 1);
    expect_closed(client);
    free(message);
}

/* More calls than may be pending: the peer is held up, not cut off, and gets every reply. */
CLIENT(answers_a_thousand_calls_that_came_at_once)
{
    char *calls = malloc(1000 * sizeof CALL("Start"));
    assert_non_null(calls);
    for (size_t i = 0; i < 1000; i++) {
        memcpy(calls + i * sizeof CALL("Start"), CALL("Start"), sizeof CALL("Start"));
    }
    say_bytes(client, calls, 1000 * sizeof CALL("Start"));
    for (size_t i = 0; i < 1000; i++) {
        expect_reply(client, NO_SESSION);
    }
    hear_nothing(client);
    hang_up(client);
    free(calls);
}

STORY(cuts_off_a_peer_that_does_not_read)
{
    fake.books_bytes = 60000;
    struct client *client = dial_and_create(CREATE);
    for (unsigned i = 0; i < 16 && fake.live_count > 0; i++) {
        say(client, CALL("Status"));
    }
    assert_int_equal(fake.live_count, 0);
}

STORY(keeps_a_peer_that_reads_slowly)
{
    fake.books_bytes = 60000;
    struct client *client = dial_and_create(CREATE);
    for (unsigned round = 0; round < 8; round++) {
        for (unsigned i = 0; i < 4; i++) {
            say(client, CALL("Status"));
        }
        for (unsigned i = 0; i < 4; i++) {
            assert_true(strlen(hear(client)) > 60000);
        }
    }
}

CLIENT(replies_nothing_to_oneway_calls)
{
    static const char *const calls[] = {
        "{\"method\":\"" SAMPLER "Start\",\"oneway\":true}",
        "{\"method\":\"" SAMPLER "Status\",\"oneway\":true,\"more\":true}",
        "{\"method\":\"" SAMPLER "Nothing\",\"oneway\":true}",
        "{\"method\":\"" SAMPLER "Start\",\"oneway\":true,\"flags\":1}",
        "{\"oneway\":true,\"method\":\"" SAMPLER "Create\",\"parameters\":{\"config\":{}}}",
        "{\"method\":\"" SAMPLER "Start\",\"oneway\":true}",
        "{\"method\":\"" SAMPLER "Read\",\"oneway\":true}",
    };
    fake.ready_bytes = 100;
    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        say(client, calls[i]);
        hear_nothing(client);
    }
    ask(client, CALL("Start"),
        ERROR("BadState", "{\"state\":\"running\",\"text\":\"the session runs already\"}"));
}

CLIENT(answers_what_came_before_a_half_close)
{
    static const char calls[] = CREATE "\0" CALL("Start") "\0" CALL("Stop") "\0" CALL("Close");
    fake.stops_at_once = true;
    assert_int_equal(send(client->fd, calls, sizeof calls, 0), sizeof calls);
    assert_int_equal(shutdown(client->fd, SHUT_WR), 0);
    expect_reply(client, CREATED);
    expect_reply(client, EMPTY);
    expect_reply(client, STOPPED("client"));
    expect_reply(client, EMPTY);
    assert_null(hear(client));
}

STORY(serves_eight_connections_of_a_user)
{
    struct client *clients[8];
    for (size_t i = 0; i < 8; i++) {
        clients[i] = served(dial_as_user());
    }
    expect_closed(dial_as_user());
    hang_up(clients[3]);
    clients[3] = served(dial_as_user());
    for (size_t i = 0; i < 8; i++) {
        ask(clients[i], CALL("Start"), NO_SESSION);
    }
}

#define ENDED_FOR_ANOTHER                                                                          \
    ERROR("Failed", "{\"text\":\"this connection has been idle for longest, and its place was "    \
                    "needed for another one; connect anew\"}")

static void expect_end(struct client *client, const char *last)
{
    expect_reply(client, last);
    assert_null(hear(client));
}

/* Connects as several users, which takes root. */
STORY(has_a_place_for_a_user_without_any)
{
    struct client *clients[32];
    if (geteuid() != 0) {
        skip();
    }
    for (size_t i = 0; i < 32; i++) {
        clients[i] = served(dial_as((uid_t)(60000 + i / 8)));
    }
    /* The idlest of all has a session, the next one streams; the third idlest is of one that has
     * most of all, as all of them have. */
    ask(clients[0], CREATE, CREATED);
    say(clients[1], MORE_STATUS);
    assert_non_null(hear(clients[1]));
    for (size_t i = 3; i < 32; i++) {
        ask(clients[i], CALL("Start"), NO_SESSION);
    }
    (void)served(dial_as(60010));
    expect_end(clients[2], ENDED_FOR_ANOTHER);
    expect_closed(dial_as(60010)); /* it has one */
    expect_closed(dial_as(60000)); /* and so has this one */
    (void)served(dial_as(60011));
    expect_end(clients[8], ENDED_FOR_ANOTHER); /* of one that has eight yet */
    hear_nothing(clients[1]);
}

STORY(always_has_a_place_for_root)
{
    struct client *clients[32];
    struct client *roots[12];
    if (geteuid() != 0) {
        skip();
    }
    for (size_t i = 0; i < 32; i++) {
        clients[i] = dial_as((uid_t)(60000 + i / 8));
    }
    for (size_t i = 0; i < 12; i++) {
        roots[i] = served(dial());
    }
    for (size_t i = 0; i < 12; i++) {
        if (i < 4) {
            expect_end(roots[i], ENDED_FOR_ANOTHER); /* root has taken its own places */
        } else {
            ask(roots[i], CALL("Start"), NO_SESSION);
        }
        hang_up(roots[i]);
    }
    for (size_t i = 0; i < 32; i++) {
        ask(clients[i], CALL("Start"), NO_SESSION); /* and no other client's */
        hang_up(clients[i]);
    }
}

#define ENDED_IDLE                                                                                 \
    ERROR("Failed",                                                                                \
          "{\"text\":\"this connection has no session, and made no call for 60 s, so it "          \
          "was ended; connect anew\"}")

STORY(ends_connections_that_make_no_call)
{
    struct client *idle = dial();
    struct client *silent = dial();
    struct client *holder = dial();
    struct client *watcher = dial();
    struct client *caller = dial();
    ask(idle, CALL("Start"), NO_SESSION);
    ask(holder, CREATE, CREATED);
    say(watcher, MORE_STATUS);
    assert_non_null(hear(watcher));
    control_tick(harness.control);
    pump_for_ms(LEASE_IDLE_MS / 2);
    ask(caller, CALL("Start"), NO_SESSION);
    say_bytes(idle, "{", 1); /* is no call */
    pump_for_ms(LEASE_IDLE_MS / 2);
    control_tick(harness.control);
    ask(holder, CALL("Start"), EMPTY);
    expect_end(idle, ENDED_IDLE);
    expect_end(silent, ENDED_IDLE);
    assert_contains(hear(watcher), "\"continues\":true");
}
