/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The records of a recording, one after the other, from a file, a gzip file (told by its first
 * bytes, not its name) or standard input. Never holds more than a piece of it.
 */

#include "fault.h"
#include "feed.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct input_summary {
    uint64_t size_bytes; /* of the records read, uncompressed */
    uint64_t record_count;
    bool truncated; /* the input ends within a record; what stood before it was read */
};

/*
 * Reads the file at `path`, "-" for standard input. Returns 0; what `on_record` returned;
 * -EBADMSG: not a recording, or damaged; another -errno. `reterr` says it in a sentence that begins
 * with the input's name.
 */
int input_read(const char *path, feed_record_fn on_record, void *userdata,
               struct input_summary *ret, struct fault *reterr);

/* The same for bytes in memory (borrowed, any alignment, not compressed). */
int input_read_memory(const uint8_t *bytes, size_t size_bytes, feed_record_fn on_record,
                      void *userdata, struct input_summary *ret, struct fault *reterr);
