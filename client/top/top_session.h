/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What one profctl top has of its sessions, one after the other: the thread that fetches, and what
 * became of what it fetched.
 */

#include "top_books.h"
#include "top_intake.h"
#include "top_source.h"

struct top_session {
    struct top_source *source; /* borrowed */
    struct top_intake *intake; /* owned */
    struct top_history history;
};

/* Returns 0, or -ENOMEM. Either way top_session_done() releases it. */
int top_session_init(struct top_session *session, struct top_source *source, uint64_t window_ns);
void top_session_done(struct top_session *session);

/*
 * Takes what has come into the window. `*ret` has no pieces and no books then, and nothing to
 * release. Returns 0, or after a complaint-to-be in `reterr` -errno: nothing more can be taken.
 */
int top_session_take(struct top_session *session, bool is_frozen, struct top_news *ret,
                     struct fault *reterr);
