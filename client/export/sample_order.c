/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Sorts samples for formats that list them by process. Only their numbers are sorted.
 */
#include "sample_order.h"

#include <stdlib.h>

static int compare_u64(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int compare_process(const struct profile_sample *a, const struct profile_sample *b)
{
    int r = compare_u64(a->segment, b->segment);
    r = r == 0 ? compare_u64(a->pid, b->pid) : r;
    return r == 0 ? compare_u64(a->process_name, b->process_name) : r;
}

static int compare_samples(const void *left, const void *right, void *userdata)
{
    const struct profile *profile = userdata;
    uint32_t a_number = *(const uint32_t *)left;
    uint32_t b_number = *(const uint32_t *)right;
    const struct profile_sample *a = &profile->samples[a_number];
    const struct profile_sample *b = &profile->samples[b_number];
    int r = compare_process(a, b);
    r = r == 0 ? compare_u64(a->time_ns, b->time_ns) : r;
    return r == 0 ? compare_u64(a_number, b_number) : r;
}

uint32_t *sample_order_by_process(const struct profile *profile)
{
    uint32_t *order = calloc(profile->sample_count + 1, sizeof *order);
    if (order == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < profile->sample_count; i++) {
        order[i] = (uint32_t)i;
    }
    /* Only read: the type is qsort_r()'s. */
    qsort_r(order, profile->sample_count, sizeof *order, compare_samples,
            (void *)(uintptr_t)profile);
    return order;
}

bool samples_share_process(const struct profile_sample *a, const struct profile_sample *b)
{
    return compare_process(a, b) == 0;
}

size_t sample_order_end(const struct profile *profile, const uint32_t *order, size_t first)
{
    size_t end = first + 1;
    while (end < profile->sample_count &&
           samples_share_process(&profile->samples[order[first]], &profile->samples[order[end]])) {
        end++;
    }
    return end;
}
