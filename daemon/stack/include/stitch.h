/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Stacks deeper than any copy share their outer frames with others of the same thread that were
 * seen whole. A stack that the copy cuts is completed from those: where its two outermost frames
 * stood at the same places, with the same return addresses, and all that match go on alike. That is
 * likely (docs/unwinding.md has how often it was right), and not proof. Pure; allocates when it is
 * made and never again.
 */

#include "unwind.h"

#include <stdint.h>

struct stitch;

/* Frames as unwind_stack() gives them; borrowed. */
struct stitch_stack {
    uint64_t *frames;
    uint64_t *places;
    size_t count;
};

/* Returned; NULL when there is no memory. No stack is longer than `max_depth`. */
struct stitch *stitch_new(size_t max_depth);
struct stitch *stitch_free(struct stitch *stitch);

/* A stack that reaches its root. `generation` is its process's: what was known under another one
 * is forgotten. */
void stitch_learn(struct stitch *stitch, uint64_t generation, int32_t tid,
                  const struct stitch_stack *stack);

/* Appends to a stack that is cut what lies above it. False: it is as it was. Its arrays have room
 * for max_depth frames. */
bool stitch_complete(const struct stitch *stitch, uint64_t generation, int32_t tid,
                     struct stitch_stack *stack);
