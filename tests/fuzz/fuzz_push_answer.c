/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Any answer of a store is of some kind, and what is shown of it is fit to be shown: it ends, has
 * no control character, and nothing of the credential that was sent. The first byte says the
 * status, the second the type of the content.
 */
#include "answer.h"
#include "fuzz_target.h"

#include <stdlib.h>
#include <string.h>

#define SECRET "0123456789abcdef"

static const long statuses[] = {200, 202, 301, 400, 401, 408, 413, 429, 500, 503};
static const char *const types[] = {"application/x-protobuf", "application/json", "text/html",
                                    NULL};

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

static void check(const struct answer *answer)
{
    if (memchr(answer->text, '\0', sizeof answer->text) == NULL ||
        strstr(answer->text, SECRET) != NULL ||
        (answer->rejected_profiles > 0) != (answer->kind == ANSWER_PARTLY)) {
        abort();
    }
    for (const char *at = answer->text; *at != '\0'; at++) {
        if ((unsigned char)*at < ' ' || *at == 0x7f) {
            abort();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const struct header_file headers = {.lines = {"Authorization: Bearer " SECRET}, .count = 1};
    struct answer answer = {0};
    if (size < 2) {
        return 0;
    }
    const size_t body_bytes = size - 2;
    char *body = malloc(body_bytes + 1); /* of exactly so many bytes, and the end of a text */
    if (body == NULL) {
        return 0;
    }
    memcpy(body, bytes + 2, body_bytes);
    body[body_bytes] = '\0';
    const struct http_answer http = {
        .status = statuses[bytes[0] % COUNT_OF(statuses)],
        .type = types[bytes[1] % COUNT_OF(types)],
        .body = body,
        .body_bytes = body_bytes,
        .is_cut = (bytes[0] & 0x80) != 0,
    };
    answer_read(&http, &headers, &answer);
    check(&answer);
    free(body);
    return 0;
}
