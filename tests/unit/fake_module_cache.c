/* SPDX-License-Identifier: Apache-2.0 */

/*
 * See fake_module_cache.h. Whatever asks for a ticket must give it back: held_count tells.
 */
#include "fake_module_cache.h"

#include "arch_x86_64.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

struct module_ticket {
    struct module_cache *cache;
    struct fake_request *request;
    enum module_state state;
    enum module_failure failure;
    uint64_t shown_ns;
    struct module module;
};

static struct {
    void *bytes;
    struct cfi_table table;
} shared;

const struct cfi_table *fake_module_table(void)
{
    static const struct symbol_segment segment = {.size_bytes = 0x1000};
    static const struct cfi_rule leaf = {.kind = CFI_OFFSET,
                                         .cfa_register = ARCH_DWARF_SP,
                                         .cfa_offset = 16,
                                         .ra_saved = CFI_AT_CFA,
                                         .ra_offset = -8};
    static const struct cfi_rule root = {.kind = CFI_ROOT};
    static const struct cfi_rule other = {.kind = CFI_SWITCH, .ra_saved = CFI_LOST};
    if (shared.bytes == NULL) {
        struct cfi_builder *builder = cfi_builder_new();
        size_t size_bytes = 0;
        assert_non_null(builder);
        assert_int_equal(cfi_builder_segment(builder, &segment), 0);
        assert_int_equal(cfi_builder_add(builder, 0x10, 0x20, &leaf), 0);
        assert_int_equal(cfi_builder_add(builder, 0x100, 0x110, &root), 0);
        assert_int_equal(cfi_builder_add(builder, 0x200, 0x210, &other), 0);
        assert_int_equal(cfi_builder_finish(builder, &shared.bytes, &size_bytes), 0);
        assert_int_equal(cfi_table_open(shared.bytes, size_bytes, &shared.table), 0);
        (void)cfi_builder_free(builder);
    }
    return &shared.table;
}

void fake_module_table_free(void)
{
    free(shared.bytes);
    shared.bytes = NULL;
}

static struct module_ticket *new_ticket(struct module_cache *cache, struct fake_request *asked,
                                        bool fails)
{
    asked->ticket = calloc(1, sizeof *asked->ticket);
    assert_non_null(asked->ticket);
    *asked->ticket =
        (struct module_ticket){.cache = cache,
                               .request = asked,
                               .state = fails ? MODULE_FAILED : MODULE_PENDING,
                               .failure = fails ? MODULE_FAILURE_UNREADABLE : MODULE_FAILURE_NONE};
    cache->held_count++;
    return asked->ticket;
}

static struct module_ticket *request(struct module_cache *cache, enum module_table table,
                                     enum module_urgency urgency, uint64_t inode)
{
    if (cache == NULL) {
        return NULL;
    }
    bool fails = table == MODULE_CODE && !cache->has_code;
    assert_true(cache->request_count < FAKE_REQUESTS_MAX);
    struct fake_request *asked =
        fails ? &cache->code_request : &cache->requests[cache->request_count++];
    *asked = (struct fake_request){.table = table, .urgency = urgency, .inode = inode};
    return cache->refuses ? NULL : new_ticket(cache, asked, fails);
}

struct module_ticket *module_cache_request_both(struct module_cache *cache,
                                                const struct module_query *query,
                                                struct module_ticket **ret_names)
{
    struct module_ticket *ticket = request(cache, MODULE_CFI, MODULE_WANTED, query->inode);
    if (ticket != NULL) {
        assert_true(cache->names_count < FAKE_REQUESTS_MAX);
        struct fake_request *asked = &cache->names[cache->names_count++];
        *asked = (struct fake_request){
            .table = MODULE_SYMBOLS, .urgency = MODULE_WANTED, .inode = query->inode};
        *ret_names = new_ticket(cache, asked, false);
    }
    return ticket;
}

struct module_ticket *module_cache_request(struct module_cache *cache, enum module_table table,
                                           enum module_urgency urgency,
                                           const struct module_query *query)
{
    return request(cache, table, urgency, query->inode);
}

struct module_ticket *module_cache_request_vdso(struct module_cache *cache, enum module_table table,
                                                bool is_32bit)
{
    (void)is_32bit;
    return request(cache, table, MODULE_WANTED, 0);
}

struct module_ticket *module_cache_request_kernel(struct module_cache *cache)
{
    return request(cache, MODULE_SYMBOLS, MODULE_WANTED, 0);
}

struct module_ticket *module_cache_request_perf_map(struct module_cache *cache,
                                                    const struct module_query *query,
                                                    uint32_t known_bytes)
{
    (void)known_bytes;
    (void)query;
    return request(cache, MODULE_SYMBOLS, MODULE_WANTED, 0);
}

struct module_ticket *module_cache_request_jitdump(struct module_cache *cache,
                                                   const struct module_query *query,
                                                   uint32_t known_bytes)
{
    return module_cache_request_perf_map(cache, query, known_bytes);
}

static void answer(struct module_cache *cache, uint64_t inode, enum module_state state,
                   enum module_failure failure, const struct cfi_table *table)
{
    for (size_t i = 0; i < cache->request_count; i++) {
        struct module_ticket *ticket = cache->requests[i].ticket;
        if (ticket == NULL || cache->requests[i].inode != inode ||
            ticket->state != MODULE_PENDING) {
            continue;
        }
        ticket->state = state;
        ticket->failure = failure;
        ticket->shown_ns = cache->shown_ns;
        if (table != NULL) {
            ticket->module.cfi = *table;
        }
    }
}

void fake_names_answer(struct module_cache *cache, enum module_failure failure)
{
    for (size_t i = 0; i < cache->names_count; i++) {
        struct module_ticket *ticket = cache->names[i].ticket;
        if (ticket != NULL && ticket->state == MODULE_PENDING) {
            ticket->state = failure == MODULE_FAILURE_NONE ? MODULE_READY : MODULE_FAILED;
            ticket->failure = failure;
        }
    }
}

void fake_module_ready(struct module_cache *cache, uint64_t inode, const struct cfi_table *table)
{
    answer(cache, inode, MODULE_READY, MODULE_FAILURE_NONE, table);
}

void fake_module_failed(struct module_cache *cache, uint64_t inode, enum module_failure failure)
{
    answer(cache, inode, MODULE_FAILED, failure, NULL);
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
    return ticket->state == MODULE_READY ? &ticket->module : NULL;
}

uint64_t module_ticket_shown_ns(const struct module_ticket *ticket)
{
    return ticket->shown_ns;
}

void module_ticket_release(struct module_ticket *ticket)
{
    if (ticket != NULL) {
        ticket->request->ticket = NULL;
        ticket->cache->held_count--;
        free(ticket);
    }
}
