/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The session of profctl top, on a thread of its own, since every call of the library waits for the
 * daemon, and a screen must not. The thread begins a session, fetches what it records, and begins
 * another one when it has ended, whatever the reason: once a second, until that succeeds.
 */

#include "top_books.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOP_TEXT_BYTES ((size_t)800)

enum top_state {
    TOP_STARTING, /* nothing is known yet */
    TOP_RUNNING,
    TOP_BUSY,   /* another session holds the daemon */
    TOP_FAILED, /* for another reason there is no session; `text` has it */
};

struct top_piece {
    void *bytes; /* owned */
    size_t size_bytes;
};

/* All zero is none. */
struct top_news {
    enum top_state state;
    char text[TOP_TEXT_BYTES]; /* why there is no session; "" while there is one */
    char note[TOP_TEXT_BYTES]; /* what a new session does otherwise than expected, once; or "" */
    uint64_t silent_ns;        /* how long the daemon has owed an answer */
    uint64_t frequency_hz;     /* that the session was asked for; 0: as its config says */
    struct top_piece *pieces;  /* owned; what was read, in order */
    size_t piece_count;
    struct top_books books; /* owned; the newest, if `has_books` */
    bool has_books;
};

void top_news_done(struct top_news *news);

struct record_request;
struct top_source;

/* Starts the thread. `config` is borrowed until top_source_free(), and so is what `request` has:
 * where the daemon is, and which options were given. `*ret` is returned. Returns 0, or -errno. */
int top_source_new(const struct record_request *request, const char *config, uint64_t interval_ns,
                   struct top_source **ret);

/* Ends the session. A thread that waits for the daemon for more than a second is left alone: the
 * end of the process ends it. */
struct top_source *top_source_free(struct top_source *source);

/* Becomes readable with news. Borrowed. */
int top_source_fd(const struct top_source *source);

/* Its state, and why there is no session, for which `ret_text` has room for TOP_TEXT_BYTES. No news
 * are taken. */
enum top_state top_source_state(struct top_source *source, char *ret_text);

/* Moves the news out; top_news_done() releases them. */
void top_source_take(struct top_source *source, struct top_news *ret);

/* Has another session take the place of this one, with another rate. If the daemon refuses it, the
 * former rate holds, and the news say so. */
void top_source_set_rate(struct top_source *source, uint64_t frequency_hz);

/* Closes the session until top_source_resume(), since nothing would be read meanwhile. Waits for
 * that, a second at most. */
void top_source_pause(struct top_source *source);
void top_source_resume(struct top_source *source);
