/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Keeps samples that wait, in a ring of entries of different sizes. An entry is never split: one
 * that does not fit before the end of the memory begins at its start, and `wrap` is where the
 * entries before it end. Entries are released in any order; their room is free when all older ones
 * are released. Each process has a share, so that one with deep stacks in slow files cannot evict
 * the samples of all others.
 */
#include "waiting_samples.h"

#include "cleanup.h"
#include "extremes.h"
#include "quota.h"

#include <string.h>
#include <sys/mman.h>

#define SHARE_PARTS 2
#define KEPT_BYTES  ((size_t)1 << 20) /* while nothing waits; more goes back */

struct entry {
    size_t bytes; /* with all that belongs to it; a multiple of 8 */
    bool released;
    struct held_sample sample;
};

struct waiting_samples {
    uint8_t *memory; /* mapped */
    size_t capacity;
    size_t head;       /* offset of the oldest entry */
    size_t tail;       /* offset behind the newest */
    size_t wrap;       /* once wrapped: offset behind the last entry before the memory's end */
    size_t used_bytes; /* of the memory, since it last went back */
    bool wrapped;
    size_t entry_count; /* with those released that wait for an older one */
    size_t held_count;
    struct quota bytes; /* by pid */
};

struct waiting_samples *waiting_samples_new(size_t capacity_bytes)
{
    struct waiting_samples *held = calloc(1, sizeof *held);
    if (held == NULL) {
        return NULL;
    }
    held->capacity = capacity_bytes;
    held->bytes.max = capacity_bytes;
    held->bytes.parts = SHARE_PARTS;
    held->memory = mmap(NULL, capacity_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (held->memory == MAP_FAILED) {
        free(held);
        return NULL;
    }
    if (madvise(held->memory, capacity_bytes, MADV_DONTDUMP) < 0) {
        return waiting_samples_free(held);
    }
    return held;
}

struct waiting_samples *waiting_samples_free(struct waiting_samples *held)
{
    if (held != NULL) {
        (void)munmap(held->memory, held->capacity);
        free(held);
    }
    return NULL;
}

/* Room of `bytes` bytes, or NULL. */
static struct entry *take_room(struct waiting_samples *held, size_t bytes)
{
    if (!held->wrapped && held->capacity - held->tail < bytes && held->head >= bytes) {
        held->wrap = held->tail;
        held->tail = 0;
        held->wrapped = true;
    }
    if ((held->wrapped ? held->head : held->capacity) - held->tail < bytes) {
        return NULL;
    }
    struct entry *entry = (struct entry *)(void *)(held->memory + held->tail);
    held->tail += bytes;
    held->used_bytes = max_u64(held->used_bytes, held->tail);
    held->entry_count++;
    held->held_count++;
    return entry;
}

static const void *copy(uint8_t **to, const void *bytes, size_t size_bytes)
{
    uint8_t *start = *to;
    if (size_bytes > 0) {
        memcpy(start, bytes, size_bytes);
    }
    *to += (size_bytes + 7) & ~(size_t)7;
    return start;
}

bool waiting_samples_add(struct waiting_samples *held, size_t cpu_index,
                         const struct perf_record *record, const struct sample_wait *wait)
{
    const struct perf_sample_view *view = &record->sample;
    size_t words = view->kernel_count + view->user_count + view->user_regs_count;
    size_t bytes = sizeof(struct entry) + words * sizeof(uint64_t) +
                   ((view->user_stack_bytes + 7) & ~(size_t)7);
    struct entry *entry = NULL;
    if (quota_take(&held->bytes, (uint32_t)record->pid, bytes)) {
        entry = take_room(held, bytes);
        if (entry == NULL) {
            quota_give(&held->bytes, (uint32_t)record->pid, bytes);
        }
    }
    if (entry == NULL) {
        return false;
    }
    *entry = (struct entry){.bytes = bytes, .sample = {cpu_index, *wait, *record}};
    struct perf_sample_view *copied = &entry->sample.record.sample;
    uint8_t *to = (uint8_t *)(entry + 1);
    copied->kernel_chain = copy(&to, view->kernel_chain, view->kernel_count * sizeof(uint64_t));
    copied->user_chain = copy(&to, view->user_chain, view->user_count * sizeof(uint64_t));
    copied->user_regs = copy(&to, view->user_regs, view->user_regs_count * sizeof(uint64_t));
    copied->user_stack = copy(&to, view->user_stack, view->user_stack_bytes);
    return true;
}

/* The entry at `offset`, or the first one behind it that is not released; NULL at the end. */
static const struct held_sample *find_from(const struct waiting_samples *held, size_t offset,
                                           bool after_wrap)
{
    for (;;) {
        if (held->wrapped && !after_wrap && offset == held->wrap) {
            offset = 0;
            after_wrap = true;
        }
        if (offset == held->tail && (after_wrap || !held->wrapped)) {
            return NULL;
        }
        const struct entry *entry = (const void *)(held->memory + offset);
        if (!entry->released) {
            return &entry->sample;
        }
        offset += entry->bytes;
    }
}

static const struct entry *entry_of(const struct held_sample *sample)
{
    return (const void *)((const uint8_t *)sample - offsetof(struct entry, sample));
}

const struct held_sample *waiting_samples_first(const struct waiting_samples *held)
{
    return held->held_count == 0 ? NULL : find_from(held, held->head, false);
}

const struct held_sample *waiting_samples_next(const struct waiting_samples *held,
                                               const struct held_sample *sample)
{
    const struct entry *entry = entry_of(sample);
    size_t offset = (size_t)((const uint8_t *)entry - held->memory);
    return find_from(held, offset + entry->bytes, held->wrapped && offset < held->head);
}

/* Lets go of the oldest entries, as far as they are released. */
static void advance_head(struct waiting_samples *held)
{
    while (held->entry_count > 0) {
        const struct entry *entry = (const void *)(held->memory + held->head);
        if (!entry->released) {
            return;
        }
        held->head += entry->bytes;
        held->entry_count--;
        if (held->wrapped && held->head == held->wrap) {
            held->head = 0;
            held->wrapped = false;
        }
    }
    /* Nothing is left: the memory goes back, if it is more than what a few samples take. */
    held->head = held->tail = 0;
    held->wrapped = false;
    if (held->used_bytes > KEPT_BYTES) {
        (void)madvise(held->memory, held->capacity, MADV_DONTNEED);
        held->used_bytes = 0;
    }
}

void waiting_samples_mark(struct waiting_samples *held, const struct held_sample *sample,
                          const struct sample_wait *wait)
{
    size_t offset = (size_t)((const uint8_t *)entry_of(sample) - held->memory);
    struct entry *entry = (void *)(held->memory + offset);
    entry->sample.wait = *wait;
}

void waiting_samples_release(struct waiting_samples *held, const struct held_sample *sample)
{
    size_t offset = (size_t)((const uint8_t *)entry_of(sample) - held->memory);
    struct entry *entry = (void *)(held->memory + offset);
    explicit_bzero(entry + 1, entry->bytes - sizeof *entry);
    entry->released = true;
    quota_give(&held->bytes, (uint32_t)entry->sample.record.pid, entry->bytes);
    held->held_count--;
    advance_head(held);
}

size_t waiting_samples_count(const struct waiting_samples *held)
{
    return held->held_count;
}
