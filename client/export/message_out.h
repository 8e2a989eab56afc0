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
    FILE *file; /* borrowed; NULL: only count */
    uint64_t written_bytes;
    uint8_t *buffer; /* owned */
    size_t capacity;
};

void message_out_done(struct message_out *out);

/* Returns 0, or -ENOMEM. */
int message_out_write(struct message_out *out, const ProtobufCMessage *message);

/* Puts a field that is a number at `into`. Returns its bytes. */
#define MESSAGE_NUMBER_BYTES_MAX ((size_t)20)
size_t message_number(uint32_t field, uint64_t value, uint8_t *into);

/* Puts what stands before such a message at `into`. Returns its bytes. */
#define MESSAGE_HEAD_BYTES_MAX ((size_t)20)
size_t message_head(uint32_t field, uint64_t size_bytes, uint8_t *into);

/* Writes what stands before a message that is a field of another, and has so many bytes. */
void message_out_begin(struct message_out *out, uint32_t field, uint64_t size_bytes);

/* Writes bytes as they are. */
void message_out_bytes(struct message_out *out, const uint8_t *bytes, size_t size_bytes);

/* Writes a message that is a field of another. Returns 0, or -ENOMEM. */
int message_out_field(struct message_out *out, uint32_t field, const ProtobufCMessage *message);

/* How many bytes a field takes whose message has `size_bytes`. */
uint64_t message_field_bytes(uint32_t field, uint64_t size_bytes);
