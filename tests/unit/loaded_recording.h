/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the client makes of a recording, for tests of the daemon, whose headers have names in common
 * with the client's.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct loaded_sample {
    uint64_t time_ns;
    uint64_t pid;
    uint64_t tid;
    uint32_t cpu;
    uint8_t quality;
    uint8_t closed;
    uint64_t *user_stack; /* owned; whole, of whichever records it came */
    size_t user_count;
    const uint64_t *kernel_stack; /* borrowed */
    size_t kernel_count;
    bool in_kernel;
    const char *process;  /* its name; borrowed, as the next two */
    const char *thread;   /* its name */
    const char *function; /* the innermost one */
    size_t number;        /* in the file, from 0 */
};

struct loaded_recording {
    struct loaded_sample *samples;
    size_t sample_count;
    const char *session_json; /* NULL: none */
    const char *books_json;
    struct profile *profile;
};

/* Loads what must be a whole recording, with nothing in it that is not understood. */
void loaded_recording_init(struct loaded_recording *loaded, const uint8_t *bytes,
                           size_t size_bytes);
/* By time; else they are as in the file. */
void loaded_recording_sort(struct loaded_recording *loaded);
/* All frames of a sample with a user stack, leaf first, each followed by a space; of one without,
 * "". At most `capacity` bytes, with the NUL. */
void loaded_recording_frames(const struct loaded_recording *loaded,
                             const struct loaded_sample *sample, char *ret, size_t capacity);
void loaded_recording_done(struct loaded_recording *loaded);
