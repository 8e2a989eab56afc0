/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Where a wait's stack begins. The scheduler switches every thread in the same few functions, so
 * they name no wait: they are left out of the samples of waits, as the kernel leaves them out of
 * /proc/PID/wchan.
 */

#include <stddef.h>
#include <stdint.h>

struct profile;
struct profile_event;

/*
 * Leaves the scheduler's functions out of the kernel stacks of a profile of waits, as far as they
 * are innermost: `schedule` and what calls it for others, by their names. Of `preempted` the way
 * out of an interrupt or a system call too, since what ran is what lies behind; where that is the
 * program, the sample is one of the program. An `off-cpu` sample keeps its kernel stack where
 * nothing else is in it. Of another event, nothing changes.
 *
 * Names and mappings are sealed, and samples have their whole stacks. The new innermost address is
 * that of the call, not the one behind it. Returns 0, or -ENOMEM.
 */
int wait_leaf_find(struct profile *profile);

/* How many of a wait's frames (of the profile; leaf first) are such functions, where stacks are
 * frames already. Not all of them. */
size_t wait_leaf_frames(const struct profile *profile, const struct profile_event *event,
                        const uint32_t *frames, size_t count);
