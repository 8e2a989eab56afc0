/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Bytes of sessions in; the samples of the window, and a recording of the last minutes, out. Memory
 * stays bounded however long it goes on.
 */

#include "fault.h"
#include "top_events.h"
#include "top_model.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOP_KEPT_BYTES (UINT64_C(64) << 20)
#define TOP_KEPT_S     UINT64_C(300)
/* Behind a module's name: all functions of the module that have no name. Views of a recording,
 * which tell them apart, have an address in place of the dots. */
#define TOP_UNNAMED "+0x..."

struct top_intake;

/* Returned: top_intake_free(). NULL when there is no memory. */
struct top_intake *top_intake_new(uint64_t window_ns);
struct top_intake *top_intake_free(struct top_intake *intake);

/* Takes what one Read gave: whole records (borrowed, 8-byte aligned). Returns 0, -ENOMEM, or
 * -EBADMSG: it is no part of a recording; then only top_intake_free() is of use. */
int top_intake_add(struct top_intake *intake, const void *bytes, size_t size_bytes);

/*
 * Moves samples that have come into the model, and the window's end to `now_ns`, both by
 * CLOCK_BOOTTIME. With `is_frozen` the model stays as it is, and the samples are recorded alone.
 * Returns 0, or -ENOMEM.
 */
int top_intake_settle(struct top_intake *intake, uint64_t now_ns, bool is_frozen);

/* Borrowed, as the next. */
const struct top_model *top_intake_model(const struct top_intake *intake);

/* The events that the model's samples are of. */
const struct top_events *top_intake_events(const struct top_intake *intake);

/* Samples of the clock, of all sessions, that have come with their stacks. */
uint64_t top_intake_sample_count(const struct top_intake *intake);

struct top_kept {
    uint64_t span_ns; /* how long ago the oldest samples came */
    uint64_t size_bytes;
};

void top_intake_kept(const struct top_intake *intake, uint64_t now_ns, struct top_kept *ret);

/* What a saved recording has. */
struct top_saved {
    uint64_t sample_count; /* of the clock */
    uint64_t event_sample_count;
};

/* Writes what is kept as a recording. Returns 0, or -errno with a sentence in `reterr`; -ENODATA:
 * there is no sample. */
int top_intake_save(const struct top_intake *intake, const char *path, struct top_saved *ret,
                    struct fault *reterr);

/* What the profile behind the model takes, without what its definitions take. For tests. */
uint64_t top_intake_made_bytes(const struct top_intake *intake);
