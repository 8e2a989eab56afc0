/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whether several recordings have samples in common: a segment of each is of the same session, and
 * begins with the same sample. So a copy is found, compressed or cut off, and a part of a merged
 * recording; two parts of a session that were read one after the other begin with different
 * samples. Of a segment that names no session nothing is known.
 */

#include "fxt_reader.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FIRST_SAMPLE_SESSION_BYTES 40 /* of an id, with its NUL; the daemon's has 17 */

/* What a segment begins with. */
struct first_sample {
    uint64_t time_ns;
    uint64_t pid;
    uint64_t tid;
    uint64_t cpu;
    uint64_t event;
    uint64_t recording; /* the number of its recording */
    uint64_t origin;    /* a hash of where and when the session was created */
    char session[FIRST_SAMPLE_SESSION_BYTES];
};

/* All zero is empty. */
struct first_samples {
    struct first_sample *samples; /* owned; of all segments that name their session */
    size_t capacity;
    size_t count;
    uint64_t recording_count;
    struct first_sample next; /* of the segment at hand */
    bool has_next;
};

void first_samples_done(struct first_samples *firsts);

/* Takes a record of the recording at hand. Returns 0, or -ENOMEM. */
int first_samples_see(struct first_samples *firsts, const struct fxt_record *record);

/* Ends the recording; the next record is of another one. Returns 0, or -ENOMEM. */
int first_samples_end(struct first_samples *firsts);

/* Adds recordings that have ended behind those of `into`. Returns 0, or -ENOMEM. */
int first_samples_add(struct first_samples *into, const struct first_samples *from);

/* Finds two recordings whose sessions have the same id, but were created elsewhere or at another
 * time. Changes the order of the samples. */
bool first_samples_find_mistaken(struct first_samples *firsts, size_t *ret_first,
                                 size_t *ret_second);

/* Finds two recordings, by number, that have samples in common: of several pairs the one whose
 * second recording is first. Changes the order of the samples. */
bool first_samples_find_shared(struct first_samples *firsts, size_t *ret_first, size_t *ret_second);
