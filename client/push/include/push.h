/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Sends recordings to a store, as requests of OTLP over HTTP, and copies them to a folder beside
 * it. Each sample of a recording is in one of the totals in the end: accepted, rejected, or not
 * sent. How many are settled is kept in a file, so that a later run goes on behind them.
 */

#include "fault.h"
#include "otlp_request.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is behind a recording's name in that of the file that says what of it has been sent. */
#define PUSH_PROGRESS_ENDING ".push"

/* Where to, and how. Texts are borrowed. */
struct push_target {
    const char *url;          /* NULL: recordings are only copied to `raw_folder` */
    const char *headers_path; /* a file of headers, which others cannot read; or NULL */
    const char *ca_path;      /* signers of the store's certificate; NULL: those of the system */
    const char *proxy;        /* NULL: as the environment has it */
    const char *raw_folder;   /* NULL: recordings are not copied */
    uint64_t timeout_s;       /* of one request */
    bool is_plain;            /* requests are not compressed */
    struct otlp_limits limits;
};

struct push_totals {
    uint64_t recordings; /* that are settled */
    uint64_t samples;    /* of the recordings that were looked at */
    uint64_t accepted_samples;
    uint64_t partly_samples;    /* of requests of which some profiles were rejected */
    uint64_t rejected_samples;  /* of requests that were rejected */
    uint64_t given_up_samples;  /* of recordings that were removed before they were sent */
    uint64_t given_up;          /* these recordings */
    uint64_t rejected_profiles; /* of the requests that were taken partly */
    uint64_t cut_stacks;        /* samples whose stack was too long */
    uint64_t requests;          /* that were answered, however */
    uint64_t retries;           /* requests that were sent again */
    uint64_t unsure;            /* that broke off behind their last byte, and were sent again */
    uint64_t body_bytes;        /* of requests that were accepted, as they were sent */
    uint64_t message_bytes;     /* of these, not compressed */
    uint64_t copied_bytes;      /* to the folder */
};

struct pusher;

/* What a recording has come to. */
enum push_result {
    PUSH_SETTLED, /* each sample is accepted or rejected, and the copy is made */
    PUSH_LATER,   /* not all of it: the store is away, or refuses the sender; or it was stopped */
    PUSH_BROKEN,  /* it is no recording, or does not say what time it was */
    PUSH_FAILED,  /* for reasons of this machine: its file, the copy, the file of what was sent */
};

/*
 * Opens what the target names. Returned: pusher_free(). Returns 0, or -errno with a sentence in
 * `reterr`; -EINVAL: it names what it should not.
 */
int pusher_new(const struct push_target *target, struct pusher **ret, struct fault *reterr);
struct pusher *pusher_free(struct pusher *pusher);
void pusher_freep(struct pusher **pusher);

/* Ends the process by the SIGINT or SIGTERM that has come since pusher_new(), if one has. */
void pusher_end_by_signal(void);

const struct push_totals *pusher_totals(const struct pusher *pusher);

/*
 * Sends a recording, "-" is standard input, from where the file `progress_path` (NULL: none is
 * kept) says that an earlier run came to. Says on standard error what was rejected, and what it
 * waits for. Gives up when the store has taken nothing for `patience_s`. SIGINT and SIGTERM end it
 * behind the request at hand.
 */
enum push_result pusher_send(struct pusher *pusher, const char *path, const char *progress_path,
                             uint64_t patience_s);

/* What may wait in a folder of recordings. */
struct push_keep {
    uint64_t bytes;
    uint64_t age_s;
};

/*
 * Sends the recordings of a folder (*.fxt, *.fxt.gz), the oldest name first, and removes each that
 * is settled, until there is none. While the store is away it waits; the oldest are given up, and
 * said to be, when the others have no room or they are too old. One that fails by itself keeps none
 * of the others waiting. Returns false if SIGINT or SIGTERM ended it, or with a complaint, as when
 * the store refuses the sender.
 */
bool pusher_send_folder(struct pusher *pusher, const char *folder, const struct push_keep *keep);
