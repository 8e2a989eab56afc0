/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One mapped perf ring: the kernel writes and moves data_head, we read and move data_tail. Pure: it
 * works on any two pieces of memory, and trusts neither head nor record sizes.
 */

#include <stddef.h>
#include <stdint.h>

struct perf_event_mmap_page;

/* Room for the largest record, whose size field has 16 bits. */
#define PERF_RING_BOUNCE_BYTES ((size_t)65536)

struct perf_ring {
    struct perf_event_mmap_page *meta; /* borrowed */
    uint8_t *data;                     /* borrowed; data_bytes of it, a power of two */
    uint64_t data_bytes;
    uint64_t head; /* as of the last perf_ring_refresh() */
    uint64_t tail; /* next byte to read; published by perf_ring_publish() */
    uint8_t
        *bounce; /* borrowed, PERF_RING_BOUNCE_BYTES; a record that wraps is put together here */
    uint64_t bad_count; /* times that the ring's content made no sense and was thrown away */
};

void perf_ring_init(struct perf_ring *ring, struct perf_event_mmap_page *meta, uint8_t *data,
                    uint64_t data_bytes, uint8_t *bounce);

/* Takes note of what the kernel has written by now (load-acquire of data_head). */
void perf_ring_refresh(struct perf_ring *ring);

/*
 * Shows the next record up to the noted head, without consuming it.
 * Returns 1 with the record (8-byte aligned, header first; valid until perf_ring_publish() or, when
 * it was put together, the next perf_ring_peek()), 0 when there is none, -EBADMSG when head or the
 * record's size is impossible: everything noted is skipped and counted.
 */
int perf_ring_peek(struct perf_ring *ring, const uint8_t **ret_record, size_t *ret_size_bytes);

/*
 * Overwrites bytes of the record that perf_ring_peek() showed last with zeros, in the ring and
 * where they were shown: for copies of memory that shall not outlive their use. `bytes` to
 * `bytes + size_bytes` lies in that record, or there are none. Before perf_ring_advance().
 */
void perf_ring_wipe(struct perf_ring *ring, const uint8_t *bytes, size_t size_bytes);

/* Goes past the record that perf_ring_peek() showed. */
void perf_ring_advance(struct perf_ring *ring, size_t size_bytes);

/* Gives the space of everything consumed back to the kernel (store-release of data_tail). */
void perf_ring_publish(struct perf_ring *ring);
