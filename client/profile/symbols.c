/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The functions of the modules of a recording. JSON's numbers are doubles, exact to 2^53, so larger
 * addresses are texts. Functions may overlap. A lookup finds the last one that begins at or before
 * the address. If that ends too early, the lookup follows links to earlier functions that end
 * later. Of a function with n such, `outer` leads to the next and `jump` past many, as in a skip
 * list: a lookup takes O(log n) steps.
 */
#include "symbols.h"

#include "cleanup.h"
#include "grow.h"
#include "json.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

void symbols_done(struct symbols *table)
{
    intern_done(&table->modules);
    free(table->entries);
    *table = (struct symbols){0};
}

int symbols_module(struct symbols *table, uint32_t segment, const char *identity,
                   uint32_t *ret_module)
{
    cleanup_(freep) char *key = NULL;
    int key_bytes = asprintf(&key, "%" PRIu32 ":%s", segment, identity);
    if (key_bytes < 0) {
        key = NULL;
        return -ENOMEM;
    }
    int r = intern_add(&table->modules, key, (size_t)key_bytes, ret_module);
    return r == 0 && *ret_module >= SYMBOLS_MODULES_MAX ? -ENOMEM : r;
}

static int find_module(struct symbols *table, uint32_t segment, const char *build_id,
                       const char *name, uint32_t *ret_module)
{
    cleanup_(freep) char *identity = NULL;
    if (asprintf(&identity, "%s:%s", build_id, name) < 0) {
        identity = NULL;
        return -ENOMEM;
    }
    return symbols_module(table, segment, identity, ret_module);
}

uint32_t symbols_find_module(const struct symbols *table, uint32_t segment, const char *build_id,
                             const char *name)
{
    cleanup_(freep) char *key = NULL;
    int key_bytes = asprintf(&key, "%" PRIu32 ":%s:%s", segment, build_id, name);
    if (key_bytes < 0) {
        key = NULL;
        return INTERN_NONE;
    }
    return intern_find(&table->modules, key, (size_t)key_bytes);
}

struct lines {
    struct symbols *table;
    struct intern *texts;
    uint32_t segment;
};

static int add_entry(const cJSON *line, void *userdata)
{
    const struct lines *lines = userdata;
    struct symbols *table = lines->table;
    const char *build_id = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(line, "build_id"));
    const char *module = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(line, "module"));
    const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(line, "name"));
    struct symbol_entry entry = {.order = (uint32_t)table->count};
    if (build_id == NULL || module == NULL || name == NULL || name[0] == '\0' ||
        !data_read_u64(cJSON_GetObjectItemCaseSensitive(line, "start"), &entry.start) ||
        !data_read_u64(cJSON_GetObjectItemCaseSensitive(line, "size"), &entry.size_bytes)) {
        table->malformed_count++;
        return 0;
    }
    if (entry.size_bytes == 0) {
        return 0; /* it holds no address */
    }
    if (find_module(table, lines->segment, build_id, module, &entry.module) < 0 ||
        demangle_add(&table->demangler, lines->texts, name, &entry.name) < 0 ||
        table->count >= UINT32_MAX || grow(table->entries, table->capacity, table->count + 1) < 0) {
        return -ENOMEM;
    }
    table->entries[table->count++] = entry;
    return 0;
}

int symbols_add_lines(struct symbols *table, struct intern *texts, uint32_t segment,
                      const struct fxt_data *data)
{
    struct lines lines = {table, texts, segment};
    return data_each_line(data, add_entry, &lines);
}

static int compare_entries(const void *left, const void *right)
{
    const struct symbol_entry *a = left;
    const struct symbol_entry *b = right;
    if (a->module != b->module) {
        return a->module < b->module ? -1 : 1;
    }
    if (a->start != b->start) {
        return a->start < b->start ? -1 : 1;
    }
    return (a->order > b->order) - (a->order < b->order);
}

/* The last address that a function holds. */
static uint64_t last_of(const struct symbol_entry *entry)
{
    uint64_t more = entry->size_bytes - 1;
    return more > UINT64_MAX - entry->start ? UINT64_MAX : entry->start + more;
}

/* Links a function to the earlier ones of its module that end later; those before it are linked. */
static void link_entry(struct symbol_entry *entries, uint32_t number)
{
    struct symbol_entry *entry = &entries[number];
    uint32_t outer = number;
    if (number > 0 && entries[number - 1].module == entry->module) {
        outer = number - 1;
        while (outer != number && last_of(&entries[outer]) <= last_of(entry)) {
            outer = entries[outer].outer == outer ? number : entries[outer].outer;
        }
    }
    entry->outer = outer;
    entry->jump = outer;
    entry->depth = 0;
    if (outer != number) {
        const struct symbol_entry *near = &entries[outer];
        const struct symbol_entry *far = &entries[near->jump];
        entry->depth = near->depth + 1;
        if (near->depth - far->depth == far->depth - entries[far->jump].depth) {
            entry->jump = far->jump;
        }
    }
}

void symbols_seal(struct symbols *table)
{
    if (table->count > 0) {
        qsort(table->entries, table->count, sizeof *table->entries, compare_entries);
    }
    for (size_t i = 0; i < table->count; i++) {
        link_entry(table->entries, (uint32_t)i);
    }
}

/* The last entry of the module that begins at `address` or below; else one of a lower module, or
 * NULL. */
static const struct symbol_entry *find_last(const struct symbols *table, uint32_t module,
                                            uint64_t address)
{
    const struct symbol_entry wanted = {.module = module, .order = UINT32_MAX, .start = address};
    size_t low = 0;
    size_t high = table->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_entries(&table->entries[middle], &wanted) <= 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low == 0 ? NULL : &table->entries[low - 1];
}

const struct symbol_entry *symbols_find(const struct symbols *table, uint32_t module,
                                        uint64_t address)
{
    const struct symbol_entry *entry = find_last(table, module, address);
    if (entry == NULL || entry->module != module) {
        return NULL;
    }
    while (address - entry->start >= entry->size_bytes) {
        const struct symbol_entry *outer = &table->entries[entry->outer];
        const struct symbol_entry *jump = &table->entries[entry->jump];
        if (outer == entry) {
            return NULL;
        }
        entry = last_of(jump) < address ? jump : outer;
    }
    return entry;
}

bool symbols_know(const struct symbols *table, uint32_t module)
{
    const struct symbol_entry *entry = find_last(table, module, UINT64_MAX);
    return entry != NULL && entry->module == module;
}
