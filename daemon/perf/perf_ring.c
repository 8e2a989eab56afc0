/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reads a perf ring. head and tail are free-running byte counts; the place in the ring is the count
 * modulo its size, a power of two. Invariants: tail is a multiple of 8, as every record's size is,
 * so a record's header never wraps; tail never passes the noted head; a record that is shown lies
 * wholly between the two; the bounce buffer holds no more than the record that is shown.
 *
 * The kernel keeps these rules. If content breaks them, the ring's memory cannot be trusted: all
 * bytes up to the noted head are dropped and counted, and reading goes on behind them. The callers
 * parse records and decide when to publish.
 */
#include "perf_ring.h"

#include "perf_abi.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#define RECORD_ALIGN ((uint64_t)8)

_Static_assert(sizeof(struct perf_event_header) == RECORD_ALIGN, "a header never wraps");

static uint64_t align_down(uint64_t count)
{
    return count & ~(RECORD_ALIGN - 1);
}

void perf_ring_init(struct perf_ring *ring, struct perf_event_mmap_page *meta, const uint8_t *data,
                    uint64_t data_bytes, uint8_t *bounce)
{
    assert(data_bytes >= RECORD_ALIGN && (data_bytes & (data_bytes - 1)) == 0);
    uint64_t tail = align_down(__atomic_load_n(&meta->data_tail, __ATOMIC_RELAXED));
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
    ring->head = align_down(ring->head);
    ring->tail = ring->head;
    return -EBADMSG;
}

/* The bytes from the tail to the end of the memory. */
static size_t bytes_until_end(const struct perf_ring *ring)
{
    return (size_t)(ring->data_bytes - (ring->tail & (ring->data_bytes - 1)));
}

/* `size_bytes` from the tail on, in one piece. */
static const uint8_t *in_one_piece(const struct perf_ring *ring, size_t size_bytes)
{
    size_t at = (size_t)(ring->tail & (ring->data_bytes - 1));
    size_t until_end = bytes_until_end(ring);
    if (size_bytes <= until_end) {
        return ring->data + at;
    }
    memcpy(ring->bounce, ring->data + at, until_end);
    memcpy(ring->bounce + until_end, ring->data, size_bytes - until_end);
    return ring->bounce;
}

int perf_ring_peek(struct perf_ring *ring, const uint8_t **ret_record, size_t *ret_size_bytes)
{
    uint64_t noted_bytes = ring->head - ring->tail;
    if (noted_bytes == 0) {
        return 0;
    }
    if (noted_bytes > ring->data_bytes || noted_bytes % RECORD_ALIGN != 0) {
        return throw_away(ring);
    }

    struct perf_event_header header;
    memcpy(&header, ring->data + (ring->tail & (ring->data_bytes - 1)), sizeof header);
    if (header.size < sizeof header || header.size % RECORD_ALIGN != 0 ||
        header.size > noted_bytes) {
        return throw_away(ring);
    }
    *ret_record = in_one_piece(ring, header.size);
    *ret_size_bytes = header.size;
    return 1;
}

void perf_ring_advance(struct perf_ring *ring, size_t size_bytes)
{
    assert(size_bytes % RECORD_ALIGN == 0 && size_bytes <= ring->head - ring->tail);
    if (size_bytes > bytes_until_end(ring)) {
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
