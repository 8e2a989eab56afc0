/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Writes messages of protobuf. Messages of one type that stand behind one another are one message,
 * whose lists are theirs in turn: so a large one is written piece by piece.
 */

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct message_out {
    FILE *file;      /* borrowed */
    uint8_t *buffer; /* owned */
    size_t capacity;
};

void message_out_done(struct message_out *out);

/* Returns 0, or -ENOMEM. */
int message_out_write(struct message_out *out, const ProtobufCMessage *message);
