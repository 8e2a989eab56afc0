/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Finds a task's name at a time: one array, sorted by segment, process, thread, time and order in
 * the file, and a binary search for the last name that is not later.
 */
#include "names.h"

#include "compare.h"
#include "grow.h"
#include "intern.h"

#include <stdbool.h>

void names_done(struct names *table)
{
    free(table->names);
    *table = (struct names){0};
}

int names_add(struct names *table, const struct name *name)
{
    if (table->count >= UINT32_MAX || grow(table->names, table->capacity, table->count + 1) < 0) {
        return -ENOMEM;
    }
    table->names[table->count] = *name;
    table->names[table->count].order = (uint32_t)table->count;
    table->count++;
    return 0;
}

static int compare_names(const void *left, const void *right)
{
    const struct name *a = left;
    const struct name *b = right;
    int r = compare_u64(a->segment, b->segment);
    r = r == 0 ? compare_u64(a->pid, b->pid) : r;
    r = r == 0 ? compare_u64(a->tid, b->tid) : r;
    r = r == 0 ? compare_u64(a->since_ns, b->since_ns) : r;
    return r == 0 ? compare_u64(a->order, b->order) : r;
}

void names_seal(struct names *table)
{
    if (table->count > 0) {
        qsort(table->names, table->count, sizeof *table->names, compare_names);
    }
}

static bool is_of(const struct name *name, const struct name *wanted)
{
    return name->segment == wanted->segment && name->pid == wanted->pid && name->tid == wanted->tid;
}

uint32_t names_find_span(const struct names *table, uint32_t segment, uint64_t pid, uint64_t tid,
                         uint64_t time_ns, struct names_span *ret)
{
    const struct name wanted = {
        .segment = segment, .pid = pid, .tid = tid, .since_ns = time_ns, .order = UINT32_MAX};
    size_t low = 0;
    size_t high = table->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_names(&table->names[middle], &wanted) <= 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    bool is_known = low > 0 && is_of(&table->names[low - 1], &wanted);
    bool has_next = low < table->count && is_of(&table->names[low], &wanted);
    ret->from_ns = is_known ? table->names[low - 1].since_ns : 0;
    ret->until_ns = has_next ? table->names[low].since_ns : UINT64_MAX;
    return is_known ? table->names[low - 1].item : INTERN_NONE;
}

uint32_t names_find(const struct names *table, uint32_t segment, uint64_t pid, uint64_t tid,
                    uint64_t time_ns)
{
    struct names_span span;
    return names_find_span(table, segment, pid, tid, time_ns, &span);
}
