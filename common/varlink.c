/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Splits a byte stream into NUL-terminated messages. One buffer has, in this order, the messages
 * that were returned (taken), the bytes that were searched for a NUL (scanned), and the rest. Bytes
 * do not move while messages are returned, and no byte is searched twice. So the cost is linear in
 * the bytes of a peer, however it splits them. The caller parses the JSON in a message.
 */
#include "varlink.h"

#include "grow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_CAPACITY_BYTES ((size_t)4096)

void varlink_input_done(struct varlink_input *input)
{
    free(input->bytes);
    *input = (struct varlink_input){0};
}

static void drop_taken(struct varlink_input *input)
{
    if (input->taken_bytes > 0) {
        input->used_bytes -= input->taken_bytes;
        memmove(input->bytes, input->bytes + input->taken_bytes, input->used_bytes);
        input->taken_bytes = 0;
    }
}

int varlink_input_space(struct varlink_input *input, char **ret_space, size_t *ret_bytes)
{
    drop_taken(input);
    if (input->used_bytes == VARLINK_MESSAGE_BYTES_MAX) {
        return -EMSGSIZE;
    }
    if (grow_from(input->bytes, input->capacity_bytes, input->used_bytes + 1,
                  FIRST_CAPACITY_BYTES) < 0) {
        return -ENOMEM;
    }
    *ret_space = input->bytes + input->used_bytes;
    *ret_bytes = input->capacity_bytes - input->used_bytes;
    return 0;
}

void varlink_input_filled(struct varlink_input *input, size_t bytes)
{
    input->used_bytes += bytes;
}

int varlink_input_next(struct varlink_input *input, const char **ret_text, size_t *ret_bytes)
{
    if (input->used_bytes == input->taken_bytes) {
        return 0;
    }
    const char *start = input->bytes + input->taken_bytes;
    size_t waiting_bytes = input->used_bytes - input->taken_bytes;
    const char *nul =
        memchr(start + input->scanned_bytes, '\0', waiting_bytes - input->scanned_bytes);
    if (nul == NULL) {
        input->scanned_bytes = waiting_bytes;
        return 0;
    }
    if (nul == start) {
        return -EBADMSG;
    }
    *ret_text = start;
    *ret_bytes = (size_t)(nul - start);
    input->taken_bytes += *ret_bytes + 1;
    input->scanned_bytes = 0;
    return 1;
}
