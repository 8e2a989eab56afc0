/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The log of definitions, shared among those whose samples need them. Whoever runs programs decides
 * how many names and mappings these have, so each owner (a uid) has a share of each log
 * (fair_share.h): nobody alone can fill one. What is beyond a share is refused, counted by its
 * kind, and not asked for again in that log. Belongs to the collector thread.
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

/* A log begins, of which nobody has had anything. */
void definition_log_begin(struct definition_log *log);

/* Puts a group whole, or refuses it, and counts that. */
bool definition_log_put(struct definition_log *log, uint32_t owner, enum definition_log_kind kind,
                        const void *group, size_t group_bytes);
/* Whether an owner could pay for so much; if not, counts it as refused. */
bool definition_log_may_pay(struct definition_log *log, uint32_t owner,
                            enum definition_log_kind kind, size_t bytes);
/* Takes so much of a share for what is put later, with definition_log_put_paid(). */
bool definition_log_pay(struct definition_log *log, uint32_t owner, enum definition_log_kind kind,
                        size_t bytes);
/* Puts what was paid for, or is of no owner: the session, the books. For these some room is kept.
 * False: there is none all the same. */
bool definition_log_put_paid(struct definition_log *log, const void *group, size_t group_bytes);

/* Whether somebody has little left of his share of this log: another one would be welcome. */
bool definition_log_is_short(const struct definition_log *log);
/* What was refused in all logs. */
uint64_t definition_log_refused_count(const struct definition_log *log,
                                      enum definition_log_kind kind);
