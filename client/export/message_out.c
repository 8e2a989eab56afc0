/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Packs a message into a buffer that grows with the largest one, and writes it.
 */
#include "message_out.h"

#include "grow.h"

void message_out_done(struct message_out *out)
{
    free(out->buffer);
    *out = (struct message_out){0};
}

int message_out_write(struct message_out *out, const ProtobufCMessage *message)
{
    size_t size_bytes = protobuf_c_message_get_packed_size(message);
    if (grow(out->buffer, out->capacity, size_bytes) < 0) {
        return -ENOMEM;
    }
    (void)protobuf_c_message_pack(message, out->buffer);
    (void)fwrite(out->buffer, 1, size_bytes, out->file);
    return 0;
}
