/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One process's executable mappings over time: a mapping is a rectangle of addresses and time. The
 * ones that hold now are in an ordered set, the ended ones in a history sorted by their end.
 *
 * Invariants: live mappings do not overlap; a record cuts what is older than it and leaves alone
 * what is newer; a scan fills gaps, and replaces only what an older scan said. Whatever finds no
 * place (bounds, memory) is counted and becomes a gap, so that a sample is unknown and never
 * misnamed. Pids, threads and the time of processes are process_table.c's.
 */
#include "process_parts.h"

#include "cleanup.h"
#include "extremes.h"
#include "grow.h"
#include "mapping_set.h"
#include "quota.h"

#include <limits.h>
#include <string.h>

#define HISTORY_CAPACITY_MIN ((size_t)16)
#define SHARE_PARTS          8

/* Memory without a file has one name, however the kernel calls it. */
static const char *path_of(const struct mapping_description *description)
{
    bool anonymous = description->path[0] == '\0' || strncmp(description->path, "//anon", 6) == 0;
    return anonymous ? "[anon]" : description->path;
}

/* Runtimes map the file in which they say what code they make, so that it is found. */
static bool is_jitdump(const char *path)
{
    static const char begin[] = "/jit-";
    static const char end[] = ".dump";
    const char *last = strrchr(path, '/');
    size_t bytes = last == NULL ? 0 : strlen(last);
    return bytes > strlen(begin) + strlen(end) && strncmp(last, begin, strlen(begin)) == 0 &&
           strcmp(last + bytes - strlen(end), end) == 0;
}

static struct mapped_file *new_file(struct process_totals *totals,
                                    const struct mapping_description *description)
{
    struct mapped_file *file = calloc(1, sizeof *file);
    if (file == NULL) {
        return NULL;
    }
    file->path = path_set_get(&totals->paths, path_of(description), PATH_MAX);
    if (file->path == NULL) {
        free(file);
        return NULL;
    }
    totals->counts.path_bytes = totals->paths.path_bytes;
    file->weight = 1 + (uint32_t)(strlen(file->path) / MAPPING_WEIGHT_BYTES);
    file->reference_count = 1;
    file->device_major = description->device_major;
    file->device_minor = description->device_minor;
    file->inode = description->inode;
    file->inode_generation = description->inode_generation;
    file->is_jitdump = is_jitdump(file->path);
    file->replaced_ns = TIME_OPEN_NS;
    file->totals = totals;
    return file;
}

enum mapping_fate mapped_file_fate(const struct mapped_file *file, uint64_t time_ns)
{
    if (file->replaced_ns <= time_ns) {
        return MAPPING_REPLACED;
    }
    return file->totals->reached_ns < time_ns ? MAPPING_AWAITED : MAPPING_KEPT;
}

static void drop_file(struct process_totals *totals, struct mapped_file *file)
{
    file->reference_count--;
    if (file->reference_count > 0) {
        return;
    }
    if (totals->on_file_free != NULL) {
        totals->on_file_free(file, totals->userdata);
    }
    path_set_put(&totals->paths, file->path);
    totals->counts.path_bytes = totals->paths.path_bytes;
    free(file);
}

/* A mapping without a place leaves a time for which it is unknown what was there. */
static void refuse(struct process_totals *totals, struct process *process, size_t count)
{
    totals->counts.counters.table_refused += count;
    process->has_gaps = true;
}

static bool has_place(struct process_totals *totals, struct process *process,
                      const struct mapped_file *file)
{
    static const size_t max =
        PROCESS_TABLE_MAPPINGS_MAX - PROCESS_MAPPINGS_RESERVED * PROCESS_TABLE_PROCESSES_MAX;
    size_t weight = process->mapping_weight + file->weight;
    size_t own = process_unreserved_weight(process->mapping_weight);
    size_t more = process_unreserved_weight(weight) - own;
    if (weight <= PROCESS_MAPPINGS_MAX &&
        (more == 0 || (quota_rule_allows(max, SHARE_PARTS, totals->unreserved_weight, own, more) &&
                       process_share_allows(totals, process->share, max, totals->unreserved_weight,
                                            process->share->unreserved_weight, more)))) {
        return true;
    }
    refuse(totals, process, 1);
    return false;
}

static void set_weight(struct process_totals *totals, struct process *process, size_t weight)
{
    size_t before = process_unreserved_weight(process->mapping_weight);
    process->mapping_weight = weight;
    size_t after = process_unreserved_weight(process->mapping_weight);
    totals->unreserved_weight += after - before;
    process->share->unreserved_weight += after - before;
}

/* One more mapping of the process, live or ended, has the file. */
static void hold_file(struct process_totals *totals, struct process *process,
                      struct mapped_file *file)
{
    totals->counts.mapping_count++;
    file->reference_count++;
    set_weight(totals, process, process->mapping_weight + file->weight);
}

static void let_go_of_file(struct process_totals *totals, struct process *process,
                           struct mapped_file *file)
{
    totals->counts.mapping_count--;
    set_weight(totals, process, process->mapping_weight - file->weight);
    drop_file(totals, file);
}

/* The part of a mapping that lies in [start, end), which the mapping contains. */
static struct mapping part_of(const struct mapping *mapping, uint64_t start, uint64_t end)
{
    struct mapping part = *mapping;
    part.start = start;
    part.end = end;
    part.file_offset += start - mapping->start;
    return part;
}

/* Forgets the first of the ended mappings, which ended before the others. */
static void forget(struct process_totals *totals, struct process *process, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        let_go_of_file(totals, process, process->history[i].file);
    }
    process->history_count -= count;
    if (count > 0) {
        memmove(process->history, &process->history[count],
                process->history_count * sizeof *process->history);
    }
}

/* Keeps a copy of what held until `to_ns`, with a reference of its own. A lookup goes through all
 * that ended since, so they are few: many at once are forgotten half by half. */
static void remember(struct process_totals *totals, struct process *process,
                     const struct mapping *mapping, uint64_t to_ns)
{
    if (mapping->from_ns >= to_ns || !has_place(totals, process, mapping->file)) {
        return;
    }
    if (process->history_count == PROCESS_HISTORY_MAX) {
        refuse(totals, process, PROCESS_HISTORY_MAX / 2);
        forget(totals, process, PROCESS_HISTORY_MAX / 2);
    }
    if (grow_from(process->history, process->history_capacity, process->history_count + 1,
                  HISTORY_CAPACITY_MIN) < 0) {
        refuse(totals, process, 1);
        return;
    }
    size_t at = process->history_count;
    while (at > 0 && process->history[at - 1].to_ns > to_ns) {
        at--;
    }
    memmove(&process->history[at + 1], &process->history[at],
            (process->history_count - at) * sizeof *process->history);
    process->history[at] = *mapping;
    process->history[at].to_ns = to_ns;
    process->history_count++;
    hold_file(totals, process, mapping->file);
}

/* Puts a copy into a gap of the live ones, with a reference of its own. */
static void insert_live(struct process_totals *totals, struct process *process,
                        const struct mapping *mapping)
{
    if (!has_place(totals, process, mapping->file)) {
        return;
    }
    struct mapping_place place = mapping_set_seek(&process->mappings, mapping->start);
    if (mapping_set_insert(&process->mappings, place, mapping) < 0) {
        refuse(totals, process, 1);
        return;
    }
    hold_file(totals, process, mapping->file);
    if (mapping->file->is_jitdump) {
        process->jitdump_start = mapping->start;
    }
}

static void remove_live(struct process_totals *totals, struct process *process,
                        struct mapping_place place)
{
    struct mapped_file *file = mapping_set_at(&process->mappings, place)->file;
    mapping_set_remove(&process->mappings, place);
    let_go_of_file(totals, process, file);
}

/* Ends at `time_ns` the part of the mapping at `place` that `by` covers; the rest of it goes on. */
static void cut(struct process_totals *totals, struct process *process, struct mapping_place place,
                const struct mapping *by, uint64_t time_ns)
{
    struct mapping *mapping = mapping_set_at(&process->mappings, place);
    const struct mapping whole = *mapping;
    const struct mapping ended =
        part_of(&whole, max_u64(whole.start, by->start), min_u64(whole.end, by->end));

    process->remapped = true;
    whole.file->replaced_ns = min_u64(whole.file->replaced_ns, time_ns);
    remember(totals, process, &ended, time_ns);
    if (whole.start < ended.start) {
        mapping->end = ended.start;
        if (ended.end < whole.end) {
            const struct mapping rest = part_of(&whole, ended.end, whole.end);
            insert_live(totals, process, &rest);
        }
    } else if (ended.end < whole.end) {
        *mapping = part_of(&whole, ended.end, whole.end);
    } else {
        remove_live(totals, process, place);
    }
}

static void changed(struct process_totals *totals, struct process *process)
{
    process->generation = ++totals->last_generation;
}

static struct mapping describe(const struct mapping_description *description,
                               struct mapped_file *file, uint64_t from_ns)
{
    return (struct mapping){
        .start = description->start,
        .end = description->end,
        .file_offset = description->file_offset,
        .from_ns = from_ns,
        .to_ns = TIME_OPEN_NS,
        .file = file,
    };
}

void process_mappings_mmap(struct process_totals *totals, struct process *process,
                           const struct mapping_description *description, uint64_t time_ns)
{
    if (description->start >= description->end || time_ns < process->exec_ns) {
        return;
    }
    struct mapped_file *file = new_file(totals, description);
    if (file == NULL) {
        refuse(totals, process, 1);
        return;
    }
    const struct mapping mapping = describe(description, file, time_ns);
    uint64_t at = mapping.start;       /* what is live below it has been dealt with */
    uint64_t unplaced = mapping.start; /* where the part begins that has no place yet */
    while (at < mapping.end) {
        struct mapping_place place = mapping_set_seek(&process->mappings, at);
        const struct mapping *other = mapping_set_at(&process->mappings, place);
        if (other == NULL || other->start >= mapping.end) {
            break;
        }
        at = other->end;
        if (other->from_ns <= time_ns) {
            cut(totals, process, place, &mapping, time_ns);
            continue;
        }
        if (unplaced < other->start) {
            const struct mapping part = part_of(&mapping, unplaced, other->start);
            insert_live(totals, process, &part);
        }
        unplaced = at;
    }
    if (unplaced < mapping.end) {
        const struct mapping part = part_of(&mapping, unplaced, mapping.end);
        insert_live(totals, process, &part);
    }
    drop_file(totals, file);
    changed(totals, process);
}

void process_mappings_exec(struct process_totals *totals, struct process *process, uint64_t time_ns)
{
    struct mapping_set old = process->mappings;
    process->mappings = (struct mapping_set){0};

    struct mapping_place place = {0};
    for (struct mapping *mapping; (mapping = mapping_set_at(&old, place)) != NULL;
         place = mapping_set_next(&old, place)) {
        if (mapping->seen_ns >= time_ns && mapping->from_ns < time_ns) {
            /* /proc showed it after this exec: it is of the new image, or of a later one. */
            mapping->from_ns = process_held_since_ns(totals, time_ns, mapping->seen_ns);
            mapping->module_id = 0;
        }
        /* Its old place is free for it. */
        struct mapped_file *file = mapping->file;
        file->reference_count++;
        let_go_of_file(totals, process, file);
        if (mapping->from_ns >= time_ns) {
            insert_live(totals, process, mapping);
        } else {
            file->replaced_ns = min_u64(file->replaced_ns, time_ns);
            remember(totals, process, mapping, time_ns);
        }
        drop_file(totals, file);
    }
    mapping_set_done(&old);
    process->remapped = false;
    changed(totals, process);
}

/* Fills with `mapping` what is free of its range. Returns whether anything was. */
static bool lay_beneath(struct process_totals *totals, struct process *process,
                        const struct mapping *mapping)
{
    bool filled = false;
    uint64_t at = mapping->start;
    while (at < mapping->end) {
        struct mapping_place place = mapping_set_seek(&process->mappings, at);
        const struct mapping *other = mapping_set_at(&process->mappings, place);
        uint64_t free_end =
            other == NULL || other->start >= mapping->end ? mapping->end : other->start;
        uint64_t next = free_end == mapping->end ? mapping->end : other->end;
        if (at < free_end) {
            const struct mapping part = part_of(mapping, at, free_end);
            insert_live(totals, process, &part);
            filled = true;
        }
        at = next;
    }
    return filled;
}

static void inherit(struct process_totals *totals, struct process *child,
                    const struct mapping *mapping, uint64_t time_ns)
{
    if (mapping->from_ns > time_ns) {
        return;
    }
    struct mapping copy = *mapping;
    copy.from_ns = time_ns;
    copy.to_ns = TIME_OPEN_NS;
    copy.seen_ns = 0;
    copy.module_id = 0;
    (void)lay_beneath(totals, child, &copy);
}

void process_mappings_inherit(struct process_totals *totals, struct process *child,
                              const struct process *parent, uint64_t time_ns)
{
    const struct mapping *mapping;
    struct mapping_place place = {0};
    while ((mapping = mapping_set_at(&parent->mappings, place)) != NULL) {
        inherit(totals, child, mapping, time_ns);
        place = mapping_set_next(&parent->mappings, place);
    }
    for (size_t i = parent->history_count; i > 0 && parent->history[i - 1].to_ns > time_ns; i--) {
        inherit(totals, child, &parent->history[i - 1], time_ns);
    }
    changed(totals, child);
}

/* Whether a live mapping is what the scan describes, over the addresses that they share. */
static bool is_same(const struct mapping *mapping, const struct mapping_description *description)
{
    const struct mapped_file *file = mapping->file;
    if (file->inode != description->inode || file->device_major != description->device_major ||
        file->device_minor != description->device_minor) {
        return false;
    }
    if (description->inode != 0) {
        return mapping->start - mapping->file_offset ==
               description->start - description->file_offset;
    }
    return strncmp(file->path, path_of(description), PATH_MAX) == 0;
}

/* Whether a scan that began at `begin_ns` may know better than what a mapping says. */
static bool may_be_outdated(const struct process_totals *totals, const struct mapping *mapping,
                            uint64_t begin_ns)
{
    return mapping->scanned || (mapping->from_ns < totals->lost_ns && begin_ns >= totals->lost_ns);
}

/* Whether a scanned mapping says nothing new: records or the same scanned mapping are all over it.
 * What /proc showed once more is marked so. */
static bool is_known(const struct process_totals *totals, struct process *process,
                     const struct mapping_description *description, uint64_t seen_ns)
{
    bool known = true;
    uint64_t at = description->start;
    while (at < description->end) {
        struct mapping *other =
            mapping_set_at(&process->mappings, mapping_set_seek(&process->mappings, at));
        if (other == NULL || other->start >= description->end) {
            return false;
        }
        bool outdated = may_be_outdated(totals, other, seen_ns);
        bool same = outdated && is_same(other, description);
        if (same) {
            other->seen_ns = max_u64(other->seen_ns, seen_ns);
        }
        known = known && other->start <= at && (same || !outdated);
        at = other->end;
    }
    return known;
}

/* Puts `mapping` in the place of what is outdated and differs, from `begin_ns` on. */
static void replace_scanned(struct process_totals *totals, struct process *process,
                            const struct mapping *mapping,
                            const struct mapping_description *description, uint64_t begin_ns)
{
    uint64_t at = mapping->start;
    while (at < mapping->end) {
        struct mapping_place place = mapping_set_seek(&process->mappings, at);
        const struct mapping *other = mapping_set_at(&process->mappings, place);
        if (other == NULL || other->start >= mapping->end) {
            return;
        }
        at = other->end;
        if (!may_be_outdated(totals, other, begin_ns) || is_same(other, description)) {
            continue;
        }
        struct mapping part = part_of(mapping, max_u64(mapping->start, other->start),
                                      min_u64(mapping->end, other->end));
        part.from_ns = begin_ns;
        cut(totals, process, place, &part, begin_ns);
        insert_live(totals, process, &part);
    }
}

/* Ends what is known of [start, end) and older than the scan. Returns whether anything was. */
static bool end_unseen(struct process_totals *totals, struct process *process, uint64_t start,
                       uint64_t end, uint64_t begin_ns)
{
    const struct mapping hole = {.start = start, .end = end};
    bool any = false;
    uint64_t at = start;
    while (at < end) {
        struct mapping_place place = mapping_set_seek(&process->mappings, at);
        const struct mapping *mapping = mapping_set_at(&process->mappings, place);
        if (mapping == NULL || mapping->start >= end) {
            break;
        }
        at = mapping->end;
        if (mapping->from_ns <= begin_ns) {
            cut(totals, process, place, &hole, begin_ns);
            any = true;
        }
    }
    return any;
}

/* Ends the mappings that are gone. Those of the scan are in the order of their addresses. */
static bool end_all_unseen(struct process_totals *totals, struct process *process,
                           const struct process_scan *scan)
{
    uint64_t at = scan->whole_from;
    bool any = false;
    for (size_t i = 0; i < scan->mapping_count && at < scan->whole_to; i++) {
        const struct mapping_description *seen = &scan->mappings[i];
        uint64_t end = min_u64(max_u64(seen->start, at), scan->whole_to);
        any = end_unseen(totals, process, at, end, scan->begin_ns) || any;
        at = max_u64(at, seen->end);
    }
    if (at < scan->whole_to) {
        any = end_unseen(totals, process, at, scan->whole_to, scan->begin_ns) || any;
    }
    return any;
}

void process_mappings_scan(struct process_totals *totals, struct process *process,
                           const struct process_scan *scan)
{
    /* What is new where all was known has come since. */
    const uint64_t from_ns =
        process->scanned ? scan->begin_ns
                         : process_held_since_ns(
                               totals, max_u64(process->from_ns, process->exec_ns), scan->begin_ns);
    bool is_changed = end_all_unseen(totals, process, scan);
    for (size_t i = 0; i < scan->mapping_count; i++) {
        const struct mapping_description *description = &scan->mappings[i];
        if (description->start >= description->end ||
            is_known(totals, process, description, scan->begin_ns)) {
            continue;
        }
        struct mapped_file *file = new_file(totals, description);
        if (file == NULL) {
            refuse(totals, process, 1);
            continue;
        }
        struct mapping mapping = describe(description, file, from_ns);
        mapping.scanned = true;
        mapping.seen_ns = scan->begin_ns;
        (void)lay_beneath(totals, process, &mapping);
        replace_scanned(totals, process, &mapping, description, scan->begin_ns);
        drop_file(totals, file);
        is_changed = true;
    }
    if (is_changed) {
        changed(totals, process);
    }
}

struct mapping *process_find_mapping(struct process *process, uint64_t pc, uint64_t time_ns)
{
    struct mapping *mapping =
        mapping_set_at(&process->mappings, mapping_set_seek(&process->mappings, pc));
    if (mapping != NULL && mapping->start <= pc && mapping->from_ns <= time_ns) {
        return mapping;
    }
    for (size_t i = process->history_count; i > 0; i--) {
        mapping = &process->history[i - 1];
        if (mapping->to_ns <= time_ns) {
            return NULL;
        }
        if (mapping->from_ns <= time_ns && mapping->start <= pc && pc < mapping->end) {
            return mapping;
        }
    }
    return NULL;
}

const struct mapping *process_find_jitdump(const struct process *process)
{
    if (process->jitdump_start == 0) {
        return NULL;
    }
    const struct mapping *mapping = mapping_set_at(
        &process->mappings, mapping_set_seek(&process->mappings, process->jitdump_start));
    return mapping != NULL && mapping->file->is_jitdump ? mapping : NULL;
}

bool process_mappings_prune(struct process_totals *totals, struct process *process,
                            uint64_t horizon_ns)
{
    size_t passed = 0;
    while (passed < process->history_count && process->history[passed].to_ns <= horizon_ns) {
        passed++;
    }
    forget(totals, process, passed);
    if (process->history_count == 0) {
        free(take_ptr(process->history));
        process->history_capacity = 0;
    }
    return process->history_count > 0;
}

void process_mappings_done(struct process_totals *totals, struct process *process)
{
    const struct mapping *mapping;
    struct mapping_place place = {0};
    while ((mapping = mapping_set_at(&process->mappings, place)) != NULL) {
        let_go_of_file(totals, process, mapping->file);
        place = mapping_set_next(&process->mappings, place);
    }
    mapping_set_done(&process->mappings);
    (void)process_mappings_prune(totals, process, TIME_OPEN_NS);
}
