/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The books of a file of several segments. Books count a session from its beginning, so of one
 * session's segments the last books that came are the ones that hold; those of different sessions
 * add up. A segment that does not name its session is one of its own.
 */

#include "fxt_reader.h"
#include "intern.h"

/* All zero is an empty one. */
struct recorded_books {
    char *session_json; /* owned; of this segment, as the next; or NULL */
    char *books_json;
    char *last_session_json; /* owned; of the segments before */
    struct intern sessions;  /* their ids */
    char **books;            /* owned, as what is in it; by item of `sessions`; NULL: none came */
    size_t books_capacity;
};

void recorded_books_done(struct recorded_books *recorded);

/* Both return 0, or -ENOMEM. A Data blob of another name is nothing to it. */
int recorded_books_take(struct recorded_books *recorded, const struct fxt_data *data);
int recorded_books_end_segment(struct recorded_books *recorded);

/*
 * After the last segment: the last session's object, and the sum of the books; each is returned
 * (free()) or NULL when there is none. Counts that a session did not measure, and members in which
 * the sessions differ, are null in the sum. Returns 0, or -ENOMEM.
 */
int recorded_books_close(struct recorded_books *recorded, char **ret_session_json,
                         char **ret_books_json);
