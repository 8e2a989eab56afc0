/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Samples by lane, and by stack within one. A lane is a task on a CPU; lanes of a process stand
 * together. A sample takes 16 bytes at most while they are sorted, and 8 then.
 */

#include "profile.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sample_lane {
    const struct profile_task *task; /* borrowed, of the profile */
    uint32_t cpu;
    uint32_t number;
    size_t first; /* where in the order its samples begin; known once they are sorted */
    size_t count;
};

/* All zero but the profile is empty. */
struct sample_groups {
    const struct profile *profile; /* borrowed */
    struct intern keys;            /* of lanes */
    struct sample_lane *lanes;     /* owned; by their number, then sorted */
    size_t lane_capacity;
    uint32_t *lane_of;  /* owned; by sample; NULL once they are sorted */
    uint32_t *stack_of; /* owned; by sample, the caller's numbers of stacks */
    uint32_t *order;    /* owned; samples, those of a lane and stack in the order of the file */
};

/* Either way sample_groups_done() releases it. Returns 0, or -ENOMEM. */
int sample_groups_init(struct sample_groups *groups, const struct profile *profile);
void sample_groups_done(struct sample_groups *groups);

/* Puts the sample of the profile with this number into its lane, and keeps the number of its stack.
 * `*ret_lane` is the lane if it is new, or NULL; borrowed, until the next call. Returns 0, or
 * -ENOMEM. */
int sample_groups_add(struct sample_groups *groups, uint32_t sample, uint32_t stack,
                      const struct sample_lane **ret_lane);

/* Sorts the lanes, and their samples by stack, once all samples of the profile were added; all of
 * their stacks are below `stack_count`. Returns 0, or -ENOMEM. */
int sample_groups_sort(struct sample_groups *groups, size_t stack_count);

/* How many lanes there are. */
static inline size_t sample_groups_lanes(const struct sample_groups *groups)
{
    return groups->keys.item_count;
}

/* Whether two lanes are of one process, with one name and owner. */
bool sample_groups_same_process(const struct sample_lane *a, const struct sample_lane *b);
