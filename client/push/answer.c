/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reads answers as OTLP has them, in protobuf or JSON, and what proxies say instead. An answer that
 * is no such one is no success: what stands at a wrong address would else swallow everything.
 */
#include "answer.h"

#include "cleanup.h"
#include "json.h"
#include "utf8.h"

#include <answer.pb-c.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define DEPTH_MAX   8
#define WHOLE_BYTES ((size_t)8192) /* longer than any header */
#define SHOWN_BYTES ((size_t)200)

enum {
    HTTP_OK = 200,
    HTTP_LAST_OK = 299,
    HTTP_LAST_REDIRECT = 399,
    HTTP_UNAUTHORIZED = 401,
    HTTP_FORBIDDEN = 403,
    HTTP_NOT_FOUND = 404,
    HTTP_NO_METHOD = 405,
    HTTP_PROXY_AUTHENTICATION = 407,
    HTTP_TIMEOUT = 408,
    HTTP_TOO_LARGE = 413,
    HTTP_TOO_MANY = 429,
    HTTP_SERVER = 500,
};

static bool is_type(const char *type, const char *wanted)
{
    size_t bytes = strlen(wanted);
    return type != NULL && strncasecmp(type, wanted, bytes) == 0 &&
           (type[bytes] == '\0' || strchr("; \t", type[bytes]) != NULL);
}

static bool is_protobuf(const struct http_answer *http)
{
    return is_type(http->type, "application/x-protobuf") ||
           is_type(http->type, "application/protobuf");
}

/* Where it goes: credentials are taken out, and the beginning of one where the text was cut. */
struct saying {
    struct answer *answer;
    const struct header_file *headers;
    bool is_cut;
};

static void say(const struct saying *to, const char *text, size_t text_bytes)
{
    struct answer *answer = to->answer;
    char whole[WHOLE_BYTES];
    char shown[SHOWN_BYTES];
    (void)utf8_shown(whole, sizeof whole, text, text_bytes);
    bool is_cut = to->is_cut || text_bytes >= sizeof whole;
    header_file_hide(to->headers, whole, sizeof whole);
    if (is_cut) {
        header_file_hide_beginning(to->headers, whole);
    }
    (void)utf8_shown(shown, sizeof shown, whole, strlen(whole));
    size_t used_bytes = strlen(answer->text);
    (void)snprintf(answer->text + used_bytes, sizeof answer->text - used_bytes, "%s%s",
                   used_bytes > 0 && shown[0] != '\0' ? ": " : "", shown);
}

/* What the store says is wrong with it. */
static void read_partial(const struct saying *to, int64_t rejected, const char *message)
{
    if (rejected > 0) {
        to->answer->kind = ANSWER_PARTLY;
        to->answer->rejected_profiles = (uint64_t)rejected;
    }
    say(to, message, strlen(message));
}

/* A number of JSON, or 64 bits of it as a text. */
static int64_t read_count(const cJSON *item)
{
    int64_t count = 0;
    if (cJSON_IsString(item)) {
        return strtoll(item->valuestring, NULL, 10);
    }
    return json_read_integer(item, 0, JSON_INTEGER_MAX, &count) ? count : 0;
}

static bool read_json(const struct http_answer *http, const struct saying *to)
{
    cleanup_(json_freep) cJSON *whole = NULL;
    if (json_parse(http->body, http->body_bytes, DEPTH_MAX, &whole, NULL) < 0 ||
        !cJSON_IsObject(whole)) {
        return false;
    }
    const cJSON *partial = cJSON_GetObjectItemCaseSensitive(whole, "partialSuccess");
    if (partial == NULL && cJSON_GetArraySize(whole) > 0) {
        return false;
    }
    const char *message =
        cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(partial, "errorMessage"));
    read_partial(to, read_count(cJSON_GetObjectItemCaseSensitive(partial, "rejectedProfiles")),
                 message == NULL ? "" : message);
    return true;
}

static bool read_message(const struct http_answer *http, const struct saying *to)
{
    Answer__Response *response =
        answer__response__unpack(NULL, http->body_bytes, (const uint8_t *)http->body);
    if (response == NULL) {
        return false;
    }
    if (response->partial_success != NULL) {
        read_partial(to, response->partial_success->rejected_profiles,
                     response->partial_success->error_message);
    }
    answer__response__free_unpacked(response, NULL);
    return true;
}

static void read_success(const struct http_answer *http, const struct saying *to)
{
    struct answer *ret = to->answer;
    bool is_read = !http->is_cut && !is_type(http->type, "text/html");
    ret->kind = ANSWER_ACCEPTED;
    if (is_read && http->body_bytes > 0) {
        is_read = is_protobuf(http)                         ? read_message(http, to)
                  : is_type(http->type, "application/json") ? read_json(http, to)
                                                            : false;
    }
    if (!is_read) {
        ret->kind = ANSWER_REFUSED;
        (void)snprintf(ret->text, sizeof ret->text,
                       "HTTP %ld, but the answer is not one of OTLP; is it the right address?",
                       http->status);
    }
}

static enum answer_kind kind_of(long status)
{
    switch (status) {
    case HTTP_UNAUTHORIZED:
    case HTTP_FORBIDDEN:
    case HTTP_NOT_FOUND:
    case HTTP_NO_METHOD:
    case HTTP_PROXY_AUTHENTICATION:
        return ANSWER_REFUSED;
    case HTTP_TOO_LARGE:
        return ANSWER_TOO_LARGE;
    case HTTP_TIMEOUT:
    case HTTP_TOO_MANY:
        return ANSWER_LATER;
    default:
        return status >= HTTP_SERVER          ? ANSWER_LATER
               : status <= HTTP_LAST_REDIRECT ? ANSWER_REFUSED
                                              : ANSWER_REJECTED;
    }
}

void answer_read(const struct http_answer *http, const struct header_file *headers,
                 struct answer *ret)
{
    const struct saying to = {ret, headers, http->is_cut};
    ret->text[0] = '\0';
    ret->rejected_profiles = 0;
    if (http->status >= HTTP_OK && http->status <= HTTP_LAST_OK) {
        read_success(http, &to);
        return;
    }
    ret->kind = kind_of(http->status);
    (void)snprintf(ret->text, sizeof ret->text, "HTTP %ld%s", http->status,
                   http->status == HTTP_UNAUTHORIZED && headers->count == 0
                       ? ": no credentials (--headers)"
                       : "");
    if (is_protobuf(http)) {
        Answer__Status *status =
            answer__status__unpack(NULL, http->body_bytes, (const uint8_t *)http->body);
        if (status != NULL) {
            say(&to, status->message, strlen(status->message));
            answer__status__free_unpacked(status, NULL);
        }
    } else {
        say(&to, http->body, strnlen(http->body, http->body_bytes));
    }
}
