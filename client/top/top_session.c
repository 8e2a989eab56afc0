/* SPDX-License-Identifier: Apache-2.0 */

/*
 * News from the thread go into the intake and into the history of the books. Which of them is told
 * what of them is for the caller.
 */
#include "top_session.h"

#include "clock.h"

#include <errno.h>
#include <string.h>

int top_session_init(struct top_session *session, struct top_source *source, uint64_t window_ns)
{
    *session = (struct top_session){
        .source = source,
        .intake = top_intake_new(window_ns),
        .history = {.window_ns = window_ns},
    };
    return session->intake == NULL ? -ENOMEM : 0;
}

void top_session_done(struct top_session *session)
{
    top_history_done(&session->history);
    session->intake = top_intake_free(session->intake);
}

int top_session_take(struct top_session *session, bool is_frozen, struct top_news *ret,
                     struct fault *reterr)
{
    int r = 0;
    struct top_news news;
    top_source_take(session->source, &news);
    for (size_t i = 0; i < news.piece_count && r == 0; i++) {
        r = top_intake_add(session->intake, news.pieces[i].bytes, news.pieces[i].size_bytes);
    }
    if (news.has_books && !is_frozen) {
        top_history_add(&session->history, &news.books);
    }
    /* Without a session the window stands still: what it shows was true last. */
    if (r == 0 && (news.state == TOP_RUNNING || news.piece_count > 0)) {
        r = top_intake_settle(session->intake, clock_ns(CLOCK_BOOTTIME), is_frozen);
    }
    *ret = news;
    ret->pieces = NULL;
    ret->piece_count = 0;
    ret->books = (struct top_books){0};
    top_news_done(&news);
    return r == 0          ? 0
           : r == -EBADMSG ? fault_set(reterr, EBADMSG, "the daemon sent what is no recording")
                           : fault_set(reterr, ENOMEM, "there is not enough memory");
}
