/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Shares the log of definitions among the owners (uids) of the sampled processes. Programs decide
 * how many names and mappings they have, so each owner has a share of each log (quota.h) and
 * no owner alone can fill it. A definition beyond the share is refused, counted by its kind, and
 * not requested again in that log. Belongs to the collector thread.
 */

#include "trace_buffer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRACE_OWNER_KERNEL (UINT32_MAX - 1) /* no uid: the kernel, its threads */

enum definition_log_kind {
    DEFINITION_TASK,    /* without it a sample would be misread: a task's name, "this is unknown" */
    DEFINITION_MAPPING, /* without it a frame is unknown */
    DEFINITION_NAME,    /* without it a frame has its module and its address */
    DEFINITION_KINDS,
};

struct definition_log;

/* Returned; NULL when there is no memory. `buffer` is borrowed. */
struct definition_log *definition_log_new(struct trace_buffer *buffer);
struct definition_log *definition_log_free(struct definition_log *log);

/* Begins a log, in which all shares are unused. */
void definition_log_begin(struct definition_log *log);

/* Writes a group whole and charges its owner, or refuses and counts it. */
bool definition_log_put(struct definition_log *log, uint32_t owner, enum definition_log_kind kind,
                        const void *group, size_t group_bytes);
/* True when the owner's share has room for `bytes`; else it counts as refused. */
bool definition_log_may_pay(struct definition_log *log, uint32_t owner,
                            enum definition_log_kind kind, size_t bytes);
/* Charges `bytes` to the owner now; definition_log_put_paid() writes the record later. */
bool definition_log_pay(struct definition_log *log, uint32_t owner, enum definition_log_kind kind,
                        size_t bytes);
/* Writes a record that was charged before, or has no owner (the session, the books). Some room is
 * reserved for these. False: there is no room all the same. */
bool definition_log_put_paid(struct definition_log *log, const void *group, size_t group_bytes);

/* Counts one as refused that was not even kept in mind, for want of room. */
void definition_log_refuse(struct definition_log *log, enum definition_log_kind kind);

/* True when an owner has little left of its share of this log, so that a new log is due. */
bool definition_log_is_short(const struct definition_log *log);
/* The numbers of refused definitions of all logs. */
uint64_t definition_log_refused_count(const struct definition_log *log,
                                      enum definition_log_kind kind);
