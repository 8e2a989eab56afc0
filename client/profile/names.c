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

uint32_t names_find(const struct names *table, uint32_t segment, uint64_t pid, uint64_t tid,
                    uint64_t time_ns)
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
    const struct name *found = low == 0 ? NULL : &table->names[low - 1];
    bool is_same =
        found != NULL && found->segment == segment && found->pid == pid && found->tid == tid;
    return is_same ? found->item : INTERN_NONE;
}
