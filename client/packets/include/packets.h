/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Adds to a recording, while it is written, what Perfetto shows of it: blobs of type 3 with the
 * samples as packets (docs/trace-format.md). The recording's own bytes pass unchanged; blobs stand
 * between whole records, behind the samples that they are about and in the same segment.
 */

#include <stdbool.h>
#include <stddef.h>

struct packets;

/* Where all bytes go. Returns 0, or a negative number, which its caller gets back. */
typedef int packets_out_fn(const void *bytes, size_t size_bytes, void *userdata);

/* Returned: packets_free(). NULL when there is no memory. */
struct packets *packets_new(packets_out_fn *out, void *userdata);
struct packets *packets_free(struct packets *packets);

/* The first sample that comes is the session's first one, so counters begin there. */
void packets_begin_session(struct packets *packets);

/*
 * Passes whole records on (borrowed, 8-byte aligned), and from time to time the packets of their
 * samples. Bytes that cannot be understood, or too little memory, end the packets, not the
 * recording. Returns 0, or what `out` did.
 */
int packets_pass(struct packets *packets, const void *bytes, size_t size_bytes);

/*
 * Writes the packets of all samples that were passed on; with `has_ended`, nothing comes any more,
 * also those of samples whose stack has not come. Returns 0, or what `out` did.
 */
int packets_flush(struct packets *packets, bool has_ended);

/* Whether there was too little memory, so that packets are missing. */
bool packets_are_cut(const struct packets *packets);
