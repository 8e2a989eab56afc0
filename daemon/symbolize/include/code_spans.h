/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which function had which addresses from when until when, for code that a process generates. A
 * span is a rectangle of addresses and time; spans never overlap. The worker builds them from
 * claims; the daemon checks them once and then only looks them up. Times are the file's own. The
 * layout is private to one build of the program.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CODE_SPANS_BYTES_MAX ((size_t)64 << 20)
#define CODE_SPAN_OPEN       UINT64_MAX /* "has not ended" */

/* From `time_ns` on, one function has all of a range of addresses. */
struct code_claim {
    uint64_t time_ns;
    uint64_t start;
    uint64_t end;   /* above start */
    uint64_t vaddr; /* of the function in its symbol table; 0: unknown */
    uint32_t order; /* of equal times the higher one is the later */
};

struct code_span {
    uint64_t from_ns;
    uint64_t to_ns; /* above from_ns; CODE_SPAN_OPEN */
    uint64_t start;
    uint64_t vaddr; /* of `start`, in the symbol table; 0: unknown */
    uint32_t size_bytes;
    uint32_t node; /* of the tree over the columns that lists it */
};

struct code_spans {
    const uint64_t *columns; /* addresses at which a span begins or ends, rising */
    size_t column_count;
    const struct code_span *spans; /* by rising (node, from_ns); one may be listed at many nodes */
    size_t span_count;
    uint64_t last_ns; /* the latest time of a claim */
};

/*
 * Sorts the claims (borrowed) by time, and serialises their spans. Returns 0 with bytes to release
 * with free(), -ENOMEM, or -E2BIG.
 */
int code_spans_build(struct code_claim *claims, size_t count, void **ret_bytes, size_t *ret_size);

/*
 * Makes `ret` a view of the beginning of serialised bytes (borrowed, 8-byte aligned), after
 * checking all that a lookup follows. `*ret_used` is the number of these bytes, a multiple of 8.
 * Returns 0, or -EBADMSG.
 */
int code_spans_open(const void *bytes, size_t size_bytes, struct code_spans *ret, size_t *ret_used);

/* The span that has an address at a time; NULL: no function had it by then. */
const struct code_span *code_spans_find(const struct code_spans *spans, uint64_t address,
                                        uint64_t time_ns);
