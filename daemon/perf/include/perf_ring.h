/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One mapped perf ring: the kernel writes and moves data_head, we read and move data_tail. Pure: it
 * works on any two pieces of memory, and trusts neither head nor record sizes. The data is ours to
 * read only: writing to it is a SIGBUS, however it is mapped. A zeroed one is empty for ever.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct perf_event_mmap_page;

/* Room for the largest record, whose size field has 16 bits. */
#define PERF_RING_BOUNCE_BYTES ((size_t)65536)

struct perf_ring {
    struct perf_event_mmap_page *meta; /* borrowed; NULL: there is no ring */
    const uint8_t *data;               /* borrowed; data_bytes of it, a power of two */
    uint64_t data_bytes;
    uint64_t head; /* as of the last perf_ring_refresh() */
    uint64_t tail; /* next byte to read; published by perf_ring_publish() */
    uint8_t
        *bounce; /* borrowed, PERF_RING_BOUNCE_BYTES; a record that wraps is put together here */
};

void perf_ring_init(struct perf_ring *ring, struct perf_event_mmap_page *meta, const uint8_t *data,
                    uint64_t data_bytes, uint8_t *bounce);

/* Takes note of what the kernel has written by now (load-acquire of data_head). */
void perf_ring_refresh(struct perf_ring *ring);

/*
 * Shows the next record up to the noted head, without consuming it.
 * Returns 1 with the record (8-byte aligned, header first; valid until perf_ring_publish() or, when
 * it was put together, perf_ring_advance()), 0 when there is none, -EBADMSG when head or the
 * record's size is impossible: everything noted is skipped.
 */
int perf_ring_peek(struct perf_ring *ring, const uint8_t **ret_record, size_t *ret_size_bytes);

/* Whether the kernel woke the reader with the record that perf_ring_peek() showed, in a ring that
 * does so each time that another `watermark_bytes` are written (perf_output_begin(), Linux 6.18).
 */
bool perf_ring_woke(const struct perf_ring *ring, size_t size_bytes, uint64_t watermark_bytes);

/* Skips the record that perf_ring_peek() showed. Its copy in the bounce buffer is wiped, since it
 * may have bytes of a stack. */
void perf_ring_advance(struct perf_ring *ring, size_t size_bytes);

/* Gives the space of everything consumed back to the kernel. True: since the last call the ring was
 * so full that the kernel may have refused a record. */
bool perf_ring_publish(struct perf_ring *ring);
