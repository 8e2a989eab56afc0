/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What one recording and a folder of them share. */

#include "progress.h"
#include "push.h"
#include "transport.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#define PUSHER_SAID_MAX ((size_t)32)

struct pusher {
    struct push_target target;
    struct transport *transport; /* owned; NULL: recordings are only copied */
    struct push_totals totals;
    uint64_t patience_ns; /* how long nothing may be taken */
    uint64_t taken_ns;    /* CLOCK_BOOTTIME: when something was taken last, or the first try */
    unsigned tries;       /* since then */
    char last_text[320];  /* what was said last of a failure */
    char said[PUSHER_SAID_MAX][320]; /* what was said of recordings that fail by themselves */
    size_t said_count;
    bool is_of_folder;  /* it is asked for one recording after the other, perhaps again */
    struct stat status; /* of the recording at hand, when it was begun; of no meaning unless: */
    bool is_regular;
    /* What the recording that was sent last has come to; in a folder it is counted when the
     * recording is removed. */
    uint64_t sent_samples;
    struct progress sent; /* without a file */
    /* Asked before each wait; false: the recording at hand is no longer to be sent. */
    bool (*on_wait)(struct pusher *pusher, void *userdata);
    void *userdata;
};

/* How many samples a recording has, of all events, without loading it; 0 where it cannot be read.
 */
uint64_t pusher_count_samples(const char *path);

/* Waits before the next try, as long as the store asked for, and longer each time. False: a signal
 * came, the patience is over, or the recording is not to be sent any more. */
bool pusher_wait(struct pusher *pusher, uint64_t asked_s);

/* Says a sentence of the store, but not one that was said last. */
void pusher_complain(struct pusher *pusher, const char *text);

/* Says a sentence of a recording, once for each: it may be tried again and again. */
void pusher_complain_once(struct pusher *pusher, const char *text);

/* Adds what a recording of so many samples has come to. */
void pusher_count(struct pusher *pusher, uint64_t samples, const struct progress *progress);

/* Whether the recording at hand is the file that it was when it was begun. */
bool pusher_is_same(const struct pusher *pusher, const char *path);

/* Copies a recording into the folder for that, if there is one. False: there is no copy. */
bool pusher_copy(struct pusher *pusher, const char *path);

/* Something was taken. */
void pusher_taken(struct pusher *pusher);

/* Whether SIGINT or SIGTERM has come, since pusher_new(). */
bool pusher_is_stopped(void);
