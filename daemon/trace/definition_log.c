/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Two bounds: what only makes a sample readable (mappings, names of functions) ends at three
 * quarters of a log, so that what a sample cannot do without always has the last one; and that ends
 * before what is kept for the books, and for lines that were paid for. Of the first an owner has
 * half of what everything else leaves, of the second a fourth: an owner that has used up the one
 * still has the other.
 */
#include "definition_log.h"

#include "cleanup.h"
#include "quota.h"

#include <string.h>

#define SHORT_PART 32 /* an owner with less than this part of a log left is short */

struct definition_log {
    struct trace_buffer *buffer;
    uint64_t capacity_bytes;
    struct quota useful; /* bytes */
    struct quota necessary;
    bool is_short;
    uint64_t refused_counts[DEFINITION_KINDS];
};

struct definition_log *definition_log_new(struct trace_buffer *buffer)
{
    struct definition_log *log = calloc(1, sizeof *log);
    if (log != NULL) {
        log->buffer = buffer;
        log->capacity_bytes = trace_buffer_log_bytes(buffer);
        log->useful.max = log->capacity_bytes / 4 * 3;
        log->useful.parts = 2;
        log->necessary.max = log->capacity_bytes / 32 * 31;
        log->necessary.parts = 4;
    }
    return log;
}

struct definition_log *definition_log_free(struct definition_log *log)
{
    free(log);
    return NULL;
}

void definition_log_begin(struct definition_log *log)
{
    quota_clear(&log->useful);
    quota_clear(&log->necessary);
    log->is_short = false;
}

static struct quota *quota_of(struct definition_log *log, enum definition_log_kind kind)
{
    return kind == DEFINITION_TASK ? &log->necessary : &log->useful;
}

/* What one kind takes leaves less for the other. */
static bool has_room(struct definition_log *log, uint32_t owner, enum definition_log_kind kind,
                     uint64_t bytes)
{
    const struct quota *quota = quota_of(log, kind);
    uint64_t taken = log->useful.taken + log->necessary.taken;
    return quota_rule_allows(quota->max, quota->parts, taken, quota_taken_by(quota, owner), bytes);
}

bool definition_log_may_pay(struct definition_log *log, uint32_t owner,
                            enum definition_log_kind kind, size_t bytes)
{
    if (!has_room(log, owner, kind, bytes + log->capacity_bytes / SHORT_PART)) {
        log->is_short = true;
    }
    if (!has_room(log, owner, kind, bytes)) {
        log->refused_counts[kind]++;
        return false;
    }
    return true;
}

bool definition_log_pay(struct definition_log *log, uint32_t owner, enum definition_log_kind kind,
                        size_t bytes)
{
    if (!definition_log_may_pay(log, owner, kind, bytes)) {
        return false;
    }
    quota_charge(quota_of(log, kind), owner, bytes);
    return true;
}

bool definition_log_put(struct definition_log *log, uint32_t owner, enum definition_log_kind kind,
                        const void *group, size_t group_bytes)
{
    if (!definition_log_pay(log, owner, kind, TRACE_GROUP_HEADER_BYTES + group_bytes)) {
        return false;
    }
    bool put = definition_log_put_paid(log, group, group_bytes);
    log->refused_counts[kind] += !put;
    return put;
}

bool definition_log_put_paid(struct definition_log *log, const void *group, size_t group_bytes)
{
    return trace_buffer_put(log->buffer, TRACE_LANE_DEFINITIONS, group, group_bytes);
}

void definition_log_refuse(struct definition_log *log, enum definition_log_kind kind)
{
    log->refused_counts[kind]++;
}

bool definition_log_is_short(const struct definition_log *log)
{
    return log->is_short;
}

uint64_t definition_log_refused_count(const struct definition_log *log,
                                      enum definition_log_kind kind)
{
    return log->refused_counts[kind];
}
