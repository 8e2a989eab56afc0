/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What is answered to the head of an HTTP request. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VIEW_TOKEN_BYTES  33 /* hexadecimal digits of 16 random bytes, and a NUL */
#define VIEW_HEAD_BYTES   8192
#define VIEW_ANSWER_BYTES 1024

/* What is served, and where. */
struct view_site {
    uint16_t port;
    char token[VIEW_TOKEN_BYTES];
    const char *file_name;
    const char *origin; /* of the viewer; NULL: the file is a page that needs none */
    const char *target; /* the viewer's address, with the file's in it; not of such a page */
};

struct view_answer {
    char head[VIEW_ANSWER_BYTES];
    size_t head_bytes;
    bool has_file; /* the file follows the head */
};

/* The bytes of a request's head, with the empty line that ends it; 0: there is more to come. */
size_t view_request_bytes(const char *text, size_t bytes);

/* The answer to a head (not ended by a NUL); `file_bytes` is the size of the file. */
void view_request_answer(const struct view_site *site, const char *head, size_t head_bytes,
                         uint64_t file_bytes, struct view_answer *ret);
