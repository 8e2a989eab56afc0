/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Packs a message into a buffer that grows with the largest one, and writes it.
 */
#include "message_out.h"

#include "grow.h"

#define WIRE_BYTES 2 /* the kind of a field that is a message */

void message_out_done(struct message_out *out)
{
    free(out->buffer);
    *out = (struct message_out){0};
}

void message_out_bytes(struct message_out *out, const uint8_t *bytes, size_t size_bytes)
{
    out->written_bytes += size_bytes;
    if (out->file != NULL) {
        (void)fwrite(bytes, 1, size_bytes, out->file);
    }
}

int message_out_write(struct message_out *out, const ProtobufCMessage *message)
{
    size_t size_bytes = protobuf_c_message_get_packed_size(message);
    if (out->file == NULL) {
        out->written_bytes += size_bytes;
        return 0;
    }
    if (grow(out->buffer, out->capacity, size_bytes) < 0) {
        return -ENOMEM;
    }
    (void)protobuf_c_message_pack(message, out->buffer);
    message_out_bytes(out, out->buffer, size_bytes);
    return 0;
}

/* A number as protobuf has it, seven bits a byte. Returns its bytes. */
static size_t pack_number(uint64_t number, uint8_t *into)
{
    size_t count = 0;
    for (; number >= 0x80; number >>= 7) {
        into[count++] = (uint8_t)(number | 0x80);
    }
    into[count++] = (uint8_t)number;
    return count;
}

size_t message_number(uint32_t field, uint64_t value, uint8_t *into)
{
    size_t count = pack_number((uint64_t)field << 3, into);
    return count + pack_number(value, into + count);
}

size_t message_head(uint32_t field, uint64_t size_bytes, uint8_t *into)
{
    size_t count = pack_number((uint64_t)field << 3 | WIRE_BYTES, into);
    return count + pack_number(size_bytes, into + count);
}

void message_out_begin(struct message_out *out, uint32_t field, uint64_t size_bytes)
{
    uint8_t bytes[MESSAGE_HEAD_BYTES_MAX];
    message_out_bytes(out, bytes, message_head(field, size_bytes, bytes));
}

int message_out_field(struct message_out *out, uint32_t field, const ProtobufCMessage *message)
{
    message_out_begin(out, field, protobuf_c_message_get_packed_size(message));
    return message_out_write(out, message);
}

uint64_t message_field_bytes(uint32_t field, uint64_t size_bytes)
{
    struct message_out out = {.file = NULL};
    message_out_begin(&out, field, size_bytes);
    return out.written_bytes + size_bytes;
}
