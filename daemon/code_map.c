/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One code_file for each mapped_file with code that a frame fell in or that was prefetched. Its
 * ticket is held for as long as the file is mapped, so the table it shows stays.
 *
 * What was found for an address is remembered in a fixed table, one place for each hash: a process
 * gets a new generation whenever its mappings change, so what is remembered under the present one
 * holds for every sample since it began. Rules are copied there; nothing in it points anywhere.
 */
#include "code_map.h"

#include "cleanup.h"
#include "mapping_query.h"

#include <string.h>

#define PLACES_COUNT ((size_t)16384) /* a power of two */
#define PREFETCH_MAX ((size_t)4096)

struct place {
    uint64_t generation; /* 0: free */
    uint64_t pc;
    uint64_t from_ns;
    struct cfi_rule rule;
    uint8_t code; /* enum unwind_code */
};

struct code_file {
    struct code_file *next_waiting;
    struct module_ticket *ticket;  /* owned */
    const struct cfi_table *table; /* once ready; the ticket keeps it */
    bool wanted;                   /* by a frame, not only ahead of time */
    bool failed;
    bool waiting; /* on the list */
    bool orphan;  /* its mapped_file is gone: the list has it alone */
};

struct code_map {
    struct module_cache *cache;
    struct code_file *waiting;
    struct code_map_counts counts;
    struct place places[PLACES_COUNT];
};

struct code_map *code_map_new(struct module_cache *cache)
{
    struct code_map *map = calloc(1, sizeof *map);
    if (map != NULL) {
        map->cache = cache;
    }
    return map;
}

static void free_file(struct code_file *file)
{
    module_ticket_release(file->ticket);
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

/* Asks for the table of a mapping's file. NULL: no memory; asked again with the next frame. */
static struct code_file *meet_file(struct code_map *map, const struct process *process,
                                   const struct mapping *mapping, enum module_urgency urgency)
{
    struct code_file *file = calloc(1, sizeof *file);
    if (file == NULL) {
        return NULL;
    }
    file->ticket = mapping_request(map->cache, MODULE_CFI, urgency, process, mapping);
    file->wanted = urgency == MODULE_WANTED;
    file->failed = file->ticket == NULL;
    if (!file->failed) {
        file->waiting = true;
        file->next_waiting = map->waiting;
        map->waiting = file;
    }
    mapping->file->code_file = file;
    return file;
}

/* A frame needs what was only asked for ahead of time: asked again, it moves up. */
static void hasten(struct code_map *map, struct code_file *file, const struct process *process,
                   const struct mapping *mapping)
{
    struct module_ticket *ticket =
        mapping_request(map->cache, MODULE_CFI, MODULE_WANTED, process, mapping);
    file->wanted = true;
    if (ticket != NULL) {
        module_ticket_release(file->ticket);
        file->ticket = ticket;
    }
}

static void take_answer(struct code_file *file)
{
    switch (module_ticket_state(file->ticket)) {
    case MODULE_PENDING:
        break;
    case MODULE_READY:
        file->table = &module_ticket_module(file->ticket)->cfi;
        break;
    case MODULE_FAILED:
        file->failed = true;
        break;
    }
}

static enum unwind_code find_in_file(const struct code_file *file, const struct mapping *mapping,
                                     uint64_t pc, struct cfi_rule *ret)
{
    uint64_t vaddr = 0;
    if (file->failed ||
        !cfi_table_vaddr(file->table, mapping->file_offset + (pc - mapping->start), &vaddr)) {
        return UNWIND_CODE_NO_RULE;
    }
    const struct cfi_rule *rule = cfi_table_find(file->table, vaddr);
    if (rule->kind == CFI_NONE || rule->kind == CFI_UNSUPPORTED) {
        return UNWIND_CODE_NO_RULE;
    }
    *ret = *rule;
    return UNWIND_CODE_RULE;
}

static enum unwind_code find_mapped(struct code_map *map, struct process *process,
                                    struct mapping *mapping, uint64_t pc, struct cfi_rule *ret)
{
    if (!mapping_has_module(mapping)) {
        return UNWIND_CODE_NO_RULE;
    }
    struct code_file *file = mapping->file->code_file;
    if (file == NULL) {
        file = meet_file(map, process, mapping, MODULE_WANTED);
    }
    if (file != NULL && file->table == NULL && !file->failed) {
        take_answer(file);
    }
    if (file == NULL) {
        return UNWIND_CODE_PENDING;
    }
    if (file->table == NULL && !file->failed) {
        if (!file->wanted) {
            hasten(map, file, process, mapping);
        }
        return UNWIND_CODE_PENDING;
    }
    return find_in_file(file, mapping, pc, ret);
}

static struct place *find_place(struct code_map *map, uint64_t generation, uint64_t pc)
{
    uint64_t hash = (pc ^ generation << 40) * UINT64_C(0x9E3779B97F4A7C15);
    return &map->places[hash >> 40 & (PLACES_COUNT - 1)];
}

enum unwind_code code_map_find(struct code_map *map, struct process *process, uint64_t pc,
                               uint64_t time_ns, bool settle, const struct cfi_rule **ret)
{
    map->counts.find_count++;
    struct place *place = find_place(map, process->generation, pc);
    if (place->generation == process->generation && place->pc == pc && place->from_ns <= time_ns) {
        map->counts.hit_count++;
        *ret = &place->rule;
        return (enum unwind_code)place->code;
    }
    struct mapping *mapping = process_find_mapping(process, pc, time_ns);
    if (mapping == NULL) {
        map->counts.unmapped_count++;
        return UNWIND_CODE_NONE;
    }
    struct cfi_rule rule = {.kind = CFI_NONE};
    enum unwind_code code = find_mapped(map, process, mapping, pc, &rule);
    if (code == UNWIND_CODE_PENDING) {
        map->counts.unready_count += settle;
        return settle ? UNWIND_CODE_NO_RULE : code;
    }
    /* What has ended is not what the address stands for in this generation. */
    bool lasting = mapping->to_ns == TIME_OPEN_NS;
    *place = (struct place){
        .generation = lasting ? process->generation : 0,
        .pc = pc,
        .from_ns = mapping->from_ns,
        .rule = rule,
        .code = (uint8_t)code,
    };
    *ret = &place->rule;
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
    uint64_t device = (uint64_t)file->device_major << 32 | file->device_minor;
    size_t place = (size_t)((file->inode ^ device << 20) * UINT64_C(0x9E3779B97F4A7C15) >> 40);
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
        if (candidate->mapping->file->code_file == NULL) {
            (void)meet_file(map, candidate->process, candidate->mapping, MODULE_PREFETCH);
        }
    }
}

bool code_map_poll(struct code_map *map)
{
    bool any = false;
    struct code_file **link = &map->waiting;
    while (*link != NULL) {
        struct code_file *file = *link;
        take_answer(file);
        if (file->table == NULL && !file->failed && !file->orphan) {
            link = &file->next_waiting;
            continue;
        }
        *link = file->next_waiting;
        file->waiting = false;
        if (file->orphan) {
            free_file(file);
        }
        any = true;
    }
    return any;
}

void code_map_file_gone(struct mapped_file *mapped)
{
    struct code_file *file = mapped->code_file;
    mapped->code_file = NULL;
    if (file != NULL && file->waiting) {
        file->orphan = true;
    } else if (file != NULL) {
        free_file(file);
    }
}

struct code_map_counts code_map_counts(const struct code_map *map)
{
    return map->counts;
}
