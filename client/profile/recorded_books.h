/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The sessions of a file of several segments, and their books. Books count a session from its
 * beginning, so of one session's segments the last books that came are the ones that hold; those of
 * different sessions add up. A segment that does not name its session is one of its own.
 */

#include "fxt_reader.h"
#include "intern.h"

/* What came last of a session. */
struct recorded_session {
    char *session_json; /* owned; NULL: none came, as the next */
    char *books_json;   /* owned */
};

/* All zero is an empty one. */
struct recorded_books {
    char *session_json; /* owned; of this segment, as the next; or NULL */
    char *books_json;
    struct intern sessions;        /* their ids */
    struct recorded_session *told; /* owned; by item of `sessions` */
    size_t told_capacity;
    uint32_t *of_segments; /* owned; items of `sessions`, INTERN_NONE: none is told */
    uint32_t *counted_by;  /* owned; the same: whose books count a segment, once all are closed */
    size_t segment_capacity;
    size_t segment_count; /* those that have ended */
};

void recorded_books_done(struct recorded_books *recorded);

/* Both return 0, or -ENOMEM. A Data blob of another name is nothing to it. */
int recorded_books_take(struct recorded_books *recorded, const struct fxt_data *data);
int recorded_books_end_segment(struct recorded_books *recorded);

/*
 * After the last segment, which it ends: a segment that tells no session gets that of the one
 * before it, and at the beginning that of the next one. `counted_by` differs from that only where a
 * segment tells books and no session: these are its own. The sum of the books, which is returned
 * (free()), or NULL when there are none. Counts that a session did not measure, and members in
 * which the sessions differ, are null in the sum. Returns 0, or -ENOMEM.
 */
int recorded_books_close(struct recorded_books *recorded, char **ret_books_json);

/* Then: the session of the last segment, or INTERN_NONE. */
uint32_t recorded_books_last_session(const struct recorded_books *recorded);
