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
struct ledger {
    char *session_json; /* owned; of this segment, as the next; or NULL */
    char *books_json;
    char *last_session_json; /* owned; of the segments before */
    struct intern sessions;  /* their ids */
    char **books;            /* owned, as what is in it; by item of `sessions`; NULL: none came */
    size_t books_capacity;
};

void ledger_done(struct ledger *ledger);

/* Both return 0, or -ENOMEM. A Data blob of another name is nothing to it. */
int ledger_take(struct ledger *ledger, const struct fxt_data *data);
int ledger_end_segment(struct ledger *ledger);

/*
 * After the last segment: the last session's object, and the sum of the books; each is returned
 * (free()) or NULL when there is none. Counts that a session did not measure, and members in which
 * the sessions differ, are null in the sum. Returns 0, or -ENOMEM.
 */
int ledger_close(struct ledger *ledger, char **ret_session_json, char **ret_books_json);
