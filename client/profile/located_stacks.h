/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Stacks of samples as spots: what their addresses are in the modules that were mapped there, and
 * then. That is found out once; names may come later, and several times.
 */

#include "profile.h"
#include "quota.h"
#include "spots.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOCATED_NONE UINT32_C(0) /* the stack that stands for those for which there is no room */

struct located_stack {
    size_t first;  /* of the words */
    uint32_t rest; /* the stack that it goes on with, or LOCATED_NONE */
    uint32_t pid;  /* whose share it is part of: the first process's that had it */
};

struct located_stacks {
    struct spots spots;
    uint32_t *words; /* owned; spots of each stack, one stack behind the other */
    size_t word_capacity;
    size_t word_count;
    struct located_stack *stacks; /* owned; stack 0 is LOCATED_NONE */
    size_t capacity;
    size_t count;
    uint32_t *chains; /* owned; by stack, as far as there are any: what resolve.c has made of it */
    size_t chain_capacity;
    size_t chain_count;
};

/* Returned: located_stacks_free(). NULL when there is no memory. */
struct located_stacks *located_stacks_new(void);
struct located_stacks *located_stacks_free(struct located_stacks *located);

/* What is remembered, in bytes. */
uint64_t located_stacks_size_bytes(const struct located_stacks *located);

/* The spots of a stack without its rest. Borrowed, until the next is located. */
const uint32_t *located_stacks_get(const struct located_stacks *located, uint32_t stack,
                                   size_t *ret_count);

/* Goes through the samples of a profile, once. */
struct locator;

/* Returned: locator_free(). NULL when there is no memory. All are borrowed; `made` is what may be
 * remembered, by process. */
struct locator *locator_new(struct profile *profile, struct located_stacks *located,
                            struct quota *made);
struct locator *locator_free(struct locator *locator);
void locator_freep(struct locator **locator);

/* Gives the samples up to `end` that have none yet their process's name, their owner, and their
 * stack's number. Returns 0, or -ENOMEM. */
int locator_go(struct locator *locator, size_t end);
