/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A table of addresses. Every one has a chain, empty at first; filling the chains is left to
 * client/lines.
 */
#include "inlines.h"

#include "grow.h"

void inlines_done(struct inlines *table)
{
    intern_done(&table->addresses);
    free(table->chains);
    free(table->frames);
    *table = (struct inlines){0};
}

int inlines_add(struct inlines *table, uint32_t module, uint64_t vaddr)
{
    const struct inline_address address = {.vaddr = vaddr, .module = module};
    uint32_t item = 0;
    if (intern_add(&table->addresses, &address, sizeof address, &item) < 0 ||
        grow(table->chains, table->chain_capacity, (size_t)item + 1) < 0) {
        return -ENOMEM;
    }
    if (item == table->chain_count) {
        table->chains[table->chain_count++] = (struct inline_chain){0};
    }
    return 0;
}

const struct inline_frame *inlines_find(const struct inlines *table, uint32_t module,
                                        uint64_t vaddr, size_t *ret_count)
{
    const struct inline_address address = {.vaddr = vaddr, .module = module};
    *ret_count = 0;
    uint32_t item = intern_find(&table->addresses, &address, sizeof address);
    if (item >= table->chain_count || table->chains[item].count == 0) {
        return NULL;
    }
    *ret_count = table->chains[item].count;
    return &table->frames[table->chains[item].first];
}
