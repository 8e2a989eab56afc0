/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Writes packets of one sequence. New things that packets refer to are gathered, and go out as the
 * last field of the next packet, or in a packet of their own where they are many: so a packet stays
 * small.
 */

#include "message_out.h"

#include <perfetto.pb-c.h>
#include <stddef.h>
#include <stdint.h>

/* Flags of a sequence: what was interned is gone, or is needed. */
#define PERFETTO_CLEARED 1
#define PERFETTO_NEEDS   2

struct perfetto_sequence {
    struct message_out out;
    uint8_t *gathered; /* owned; fields of InternedData that are to be written */
    size_t gathered_capacity;
    size_t gathered_bytes;
    int fault; /* the first -errno; nothing is written from then on */
};

void perfetto_sequence_done(struct perfetto_sequence *sequence);

/* Writes a packet, with what was gathered. */
void perfetto_sequence_write(struct perfetto_sequence *sequence, Perfetto__TracePacket *packet);

/* Writes a packet of the field `field` alone, a message that is packed already, and of the time.
 * For what there are millions of: protobuf-c walks over the descriptions of all fields. */
#define PERFETTO_PACKED_BYTES_MAX ((size_t)128)
void perfetto_sequence_write_packed(struct perfetto_sequence *sequence, uint64_t time_ns,
                                    uint32_t field, const uint8_t *message, size_t message_bytes);

/* Gathers a field of InternedData. */
void perfetto_sequence_gather(struct perfetto_sequence *sequence, uint32_t field,
                              const ProtobufCMessage *message);
