/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A ticket as the cache sees it. Two hold it at most: who requested it, and the cache until it has
 * decided. What the requester reads is published by the state.
 */

#include "module_store.h"

struct module_ticket {
    atomic_uint holder_count;
    _Atomic enum module_state state;
    enum module_failure failure; /* this and the entry: written before the state, then constant */
    struct module_entry *entry;
    struct module_request request;
    struct module_ticket *next; /* the cache's own */
};

/* Held by the requester and by the cache. NULL: no memory. */
struct module_ticket *module_ticket_new(const struct module_request *request);

/* Whether its requester has released it. */
bool module_ticket_is_abandoned(const struct module_ticket *ticket);

/* Shows the entry, which gains a user. Takes the cache's hold. */
void module_ticket_finish(struct module_ticket *ticket, struct module_entry *entry);
/* Takes the cache's hold. */
void module_ticket_fail(struct module_ticket *ticket, enum module_failure failure);
