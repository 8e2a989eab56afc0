/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Looks at a recording as it goes by: how many samples it has, and its books.
 */

#include "fault.h"
#include "feed.h"

#include <stdint.h>

struct record_scan {
    struct feed feed;
    uint64_t sample_count;
    const int32_t *pids; /* borrowed; whose samples are looked for */
    bool *is_pid_seen;   /* owned; of each of them */
    size_t pid_count;
    char *books_json;   /* owned; the last that came, or NULL */
    struct fault fault; /* why it looks no longer; code 0: it does */
};

/* Returns 0, or -ENOMEM. Either way record_scan_done() releases it. */
int record_scan_init(struct record_scan *scan);
void record_scan_done(struct record_scan *scan);

/* Looks out for samples of these processes (borrowed until record_scan_done()) from now on. Returns
 * 0, or -ENOMEM. */
int record_scan_watch(struct record_scan *scan, const int32_t *pids, size_t count);

/* A feed_record_fn, for records that come another way; `userdata` is the scan. */
int record_scan_record(const struct fxt_record *record, void *userdata);

/* Bytes (borrowed) that cannot be understood end the looking, not the recording. */
void record_scan_add(struct record_scan *scan, const void *bytes, size_t size_bytes);
