/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Rings of whole groups. A group lies in its ring as one word with its size and how many samples
 * it has, and then its bytes, wrapping at the ring's end; positions only grow. A log is a ring that
 * never comes round: it is emptied as a whole.
 *
 * Of a lane, tail <= acknowledged <= taken <= shown <= head. Logs are numbered from 1; the writer
 * opens them, the reader goes from one to the next when it has taken all of it and all samples up
 * to where the lanes stood when it was closed (`ends`), and lets go of it when those have been
 * acknowledged. The reader loads `shown` before `open_log`: as long as the log is still its own,
 * what was shown belongs to it.
 *
 * The reader gives memory back to the system once it is not needed, so a recording that is read as
 * it goes keeps little more than what is unread and two logs, however long it runs.
 */
#include "trace_buffer.h"

#include "cleanup.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE_BYTES ((uint64_t)4096)

#define SIZE_BITS 32

_Static_assert(TRACE_GROUP_HEADER_BYTES == sizeof(uint64_t), "a word");

struct ring {
    uint8_t *bytes;
    uint64_t capacity_bytes;
    _Atomic uint64_t head;
};

struct lane {
    struct ring ring;
    _Atomic uint64_t shown;
    _Atomic uint64_t tail; /* what the writer may use again ends here: at a page */
    _Atomic uint64_t ends[DEFINITION_LOG_COUNT];
    uint64_t marked;       /* the writer's own, as the next */
    uint64_t reserved;     /* bytes that are kept free for what is to come */
    uint64_t limit;        /* the reader's own, as the next: up to where it may take */
    uint64_t taken;        /* up to where it has taken */
    uint64_t acknowledged; /* up to where that has arrived */
};

struct trace_buffer {
    size_t cpu_count;
    struct ring logs[DEFINITION_LOG_COUNT];
    _Atomic uint64_t open_log;     /* the one that is being written */
    _Atomic uint64_t needed_log;   /* the oldest one whose memory is in use */
    _Atomic uint64_t sample_count; /* that have been put */

    /* The reader's own. */
    uint64_t log; /* the one that is being taken */
    uint64_t log_limit;
    uint64_t log_taken;
    bool log_closed;
    bool segment_due; /* nothing of the segment has been taken, nor its beginning been asked for */
    size_t next_lane; /* the CPU that comes first next time, another each time */
    uint64_t taken_samples;
    uint64_t acknowledged_samples;
    struct lane lanes[];
};

static bool map_ring(struct ring *ring, size_t bytes)
{
    ring->capacity_bytes = (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    void *map = mmap(NULL, ring->capacity_bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) {
        return false;
    }
    /* Huge pages would be touched whole, and given back never. */
    (void)madvise(map, ring->capacity_bytes, MADV_NOHUGEPAGE);
    ring->bytes = map;
    return true;
}

static void unmap_ring(struct ring *ring)
{
    if (ring->bytes != NULL) {
        (void)munmap(ring->bytes, ring->capacity_bytes);
    }
}

struct trace_buffer *trace_buffer_new(size_t cpu_count, size_t log_bytes, size_t cpu_bytes)
{
    struct trace_buffer *buffer = calloc(1, sizeof *buffer + cpu_count * sizeof buffer->lanes[0]);
    if (buffer == NULL) {
        return NULL;
    }
    assert(cpu_count > 0);
    buffer->cpu_count = cpu_count;
    buffer->segment_due = true;
    buffer->log = 1;
    atomic_init(&buffer->open_log, 1);
    atomic_init(&buffer->needed_log, 1);
    bool mapped = true;
    for (size_t i = 0; i < DEFINITION_LOG_COUNT; i++) {
        mapped = mapped && map_ring(&buffer->logs[i], log_bytes);
    }
    for (size_t i = 0; i < cpu_count; i++) {
        mapped = mapped && map_ring(&buffer->lanes[i].ring, cpu_bytes);
    }
    return mapped ? buffer : trace_buffer_free(buffer);
}

struct trace_buffer *trace_buffer_free(struct trace_buffer *buffer)
{
    if (buffer == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < DEFINITION_LOG_COUNT; i++) {
        unmap_ring(&buffer->logs[i]);
    }
    for (size_t i = 0; i < buffer->cpu_count; i++) {
        unmap_ring(&buffer->lanes[i].ring);
    }
    free(buffer);
    return NULL;
}

static void copy_in(struct ring *ring, uint64_t position, const void *bytes, size_t size)
{
    uint64_t offset = position % ring->capacity_bytes;
    uint64_t first = ring->capacity_bytes - offset;
    if (first > size) {
        first = size;
    }
    memcpy(ring->bytes + offset, bytes, first);
    memcpy(ring->bytes, (const uint8_t *)bytes + first, size - first);
}

static void copy_out(const struct ring *ring, uint64_t position, void *bytes, size_t size)
{
    uint64_t offset = position % ring->capacity_bytes;
    uint64_t first = ring->capacity_bytes - offset;
    if (first > size) {
        first = size;
    }
    memcpy(bytes, ring->bytes + offset, first);
    memcpy((uint8_t *)bytes + first, ring->bytes, size - first);
}

/* Gives the whole pages of [from, to) back; `from` is at a page. Returns where it stopped. */
static uint64_t release_pages(struct ring *ring, uint64_t from, uint64_t to)
{
    to = to / PAGE_BYTES * PAGE_BYTES;
    for (uint64_t at = from; at < to;) {
        uint64_t offset = at % ring->capacity_bytes;
        uint64_t bytes = ring->capacity_bytes - offset;
        bytes = bytes > to - at ? to - at : bytes;
        (void)madvise(ring->bytes + offset, bytes, MADV_DONTNEED);
        at += bytes;
    }
    return to;
}

static uint64_t log_number(const struct trace_buffer *buffer)
{
    return atomic_load_explicit(&buffer->open_log, memory_order_relaxed);
}

/* The ring of a lane, and how much of it is taken or reserved. */
static const struct ring *find_ring(const struct trace_buffer *buffer, size_t lane_index,
                                    uint64_t *ret_used_bytes)
{
    if (lane_index == TRACE_LANE_DEFINITIONS) {
        const struct ring *log = &buffer->logs[log_number(buffer) % DEFINITION_LOG_COUNT];
        *ret_used_bytes = atomic_load_explicit(&log->head, memory_order_relaxed);
        return log;
    }
    const struct lane *lane = &buffer->lanes[lane_index - TRACE_LANE_CPU(0)];
    *ret_used_bytes = atomic_load_explicit(&lane->ring.head, memory_order_relaxed) -
                      atomic_load_explicit(&lane->tail, memory_order_acquire) + lane->reserved;
    return &lane->ring;
}

bool trace_buffer_has_room(const struct trace_buffer *buffer, size_t lane_index, size_t group_bytes)
{
    uint64_t used_bytes = 0;
    const struct ring *ring = find_ring(buffer, lane_index, &used_bytes);
    return ring->capacity_bytes - used_bytes >= TRACE_GROUP_HEADER_BYTES + group_bytes;
}

bool trace_buffer_reserve(struct trace_buffer *buffer, size_t lane_index, size_t group_bytes)
{
    if (!trace_buffer_has_room(buffer, lane_index, group_bytes)) {
        return false;
    }
    buffer->lanes[lane_index - TRACE_LANE_CPU(0)].reserved +=
        TRACE_GROUP_HEADER_BYTES + group_bytes;
    return true;
}

void trace_buffer_release(struct trace_buffer *buffer, size_t lane_index, size_t group_bytes)
{
    buffer->lanes[lane_index - TRACE_LANE_CPU(0)].reserved -=
        TRACE_GROUP_HEADER_BYTES + group_bytes;
}

bool trace_buffer_put(struct trace_buffer *buffer, size_t lane_index, const void *group,
                      size_t group_bytes)
{
    return trace_buffer_put_samples(buffer, lane_index, group, group_bytes, 0);
}

bool trace_buffer_put_samples(struct trace_buffer *buffer, size_t lane_index, const void *group,
                              size_t group_bytes, uint32_t sample_count)
{
    assert(group_bytes % 8 == 0 && group_bytes >> SIZE_BITS == 0);
    if (!trace_buffer_has_room(buffer, lane_index, group_bytes)) {
        return false;
    }
    struct ring *ring = lane_index == TRACE_LANE_DEFINITIONS
                            ? &buffer->logs[log_number(buffer) % DEFINITION_LOG_COUNT]
                            : &buffer->lanes[lane_index - TRACE_LANE_CPU(0)].ring;
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    uint64_t header = group_bytes | (uint64_t)sample_count << SIZE_BITS;
    copy_in(ring, head, &header, sizeof header);
    copy_in(ring, head + TRACE_GROUP_HEADER_BYTES, group, group_bytes);
    uint64_t all_samples = atomic_load_explicit(&buffer->sample_count, memory_order_relaxed);
    atomic_store_explicit(&buffer->sample_count, all_samples + sample_count, memory_order_relaxed);
    atomic_store_explicit(&ring->head, head + TRACE_GROUP_HEADER_BYTES + group_bytes,
                          memory_order_release);
    return true;
}

void trace_buffer_mark(struct trace_buffer *buffer)
{
    for (size_t i = 0; i < buffer->cpu_count; i++) {
        struct lane *lane = &buffer->lanes[i];
        lane->marked = atomic_load_explicit(&lane->ring.head, memory_order_relaxed);
    }
}

void trace_buffer_show(struct trace_buffer *buffer)
{
    for (size_t i = 0; i < buffer->cpu_count; i++) {
        struct lane *lane = &buffer->lanes[i];
        atomic_store_explicit(&lane->shown, lane->marked, memory_order_release);
    }
}

bool trace_buffer_has_log(const struct trace_buffer *buffer)
{
    return log_number(buffer) + 1 -
               atomic_load_explicit(&buffer->needed_log, memory_order_acquire) <
           DEFINITION_LOG_COUNT;
}

void trace_buffer_next_log(struct trace_buffer *buffer)
{
    assert(trace_buffer_has_log(buffer));
    uint64_t closed = log_number(buffer);
    struct ring *opened = &buffer->logs[(closed + 1) % DEFINITION_LOG_COUNT];
    trace_buffer_mark(buffer);
    for (size_t i = 0; i < buffer->cpu_count; i++) {
        struct lane *lane = &buffer->lanes[i];
        atomic_store_explicit(&lane->ends[closed % DEFINITION_LOG_COUNT], lane->marked,
                              memory_order_relaxed);
    }
    atomic_store_explicit(&opened->head, 0, memory_order_relaxed);
    atomic_store_explicit(&buffer->open_log, closed + 1, memory_order_release);
    trace_buffer_show(buffer);
}

/* Takes note of how far the log and its samples go. */
static void look(struct trace_buffer *buffer)
{
    for (size_t i = 0; i < buffer->cpu_count; i++) {
        struct lane *lane = &buffer->lanes[i];
        lane->limit = atomic_load_explicit(&lane->shown, memory_order_acquire);
    }
    buffer->log_closed =
        atomic_load_explicit(&buffer->open_log, memory_order_acquire) != buffer->log;
    for (size_t i = 0; buffer->log_closed && i < buffer->cpu_count; i++) {
        struct lane *lane = &buffer->lanes[i];
        lane->limit = atomic_load_explicit(&lane->ends[buffer->log % DEFINITION_LOG_COUNT],
                                           memory_order_relaxed);
    }
    buffer->log_limit = atomic_load_explicit(&buffer->logs[buffer->log % DEFINITION_LOG_COUNT].head,
                                             memory_order_acquire);
}

/* Whether a closed log is done with. One of which nothing has been taken need not be, if it has no
 * samples left. */
static bool is_log_over(const struct trace_buffer *buffer)
{
    bool over =
        buffer->log_closed && (buffer->segment_due || buffer->log_taken == buffer->log_limit);
    for (size_t i = 0; over && i < buffer->cpu_count; i++) {
        over = buffer->lanes[i].taken == buffer->lanes[i].limit;
    }
    return over;
}

/* Looks, and goes on to the log of what comes next. */
static void find_log(struct trace_buffer *buffer)
{
    for (look(buffer); is_log_over(buffer); look(buffer)) {
        buffer->log++;
        buffer->log_taken = 0;
        buffer->segment_due = true;
    }
}

bool trace_buffer_begins_segment(struct trace_buffer *buffer)
{
    find_log(buffer);
    bool due = buffer->segment_due;
    buffer->segment_due = false;
    return due;
}

/* Copies the groups of [*position, limit), as many as fit, and counts their samples. Returns their
 * bytes. */
static size_t take_groups(const struct ring *ring, uint64_t *position, uint64_t limit,
                          uint8_t *bytes, size_t capacity_bytes, uint64_t *sample_count)
{
    size_t taken = 0;
    while (*position != limit) {
        uint64_t header = 0;
        copy_out(ring, *position, &header, sizeof header);
        uint64_t size = header & UINT32_MAX;
        if (size > capacity_bytes - taken) {
            break;
        }
        *sample_count += header >> SIZE_BITS;
        copy_out(ring, *position + TRACE_GROUP_HEADER_BYTES, bytes + taken, size);
        taken += size;
        *position += TRACE_GROUP_HEADER_BYTES + size;
    }
    return taken;
}

size_t trace_buffer_take(struct trace_buffer *buffer, void *bytes, size_t capacity_bytes)
{
    size_t cpu_count = buffer->cpu_count;
    assert(cpu_count > 0);
    look(buffer);
    size_t taken =
        take_groups(&buffer->logs[buffer->log % DEFINITION_LOG_COUNT], &buffer->log_taken,
                    buffer->log_limit, bytes, capacity_bytes, &buffer->taken_samples);
    bool emptied = buffer->log_taken == buffer->log_limit;
    for (size_t i = 0; emptied && i < cpu_count; i++) {
        struct lane *lane = &buffer->lanes[(buffer->next_lane + i) % cpu_count];
        taken += take_groups(&lane->ring, &lane->taken, lane->limit, (uint8_t *)bytes + taken,
                             capacity_bytes - taken, &buffer->taken_samples);
        emptied = lane->taken == lane->limit;
    }
    buffer->next_lane = (buffer->next_lane + 1) % cpu_count;
    return taken;
}

/* Lets go of the logs before the one that is needed next. To be called with nothing taken that was
 * not acknowledged. */
static void release_logs(struct trace_buffer *buffer)
{
    uint64_t needed = atomic_load_explicit(&buffer->needed_log, memory_order_relaxed);
    find_log(buffer);
    for (; needed < buffer->log; needed++) {
        struct ring *ring = &buffer->logs[needed % DEFINITION_LOG_COUNT];
        (void)madvise(ring->bytes, ring->capacity_bytes, MADV_DONTNEED);
    }
    atomic_store_explicit(&buffer->needed_log, needed, memory_order_release);
}

void trace_buffer_acknowledge(struct trace_buffer *buffer)
{
    for (size_t i = 0; i < buffer->cpu_count; i++) {
        struct lane *lane = &buffer->lanes[i];
        uint64_t tail = atomic_load_explicit(&lane->tail, memory_order_relaxed);
        lane->acknowledged = lane->taken;
        tail = release_pages(&lane->ring, tail, lane->acknowledged);
        atomic_store_explicit(&lane->tail, tail, memory_order_release);
    }
    buffer->acknowledged_samples = buffer->taken_samples;
    release_logs(buffer);
}

void trace_buffer_rewind(struct trace_buffer *buffer)
{
    for (size_t i = 0; i < buffer->cpu_count; i++) {
        buffer->lanes[i].taken = buffer->lanes[i].acknowledged;
    }
    buffer->taken_samples = buffer->acknowledged_samples;
    buffer->log = atomic_load_explicit(&buffer->needed_log, memory_order_relaxed);
    buffer->log_taken = 0;
    buffer->segment_due = true;
    release_logs(buffer);
}

uint64_t trace_buffer_unread_samples(const struct trace_buffer *buffer)
{
    return atomic_load_explicit(&buffer->sample_count, memory_order_relaxed) -
           buffer->acknowledged_samples;
}

size_t trace_buffer_waiting_bytes(const struct trace_buffer *buffer)
{
    uint64_t open = atomic_load_explicit(&buffer->open_log, memory_order_acquire);
    uint64_t waiting = 0;
    for (uint64_t log = buffer->log; log <= open; log++) {
        waiting += atomic_load_explicit(&buffer->logs[log % DEFINITION_LOG_COUNT].head,
                                        memory_order_acquire);
    }
    waiting -= buffer->log_taken;
    for (size_t i = 0; i < buffer->cpu_count; i++) {
        const struct lane *lane = &buffer->lanes[i];
        waiting += atomic_load_explicit(&lane->ring.head, memory_order_acquire) - lane->taken;
    }
    return waiting;
}

size_t trace_buffer_log_bytes(const struct trace_buffer *buffer)
{
    return buffer->logs[0].capacity_bytes;
}

size_t trace_buffer_capacity_bytes(const struct trace_buffer *buffer)
{
    size_t capacity = 0;
    for (size_t i = 0; i < DEFINITION_LOG_COUNT; i++) {
        capacity += buffer->logs[i].capacity_bytes;
    }
    for (size_t i = 0; i < buffer->cpu_count; i++) {
        capacity += buffer->lanes[i].ring.capacity_bytes;
    }
    return capacity;
}
