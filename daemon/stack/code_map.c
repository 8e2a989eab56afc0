/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Finds the rule of an address in a process. There is one code_file for each mapped_file whose
 * table was wanted or prefetched. It holds its tickets for as long as the file is mapped, so the
 * tables stay. A request that the cache refused, because it had too much to do, is repeated once a
 * second.
 *
 * A file has two tables: that of its own call frames, with rows for small stretches that these do
 * not cover, and one with rows for all such code. To make the second one takes several times as
 * long, and most stacks do without it. It is asked for when a frame falls into a large stretch.
 *
 * The rules of addresses are copied into the address cache. A process can execute 64-bit and 32-bit
 * code: a cached rule is for one of them.
 */
#include "code_map.h"

#include "cleanup.h"
#include "clock.h"
#include "mapping_query.h"
#include "quota.h"
#include "seeded_hash.h"

#include <string.h>

#define PREFETCH_MAX ((size_t)4096)
#define RETRY_NS     NS_PER_S
#define POLL_MAX     ((size_t)8192) /* files that one poll looks at */
#define ASKS_MAX     256            /* from one poll to the next; some 10 us each */
#define ASK_PARTS    2
#define FILE_BITS    64 /* files beyond these share them */

struct code_table {
    struct module_ticket *ticket; /* owned; NULL: not asked for, or refused */
    const struct cfi_table *cfi;  /* once ready; the ticket keeps it */
    uint64_t retry_ns;            /* refused, it is not asked for again before this */
    bool wanted;                  /* by a frame, not only ahead of time */
    bool has_frames;              /* that wait for it */
    bool failed;                  /* there is none */
};

struct code_file {
    const struct mapped_file *mapped; /* NULL: it is gone, and the list has this alone */
    struct code_file *next_waiting;
    uint64_t bit;          /* code_map_awaited() */
    struct code_table own; /* MODULE_CFI */
    struct code_table all; /* MODULE_CODE: asked for when the first is there, and does not do */
    bool waiting;          /* on the list */
};

struct code_map {
    struct module_cache *cache;
    struct code_file *waiting;
    struct counters counters;
    uint64_t unready_count;
    uint64_t awaited;           /* the bit of the file that was pending last */
    size_t file_count;          /* all that were made */
    struct code_file **goes_on; /* where the next poll does; NULL: at the first */
    struct quota asks;          /* of a round */
    struct address_cache *addresses;
    struct cfi_rule rule; /* of the last lookup, if its answer is not for the cache */
};

struct code_map *code_map_new(struct module_cache *cache, struct address_cache *addresses)
{
    struct code_map *map = calloc(1, sizeof *map);
    if (map != NULL) {
        map->cache = cache;
        map->addresses = addresses;
        map->asks.max = ASKS_MAX;
        map->asks.parts = ASK_PARTS;
    }
    return map;
}

static void free_file(struct code_file *file)
{
    module_ticket_release(file->own.ticket);
    module_ticket_release(file->all.ticket);
    free(file);
}

struct code_map *code_map_free(struct code_map *map)
{
    while (map != NULL && map->waiting != NULL) {
        struct code_file *file = map->waiting;
        map->waiting = file->next_waiting;
        free_file(file);
    }
    free(map);
    return NULL;
}

static bool is_decided(const struct code_table *table)
{
    return table->cfi != NULL || table->failed;
}

static bool is_awaited(const struct code_table *table)
{
    return table->ticket != NULL && !is_decided(table);
}

/* The code_file of a mapping's file, made if need be. NULL: no memory. */
static struct code_file *meet_file(struct code_map *map, const struct mapping *mapping)
{
    if (mapping->file->code_file != NULL) {
        return mapping->file->code_file;
    }
    struct code_file *file = calloc(1, sizeof *file);
    if (file != NULL) {
        file->mapped = mapping->file;
        file->bit = UINT64_C(1) << map->file_count++ % FILE_BITS;
        mapping->file->code_file = file;
    }
    return file;
}

/* The account of a process; until it is known, the common one of all unknown processes. */
static uint32_t process_account(const struct process *process)
{
    return process->owner_known ? process->owner : UINT32_MAX;
}

/* Asks for one of the tables of a mapping's file. Asked again, because a frame needs what was only
 * asked for ahead of time, it moves up. */
static void ask(struct code_map *map, struct code_file *file, struct code_table *table,
                enum module_urgency urgency, const struct process *process,
                const struct mapping *mapping)
{
    enum module_table kind = table == &file->all ? MODULE_CODE : MODULE_CFI;
    /* A frame that needs a rule there will need a name. */
    bool both = kind == MODULE_CFI && urgency == MODULE_WANTED && !table->wanted;
    struct module_ticket *ticket =
        both ? mapping_request_both(map->cache, process, mapping)
             : mapping_request(map->cache, kind, urgency, process, mapping);
    table->wanted = urgency == MODULE_WANTED;
    if (ticket == NULL) {
        return;
    }
    module_ticket_release(table->ticket);
    table->ticket = ticket;
    if (!file->waiting) {
        file->waiting = true;
        file->next_waiting = map->waiting;
        map->waiting = file;
    }
}

/* Takes a table that has been made, unless it may be that of what is there since the mapping that
 * is meant was. */
static void take_table(const struct code_file *file, struct code_table *table)
{
    uint64_t shown_ns = module_ticket_shown_ns(table->ticket);
    enum mapping_fate fate =
        file->mapped == NULL ? MAPPING_REPLACED : mapped_file_fate(file->mapped, shown_ns);
    if (shown_ns == 0 || fate == MAPPING_KEPT) {
        table->cfi = &module_ticket_module(table->ticket)->cfi;
    } else {
        table->failed = fate == MAPPING_REPLACED;
    }
}

static void take_answer(const struct code_file *file, struct code_table *table)
{
    if (!is_awaited(table)) {
        return;
    }
    switch (module_ticket_state(table->ticket)) {
    case MODULE_PENDING:
        break;
    case MODULE_READY:
        take_table(file, table);
        break;
    case MODULE_FAILED:
        table->failed = module_ticket_failure(table->ticket) != MODULE_FAILURE_LIMIT;
        if (!table->failed) {
            module_ticket_release(take_ptr(table->ticket));
        }
        break;
    }
}

/* For 32 bits the kernel builds most of its vdso without call frames, and without frame pointers.
 */
static enum unwind_code no_rule(const struct mapping *mapping)
{
    return mapping_is_vdso_32bit(mapping) ? UNWIND_CODE_OPAQUE : UNWIND_CODE_NO_RULE;
}

/* The rule of an address in a table that is decided; NULL: it says nothing of the address, and the
 * other table of the file would not either. */
static const struct cfi_rule *find_in_table(const struct code_table *table,
                                            const struct mapping *mapping, uint64_t pc,
                                            bool is_32bit, uint64_t *ret_vaddr)
{
    bool is_there =
        !table->failed && table->cfi->is_32bit == is_32bit &&
        cfi_table_vaddr(table->cfi, mapping->file_offset + (pc - mapping->start), ret_vaddr);
    return is_there ? cfi_table_find(table->cfi, *ret_vaddr) : NULL;
}

/* Whether a table of a mapping's file is decided; if not, it is asked for when that is due. */
static bool is_ready(struct code_map *map, struct code_file *file, struct code_table *table,
                     const struct process *process, const struct mapping *mapping,
                     const struct code_moment *moment)
{
    take_answer(file, table);
    if (is_decided(table)) {
        return true;
    }
    bool due = !table->wanted || (table->ticket == NULL && table->retry_ns <= moment->time_ns);
    /* What is not asked for in this round is in the next one. */
    if (due && quota_take(&map->asks, process_account(process), 1)) {
        table->retry_ns = moment->time_ns + RETRY_NS;
        ask(map, file, table, MODULE_WANTED, process, mapping);
        take_answer(file, table);
    }
    return is_decided(table);
}

static enum unwind_code find_mapped(struct code_map *map, struct process *process,
                                    struct mapping *mapping, uint64_t pc,
                                    const struct code_moment *moment, struct cfi_rule *ret)
{
    if (!mapping_has_module(mapping)) {
        return UNWIND_CODE_NO_RULE;
    }
    struct code_file *file = meet_file(map, mapping);
    if (file == NULL) {
        return UNWIND_CODE_PENDING;
    }
    if (!is_ready(map, file, &file->own, process, mapping, moment)) {
        return UNWIND_CODE_PENDING;
    }
    uint64_t vaddr = 0;
    const struct cfi_rule *rule = find_in_table(&file->own, mapping, pc, moment->is_32bit, &vaddr);
    /* Rows from instructions are made for 64 bits only. */
    if (rule != NULL && !cfi_rule_covers(rule) && !moment->is_32bit &&
        !cfi_table_is_settled(file->own.cfi, vaddr)) {
        if (!is_ready(map, file, &file->all, process, mapping, moment)) {
            return UNWIND_CODE_PENDING;
        }
        const struct cfi_rule *made = find_in_table(&file->all, mapping, pc, false, &vaddr);
        rule = made != NULL ? made : rule;
    }
    if (rule == NULL || rule->kind == CFI_NONE || rule->kind == CFI_UNSUPPORTED) {
        return no_rule(mapping);
    }
    *ret = *rule;
    return UNWIND_CODE_RULE;
}

/* The answer for a frame whose table is not there: it waits if the table is on its way. */
static enum unwind_code wait_for_file(struct code_map *map, const struct mapping *mapping,
                                      bool settle)
{
    struct code_file *file = mapping->file->code_file;
    struct code_table *table = NULL;
    if (file != NULL) {
        table = is_decided(&file->own) ? &file->all : &file->own;
    }
    if (settle || table == NULL || !is_awaited(table)) {
        map->unready_count++;
        return UNWIND_CODE_LATE;
    }
    table->has_frames = true;
    map->awaited = file->bit;
    return UNWIND_CODE_PENDING;
}

enum unwind_code code_map_find(struct code_map *map, struct process *process, uint64_t pc,
                               const struct code_moment *moment, const struct cfi_rule **ret)
{
    map->counters.code_lookups++;
    struct address_place *place = address_cache_place(map->addresses, process->generation, pc);
    if (address_place_is(place, process->generation, pc, moment->time_ns) && place->has_code &&
        place->is_32bit == moment->is_32bit) {
        map->counters.code_lookups_kept++;
        *ret = &place->rule;
        return (enum unwind_code)place->code;
    }
    struct mapping *mapping = process_find_mapping(process, pc, moment->time_ns);
    if (mapping == NULL) {
        return UNWIND_CODE_NONE;
    }
    map->rule = (struct cfi_rule){.kind = CFI_NONE};
    *ret = &map->rule;
    enum unwind_code code = find_mapped(map, process, mapping, pc, moment, &map->rule);
    if (code == UNWIND_CODE_PENDING) {
        return wait_for_file(map, mapping, moment->settle);
    }
    /* What has ended is not what the address stands for in this generation. */
    if (mapping->to_ns == TIME_OPEN_NS) {
        address_place_take(place, process->generation, pc, mapping->from_ns);
        place->rule = map->rule;
        place->code = (uint8_t)code;
        place->has_code = true;
        place->is_32bit = moment->is_32bit;
    }
    return code;
}

/* A file that is mapped somewhere, and by how many. */
struct candidate {
    struct process *process; /* one of those that map it */
    struct mapping *mapping;
    size_t user_count;
};

struct candidates {
    struct candidate items[PREFETCH_MAX];
    size_t count;
    uint16_t places[2 * PREFETCH_MAX]; /* by hash: an index into items and 1 more; 0: free */
};

static bool is_same_file(const struct mapped_file *a, const struct mapped_file *b)
{
    return a->inode == b->inode && a->device_major == b->device_major &&
           a->device_minor == b->device_minor;
}

static void note_candidate(struct process *process, struct mapping *mapping, void *userdata)
{
    struct candidates *candidates = userdata;
    const struct mapped_file *file = mapping->file;
    if (!mapping_has_module(mapping) || file->inode == 0 || candidates->count == PREFETCH_MAX) {
        return;
    }
    const uint64_t words[] = {(uint64_t)file->device_major << 32 | file->device_minor, file->inode};
    size_t place = seeded_hash(words, sizeof words) % (2 * PREFETCH_MAX);
    for (;; place++) {
        uint16_t *number = &candidates->places[place % (2 * PREFETCH_MAX)];
        if (*number == 0) {
            candidates->items[candidates->count++] =
                (struct candidate){.process = process, .mapping = mapping, .user_count = 1};
            *number = (uint16_t)candidates->count;
            return;
        }
        struct candidate *known = &candidates->items[*number - 1];
        if (is_same_file(known->mapping->file, file)) {
            known->user_count++;
            return;
        }
    }
}

static int compare_candidates(const void *a, const void *b)
{
    const struct candidate *left = a;
    const struct candidate *right = b;
    return left->user_count > right->user_count ? -1 : left->user_count < right->user_count;
}

void code_map_prefetch(struct code_map *map, struct process_table *processes)
{
    cleanup_(freep) struct candidates *candidates = calloc(1, sizeof *candidates);
    if (candidates == NULL) {
        return;
    }
    process_table_each_mapping(processes, note_candidate, candidates);
    qsort(candidates->items, candidates->count, sizeof candidates->items[0], compare_candidates);
    for (size_t i = 0; i < candidates->count; i++) {
        const struct candidate *candidate = &candidates->items[i];
        if (candidate->mapping->file->code_file != NULL) {
            continue;
        }
        struct code_file *file = meet_file(map, candidate->mapping);
        if (file != NULL) {
            ask(map, file, &file->own, MODULE_PREFETCH, candidate->process, candidate->mapping);
        }
    }
}

uint64_t code_map_awaited(const struct code_map *map)
{
    return map->awaited;
}

/* Takes up the answer of a table, if it has come. Returns the file's bit if frames wait for it. */
static uint64_t poll_table(const struct code_file *file, struct code_table *table)
{
    take_answer(file, table);
    bool is_news = table->has_frames && !is_awaited(table);
    table->has_frames = table->has_frames && !is_news;
    return is_news ? file->bit : 0;
}

uint64_t code_map_poll(struct code_map *map)
{
    uint64_t answered = 0;
    struct code_file **link = map->goes_on != NULL ? map->goes_on : &map->waiting;
    quota_clear(&map->asks);
    for (size_t i = 0; i < POLL_MAX && *link != NULL; i++) {
        struct code_file *file = *link;
        answered |= poll_table(file, &file->own) | poll_table(file, &file->all);
        if ((is_awaited(&file->own) || is_awaited(&file->all)) && file->mapped != NULL) {
            link = &file->next_waiting;
            continue;
        }
        *link = file->next_waiting;
        file->waiting = false;
        if (file->mapped == NULL) {
            free_file(file);
        }
    }
    map->goes_on = *link == NULL ? NULL : link;
    return answered;
}

void code_map_file_gone(struct mapped_file *mapped)
{
    struct code_file *file = mapped->code_file;
    mapped->code_file = NULL;
    mapping_file_gone(mapped);
    if (file != NULL && file->waiting) {
        file->mapped = NULL;
    } else if (file != NULL) {
        free_file(file);
    }
}

const struct counters *code_map_counters(const struct code_map *map)
{
    return &map->counters;
}

uint64_t code_map_unready_count(const struct code_map *map)
{
    return map->unready_count;
}
