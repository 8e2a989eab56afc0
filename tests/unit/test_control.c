/* SPDX-License-Identifier: Apache-2.0 */

/* The control socket below the methods: connections, messages, limits, org.varlink.service. */
#include "control_harness.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <sys/socket.h>

#define SERVICE "org.varlink.service."

static void answers_who_it_is(void **state)
{
    struct client client = dial();
    (void)state;
    ask(&client, "{\"method\":\"" SERVICE "GetInfo\"}",
        "{\"parameters\":{\"interfaces\":[\"org.varlink.service\",\"io.cpuprofilerd.Sampler\"],"
        "\"vendor\":\"cpu-profilerd\",\"product\":\"cpu-profilerd\",\"version\":"
        "\"" CPU_PROFILERD_VERSION "\",\"url\":\"\"}}");
    hang_up(&client);
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

static void serves_the_text_of_its_interfaces(void **state)
{
    struct client client = dial();
    (void)state;
    assert_description(&client, "io.cpuprofilerd.Sampler");
    assert_description(&client, "org.varlink.service");
    hang_up(&client);
}

#define INVALID(name)                                                                              \
    "{\"error\":\"" SERVICE "InvalidParameter\",\"parameters\":{\"parameter\":\"" name "\"}}"

static void answers_wrong_calls_with_errors(void **state)
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
    struct client client = dial();
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ask(&client, cases[i].call, cases[i].reply);
    }
    assert_int_equal(fake.new_count, 0);
    hang_up(&client);
}

static void takes_null_for_an_absent_parameter(void **state)
{
    struct client client = dial();
    (void)state;
    ask(&client, "{\"method\":\"" SAMPLER "Close\",\"parameters\":null}", NO_SESSION);
    ask(&client, CALL_WITH("Read", "{\"ack\":null}"), NO_SESSION);
    ask(&client, CALL_WITH("Create", "{\"config\":{},\"detach\":null}"), CREATED);
    hang_up(&client);
}

static void cuts_off_a_peer_whose_messages_are_no_calls(void **state)
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
    struct client other = dial();
    (void)state;
    for (size_t i = 0; i < sizeof messages / sizeof messages[0]; i++) {
        struct client client = dial();
        say(&client, messages[i]);
        assert_null(hear(&client));
        hang_up(&client);
    }
    ask(&other, CALL("Start"), NO_SESSION);
    hang_up(&other);
}

static void cuts_off_a_message_without_an_end(void **state)
{
    struct client client = dial();
    char *message = malloc(VARLINK_MESSAGE_BYTES_MAX);
    (void)state;
    assert_non_null(message);
    memset(message, ' ', VARLINK_MESSAGE_BYTES_MAX);
    /* With its NUL within the limit it is a message; white space around a call is allowed. */
    memcpy(message, CALL("Start"), strlen(CALL("Start")));
    message[VARLINK_MESSAGE_BYTES_MAX - 1] = '\0';
    say_bytes(&client, message, VARLINK_MESSAGE_BYTES_MAX);
    assert_string_equal(hear(&client), NO_SESSION);
    memset(message, ' ', VARLINK_MESSAGE_BYTES_MAX);
    say_bytes(&client, message, VARLINK_MESSAGE_BYTES_MAX);
    say_bytes(&client, "", 1);
    assert_null(hear(&client));
    hang_up(&client);
    free(message);
}

static void takes_a_message_byte_by_byte(void **state)
{
    struct client client = dial();
    (void)state;
    for (size_t i = 0; i < sizeof CREATE; i++) {
        hear_nothing(&client);
        say_bytes(&client, &CREATE[i], 1);
    }
    assert_string_equal(hear(&client), CREATED);
    hang_up(&client);
}

static void takes_calls_that_came_at_once_in_their_order(void **state)
{
    static const char calls[] = CREATE "\0" CALL("Start") "\0" CALL("Start") "\0" CALL("Close");
    struct client client = dial();
    (void)state;
    say_bytes(&client, calls, sizeof calls);
    assert_string_equal(hear(&client), CREATED);
    assert_string_equal(hear(&client), EMPTY);
    assert_string_equal(
        hear(&client),
        ERROR("BadState", "{\"state\":\"running\",\"text\":\"the session runs already\"}"));
    assert_string_equal(hear(&client), EMPTY);
    hang_up(&client);
}

/* More calls than may be pending: the peer is held up, not cut off, and gets every reply. */
static void answers_a_thousand_calls_that_came_at_once(void **state)
{
    struct client client = dial();
    char *calls = malloc(1000 * sizeof CALL("Start"));
    (void)state;
    assert_non_null(calls);
    for (size_t i = 0; i < 1000; i++) {
        memcpy(calls + i * sizeof CALL("Start"), CALL("Start"), sizeof CALL("Start"));
    }
    say_bytes(&client, calls, 1000 * sizeof CALL("Start"));
    for (size_t i = 0; i < 1000; i++) {
        const char *reply = hear(&client);
        assert_string_equal(reply == NULL ? "(closed)" : reply, NO_SESSION);
    }
    hear_nothing(&client);
    hang_up(&client);
    free(calls);
}

static void cuts_off_a_peer_that_does_not_read(void **state)
{
    struct client client = dial();
    (void)state;
    fake.books_bytes = 60000;
    ask(&client, CREATE, CREATED);
    for (unsigned i = 0; i < 16 && fake.live_count > 0; i++) {
        say(&client, CALL("Status"));
    }
    assert_int_equal(fake.live_count, 0);
    hang_up(&client);
}

static void keeps_a_peer_that_reads_slowly(void **state)
{
    struct client client = dial();
    (void)state;
    fake.books_bytes = 60000;
    ask(&client, CREATE, CREATED);
    for (unsigned round = 0; round < 8; round++) {
        for (unsigned i = 0; i < 4; i++) {
            say(&client, CALL("Status"));
        }
        for (unsigned i = 0; i < 4; i++) {
            assert_true(strlen(hear(&client)) > 60000);
        }
    }
    hang_up(&client);
}

static void replies_nothing_to_oneway_calls(void **state)
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
    struct client client = dial();
    (void)state;
    fake.ready_bytes = 100;
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        say(&client, calls[i]);
        hear_nothing(&client);
    }
    ask(&client, CALL("Start"),
        ERROR("BadState", "{\"state\":\"running\",\"text\":\"the session runs already\"}"));
    hang_up(&client);
}

static void answers_what_came_before_a_half_close(void **state)
{
    static const char calls[] = CREATE "\0" CALL("Start") "\0" CALL("Stop") "\0" CALL("Close");
    struct client client = dial();
    (void)state;
    fake.stops_at_once = true;
    assert_int_equal(send(client.fd, calls, sizeof calls, 0), sizeof calls);
    assert_int_equal(shutdown(client.fd, SHUT_WR), 0);
    assert_string_equal(hear(&client), CREATED);
    assert_string_equal(hear(&client), EMPTY);
    assert_string_equal(hear(&client), STOPPED("client"));
    assert_string_equal(hear(&client), EMPTY);
    assert_null(hear(&client));
    hang_up(&client);
}

static void serves_a_thousand_connections_one_after_the_other(void **state)
{
    unsigned fd_count = count_fds();
    (void)state;
    for (unsigned i = 0; i < 1000; i++) {
        struct client client = dial();
        ask(&client, CALL("Start"), NO_SESSION);
        hang_up(&client);
    }
    assert_int_equal(count_fds(), fd_count);
}

static void serves_eight_connections_of_a_user(void **state)
{
    struct client clients[8];
    (void)state;
    for (size_t i = 0; i < 8; i++) {
        clients[i] = dial();
        ask(&clients[i], CALL("Start"), NO_SESSION);
    }
    struct client refused = dial();
    assert_null(hear(&refused));
    hang_up(&refused);
    hang_up(&clients[3]);
    clients[3] = dial();
    ask(&clients[3], CALL("Start"), NO_SESSION);
    for (size_t i = 0; i < 8; i++) {
        hang_up(&clients[i]);
    }
}

/* Connects as several users, which takes root. */
static void serves_thirty_two_connections_in_all(void **state)
{
    struct client clients[33];
    (void)state;
    if (geteuid() != 0) {
        skip();
    }
    for (size_t i = 0; i < 33; i++) {
        clients[i] = dial_as((uid_t)(60000 + i / 8));
    }
    assert_null(hear(&clients[32]));
    for (size_t i = 0; i < 32; i++) {
        ask(&clients[i], CALL("Start"), NO_SESSION);
    }
    for (size_t i = 0; i < 33; i++) {
        hang_up(&clients[i]);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, harness_setup, harness_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(answers_who_it_is),
        TEST(serves_the_text_of_its_interfaces),
        TEST(answers_wrong_calls_with_errors),
        TEST(takes_null_for_an_absent_parameter),
        TEST(cuts_off_a_peer_whose_messages_are_no_calls),
        TEST(cuts_off_a_message_without_an_end),
        TEST(takes_a_message_byte_by_byte),
        TEST(takes_calls_that_came_at_once_in_their_order),
        TEST(answers_a_thousand_calls_that_came_at_once),
        TEST(cuts_off_a_peer_that_does_not_read),
        TEST(keeps_a_peer_that_reads_slowly),
        TEST(replies_nothing_to_oneway_calls),
        TEST(answers_what_came_before_a_half_close),
        TEST(serves_a_thousand_connections_one_after_the_other),
        TEST(serves_eight_connections_of_a_user),
        TEST(serves_thirty_two_connections_in_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
