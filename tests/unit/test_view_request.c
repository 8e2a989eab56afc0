/* SPDX-License-Identifier: Apache-2.0 */

/* Which requests get the file that `profctl view` serves, and what all others get. */
#include "view_request.h"

#include "unit_test.h"

#include <string.h>

#define TOKEN "00112233445566778899aabbccddeeff"
#define HOST  "Host: 127.0.0.1:4711\r\n"

static const struct view_site site = {
    .port = 4711,
    .token = TOKEN,
    .file_name = "profile.json",
    .origin = "https://viewer.example",
    .target = "https://viewer.example/from/http%3A",
};

/* Of a page that needs no viewer. */
static const struct view_site own_page = {.port = 4711, .token = TOKEN, .file_name = ""};

static struct view_answer answer_of(const struct view_site *asked, const char *request)
{
    struct view_answer answer;
    view_request_answer(asked, request, strlen(request), 1234, &answer);
    assert_true(answer.head_bytes < sizeof answer.head);
    assert_int_equal(answer.head_bytes, strlen(answer.head));
    return answer;
}

static struct view_answer answer_to(const char *request)
{
    return answer_of(&site, request);
}

/* Whether the answer has a status, and nothing that it should not. */
static bool is_status(const char *request, const char *status)
{
    struct view_answer answer = answer_to(request);
    bool is_ok = strcmp(status, "200") == 0;
    bool tells = strstr(answer.head, TOKEN) != NULL;
    return memcmp(answer.head, "HTTP/1.1 ", 9) == 0 && memcmp(answer.head + 9, status, 3) == 0 &&
           (is_ok || (!answer.has_file && !tells)) &&
           memcmp(answer.head + answer.head_bytes - 4, "\r\n\r\n", 4) == 0;
}

TEST(the_file_is_for_those_who_know_the_token)
{
    const struct {
        const char *request;
        const char *status;
    } cases[] = {
        {"GET /" TOKEN "/profile.json HTTP/1.1\r\n" HOST "\r\n", "200"},
        {"GET /" TOKEN "/profile.json HTTP/1.0\r\nhost:localhost:4711\t\r\n\r\n", "200"},
        {"HEAD /" TOKEN "/profile.json HTTP/1.1\r\n" HOST "\r\n", "200"},
        {"OPTIONS /" TOKEN "/profile.json HTTP/1.1\r\n" HOST "\r\n", "204"},
        {"GET /" TOKEN "/ HTTP/1.1\r\nAccept: */*\r\n" HOST "\r\n", "302"},
        {"GET / HTTP/1.1\r\n" HOST "\r\n", "404"},
        {"GET /profile.json HTTP/1.1\r\n" HOST "\r\n", "404"},
        {"GET /" TOKEN " HTTP/1.1\r\n" HOST "\r\n", "404"},
        {"GET /" TOKEN "/other HTTP/1.1\r\n" HOST "\r\n", "404"},
        {"GET /" TOKEN "/profile.json/../.. HTTP/1.1\r\n" HOST "\r\n", "404"},
        {"GET /00112233445566778899aabbccddeefe/profile.json HTTP/1.1\r\n" HOST "\r\n", "404"},
        {"GET /10112233445566778899aabbccddeeff/profile.json HTTP/1.1\r\n" HOST "\r\n", "404"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        if (!is_status(cases[i].request, cases[i].status)) {
            fail_msg("case %zu: %s", i, answer_to(cases[i].request).head);
        }
    }
}

TEST(a_request_for_another_host_gets_nothing)
{
    const char *const hosts[] = {
        "",
        "Host: 127.0.0.1\r\n",
        "Host: 127.0.0.1:4712\r\n",
        "Host: evil.example:4711\r\n",
        "Host: 127.0.0.1:4711.evil.example\r\n",
        "X-Host: 127.0.0.1:4711\r\n",
        "Host: evil.example:4711\r\n" HOST,
        HOST HOST,
    };
    for (size_t i = 0; i < COUNT_OF(hosts); i++) {
        char request[512];
        (void)snprintf(request, sizeof request, "GET /" TOKEN "/profile.json HTTP/1.1\r\n%s\r\n",
                       hosts[i]);
        assert_true(is_status(request, "403"));
    }
}

TEST(what_is_no_such_request_is_refused)
{
    assert_true(is_status("POST /" TOKEN "/profile.json HTTP/1.1\r\n" HOST "\r\n", "405"));
    assert_true(is_status("get /" TOKEN "/profile.json HTTP/1.1\r\n" HOST "\r\n", "405"));
    const char *const others[] = {"",
                                  "\r\n\r\n",
                                  "GET\r\n\r\n",
                                  "GET \r\n\r\n",
                                  "GET / HTTP/2\r\n\r\n",
                                  "GET HTTP/1.1\r\n\r\n",
                                  " HTTP/1.1\r\n\r\n",
                                  "GET  HTTP/1.1\r\n\r\n"};
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        assert_true(is_status(others[i], "400"));
    }
}

TEST(only_the_viewers_pages_may_read_the_file)
{
    const char *const methods[] = {"GET", "HEAD", "OPTIONS"};
    for (size_t i = 0; i < COUNT_OF(methods); i++) {
        char request[256];
        (void)snprintf(request, sizeof request,
                       "%s /" TOKEN "/profile.json HTTP/1.1\r\n" HOST "\r\n", methods[i]);
        struct view_answer answer = answer_to(request);
        assert_non_null(
            strstr(answer.head, "\r\nAccess-Control-Allow-Origin: https://viewer.example\r\n"));
        assert_int_equal(answer.has_file, i == 0);
        assert_int_equal(strstr(answer.head, "\r\nContent-Length: 1234\r\n") != NULL, i < 2);
    }
    struct view_answer page = answer_to("GET /" TOKEN "/ HTTP/1.1\r\n" HOST "\r\n");
    assert_non_null(strstr(page.head, "\r\nLocation: https://viewer.example/from/http%3A\r\n"));
}

TEST(a_head_ends_with_an_empty_line)
{
    const char text[] = "GET / HTTP/1.1\r\n" HOST "\r\nrest";
    size_t whole = sizeof text - 1 - strlen("rest");
    for (size_t bytes = 0; bytes < sizeof text; bytes++) {
        assert_int_equal(view_request_bytes(text, bytes), bytes < whole ? 0 : whole);
    }
}

TEST(a_page_of_its_own_is_read_by_no_other)
{
    static const struct {
        const char *request;
        const char *status;
        bool has_file;
    } cases[] = {
        {"GET /" TOKEN "/ HTTP/1.1\r\n" HOST "\r\n", "200", true},
        {"HEAD /" TOKEN "/ HTTP/1.1\r\n" HOST "\r\n", "200", false},
        {"OPTIONS /" TOKEN "/ HTTP/1.1\r\n" HOST "\r\n", "405", false},
        {"GET /" TOKEN "/ HTTP/1.1\r\nHost: evil.example\r\n\r\n", "403", false},
        {"GET /" TOKEN "/other HTTP/1.1\r\n" HOST "\r\n", "404", false},
        {"GET /favicon.ico HTTP/1.1\r\n" HOST "\r\n", "404", false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct view_answer answer = answer_of(&own_page, cases[i].request);
        assert_memory_equal(answer.head + strlen("HTTP/1.1 "), cases[i].status, 3);
        assert_int_equal(answer.has_file, cases[i].has_file);
        assert_null(strstr(answer.head, "Access-Control"));
        assert_null(strstr(answer.head, TOKEN));
        if (answer.has_file) {
            assert_contains(answer.head, "Content-Type: text/html; charset=utf-8\r\n");
            assert_contains(answer.head, "Content-Length: 1234\r\n");
        }
    }
}
