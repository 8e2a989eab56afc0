/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Deals samples out to stacks, and then to lanes. Each time they keep the order that they had, so
 * at the end those of a lane are sorted by stack. Only lanes are compared, of which there are few.
 */
#include "sample_groups.h"

#include "cleanup.h"
#include "compare.h"
#include "grow.h"

#include <stdlib.h>

/* Two are one if all their members are equal. */
struct lane_key {
    uint32_t task; /* of the profile's */
    uint32_t cpu;
};

int sample_groups_init(struct sample_groups *groups, const struct profile *profile)
{
    *groups = (struct sample_groups){
        .profile = profile,
        .lane_of = calloc(profile->sample_count + 1, sizeof *groups->lane_of),
        .stack_of = calloc(profile->sample_count + 1, sizeof *groups->stack_of),
    };
    return groups->lane_of == NULL || groups->stack_of == NULL ? -ENOMEM : 0;
}

void sample_groups_done(struct sample_groups *groups)
{
    intern_done(&groups->keys);
    free(groups->lanes);
    free(groups->lane_of);
    free(groups->stack_of);
    free(groups->order);
}

int sample_groups_add(struct sample_groups *groups, uint32_t sample, uint32_t stack,
                      const struct sample_lane **ret_lane)
{
    const struct profile_sample *from = &groups->profile->samples[sample];
    const struct lane_key key = {from->task, from->cpu};
    size_t known_count = groups->keys.item_count;
    uint32_t item = 0;
    if (intern_add(&groups->keys, &key, sizeof key, &item) < 0 ||
        grow(groups->lanes, groups->lane_capacity, (size_t)item + 1) < 0) {
        return -ENOMEM;
    }
    struct sample_lane *lane = &groups->lanes[item];
    bool is_new = item == known_count;
    if (is_new) {
        *lane = (struct sample_lane){
            .task = profile_task(groups->profile, from->task), .cpu = from->cpu, .number = item};
    }
    lane->count++;
    groups->lane_of[sample] = item;
    groups->stack_of[sample] = stack;
    *ret_lane = is_new ? lane : NULL;
    return 0;
}

static int compare_processes(const struct profile_task *a, const struct profile_task *b)
{
    int r = compare_u64(a->segment, b->segment);
    r = r == 0 ? compare_u64(a->pid, b->pid) : r;
    r = r == 0 ? compare_u64(a->process_name, b->process_name) : r;
    return r == 0 ? compare_u64(a->owner, b->owner) : r;
}

static int compare_lanes(const void *left, const void *right)
{
    const struct sample_lane *a = left;
    const struct sample_lane *b = right;
    int r = compare_processes(a->task, b->task);
    r = r == 0 ? compare_u64(a->task->tid, b->task->tid) : r;
    r = r == 0 ? compare_u64(a->task->thread_name, b->task->thread_name) : r;
    return r == 0 ? compare_u64(a->cpu, b->cpu) : r;
}

bool sample_groups_same_process(const struct sample_lane *a, const struct sample_lane *b)
{
    return a->task == b->task || compare_processes(a->task, b->task) == 0;
}

/* The numbers of all samples by stack. Returned: free(); NULL when there is no memory. */
static uint32_t *order_by_stack(const struct sample_groups *groups, size_t stack_count)
{
    size_t count = groups->profile->sample_count;
    cleanup_(freep) uint32_t *places = calloc(stack_count + 1, sizeof *places);
    uint32_t *order = calloc(count + 1, sizeof *order);
    if (places == NULL || order == NULL) {
        free(order);
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        places[groups->stack_of[i] + 1]++;
    }
    for (size_t i = 1; i <= stack_count; i++) {
        places[i] += places[i - 1];
    }
    for (size_t i = 0; i < count; i++) {
        order[places[groups->stack_of[i]]++] = (uint32_t)i;
    }
    return order;
}

/* Sorts the lanes, and says where the samples of each begin, by number. Returned: free(); NULL when
 * there is no memory. */
static size_t *place_lanes(struct sample_groups *groups)
{
    size_t count = sample_groups_lanes(groups);
    size_t *places = calloc(count + 1, sizeof *places);
    size_t at = 0;
    if (places != NULL && count > 0) {
        qsort(groups->lanes, count, sizeof *groups->lanes, compare_lanes);
    }
    for (size_t i = 0; places != NULL && i < count; i++) {
        groups->lanes[i].first = at;
        places[groups->lanes[i].number] = at;
        at += groups->lanes[i].count;
    }
    return places;
}

int sample_groups_sort(struct sample_groups *groups, size_t stack_count)
{
    size_t count = groups->profile->sample_count;
    cleanup_(freep) uint32_t *by_stack = order_by_stack(groups, stack_count);
    cleanup_(freep) size_t *places = place_lanes(groups);
    groups->order = calloc(count + 1, sizeof *groups->order);
    if (by_stack == NULL || places == NULL || groups->order == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        groups->order[places[groups->lane_of[by_stack[i]]]++] = by_stack[i];
    }
    free(groups->lane_of);
    groups->lane_of = NULL;
    return 0;
}
