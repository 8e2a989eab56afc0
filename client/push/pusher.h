/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What one recording and a folder of them share. */

#include "progress.h"
#include "push.h"
#include "transport.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

struct pusher {
    struct push_target target;
    struct transport *transport; /* owned; NULL: recordings are only copied */
    struct push_totals totals;
    uint64_t patience_ns; /* how long nothing may be taken */
    uint64_t taken_ns;    /* CLOCK_BOOTTIME: when something was taken last, or the first try */
    unsigned tries;       /* since then */
    char last_text[320];  /* what was said last of a failure */
    bool is_of_folder;    /* it is asked for one recording after the other, perhaps again */
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

/* Says a sentence, but not one that was said last. */
void pusher_complain(struct pusher *pusher, const char *text);

/* Adds what a recording of so many samples has come to. */
void pusher_count(struct pusher *pusher, uint64_t samples, const struct progress *progress);

/* Something was taken. */
void pusher_taken(struct pusher *pusher);

/* Whether SIGINT or SIGTERM has come, since pusher_new(). */
bool pusher_is_stopped(void);
