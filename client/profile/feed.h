/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Bytes in, in pieces cut anywhere; records out. Holds no more than the record that is not whole
 * yet and the piece.
 */

#include "fault.h"
#include "fxt_reader.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Called for each record, which lives until it returns. A negative result ends the reading. */
typedef int (*feed_record_fn)(const struct fxt_record *record, void *userdata);

struct feed {
    uint8_t *window; /* owned; begins with the first byte that is not yet read as a record */
    size_t window_bytes;
    struct fxt_reader *reader; /* owned */
    uint64_t size_bytes;       /* of the records read */
    uint64_t record_count;
};

/* Returns 0, or -ENOMEM. Either way feed_done() releases it. */
int feed_init(struct feed *feed);
void feed_done(struct feed *feed);

/* Where the next bytes go: `*ret_bytes` > 0 of room, borrowed until feed_filled(). */
uint8_t *feed_space(struct feed *feed, size_t *ret_bytes);

/*
 * Reads the records that are whole now that `bytes` more have been put there. Returns 0; what
 * `on_record` returned; -EBADMSG: not FXT, or damaged; -ENOMEM. For the last two `reterr` says it
 * in words that go on a sentence that began with the input's name.
 */
int feed_filled(struct feed *feed, size_t bytes, feed_record_fn on_record, void *userdata,
                struct fault *reterr);

/* Whether bytes of a record that is not whole are left. */
bool feed_has_rest(const struct feed *feed);
