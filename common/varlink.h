/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Varlink's framing: JSON texts, each ended by one NUL. Bytes in, messages out; knows no JSON and
 * no socket. Both sides of the control socket use it.
 */

#include <stddef.h>
#include <stdint.h>

#define VARLINK_MESSAGE_BYTES_MAX ((size_t)65536) /* with its NUL */

/* Collects what a socket gives and cuts it into messages. All zero is an empty one. */
struct varlink_input {
    char *bytes; /* owned; grows with what comes, up to VARLINK_MESSAGE_BYTES_MAX */
    size_t capacity_bytes;
    size_t used_bytes;
    size_t taken_bytes;   /* handed out already; dropped when room is wanted */
    size_t scanned_bytes; /* behind those, known to hold no NUL */
};

void varlink_input_done(struct varlink_input *input);

/*
 * Gives room to read into: `*ret_space` (borrowed until the next call) of `*ret_bytes` > 0.
 * Returns 0, -EMSGSIZE when a message without an end fills the limit (or whole ones that wait to be
 * taken do), -ENOMEM.
 */
int varlink_input_space(struct varlink_input *input, char **ret_space, size_t *ret_bytes);
/* Notes that `bytes` of that room have been filled. */
void varlink_input_filled(struct varlink_input *input, size_t bytes);

/*
 * Hands out the next whole message as a NUL-terminated string, borrowed until the next call.
 * Returns 1, 0 when there is none yet, -EBADMSG for an empty message.
 */
int varlink_input_next(struct varlink_input *input, const char **ret_text, size_t *ret_bytes);
