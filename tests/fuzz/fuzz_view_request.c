/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Any bytes: the head of a request, if they have one, is within them, and its answer is a whole
 * one. The file goes only to a request that has the token and names this machine as its host, and
 * no line of an answer is the request's.
 */
#include "fuzz_target.h"
#include "view_request.h"

#include <stdlib.h>
#include <string.h>

#define TOKEN "0123456789abcdef0123456789abcdef"

static bool has(const char *text, size_t bytes, const char *part)
{
    return memmem(text, bytes, part, strlen(part)) != NULL;
}

static void check_answer(const struct view_answer *answer, const char *head, size_t head_bytes)
{
    static const char end[] = "\r\n\r\n";
    size_t end_bytes = sizeof end - 1;
    if (answer->head_bytes < end_bytes || answer->head_bytes > sizeof answer->head ||
        memcmp(answer->head, "HTTP/1.1 ", 9) != 0 ||
        memcmp(answer->head + answer->head_bytes - end_bytes, end, end_bytes) != 0 ||
        memmem(answer->head, answer->head_bytes - 1, end, end_bytes) != NULL) {
        abort();
    }
    if (answer->has_file && (!has(head, head_bytes, TOKEN) || !has(head, head_bytes, "4711"))) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const struct view_site site = {
        .port = 4711,
        .token = TOKEN,
        .file_name = "profile.json",
        .origin = "https://viewer.example",
        .target = "https://viewer.example/from-url/",
    };
    struct view_answer answer = {0};
    char *text = malloc(size + 1);
    if (text == NULL) {
        return 0;
    }
    memcpy(text, bytes, size);
    size_t head_bytes = view_request_bytes(text, size);
    if (head_bytes > size) {
        abort();
    }
    if (head_bytes > 0 && head_bytes <= VIEW_HEAD_BYTES) {
        view_request_answer(&site, text, head_bytes, size, &answer);
        check_answer(&answer, text, head_bytes);
    }
    free(text);
    return 0;
}
