/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Packs packets by protobuf-c, and puts what was gathered, packed already, behind them: fields of a
 * message may stand in any order.
 */
#include "perfetto_sequence.h"

#include "grow.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define SEQUENCE_ID    1
#define PACKET_FIELD   1  /* of the trace */
#define INTERNED_FIELD 12 /* of a packet, as the next */
#define TIME_FIELD     8
#define SEQUENCE_FIELD 10
#define FLAGS_FIELD    13
#define GATHERED_MAX   ((size_t)16384) /* bytes that a packet takes along */

void perfetto_sequence_done(struct perfetto_sequence *sequence)
{
    message_out_done(&sequence->out);
    free(sequence->gathered);
    *sequence = (struct perfetto_sequence){0};
}

/* Writes what was gathered, as the last field of a packet. */
static void write_gathered(struct perfetto_sequence *sequence)
{
    if (sequence->gathered_bytes > 0) {
        message_out_begin(&sequence->out, INTERNED_FIELD, sequence->gathered_bytes);
        message_out_bytes(&sequence->out, sequence->gathered, sequence->gathered_bytes);
        sequence->gathered_bytes = 0;
    }
}

static uint64_t gathered_field_bytes(const struct perfetto_sequence *sequence)
{
    return sequence->gathered_bytes == 0
               ? 0
               : message_field_bytes(INTERNED_FIELD, sequence->gathered_bytes);
}

/* Writes a packet of the sequence, with what was gathered. */
void perfetto_sequence_write(struct perfetto_sequence *sequence, Perfetto__TracePacket *packet)
{
    packet->has_trusted_packet_sequence_id = true;
    packet->trusted_packet_sequence_id = SEQUENCE_ID;
    if (!packet->has_sequence_flags) {
        packet->has_sequence_flags = true;
        packet->sequence_flags = PERFETTO_NEEDS;
    }
    if (sequence->fault != 0) {
        return;
    }
    message_out_begin(&sequence->out, PACKET_FIELD,
                      protobuf_c_message_get_packed_size(&packet->base) +
                          gathered_field_bytes(sequence));
    sequence->fault = message_out_write(&sequence->out, &packet->base);
    write_gathered(sequence);
}

/* In the order of the fields' numbers, as protobuf-c has them. */
void perfetto_sequence_write_packed(struct perfetto_sequence *sequence, uint64_t time_ns,
                                    uint32_t field, const uint8_t *message, size_t message_bytes)
{
    uint8_t packet[MESSAGE_HEAD_BYTES_MAX + 3 * MESSAGE_NUMBER_BYTES_MAX + MESSAGE_HEAD_BYTES_MAX +
                   PERFETTO_PACKED_BYTES_MAX];
    uint8_t *body = packet + MESSAGE_HEAD_BYTES_MAX;
    size_t bytes = message_number(TIME_FIELD, time_ns, body);
    bytes += message_number(SEQUENCE_FIELD, SEQUENCE_ID, body + bytes);
    bytes += message_number(FLAGS_FIELD, PERFETTO_NEEDS, body + bytes);
    bytes += message_head(field, message_bytes, body + bytes);
    assert(message_bytes <= PERFETTO_PACKED_BYTES_MAX);
    memcpy(body + bytes, message, message_bytes);
    bytes += message_bytes;
    if (sequence->fault != 0) {
        return;
    }
    uint8_t head[MESSAGE_HEAD_BYTES_MAX];
    size_t head_bytes = message_head(PACKET_FIELD, bytes + gathered_field_bytes(sequence), head);
    memcpy(body - head_bytes, head, head_bytes);
    message_out_bytes(&sequence->out, body - head_bytes, head_bytes + bytes);
    write_gathered(sequence);
}

/* Gathers a field of InternedData. */
void perfetto_sequence_gather(struct perfetto_sequence *sequence, uint32_t field,
                              const ProtobufCMessage *message)
{
    uint8_t head[MESSAGE_HEAD_BYTES_MAX];
    size_t message_bytes = protobuf_c_message_get_packed_size(message);
    size_t head_bytes = message_head(field, message_bytes, head);
    if (sequence->gathered_bytes > 0 &&
        sequence->gathered_bytes + head_bytes + message_bytes > GATHERED_MAX) {
        Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
        perfetto_sequence_write(sequence, &packet);
    }
    if (grow(sequence->gathered, sequence->gathered_capacity,
             sequence->gathered_bytes + head_bytes + message_bytes) < 0) {
        sequence->fault = -ENOMEM;
        return;
    }
    memcpy(sequence->gathered + sequence->gathered_bytes, head, head_bytes);
    sequence->gathered_bytes += head_bytes;
    sequence->gathered_bytes +=
        protobuf_c_message_pack(message, sequence->gathered + sequence->gathered_bytes);
}
