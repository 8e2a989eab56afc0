/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Where the stack of a wait, or of a context switch, begins. The scheduler switches every thread in
 * the same few functions, so they name no wait: they are left out of such samples, as the kernel
 * leaves them out of /proc/PID/wchan.
 */

#include <stddef.h>
#include <stdint.h>

struct profile;
struct profile_event;

/*
 * Leaves out of the kernel stacks of a profile of waits or of context switches, as far as they are
 * innermost: the scheduler's functions, `schedule` and what calls it for others, and the ways into
 * the kernel by interrupts, system calls and faults, all by their names. Where nothing else is in a
 * stack, the sample is one of the program. But one that has the scheduler's functions alone keeps
 * them, unless it was preempted; and one without a user stack keeps a function in any case. Of
 * another event, nothing changes.
 *
 * Names and mappings are sealed, and samples have their whole stacks. The new innermost address is
 * that of the call, not the one behind it. Returns 0, or -ENOMEM.
 */
int wait_leaf_find(struct profile *profile);

/* How many of a sample's frames (of the profile; leaf first) are such functions, where stacks are
 * frames already. Not all of them. */
size_t wait_leaf_frames(const struct profile *profile, const struct profile_event *event,
                        const uint32_t *frames, size_t count);
