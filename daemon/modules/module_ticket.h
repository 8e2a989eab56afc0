/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A ticket as the cache sees it. It has two holders at most: the requester, and the cache until the
 * result is known. The state publishes the members that the requester reads.
 */

#include "module_store.h"

struct module_ticket {
    atomic_uint holder_count;
    _Atomic enum module_state state;
    enum module_failure
        failure; /* this and what follows: written before the state, then constant */
    uint64_t shown_ns;
    struct module_entry *entry;
    struct module_request request;
    uid_t uid;                   /* the cache's own, as what follows: for whom it was opened */
    struct module_ticket *names; /* for the symbols of the same file, by the same opening */
    struct module_ticket *next;
};

/* The requester and the cache hold it. NULL: no memory. */
struct module_ticket *module_ticket_new(const struct module_request *request);

/* True when the requester has released it. */
bool module_ticket_is_abandoned(const struct module_ticket *ticket);

/* Publishes the entry, which gains a user, and drops the cache's hold. */
void module_ticket_finish(struct module_ticket *ticket, struct module_entry *entry);
/* Publishes the failure and drops the cache's hold. */
void module_ticket_fail(struct module_ticket *ticket, enum module_failure failure);
