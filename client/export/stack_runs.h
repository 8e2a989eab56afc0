/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a format makes of a stack, made once for all samples that have it. What the addresses of a
 * stack mean may change with time: then it is made anew, and kept if it is another.
 */

#include "chain_keys.h"
#include "profile.h"

#include <stddef.h>
#include <stdint.h>

struct stack_run;

/* All zero is empty. It is of one profile, and of one process where `make` depends on that. */
struct stack_runs {
    struct chain_keys keys;  /* what a stack depends on, besides the time */
    struct stack_run *known; /* owned; by item of `keys` */
    size_t known_capacity;
    struct intern runs; /* what was made */
};

void stack_runs_done(struct stack_runs *table);

struct made_run {
    const void *bytes; /* borrowed, until the next call */
    size_t size_bytes;
};

/* Makes the bytes for a sample's stack. Returns 0, or -ENOMEM. */
typedef int (*stack_run_fn)(const struct profile_sample *sample, void *userdata,
                            struct made_run *ret);

/* The number of the bytes for a sample's stack. Returns 0, or -ENOMEM. */
int stack_runs_find(struct stack_runs *table, const struct profile *profile,
                    const struct profile_sample *sample, stack_run_fn make, void *userdata,
                    uint32_t *ret_run);

/* The bytes of a number, and what fetches them into the CPU's cache. */
struct made_run stack_runs_at(const struct stack_runs *table, uint32_t run);
static inline void stack_runs_fetch(const struct stack_runs *table, uint32_t run)
{
    intern_fetch_bytes(&table->runs, run);
}

/* The bytes for a sample's stack. Returns 0, or -ENOMEM. */
int stack_runs_get(struct stack_runs *table, const struct profile *profile,
                   const struct profile_sample *sample, stack_run_fn make, void *userdata,
                   struct made_run *ret);

/* Fetches into the CPU's cache what stack_runs_get() will look at for the samples behind the one
 * `at` of these numbers of samples. */
void stack_runs_fetch_ahead(const struct stack_runs *table, const struct profile *profile,
                            const uint32_t *samples, size_t count, size_t at);
