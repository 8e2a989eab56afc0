/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reads the tables of a compiler's `switch`. Shortly before such a jump an instruction compares the
 * index with the table's last one, or masks it. The table has addresses, at a fixed place or one
 * that an instruction before has computed, or distances from itself, of 4 bytes. Each entry has to
 * lead to code, and one of them into the function itself. Where anything else is found nothing is
 * known: the jump may lead anywhere.
 */
#include "code_tables.h"

#include "array.h"
#include "segments.h"

#include <errno.h>
#include <string.h>

#define BACK_SITES_MAX  32 /* from the jump to the comparison, and to the table's address */
#define LEAVE_SITES_MAX 4  /* from the comparison to the branch */
#define ENTRIES_MAX     1024
#define VISITS_A_TABLE  256  /* a look back, and a read of the file */
#define TARGETS_MAX     8192 /* of a region */
#define DISTANCE_BYTES  sizeof(int32_t)

/* What the instructions before a jump tell of its table. */
struct found {
    uint64_t base;      /* 0: no address was computed */
    unsigned int index; /* the register that has it, as far as the look back has come */
    size_t entry_count; /* 0: nothing limits it so far */
    bool is_lost;       /* the index comes from elsewhere */
};

/* Whether a conditional jump uses what an instruction has compared. */
static bool is_used(const struct code_region *region, size_t number)
{
    for (size_t i = number + 1; i < region->site_count && i - number <= LEAVE_SITES_MAX; i++) {
        if (region->sites[i].effect.flow == CODE_BRANCH) {
            return true;
        }
    }
    return false;
}

static bool changes(const struct code_effect *effect, unsigned int number)
{
    bool is_result =
        effect->action == CODE_COPY || effect->action == CODE_LOAD || effect->action == CODE_POP;
    return (is_result && effect->to == number) || (effect->changes >> number & 1) != 0;
}

/* One instruction further back, where the index is still to be limited. */
static void follow_index(struct found *found, const struct code_region *region, size_t number)
{
    const struct code_effect *effect = &region->sites[number].effect;
    bool is_limit = effect->sight == CODE_SIGHT_LIMIT && is_used(region, number);
    bool is_mask = effect->sight == CODE_SIGHT_MASK;
    if ((is_limit || is_mask) && effect->to == found->index && effect->offset < ENTRIES_MAX) {
        found->entry_count = (size_t)effect->offset + 1;
    } else if (changes(effect, found->index)) {
        bool is_copy = effect->action == CODE_COPY && effect->offset == 0;
        found->is_lost = !is_copy && effect->sight != CODE_SIGHT_EXTEND;
        found->index = effect->from;
    }
}

/* Goes back from a jump: first to the load of a distance, where the table has such, then to what
 * limits its index, and to where the table's address is computed. */
static struct found look_back(const struct code_region *region, size_t number)
{
    const struct code_effect *jump = &region->sites[number].effect;
    bool has_index = jump->sight == CODE_SIGHT_TABLE;
    unsigned int base = has_index ? jump->from : CODE_REGISTER_NONE;
    struct found found = {.index = jump->to};
    for (size_t i = number; !found.is_lost && i-- > 0 && number - i <= BACK_SITES_MAX;) {
        const struct code_effect *effect = &region->sites[i].effect;
        bool is_address = effect->flow == CODE_NEXT && effect->target != 0 &&
                          (base == CODE_REGISTER_NONE || (effect->changes >> base & 1) != 0);
        if (found.base == 0 && is_address) {
            found.base = effect->target;
        }
        if (!has_index && effect->sight == CODE_SIGHT_ENTRY) {
            has_index = true;
            found.index = effect->from;
        } else if (has_index && found.entry_count == 0) {
            follow_index(&found, region, i);
        }
    }
    return found;
}

/* The address that an entry leads to. */
static uint64_t entry_target(const uint8_t *bytes, size_t number, size_t entry_bytes, uint64_t base)
{
    uint64_t address = 0;
    int32_t distance = 0;
    if (entry_bytes == sizeof address) {
        memcpy(&address, bytes + number * sizeof address, sizeof address);
        return address;
    }
    memcpy(&distance, bytes + number * sizeof distance, sizeof distance);
    return base + (uint64_t)(int64_t)distance;
}

/* Where the function of an instruction lies. */
static bool is_in_function(const struct code_region *region, const struct code_site *site,
                           uint64_t address)
{
    const struct code_site *to = code_region_find(region, address);
    return to != NULL && to->function == site->function;
}

/* How many of the entries, from the first on, lead to code; 0 where none of these leads into the
 * function itself. */
static size_t count_entries(const struct code_region *region, const struct code_site *site,
                            const struct elf_file *file, const uint64_t *targets, size_t count)
{
    bool is_own = false;
    size_t good = 0;
    while (good < count &&
           segments_find(file->segments, file->segment_count, targets[good]) != NULL) {
        is_own = is_own || is_in_function(region, site, targets[good]);
        good++;
    }
    return is_own ? good : 0;
}

static int add_table(struct code_region *region, struct code_site *site, const uint64_t *targets,
                     size_t count, size_t *capacities)
{
    void *tables = region->tables;
    int r = array_grow(&tables, &capacities[0], region->table_count + 1, sizeof *region->tables);
    region->tables = tables;
    if (r < 0) {
        return r;
    }
    void *all = region->targets;
    r = array_grow(&all, &capacities[1], region->target_count + count, sizeof *region->targets);
    region->targets = all;
    if (r < 0) {
        return r;
    }
    memcpy(region->targets + region->target_count, targets, count * sizeof *targets);
    region->tables[region->table_count++] = (struct code_table){region->target_count, count};
    region->target_count += count;
    site->table = (uint32_t)region->table_count;
    for (size_t i = 0; i < count; i++) {
        const struct code_site *to = code_region_find(region, targets[i]);
        if (to != NULL) {
            struct code_site *target = &region->sites[code_region_number(region, to)];
            target->is_target = true;
            target->is_ahead = target->is_ahead || target > site;
        }
    }
    return 0;
}

/* Counts what the table of a jump costs. False: no more may be read. */
static bool take_visits(const struct code_region *region, size_t entry_count)
{
    uint64_t visits = VISITS_A_TABLE + entry_count;
    bool is_allowed = visits <= *region->left_visits;
    *region->left_visits -= is_allowed ? visits : 0;
    return is_allowed;
}

/* Returns 0, also where nothing is known of the table, or -ENOMEM. */
static int read_table(struct code_region *region, size_t number, const struct elf_file *file,
                      size_t *capacities)
{
    struct code_site *site = &region->sites[number];
    bool is_words = site->effect.sight == CODE_SIGHT_TABLE;
    bool is_fixed = is_words && site->effect.from == CODE_REGISTER_NONE;
    struct found found = look_back(region, number);
    uint64_t table =
        (is_fixed ? 0 : found.base) + (is_words ? (uint64_t)(int64_t)site->effect.offset : 0);
    if ((!is_fixed && found.base == 0) || found.entry_count == 0 ||
        region->target_count + found.entry_count > TARGETS_MAX) {
        return 0;
    }
    if (!take_visits(region, found.entry_count)) {
        return 0;
    }
    uint8_t bytes[ENTRIES_MAX * sizeof(uint64_t)];
    uint64_t targets[ENTRIES_MAX];
    size_t entry_bytes = is_words ? sizeof(uint64_t) : DISTANCE_BYTES;
    size_t count =
        elf_file_read_mapped(file, table, bytes, found.entry_count * entry_bytes) / entry_bytes;
    for (size_t i = 0; i < count; i++) {
        targets[i] = entry_target(bytes, i, entry_bytes, table);
    }
    size_t good = count_entries(region, site, file, targets, count);
    /* A comparison may also be with the number of the entries. */
    bool is_whole = good > 0 && good + 1 >= found.entry_count;
    return is_whole ? add_table(region, site, targets, good, capacities) : 0;
}

int code_tables_read(struct code_region *region, const struct elf_file *file)
{
    size_t capacities[2] = {0, 0};
    int r = 0;
    for (size_t i = 0; r == 0 && i < region->site_count; i++) {
        bool is_bare = region->sites[i].row->kind == CFI_NONE;
        if (region->sites[i].effect.flow == CODE_INDIRECT && is_bare) {
            r = read_table(region, i, file, capacities);
        }
    }
    return r;
}
