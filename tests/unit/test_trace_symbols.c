/* SPDX-License-Identifier: Apache-2.0 */

/* The files whose functions a log names: how many of them are one account's. */
#include "fake_tickets.h"
#include "trace_symbols.h"
#include "unit_test.h"

#define SHARE 8192 /* half of 16,384 */

static struct symbol_scope *scope_of(struct trace_symbols *symbols, struct module *module,
                                     size_t number, uint32_t owner)
{
    *module = (struct module){.identity = {.inode = number + 1}};
    struct module_ticket *ticket = &tickets[ticket_count];
    fake_tickets_ready(ticket_count++, module);
    return trace_symbols_scope(symbols, ticket, owner, "/bin/own", (const uint8_t *)"", 0);
}

/* What nothing uses stays known until the next log begins, and counts until then. */
TEST(one_account_has_half_of_the_files_of_a_log)
{
    struct trace_symbols *symbols = trace_symbols_new(NULL);
    struct module *modules = calloc(TICKETS_MAX, sizeof *modules);
    assert_non_null(modules);
    fake_tickets_reset();
    for (size_t i = 0; i < SHARE; i++) {
        struct symbol_scope *scope = scope_of(symbols, &modules[i], i, 1000);
        assert_non_null(scope);
        trace_symbols_leave(scope);
    }
    assert_null(scope_of(symbols, &modules[SHARE], SHARE, 1000));
    struct symbol_scope *others = scope_of(symbols, &modules[SHARE + 1], SHARE + 1, 1001);
    assert_non_null(others);
    trace_symbols_begin(symbols);
    struct symbol_scope *again = scope_of(symbols, &modules[SHARE + 2], SHARE, 1000);
    assert_non_null(again);
    trace_symbols_leave(again);
    trace_symbols_leave(others);
    fake_tickets_check();
    (void)trace_symbols_free(symbols);
    free(modules);
}
