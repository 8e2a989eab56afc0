/* SPDX-License-Identifier: Apache-2.0 */

/* See fake_tickets.h. */
#include "fake_tickets.h"
#include "unit_test.h"

struct module_ticket tickets[TICKETS_MAX];
size_t ticket_count;
bool refuses_requests;
static size_t released_counts[TICKETS_MAX];

void fake_tickets_reset(void)
{
    memset(released_counts, 0, sizeof released_counts);
    ticket_count = 0;
    refuses_requests = false;
}

void fake_tickets_check(void)
{
    for (size_t i = 0; i < ticket_count; i++) {
        assert_int_equal(released_counts[i], 1);
    }
}

void fake_tickets_ready(size_t index, const struct module *module)
{
    tickets[index].module = module;
    tickets[index].state = MODULE_READY;
}

static struct module_ticket *make_ticket(const struct module_query *query, bool is_map)
{
    assert_true(ticket_count < TICKETS_MAX);
    struct module_ticket *ticket = &tickets[ticket_count++];
    *ticket = (struct module_ticket){
        .pid = query->pid, .start_time_ns = query->start_time_ns, .inode = query->inode};
    if (is_map) {
        (void)snprintf(ticket->path, sizeof ticket->path, "map of %d%s", (int)query->pid,
                       query->path);
    } else {
        (void)snprintf(ticket->path, sizeof ticket->path, "%s", query->path);
    }
    return ticket;
}

struct module_ticket *module_cache_request(struct module_cache *cache, enum module_table table,
                                           enum module_urgency urgency,
                                           const struct module_query *query)
{
    (void)cache;
    (void)table;
    (void)urgency;
    return refuses_requests ? NULL : make_ticket(query, false);
}

struct module_ticket *module_cache_request_both(struct module_cache *cache,
                                                const struct module_query *query,
                                                struct module_ticket **ret_names)
{
    *ret_names = module_cache_request(cache, MODULE_SYMBOLS, MODULE_WANTED, query);
    return module_cache_request(cache, MODULE_CFI, MODULE_WANTED, query);
}

struct module_ticket *module_cache_request_vdso(struct module_cache *cache, enum module_table table,
                                                bool is_32bit)
{
    (void)cache;
    (void)table;
    (void)is_32bit;
    return NULL;
}

struct module_ticket *module_cache_request_kernel(struct module_cache *cache)
{
    (void)cache;
    return make_ticket(&(struct module_query){.path = "[kernel]"}, false);
}

struct module_ticket *module_cache_request_perf_map(struct module_cache *cache,
                                                    const struct module_query *query,
                                                    uint32_t known_bytes)
{
    (void)cache;
    struct module_ticket *ticket = make_ticket(query, true);
    ticket->known_bytes = known_bytes;
    return ticket;
}

struct module_ticket *module_cache_request_jitdump(struct module_cache *cache,
                                                   const struct module_query *query,
                                                   uint32_t known_bytes)
{
    return module_cache_request_perf_map(cache, query, known_bytes);
}

enum module_state module_ticket_state(const struct module_ticket *ticket)
{
    return ticket->state;
}

enum module_failure module_ticket_failure(const struct module_ticket *ticket)
{
    return ticket->failure;
}

const struct module *module_ticket_module(const struct module_ticket *ticket)
{
    return ticket->module;
}

uint64_t module_ticket_shown_ns(const struct module_ticket *ticket)
{
    return ticket->shown_ns;
}

void module_ticket_release(struct module_ticket *ticket)
{
    if (ticket != NULL) {
        released_counts[ticket - tickets]++;
    }
}
