/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Packs packets by protobuf-c, and puts what was gathered, packed already, behind them: fields of a
 * message may stand in any order.
 */
#include "perfetto_sequence.h"

#include "grow.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define SEQUENCE_ID    1
#define PACKET_FIELD   1               /* of the trace */
#define INTERNED_FIELD 12              /* of a packet */
#define GATHERED_MAX   ((size_t)16384) /* bytes that a packet takes along */

void perfetto_sequence_done(struct perfetto_sequence *sequence)
{
    message_out_done(&sequence->out);
    free(sequence->gathered);
    *sequence = (struct perfetto_sequence){0};
}

/* Writes a packet of the sequence, with what was gathered. */
void perfetto_sequence_write(struct perfetto_sequence *sequence, Perfetto__TracePacket *packet)
{
    uint64_t gathered_bytes = sequence->gathered_bytes == 0
                                  ? 0
                                  : message_field_bytes(INTERNED_FIELD, sequence->gathered_bytes);
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
                      protobuf_c_message_get_packed_size(&packet->base) + gathered_bytes);
    sequence->fault = message_out_write(&sequence->out, &packet->base);
    if (gathered_bytes > 0) {
        message_out_begin(&sequence->out, INTERNED_FIELD, sequence->gathered_bytes);
        message_out_bytes(&sequence->out, sequence->gathered, sequence->gathered_bytes);
        sequence->gathered_bytes = 0;
    }
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
