/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What an HTTP answer means for what was sent. */

#include "header_file.h"
#include "transport.h"

#include <stddef.h>

struct http_answer {
    long status;
    const char *type; /* of the content; NULL: it has none. Borrowed, as the next */
    const char *body;
    size_t body_bytes;
    bool is_cut; /* the body was longer */
};

/* Fills the kind, the rejected profiles and the text, in which nothing of `headers` is. */
void answer_read(const struct http_answer *http, const struct header_file *headers,
                 struct answer *ret);
