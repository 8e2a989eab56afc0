/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reads a perf ring. head and tail are free-running byte counts; the place in the ring is the count
 * modulo its size, a power of two. Invariants: tail never passes the noted head; a record that is
 * shown lies wholly between the two, begins at a multiple of 8 in memory, and is in one piece; the
 * bounce buffer holds no more than the record that is shown.
 *
 * Sizes of records are multiples of 8, but for one that any user can make: the kernel (6.18) cuts a
 * copied stack at the end of the address space, and so to an odd size where the stack pointer is
 * odd. From there on no record of the ring is aligned, and each is put together in the bounce
 * buffer.
 *
 * If content breaks the rules, the ring's memory cannot be trusted: all bytes up to the noted head
 * are dropped and counted, and reading goes on behind them. The callers parse records and decide
 * when to publish.
 */
#include "perf_ring.h"

#include "perf_abi.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#define RECORD_ALIGN ((uint64_t)8)

void perf_ring_init(struct perf_ring *ring, struct perf_event_mmap_page *meta, const uint8_t *data,
                    uint64_t data_bytes, uint8_t *bounce)
{
    assert(data_bytes >= RECORD_ALIGN && (data_bytes & (data_bytes - 1)) == 0);
    uint64_t tail = __atomic_load_n(&meta->data_tail, __ATOMIC_RELAXED);
    *ring = (struct perf_ring){
        .meta = meta,
        .data = data,
        .data_bytes = data_bytes,
        .head = tail,
        .tail = tail,
        .bounce = bounce,
    };
}

void perf_ring_refresh(struct perf_ring *ring)
{
    if (ring->meta != NULL) {
        ring->head = __atomic_load_n(&ring->meta->data_head, __ATOMIC_ACQUIRE);
    }
}

static int throw_away(struct perf_ring *ring)
{
    ring->tail = ring->head;
    return -EBADMSG;
}

/* The bytes from the tail to the end of the memory. */
static size_t bytes_until_end(const struct perf_ring *ring)
{
    return (size_t)(ring->data_bytes - (ring->tail & (ring->data_bytes - 1)));
}

/* Copies what is from the tail on. */
static void copy_from_tail(const struct perf_ring *ring, void *into, size_t size_bytes)
{
    size_t at = (size_t)(ring->tail & (ring->data_bytes - 1));
    size_t until_end = bytes_until_end(ring);
    size_t first_bytes = size_bytes < until_end ? size_bytes : until_end;
    memcpy(into, ring->data + at, first_bytes);
    memcpy((uint8_t *)into + first_bytes, ring->data, size_bytes - first_bytes);
}

/* Whether a record at the tail can be shown where it is. */
static bool is_in_place(const struct perf_ring *ring, size_t size_bytes)
{
    return ring->tail % RECORD_ALIGN == 0 && size_bytes <= bytes_until_end(ring);
}

int perf_ring_peek(struct perf_ring *ring, const uint8_t **ret_record, size_t *ret_size_bytes)
{
    uint64_t noted_bytes = ring->head - ring->tail;
    struct perf_event_header header;
    if (noted_bytes == 0) {
        return 0;
    }
    if (noted_bytes > ring->data_bytes || noted_bytes < sizeof header) {
        return throw_away(ring);
    }
    copy_from_tail(ring, &header, sizeof header);
    if (header.size < sizeof header || header.size > noted_bytes) {
        return throw_away(ring);
    }
    if (is_in_place(ring, header.size)) {
        *ret_record = ring->data + (ring->tail & (ring->data_bytes - 1));
    } else {
        copy_from_tail(ring, ring->bounce, header.size);
        *ret_record = ring->bounce;
    }
    *ret_size_bytes = header.size;
    return 1;
}

bool perf_ring_woke(const struct perf_ring *ring, size_t size_bytes, uint64_t watermark_bytes)
{
    const uint64_t end = ring->tail + size_bytes;
    const uint64_t before = ring->tail > 0 ? (ring->tail - 1) / watermark_bytes : 0;
    return (end - 1) / watermark_bytes > before;
}

void perf_ring_advance(struct perf_ring *ring, size_t size_bytes)
{
    assert(size_bytes <= ring->head - ring->tail);
    if (!is_in_place(ring, size_bytes)) {
        explicit_bzero(ring->bounce, size_bytes);
    }
    ring->tail += size_bytes;
}

/* The kernel refuses a record by the tail that was published last. Its head never falls, so a head
 * of now that leaves less room than a record can need shows every refusal up to now. */
bool perf_ring_publish(struct perf_ring *ring)
{
    if (ring->meta == NULL) {
        return false;
    }
    uint64_t tail = __atomic_load_n(&ring->meta->data_tail, __ATOMIC_RELAXED);
    __atomic_store_n(&ring->meta->data_tail, ring->tail, __ATOMIC_SEQ_CST);
    uint64_t head = __atomic_load_n(&ring->meta->data_head, __ATOMIC_SEQ_CST);
    return head - tail + PERF_RING_BOUNCE_BYTES > ring->data_bytes;
}
