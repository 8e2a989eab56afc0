/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A file may have any number of mappings over one another, so each process gets a segment tree: the
 * boundaries of its mappings cut the address space into pieces, which are the leaves; a mapping
 * hangs at the O(log n) nodes that together are its range; each node lists its mappings by time. A
 * lookup walks from a leaf to the root and picks the newest. Memory is O(n log n), time O(log^2 n),
 * whatever the file says. What a lookup has found is remembered for its piece, with the times
 * between which it holds: most pieces never change, and samples of them come by the thousand.
 */
#include "mappings.h"

#include "compare.h"
#include "grow.h"
#include "seeded_hash.h"

#include <stdbool.h>

/* What was found last for a piece. No time is in it: nothing was yet. */
struct piece {
    struct mapping_validity validity;
    const struct mapping *mapping; /* NULL: none holds it */
};

/* The indices that a node lists: `nodes[node]` to `nodes[node + 1]` of `listed`. */
struct mapping_process {
    uint32_t segment;
    uint64_t pid;
    const struct mapping *mappings; /* of this process, by time, then order */
    size_t mapping_count;
    uint64_t *bounds; /* owned; where pieces begin, rising; the first piece begins at bounds[0] */
    size_t bound_count;
    size_t *nodes;        /* owned; 2 * bound_count + 1 */
    uint32_t *listed;     /* owned; indices of `mappings`, rising within a node */
    struct piece *pieces; /* owned; as many as bounds */
    size_t asked_piece;   /* the last one */
};

static void free_processes(struct mappings *table)
{
    for (size_t i = 0; i < table->process_count; i++) {
        free(table->processes[i].bounds);
        free(table->processes[i].nodes);
        free(table->processes[i].listed);
        free(table->processes[i].pieces);
    }
    free(table->processes);
    free(table->slots);
    table->processes = NULL;
    table->process_count = 0;
    table->slots = NULL;
    table->slot_count = 0;
}

void mappings_done(struct mappings *table)
{
    free_processes(table);
    free(table->mappings);
    *table = (struct mappings){0};
}

int mappings_add(struct mappings *table, const struct mapping *mapping, uint64_t size_bytes)
{
    if (table->mapping_count >= UINT32_MAX ||
        grow(table->mappings, table->mapping_capacity, table->mapping_count + 1) < 0) {
        return -ENOMEM;
    }
    struct mapping *added = &table->mappings[table->mapping_count++];
    *added = *mapping;
    added->last = size_bytes - 1 > UINT64_MAX - mapping->start ? UINT64_MAX
                                                               : mapping->start + (size_bytes - 1);
    return 0;
}

/* While sorting, `last` and all else stay; the order in the file is the order in memory, so the
 * sort must be stable: a merge sort. */
static bool is_before(const struct mapping *a, const struct mapping *b)
{
    if (a->segment != b->segment) {
        return a->segment < b->segment;
    }
    return a->pid != b->pid ? a->pid < b->pid : a->time_ns < b->time_ns;
}

static void merge(const struct mapping *from, size_t left, size_t middle, size_t right,
                  struct mapping *into)
{
    size_t a = left;
    size_t b = middle;
    for (size_t i = left; i < right; i++) {
        bool take_b = a == middle || (b < right && is_before(&from[b], &from[a]));
        into[i] = take_b ? from[b++] : from[a++];
    }
}

static int sort_mappings(struct mappings *table)
{
    size_t count = table->mapping_count;
    struct mapping *other = malloc((count == 0 ? 1 : count) * sizeof *other);
    if (other == NULL) {
        return -ENOMEM;
    }
    for (size_t width = 1; width < count; width *= 2) {
        for (size_t left = 0; left < count; left += 2 * width) {
            size_t middle = left + width < count ? left + width : count;
            size_t right = left + 2 * width < count ? left + 2 * width : count;
            merge(table->mappings, left, middle, right, other);
        }
        struct mapping *swapped = table->mappings;
        table->mappings = other;
        other = swapped;
        table->mapping_capacity = count;
    }
    free(other);
    return 0;
}

static int compare_bounds(const void *a, const void *b)
{
    return compare_u64(*(const uint64_t *)a, *(const uint64_t *)b);
}

static int find_bounds(struct mapping_process *process)
{
    process->bounds = calloc(2 * process->mapping_count, sizeof *process->bounds);
    if (process->bounds == NULL) {
        return -ENOMEM;
    }
    size_t count = 0;
    for (size_t i = 0; i < process->mapping_count; i++) {
        const struct mapping *mapping = &process->mappings[i];
        process->bounds[count++] = mapping->start;
        if (mapping->last != UINT64_MAX) {
            process->bounds[count++] = mapping->last + 1;
        }
    }
    qsort(process->bounds, count, sizeof *process->bounds, compare_bounds);
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || process->bounds[i] != process->bounds[i - 1]) {
            process->bounds[process->bound_count++] = process->bounds[i];
        }
    }
    return 0;
}

/* The piece that holds `address`, or bound_count when it is below them all. */
static size_t find_piece(const struct mapping_process *process, uint64_t address)
{
    size_t low = 0;
    size_t high = process->bound_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (process->bounds[middle] <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low == 0 ? process->bound_count : low - 1;
}

/*
 * The nodes that together are a mapping's pieces: those are [left, right) of the leaves, which are
 * the nodes bound_count..2 * bound_count - 1; a node's parent is node / 2. Counts into, or (listed
 * != NULL) lists at, `ends`.
 */
static void visit_nodes(const struct mapping_process *process, size_t index, size_t *ends,
                        uint32_t *listed)
{
    const struct mapping *mapping = &process->mappings[index];
    size_t left = find_piece(process, mapping->start) + process->bound_count;
    size_t right = find_piece(process, mapping->last) + 1 + process->bound_count;
    for (; left < right; left /= 2, right /= 2) {
        size_t chosen[2];
        size_t chosen_count = 0;
        if (left % 2 == 1) {
            chosen[chosen_count++] = left++;
        }
        if (right % 2 == 1) {
            chosen[chosen_count++] = --right;
        }
        for (size_t i = 0; i < chosen_count; i++) {
            if (listed != NULL) {
                listed[ends[chosen[i]]] = (uint32_t)index;
            }
            ends[chosen[i]]++;
        }
    }
}

static int hang_mappings(struct mapping_process *process)
{
    size_t node_count = 2 * process->bound_count;
    process->nodes = calloc(node_count + 1, sizeof *process->nodes);
    if (process->nodes == NULL) {
        return -ENOMEM;
    }
    /* nodes[n + 1] counts what node n lists; summed up, nodes[n + 1] is where n's list begins, and
     * listing moves it to where it ends, which is where the next one's begins. */
    for (size_t i = 0; i < process->mapping_count; i++) {
        visit_nodes(process, i, process->nodes + 1, NULL);
    }
    size_t total = 0;
    for (size_t node = 0; node < node_count; node++) {
        size_t count = process->nodes[node + 1];
        process->nodes[node + 1] = total;
        total += count;
    }
    process->listed = calloc(total == 0 ? 1 : total, sizeof *process->listed);
    process->pieces = calloc(process->bound_count, sizeof *process->pieces);
    if (process->listed == NULL || process->pieces == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < process->mapping_count; i++) {
        visit_nodes(process, i, process->nodes + 1, process->listed);
    }
    return 0;
}

/* Adds the process of the mappings from `first` on, of which there are `*ret_count`. */
static int add_process(struct mappings *table, size_t first, size_t *capacity, size_t *ret_count)
{
    const struct mapping *mappings = &table->mappings[first];
    size_t count = 1;
    while (first + count < table->mapping_count && mappings[count].segment == mappings->segment &&
           mappings[count].pid == mappings->pid) {
        count++;
    }
    *ret_count = count;
    if (grow(table->processes, *capacity, table->process_count + 1) < 0) {
        return -ENOMEM;
    }
    struct mapping_process *process = &table->processes[table->process_count++];
    *process = (struct mapping_process){
        .segment = mappings->segment,
        .pid = mappings->pid,
        .mappings = mappings,
        .mapping_count = count,
    };
    int r = find_bounds(process);
    return r < 0 ? r : hang_mappings(process);
}

/* The slot of a process, or the free one where it would be. */
static uint32_t *find_slot(const struct mappings *table, uint32_t segment, uint64_t pid)
{
    size_t at = seeded_hash_pair(pid, segment) & (table->slot_count - 1);
    while (table->slots[at] != 0) {
        const struct mapping_process *process = &table->processes[table->slots[at] - 1];
        if (process->pid == pid && process->segment == segment) {
            break;
        }
        at = (at + 1) & (table->slot_count - 1);
    }
    return &table->slots[at];
}

static int hash_processes(struct mappings *table)
{
    table->slot_count = 1;
    while (table->slot_count < 2 * table->process_count) {
        table->slot_count *= 2;
    }
    table->slots = calloc(table->slot_count, sizeof *table->slots);
    if (table->slots == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < table->process_count; i++) {
        const struct mapping_process *process = &table->processes[i];
        *find_slot(table, process->segment, process->pid) = (uint32_t)i + 1;
    }
    return 0;
}

int mappings_seal(struct mappings *table)
{
    size_t capacity = 0;
    size_t count = 0;
    free_processes(table);
    int r = sort_mappings(table);
    for (size_t i = 0; i < table->mapping_count && r == 0; i += count) {
        r = add_process(table, i, &capacity, &count);
    }
    return r < 0 ? r : hash_processes(table);
}

struct mapping_process *mappings_process(const struct mappings *table, uint32_t segment,
                                         uint64_t pid)
{
    uint32_t number = table->process_count == 0 ? 0 : *find_slot(table, segment, pid);
    return number == 0 ? NULL : &table->processes[number - 1];
}

/* How many of a node's mappings are not later than `time_ns`. */
static size_t count_not_later(const struct mapping_process *process, size_t node, uint64_t time_ns)
{
    size_t low = process->nodes[node];
    size_t high = process->nodes[node + 1];
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (process->mappings[process->listed[middle]].time_ns <= time_ns) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low - process->nodes[node];
}

/* Finds what a piece was at a time, and for which times it was that. */
static struct piece find_mapping(const struct mapping_process *process, size_t piece,
                                 uint64_t time_ns)
{
    struct piece found = {.validity = {0, UINT64_MAX}};
    for (size_t node = piece + process->bound_count; node > 0; node /= 2) {
        const uint32_t *list = process->listed + process->nodes[node];
        size_t list_count = process->nodes[node + 1] - process->nodes[node];
        size_t count = count_not_later(process, node, time_ns);
        if (count > 0 &&
            (found.mapping == NULL || &process->mappings[list[count - 1]] > found.mapping)) {
            found.mapping = &process->mappings[list[count - 1]];
        }
        if (count < list_count) {
            uint64_t next_ns = process->mappings[list[count]].time_ns;
            found.validity.until_ns =
                next_ns < found.validity.until_ns ? next_ns : found.validity.until_ns;
        }
    }
    found.validity.from_ns = found.mapping == NULL ? 0 : found.mapping->time_ns;
    return found;
}

/* Whether an address lies in the piece that was asked for last, as often the next one does. */
static bool is_in_piece(const struct mapping_process *process, size_t piece, uint64_t address)
{
    return process->bounds[piece] <= address &&
           (piece + 1 == process->bound_count || address < process->bounds[piece + 1]);
}

const struct mapping *mappings_find(struct mapping_process *process, uint64_t address,
                                    uint64_t time_ns, struct mapping_validity *validity)
{
    if (process == NULL) {
        return NULL;
    }
    if (!is_in_piece(process, process->asked_piece, address)) {
        size_t found = find_piece(process, address);
        if (found == process->bound_count) {
            return NULL;
        }
        process->asked_piece = found;
    }
    struct piece *piece = &process->pieces[process->asked_piece];
    if (time_ns < piece->validity.from_ns || time_ns >= piece->validity.until_ns) {
        *piece = find_mapping(process, process->asked_piece, time_ns);
    }
    mapping_validity_narrow(validity, &piece->validity);
    return piece->mapping;
}
