/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reads a recording through a window, which is small enough to stay in a CPU's cache. Bytes behind
 * its last whole record move to its front, so records stay 8-byte aligned. A header can tell of
 * 32 KiB, so there is always room for a whole record.
 */
#include "recording.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW_BYTES ((size_t)128 << 10)

int feed_init(struct feed *feed)
{
    *feed = (struct feed){.window = malloc(WINDOW_BYTES), .reader = fxt_reader_new()};
    return feed->window == NULL || feed->reader == NULL ? -ENOMEM : 0;
}

void feed_done(struct feed *feed)
{
    feed->reader = fxt_reader_free(feed->reader);
    free(feed->window);
    feed->window = NULL;
}

uint8_t *feed_space(struct feed *feed, size_t *ret_bytes)
{
    *ret_bytes = WINDOW_BYTES - feed->window_bytes;
    return feed->window + feed->window_bytes;
}

static int refuse_record(const struct feed *feed, int error, struct fault *reterr)
{
    if (error == -ENOMEM) {
        return fault_set(reterr, ENOMEM, "cannot be read: there is not enough memory");
    }
    return fault_set(reterr, EBADMSG, "%s: %s",
                     feed->record_count == 0 ? "is not a recording" : "is damaged",
                     fxt_reader_error(feed->reader));
}

int feed_filled(struct feed *feed, size_t bytes, feed_record_fn on_record, void *userdata,
                struct fault *reterr)
{
    size_t at = 0;
    feed->window_bytes += bytes;
    while (true) {
        struct fxt_record record;
        int r = fxt_reader_next(feed->reader, feed->window + at, feed->window_bytes - at, &record);
        if (r == 0) {
            break;
        }
        if (r < 0) {
            return refuse_record(feed, r, reterr);
        }
        r = on_record(&record, userdata);
        if (r < 0) {
            return r == -ENOMEM ? refuse_record(feed, r, reterr) : r;
        }
        at += record.size_bytes;
        feed->record_count++;
        feed->size_bytes += record.size_bytes;
    }
    feed->window_bytes -= at;
    memmove(feed->window, feed->window + at, feed->window_bytes);
    assert(feed->window_bytes < WINDOW_BYTES);
    return 0;
}

bool feed_has_rest(const struct feed *feed)
{
    return feed->window_bytes > 0;
}
