/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Varlink's framing: JSON texts, each ended by one NUL. Bytes in, messages out; knows no JSON and
 * no socket. Both sides of the control socket use it.
 */

#include <stddef.h>
#include <stdint.h>

#define VARLINK_MESSAGE_BYTES_MAX ((size_t)65536) /* with its NUL */

/* Collects what a socket gives and cuts it into messages. */
struct varlink_input {
    char *bytes; /* owned; grows with what comes, up to VARLINK_MESSAGE_BYTES_MAX */
    size_t capacity_bytes;
    size_t used_bytes;
    size_t taken_bytes; /* of the message handed out last; dropped by the next call */
};

void varlink_input_done(struct varlink_input *input);

/*
 * Gives room to read into: `*ret_space` (borrowed until the next call) of `*ret_bytes` > 0.
 * Returns 0, -EMSGSIZE when a message without an end fills the limit, -ENOMEM.
 */
int varlink_input_space(struct varlink_input *input, char **ret_space, size_t *ret_bytes);
/* Notes that `bytes` of that room have been filled. */
void varlink_input_filled(struct varlink_input *input, size_t bytes);

/*
 * Hands out the next whole message as a NUL-terminated string, borrowed until the next call.
 * Returns 1, 0 when there is none yet, -EBADMSG for an empty message.
 */
int varlink_input_next(struct varlink_input *input, const char **ret_text, size_t *ret_bytes);
