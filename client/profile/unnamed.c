/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A table of addresses. Every one has a function, empty at first; filling it in is left to
 * client/lines.
 */
#include "unnamed.h"

#include "grow.h"

void unnamed_done(struct unnamed *table)
{
    intern_done(&table->addresses);
    free(table->functions);
    *table = (struct unnamed){0};
}

/* What is known of an address of the table. */
static const struct unnamed_function *get_function(const struct unnamed *table, uint32_t item)
{
    const struct unnamed_function *function = &table->functions[item];
    return function->end <= function->start ? NULL : function;
}

int unnamed_add(struct unnamed *table, uint32_t module, uint64_t vaddr,
                const struct unnamed_function **ret)
{
    const struct inline_address address = {.vaddr = vaddr, .module = module};
    uint32_t item = 0;
    size_t known_count = table->addresses.item_count;
    if (intern_add(&table->addresses, &address, sizeof address, &item) < 0 ||
        grow(table->functions, table->capacity, (size_t)item + 1) < 0) {
        return -ENOMEM;
    }
    if (item == known_count) {
        table->functions[item] = (struct unnamed_function){0};
    }
    *ret = get_function(table, item);
    return 0;
}

const struct unnamed_function *unnamed_find(const struct unnamed *table, uint32_t module,
                                            uint64_t vaddr)
{
    const struct inline_address address = {.vaddr = vaddr, .module = module};
    uint32_t item = intern_find(&table->addresses, &address, sizeof address);
    return item == INTERN_NONE ? NULL : get_function(table, item);
}
