/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Rings of whole groups. A group lies in its lane as one word with its size and then its bytes,
 * wrapping at the lane's end; `head` (the writer's), `read` and `tail` (the reader's) only grow;
 * from tail to head is what the writer must leave alone. Publication is the store-release of head,
 * so a group is there whole or not at all.
 *
 * The reader gives memory back to the system once it has read past it, so a recording that is read
 * as it goes keeps little more than what is unread, however long it runs.
 */
#include "trace_buffer.h"

#include "cleanup.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE_BYTES ((uint64_t)4096)

#define GROUP_HEADER_BYTES sizeof(uint64_t)

struct lane {
    uint8_t *bytes;
    uint64_t capacity_bytes;
    _Atomic uint64_t head;
    _Atomic uint64_t tail; /* `read`, rounded down to a page: what the writer may use again */
    uint64_t read;         /* the reader's own: the next byte to hand out */
};

struct trace_buffer {
    size_t lane_count;
    size_t next_lane; /* the reader's own: the CPU lane that comes first next time, another each
                         time */
    struct lane lanes[];
};

static size_t round_up(size_t bytes)
{
    return (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

struct trace_buffer *trace_buffer_new(size_t cpu_count, size_t definitions_bytes, size_t cpu_bytes)
{
    struct trace_buffer *buffer =
        calloc(1, sizeof *buffer + (1 + cpu_count) * sizeof buffer->lanes[0]);
    if (buffer == NULL) {
        return NULL;
    }
    buffer->lane_count = 1 + cpu_count;
    buffer->next_lane = TRACE_LANE_CPU(0);
    for (size_t i = 0; i < buffer->lane_count; i++) {
        struct lane *lane = &buffer->lanes[i];
        lane->capacity_bytes =
            round_up(i == TRACE_LANE_DEFINITIONS ? definitions_bytes : cpu_bytes);
        void *map = mmap(NULL, lane->capacity_bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (map == MAP_FAILED) {
            return trace_buffer_free(buffer);
        }
        lane->bytes = map;
    }
    return buffer;
}

struct trace_buffer *trace_buffer_free(struct trace_buffer *buffer)
{
    if (buffer == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < buffer->lane_count; i++) {
        if (buffer->lanes[i].bytes != NULL) {
            (void)munmap(buffer->lanes[i].bytes, buffer->lanes[i].capacity_bytes);
        }
    }
    free(buffer);
    return NULL;
}

static void copy_in(struct lane *lane, uint64_t position, const void *bytes, size_t size)
{
    uint64_t offset = position % lane->capacity_bytes;
    uint64_t first = lane->capacity_bytes - offset;
    if (first > size) {
        first = size;
    }
    memcpy(lane->bytes + offset, bytes, first);
    memcpy(lane->bytes, (const uint8_t *)bytes + first, size - first);
}

static void copy_out(const struct lane *lane, uint64_t position, void *bytes, size_t size)
{
    uint64_t offset = position % lane->capacity_bytes;
    uint64_t first = lane->capacity_bytes - offset;
    if (first > size) {
        first = size;
    }
    memcpy(bytes, lane->bytes + offset, first);
    memcpy((uint8_t *)bytes + first, lane->bytes, size - first);
}

bool trace_buffer_has_room(const struct trace_buffer *buffer, size_t lane_index, size_t group_bytes)
{
    const struct lane *lane = &buffer->lanes[lane_index];
    uint64_t head = atomic_load_explicit(&lane->head, memory_order_relaxed);
    uint64_t tail = atomic_load_explicit(&lane->tail, memory_order_acquire);
    return lane->capacity_bytes - (head - tail) >= GROUP_HEADER_BYTES + group_bytes;
}

bool trace_buffer_put(struct trace_buffer *buffer, size_t lane_index, const void *group,
                      size_t group_bytes)
{
    struct lane *lane = &buffer->lanes[lane_index];
    assert(group_bytes % 8 == 0);
    if (!trace_buffer_has_room(buffer, lane_index, group_bytes)) {
        return false;
    }
    uint64_t head = atomic_load_explicit(&lane->head, memory_order_relaxed);
    uint64_t size = group_bytes;
    copy_in(lane, head, &size, sizeof size);
    copy_in(lane, head + GROUP_HEADER_BYTES, group, group_bytes);
    atomic_store_explicit(&lane->head, head + GROUP_HEADER_BYTES + group_bytes,
                          memory_order_release);
    return true;
}

/* Gives back the whole pages that have been read, and then lets the writer have them again. */
static void release_consumed(struct lane *lane)
{
    uint64_t from = atomic_load_explicit(&lane->tail, memory_order_relaxed);
    uint64_t to = lane->read / PAGE_BYTES * PAGE_BYTES;
    for (uint64_t at = from; at < to;) {
        uint64_t offset = at % lane->capacity_bytes;
        uint64_t bytes = lane->capacity_bytes - offset;
        bytes = bytes > to - at ? to - at : bytes;
        (void)madvise(lane->bytes + offset, bytes, MADV_DONTNEED);
        at += bytes;
    }
    atomic_store_explicit(&lane->tail, to, memory_order_release);
}

/* Moves groups up to `head`. Returns the bytes moved; `*ret_emptied` says whether all of them were.
 */
static size_t take_lane(struct lane *lane, uint64_t head, uint8_t *bytes, size_t capacity_bytes,
                        bool *ret_emptied)
{
    size_t taken = 0;
    while (lane->read != head) {
        uint64_t size = 0;
        copy_out(lane, lane->read, &size, sizeof size);
        if (size > capacity_bytes - taken) {
            break;
        }
        copy_out(lane, lane->read + GROUP_HEADER_BYTES, bytes + taken, size);
        taken += size;
        lane->read += GROUP_HEADER_BYTES + size;
    }
    release_consumed(lane);
    *ret_emptied = lane->read == head;
    return taken;
}

size_t trace_buffer_take(struct trace_buffer *buffer, void *bytes, size_t capacity_bytes)
{
    size_t cpu_count = buffer->lane_count - 1;
    assert(cpu_count > 0);
    cleanup_(freep) uint64_t *heads = calloc(buffer->lane_count, sizeof *heads);
    if (heads == NULL) {
        return 0;
    }
    for (size_t i = buffer->lane_count; i-- > 0;) { /* the definitions' head last: see the header */
        heads[i] = atomic_load_explicit(&buffer->lanes[i].head, memory_order_acquire);
    }

    bool emptied = false;
    size_t taken = take_lane(&buffer->lanes[TRACE_LANE_DEFINITIONS], heads[TRACE_LANE_DEFINITIONS],
                             bytes, capacity_bytes, &emptied);
    for (size_t i = 0; emptied && i < cpu_count; i++) {
        size_t lane = TRACE_LANE_CPU((buffer->next_lane - 1 + i) % cpu_count);
        taken += take_lane(&buffer->lanes[lane], heads[lane], (uint8_t *)bytes + taken,
                           capacity_bytes - taken, &emptied);
    }
    buffer->next_lane = TRACE_LANE_CPU(buffer->next_lane % cpu_count);
    return taken;
}

size_t trace_buffer_used_bytes(const struct trace_buffer *buffer)
{
    size_t used = 0;
    for (size_t i = 0; i < buffer->lane_count; i++) {
        const struct lane *lane = &buffer->lanes[i];
        used += atomic_load_explicit(&lane->head, memory_order_acquire) - lane->read;
    }
    return used;
}

size_t trace_buffer_capacity_bytes(const struct trace_buffer *buffer)
{
    size_t capacity = 0;
    for (size_t i = 0; i < buffer->lane_count; i++) {
        capacity += buffer->lanes[i].capacity_bytes;
    }
    return capacity;
}
