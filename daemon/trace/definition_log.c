/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Two bounds: what only makes a sample readable (mappings, names of functions) ends at three
 * quarters of a log, so that what a sample cannot do without always has the last one; and that ends
 * before what is kept for the books, and for lines that were paid for. Of the first an owner has
 * half of what everything else leaves, of the second a fourth: an owner that has used up the one
 * still has the other.
 *
 * Owners with one place of the table share it. No owner can choose its place: the hash is seeded.
 */
#include "definition_log.h"

#include "capacity.h"
#include "cleanup.h"
#include "fair_share.h"
#include "seeded_hash.h"

#include <string.h>

#define OWNERS             CAPACITY(4096)
#define SHORT_PART         32 /* an owner with less than this part of a log left is short */
#define USEFUL_MAX(log)    ((log)->capacity_bytes / 4 * 3)
#define NECESSARY_MAX(log) ((log)->capacity_bytes / 32 * 31)
#define USEFUL_PARTS       2
#define NECESSARY_PARTS    4

struct definition_log {
    struct trace_buffer *buffer;
    uint64_t capacity_bytes;
    uint64_t used_bytes; /* by all owners */
    uint64_t useful_bytes_of[OWNERS];
    uint64_t necessary_bytes_of[OWNERS];
    bool is_short;
    uint64_t refused_counts[DEFINITION_KINDS];
};

struct definition_log *definition_log_new(struct trace_buffer *buffer)
{
    struct definition_log *log = calloc(1, sizeof *log);
    if (log != NULL) {
        log->buffer = buffer;
        log->capacity_bytes = trace_buffer_log_bytes(buffer);
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
    memset(log->useful_bytes_of, 0, sizeof log->useful_bytes_of);
    memset(log->necessary_bytes_of, 0, sizeof log->necessary_bytes_of);
    log->used_bytes = 0;
    log->is_short = false;
}

static uint64_t *bytes_of(struct definition_log *log, uint32_t owner, enum definition_log_kind kind)
{
    size_t place = seeded_hash(&owner, sizeof owner) % OWNERS;
    return kind == DEFINITION_TASK ? &log->necessary_bytes_of[place] : &log->useful_bytes_of[place];
}

bool definition_log_may_pay(struct definition_log *log, uint32_t owner,
                            enum definition_log_kind kind, size_t bytes)
{
    bool necessary = kind == DEFINITION_TASK;
    uint64_t own = *bytes_of(log, owner, kind);
    uint64_t max = necessary ? NECESSARY_MAX(log) : USEFUL_MAX(log);
    uint64_t parts = necessary ? NECESSARY_PARTS : USEFUL_PARTS;
    uint64_t spare = log->capacity_bytes / SHORT_PART;
    if (!fair_share_allows(max, parts, log->used_bytes, own, bytes + spare)) {
        log->is_short = true;
    }
    if (!fair_share_allows(max, parts, log->used_bytes, own, bytes)) {
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
    *bytes_of(log, owner, kind) += bytes;
    log->used_bytes += bytes;
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

bool definition_log_is_short(const struct definition_log *log)
{
    return log->is_short;
}

uint64_t definition_log_refused_count(const struct definition_log *log,
                                      enum definition_log_kind kind)
{
    return log->refused_counts[kind];
}
