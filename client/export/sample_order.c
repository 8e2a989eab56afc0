/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Sorts samples for formats that list them by process or thread. Only their numbers are sorted.
 */
#include "sample_order.h"
#include "compare.h"

#include <stdlib.h>

struct sorting {
    const struct profile *profile; /* borrowed */
    enum sample_order_by by;
};

static int compare_tasks(const struct profile_sample *a, const struct profile_sample *b,
                         enum sample_order_by by)
{
    if (by == SAMPLE_ORDER_TIME) {
        return 0;
    }
    if (by == SAMPLE_ORDER_PID) {
        return compare_u64(a->pid, b->pid);
    }
    int r = compare_u64(a->segment, b->segment);
    r = r == 0 ? compare_u64(a->pid, b->pid) : r;
    if (r == 0 && by == SAMPLE_ORDER_THREAD) {
        return compare_u64(a->tid, b->tid);
    }
    return r == 0 ? compare_u64(a->process_name, b->process_name) : r;
}

static int compare_samples(const void *left, const void *right, void *userdata)
{
    const struct sorting *sorting = userdata;
    uint32_t a_number = *(const uint32_t *)left;
    uint32_t b_number = *(const uint32_t *)right;
    const struct profile_sample *a = &sorting->profile->samples[a_number];
    const struct profile_sample *b = &sorting->profile->samples[b_number];
    int r = compare_tasks(a, b, sorting->by);
    r = r == 0 ? compare_u64(a->time_ns, b->time_ns) : r;
    return r == 0 ? compare_u64(a_number, b_number) : r;
}

uint32_t *sample_order(const struct profile *profile, enum sample_order_by by)
{
    struct sorting sorting = {.profile = profile, .by = by};
    uint32_t *order = calloc(profile->sample_count + 1, sizeof *order);
    if (order == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < profile->sample_count; i++) {
        order[i] = (uint32_t)i;
    }
    qsort_r(order, profile->sample_count, sizeof *order, compare_samples, &sorting);
    return order;
}

size_t sample_order_end(const struct profile *profile, const uint32_t *order,
                        enum sample_order_by by, size_t first)
{
    size_t end = first + 1;
    while (end < profile->sample_count &&
           compare_tasks(&profile->samples[order[first]], &profile->samples[order[end]], by) == 0) {
        end++;
    }
    return end;
}
