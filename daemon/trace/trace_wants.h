/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Addresses that were sampled in files which are being read, and want a name when that is done: a
 * list for each file, one bound for all, shared by owner (quota.h). What is refused is counted
 * and stays without a name. Belongs to the collector thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRACE_WANTS_MAX ((size_t)524288) /* of all files; of one an eighth at the most */

struct trace_wants;

/* Of one file; its own but for the owner. All zero is an empty one. */
struct wanted_addresses {
    uint32_t owner; /* the same as long as there are any */
    uint64_t *items;
    size_t count;
    size_t capacity;
};

/* Returned; NULL when there is no memory. */
struct trace_wants *trace_wants_new(void);
struct trace_wants *trace_wants_free(struct trace_wants *wants);

void trace_wants_note(struct trace_wants *wants, struct wanted_addresses *list, uint64_t address);
/* Lets go of the last one. */
void trace_wants_pop(struct trace_wants *wants, struct wanted_addresses *list);
/* Lets go of all, and of their memory. */
void trace_wants_clear(struct trace_wants *wants, struct wanted_addresses *list);

uint64_t trace_wants_refused_count(const struct trace_wants *wants);
