/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The promise of perf_record_parse(), for its unit test and its fuzz target: whatever a view points
 * to lies in the record.
 */

#include "perf_record.h"

#include <string.h>

struct perf_record_span {
    const void *start;
    size_t bytes;
};

static inline bool span_inside(struct perf_record_span view, struct perf_record_span record)
{
    uintptr_t begin = (uintptr_t)record.start;
    uintptr_t at = (uintptr_t)view.start;
    return view.start == NULL ? view.bytes == 0
                              : at >= begin && at - begin <= record.bytes &&
                                    view.bytes <= record.bytes - (at - begin);
}

static inline bool words_inside(const uint64_t *words, size_t count, struct perf_record_span record)
{
    struct perf_record_span view = {words, count * sizeof *words};
    return count <= record.bytes && (uintptr_t)words % sizeof *words == 0 &&
           span_inside(view, record);
}

static inline bool text_inside(const char *text, struct perf_record_span record)
{
    struct perf_record_span view = {text, 1};
    if (text == NULL || !span_inside(view, record)) {
        return false;
    }
    size_t left_bytes = record.bytes - (size_t)(text - (const char *)record.start);
    return memchr(text, '\0', left_bytes) != NULL;
}

static inline bool perf_record_views_inside(const struct perf_record *parsed, const uint8_t *bytes,
                                            size_t size_bytes)
{
    struct perf_record_span record = {bytes, size_bytes};
    struct perf_record_span stack = {parsed->sample.user_stack, parsed->sample.user_stack_bytes};
    switch (parsed->kind) {
    case PERF_KIND_SAMPLE:
        return words_inside(parsed->sample.kernel_chain, parsed->sample.kernel_count, record) &&
               words_inside(parsed->sample.user_chain, parsed->sample.user_count, record) &&
               words_inside(parsed->sample.user_regs, parsed->sample.user_regs_count, record) &&
               parsed->sample.followed.count <= PERF_FOLLOWERS_MAX && span_inside(stack, record);
    case PERF_KIND_MMAP:
        return text_inside(parsed->mmap.path, record) &&
               parsed->mmap.build_id_bytes <= PERF_BUILD_ID_BYTES_MAX;
    case PERF_KIND_COMM:
        return text_inside(parsed->comm.text, record);
    case PERF_KIND_DEFERRED_CALLCHAIN:
        return words_inside(parsed->deferred.chain, parsed->deferred.count, record);
    case PERF_KIND_KSYMBOL:
        return text_inside(parsed->ksymbol.name, record);
    case PERF_KIND_CGROUP:
        return text_inside(parsed->cgroup.path, record);
    case PERF_KIND_FORK:
    case PERF_KIND_EXIT:
    case PERF_KIND_LOST:
    case PERF_KIND_THROTTLE:
    case PERF_KIND_UNTHROTTLE:
    case PERF_KIND_SWITCH:
    case PERF_KIND_OTHER:
        return true;
    }
    return false;
}
