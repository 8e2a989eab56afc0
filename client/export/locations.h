/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The different addresses and stacks of a profile, as formats list them that have tables of
 * locations: each once, under a number. A location is an address of a module and the frames that it
 * became. What a module's own address is does not depend on where a process has it, so many
 * processes share locations.
 */

#include "chain_keys.h"
#include "profile.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct building;

struct location {
    uint64_t address; /* the module's own; without a module as the process had it, or 0 */
    uint32_t module;  /* of the profile, or INTERN_NONE */
    uint32_t frames;  /* of `runs` */
};

/* All zero is empty. */
struct locations {
    struct intern runs;           /* arrays of uint32_t: frames, those that were inlined first */
    struct intern items;          /* struct location */
    struct intern stacks;         /* arrays of uint32_t: locations, leaf first */
    struct chain_keys stack_keys; /* what a stack depends on */
    uint32_t *stack_of;           /* owned; by item of stack_keys */
    size_t stack_of_capacity;
    uint32_t *run_of_frame; /* owned; 1 + the run of that frame alone, 0: none yet */
    size_t run_of_frame_capacity;
    size_t run_of_frame_count;
    struct building *building; /* owned; locations of the stack at hand */
    size_t building_capacity;
    size_t building_count;
    uint32_t *numbers; /* owned; of these */
    size_t numbers_capacity;
};

/* Stands for what called a stack that does not reach its root, or for ticks that are lost: frames
 * that no profile has. */
#define LOCATION_TRUNCATED (UINT32_MAX - 1)
#define LOCATION_LOST      (UINT32_MAX - 2)

void locations_done(struct locations *table);

/* The number of a sample's stack, of `stacks`; "[truncated]" is its outermost location where it
 * does not reach its root. Returns 0, or -ENOMEM. */
int locations_add_stack(struct locations *table, const struct profile *profile,
                        const struct profile_sample *sample, uint32_t *ret_stack);

/* The same for a caller that has a table of its own of what samples it asked for: nothing is looked
 * up by the sample's numbers, so each call walks the stack. */
int locations_make_stack(struct locations *table, const struct profile *profile,
                         const struct profile_sample *sample, uint32_t *ret_stack);

/* The numbers of the locations of a sample's stack, leaf first, which is not kept as a stack.
 * Borrowed, until the next call; NULL when there is no memory. */
const uint32_t *locations_list(struct locations *table, const struct profile *profile,
                               const struct profile_sample *sample, size_t *ret_count);

/* Frees what only locations_add_stack() looks at, once it has had all samples. Were it called
 * again, each stack would be walked anew, and have the number that it had. */
void locations_forget_samples(struct locations *table);

/* The number of the location that only has a frame LOCATION_TRUNCATED or LOCATION_LOST. Returns 0,
 * or -ENOMEM. */
int locations_add_marker(struct locations *table, uint32_t frame, uint32_t *ret_location);

const struct location *locations_at(const struct locations *table, uint32_t location);
const uint32_t *locations_stack(const struct locations *table, uint32_t stack, size_t *ret_count);
const uint32_t *locations_frames(const struct locations *table, const struct location *location,
                                 size_t *ret_count);

/* Where the addresses of each of the profile's modules end: behind the page of its last location; 0
 * where it has none. Returned: free(). NULL when there is no memory. */
uint64_t *locations_find_limits(const struct locations *table, const struct profile *profile);
