/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Tickets. One thread decides them and another reads them: everything that is decided is written
 * before the state, with release, and read after it, with acquire. Either may let go first. The
 * requester's thread frees what both have let go of, as it makes the next one.
 */
#include "module_ticket.h"

#include "spent_memory.h"

#include <stdlib.h>

static struct spent_memory spent;

struct module_ticket *module_ticket_new(const struct module_request *request)
{
    spent_memory_free(&spent);
    struct module_ticket *ticket = calloc(1, sizeof *ticket);
    if (ticket == NULL) {
        return NULL;
    }
    atomic_init(&ticket->holder_count, 2);
    atomic_init(&ticket->state, MODULE_PENDING);
    ticket->request = *request;
    return ticket;
}

bool module_ticket_is_abandoned(const struct module_ticket *ticket)
{
    return atomic_load_explicit(&ticket->holder_count, memory_order_relaxed) < 2;
}

static void publish(struct module_ticket *ticket, enum module_state state)
{
    atomic_store_explicit(&ticket->state, state, memory_order_release);
    module_ticket_release(ticket);
}

void module_ticket_finish(struct module_ticket *ticket, struct module_entry *entry)
{
    module_entry_use(entry);
    ticket->entry = entry;
    publish(ticket, MODULE_READY);
}

void module_ticket_fail(struct module_ticket *ticket, enum module_failure failure)
{
    ticket->failure = failure;
    publish(ticket, MODULE_FAILED);
}

enum module_state module_ticket_state(const struct module_ticket *ticket)
{
    return atomic_load_explicit(&ticket->state, memory_order_acquire);
}

enum module_failure module_ticket_failure(const struct module_ticket *ticket)
{
    return module_ticket_state(ticket) == MODULE_FAILED ? ticket->failure : MODULE_FAILURE_NONE;
}

const struct module *module_ticket_module(const struct module_ticket *ticket)
{
    return module_ticket_state(ticket) == MODULE_READY ? &ticket->entry->module : NULL;
}

uint64_t module_ticket_shown_ns(const struct module_ticket *ticket)
{
    return module_ticket_state(ticket) == MODULE_READY ? ticket->shown_ns : 0;
}

void module_ticket_release(struct module_ticket *ticket)
{
    if (ticket == NULL ||
        atomic_fetch_sub_explicit(&ticket->holder_count, 1, memory_order_acq_rel) != 1) {
        return;
    }
    if (ticket->entry != NULL) {
        module_entry_release(ticket->entry);
    }
    spent_memory_add(&spent, ticket);
}
