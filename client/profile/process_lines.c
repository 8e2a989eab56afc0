/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One array, sorted once. lineage.c makes processes of it.
 */
#include "process_lines.h"

#include "compare.h"
#include "grow.h"

void process_lines_done(struct process_lines *table)
{
    free(table->lines);
    *table = (struct process_lines){0};
}

int process_lines_add(struct process_lines *table, const struct process_line *line)
{
    if (table->count >= UINT32_MAX || grow(table->lines, table->capacity, table->count + 1) < 0) {
        return -ENOMEM;
    }
    table->lines[table->count] = *line;
    table->lines[table->count].order = (uint32_t)table->count;
    table->count++;
    return 0;
}

static int compare_lines(const void *left, const void *right)
{
    const struct process_line *a = left;
    const struct process_line *b = right;
    int r = compare_u64(a->segment, b->segment);
    r = r == 0 ? compare_u64(a->pid, b->pid) : r;
    r = r == 0 ? compare_u64(a->since_ns, b->since_ns) : r;
    return r == 0 ? compare_u64(a->order, b->order) : r;
}

void process_lines_seal(struct process_lines *table)
{
    if (table->count > 0) {
        qsort(table->lines, table->count, sizeof *table->lines, compare_lines);
    }
}
