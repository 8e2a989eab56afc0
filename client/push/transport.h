/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One request after the other over one connection, by libcurl, which is loaded when it is first
 * needed. Certificates are verified; a redirection is not followed, since it would take credentials
 * elsewhere.
 */

#include "fault.h"
#include "push.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the store did with a request. */
enum answer_kind {
    ANSWER_ACCEPTED,
    ANSWER_PARTLY,    /* but for some of its profiles */
    ANSWER_REJECTED,  /* it will never take it */
    ANSWER_TOO_LARGE, /* it would take less at a time */
    ANSWER_LATER,     /* it may take it later */
    ANSWER_REFUSED,   /* it takes no request of this kind: a token, an address, a certificate */
};

struct answer {
    enum answer_kind kind;
    uint64_t rejected_profiles;
    uint64_t wait_s;     /* what it asked for; 0: nothing */
    uint64_t sent_bytes; /* of the body */
    bool is_unsure;      /* there was no answer, though all had been sent */
    char text[320];      /* why; fit to be shown, without credentials */
};

struct transport;

/* Returned: transport_free(). Returns 0, or -errno with a sentence in `reterr`. */
int transport_new(const struct push_target *target, struct transport **ret, struct fault *reterr);
struct transport *transport_free(struct transport *transport);

/* The address with its path. Borrowed. */
const char *transport_url(const struct transport *transport);

/* Posts a message (borrowed). Returns 0, or -ENOMEM. */
int transport_post(struct transport *transport, const uint8_t *bytes, size_t size_bytes,
                   struct answer *ret);

/* Whether an address is one that requests go to: http or https, without a user in it. Returns 0,
 * or -EINVAL with a sentence in `reterr` that has no part of it. `*ret_has_path`: it names more
 * than the host. */
int transport_check_url(const char *url, bool *ret_has_path, struct fault *reterr);
