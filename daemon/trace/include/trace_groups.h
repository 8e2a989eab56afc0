/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Samples on their way into the file, gathered for a moment so that those whose stacks end alike
 * share that end: where the record of one alone has its whole stack, the partials of a group have
 * each their own innermost frames, if any, and one completion has the rest for all. Pure; all
 * memory is taken by trace_groups_new().
 */

#include "sample.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How far apart in time the samples of one group may be. */
#define TRACE_GROUPS_SPAN_NS UINT64_C(100000000)
/* What the records of one group take at the most, but for a group of one. */
#define TRACE_GROUPS_WORDS_MAX ((size_t)2040)

struct trace_groups;

/* Returned; NULL when there is no memory. */
struct trace_groups *trace_groups_new(void);
struct trace_groups *trace_groups_free(struct trace_groups *groups);

/*
 * Copies a sample with its stacks. False: there is no room, or it is too far in time from those
 * that are there; form and clear those first.
 */
bool trace_groups_add(struct trace_groups *groups, const struct sample *sample);

struct trace_group {
    const struct sample *const *members; /* borrowed until the clearing */
    size_t count;                        /* 1: a record by itself */
    size_t shared_count;                 /* so many of each stack's outermost entries are equal; 0
                                            where the count is 1 */
    bool quality_differs;                /* so that each member must say its own */
};

/*
 * Divides what was added since the last clearing into groups, so that all records together are as
 * short as may be. Then trace_groups_next() tells one after another; false: there are no more.
 */
void trace_groups_form(struct trace_groups *groups);
bool trace_groups_next(struct trace_groups *groups, struct trace_group *ret);
void trace_groups_clear(struct trace_groups *groups);
