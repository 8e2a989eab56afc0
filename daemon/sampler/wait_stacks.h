/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Keeps the stacks of threads that wait: frames, and how good they are, each different stack once.
 * Nothing else of a sample is kept, and no byte of a copied stack. Bounded; accounts share the room
 * (quota.h). Belongs to the collector thread.
 */

#include "capacity.h"
#include "sample.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WAIT_STACKS_MAX         CAPACITY((uint32_t)65536)
#define WAIT_STACKS_PARTS_MAX   CAPACITY((uint32_t)131072)
#define WAIT_STACKS_FRAMES_MAX  ((size_t)510) /* of a stack, user and kernel each */
#define WAIT_STACKS_PART_FRAMES 15            /* frames are kept by so many */

struct wait_stacks;

/* Returned; NULL when there is no memory, of which it takes what it uses. */
struct wait_stacks *wait_stacks_new(void);
struct wait_stacks *wait_stacks_free(struct wait_stacks *stacks);

/* Keeps the stacks of `sample` (borrowed), charged to an account if they are new. Returns their
 * number, for wait_stacks_release(); 0: there is no room for them. */
uint32_t wait_stacks_add(struct wait_stacks *stacks, const struct sample *sample, uint32_t account);
void wait_stacks_release(struct wait_stacks *stacks, uint32_t number);

/* Sets the members of `sample` that say its stacks, which are borrowed until the next call. */
void wait_stacks_show(struct wait_stacks *stacks, uint32_t number, struct sample *sample);

/* Different stacks that are kept now. */
size_t wait_stacks_count(const struct wait_stacks *stacks);
/* How many found no room. */
uint64_t wait_stacks_refused(const struct wait_stacks *stacks);
