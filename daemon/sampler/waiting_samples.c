/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Keeps samples that wait, in a ring of entries of different sizes. An entry is never split: one
 * that does not fit before the end of the memory begins at its start. Entries are released in any
 * order; their room is free when all older ones are released. Each process has a share, so that one
 * with deep stacks in slow files cannot evict the samples of all others.
 *
 * Entries are numbered as they come. What each waits for stands in a second ring of small notes,
 * since all are looked at for each table that comes, and entries lie far apart.
 */
#include "waiting_samples.h"

#include "cleanup.h"
#include "extremes.h"
#include "quota.h"

#include <string.h>
#include <sys/mman.h>

#define SHARE_PARTS 2
#define KEPT_BYTES  ((size_t)1 << 20) /* while nothing waits; more goes back */
#define FETCH_BYTES ((size_t)1 << 18) /* of memory at once: a page fault costs more than a page */

struct entry {
    size_t bytes; /* with all that belongs to it; a multiple of 8 */
    uint64_t number;
    struct held_sample sample;
};

struct note {
    uint64_t files; /* as in struct sample_wait */
    uint32_t at;    /* the entry's offset, in units of 8 bytes */
    bool waits_for_reading;
    bool is_released;
};

struct waiting_samples {
    uint8_t *memory; /* mapped */
    size_t capacity;
    size_t head;        /* offset of the oldest entry */
    size_t tail;        /* offset behind the newest */
    size_t used_bytes;  /* of the memory, since it last went back */
    bool wrapped;       /* the newest entries lie before the oldest */
    struct note *notes; /* mapped, behind the memory; of the entry `number` at its remainder */
    size_t note_max;
    uint64_t first_number; /* of the oldest entry */
    uint64_t next_number;
    uint64_t note_base; /* the number of the first note; those before are used up */
    size_t held_count;
    struct quota bytes; /* by pid */
};

/* Entries and notes are one mapping. */
static size_t mapped_bytes(const struct waiting_samples *held)
{
    return held->capacity + held->note_max * sizeof *held->notes;
}

struct waiting_samples *waiting_samples_new(size_t capacity_bytes)
{
    struct waiting_samples *held = calloc(1, sizeof *held);
    if (held == NULL) {
        return NULL;
    }
    held->capacity = capacity_bytes;
    held->bytes.max = capacity_bytes;
    held->bytes.parts = SHARE_PARTS;
    held->note_max = capacity_bytes / sizeof(struct entry);
    held->memory = mmap(NULL, mapped_bytes(held), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (held->memory == MAP_FAILED) {
        free(held);
        return NULL;
    }
    if (madvise(held->memory, mapped_bytes(held), MADV_DONTDUMP) < 0) {
        return waiting_samples_free(held);
    }
    held->notes = (struct note *)(void *)(held->memory + capacity_bytes);
    return held;
}

struct waiting_samples *waiting_samples_free(struct waiting_samples *held)
{
    if (held != NULL) {
        (void)munmap(held->memory, mapped_bytes(held));
        free(held);
    }
    return NULL;
}

static struct note *note_of(const struct waiting_samples *held, uint64_t number)
{
    return &held->notes[(number - held->note_base) % held->note_max];
}

/* Fetches memory from the kernel that entries will use next. Kernels before Linux 5.14 cannot; then
 * it comes page by page. */
static void fetch_memory(struct waiting_samples *held, size_t end)
{
    while (held->used_bytes < end) {
        size_t bytes = min_u64(FETCH_BYTES, held->capacity - held->used_bytes);
        (void)madvise(held->memory + held->used_bytes, bytes, MADV_POPULATE_WRITE);
        held->used_bytes += bytes;
    }
}

/* Room of `bytes` bytes, or NULL. */
static struct entry *take_room(struct waiting_samples *held, size_t bytes)
{
    if (!held->wrapped && held->capacity - held->tail < bytes && held->head >= bytes) {
        held->tail = 0;
        held->wrapped = true;
    }
    if ((held->wrapped ? held->head : held->capacity) - held->tail < bytes) {
        return NULL;
    }
    struct entry *entry = (struct entry *)(void *)(held->memory + held->tail);
    held->tail += bytes;
    fetch_memory(held, held->tail);
    held->held_count++;
    return entry;
}

static void write_note(struct waiting_samples *held, const struct entry *entry)
{
    *note_of(held, entry->number) = (struct note){
        .files = entry->sample.wait.files,
        .at = (uint32_t)((size_t)((const uint8_t *)entry - held->memory) / sizeof(uint64_t)),
        .waits_for_reading = entry->sample.wait.wanted == 0,
    };
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
    *entry = (struct entry){
        .bytes = bytes, .number = held->next_number++, .sample = {cpu_index, *wait, *record}};
    write_note(held, entry);
    struct perf_sample_view *copied = &entry->sample.record.sample;
    uint8_t *to = (uint8_t *)(entry + 1);
    copied->kernel_chain = copy(&to, view->kernel_chain, view->kernel_count * sizeof(uint64_t));
    copied->user_chain = copy(&to, view->user_chain, view->user_count * sizeof(uint64_t));
    copied->user_regs = copy(&to, view->user_regs, view->user_regs_count * sizeof(uint64_t));
    copied->user_stack = copy(&to, view->user_stack, view->user_stack_bytes);
    return true;
}

static struct entry *entry_at(const struct waiting_samples *held, uint64_t number)
{
    return (void *)(held->memory + (size_t)note_of(held, number)->at * sizeof(uint64_t));
}

const struct held_sample *waiting_samples_first(const struct waiting_samples *held)
{
    return held->held_count == 0 ? NULL : &entry_at(held, held->first_number)->sample;
}

const struct held_sample *waiting_samples_walk(const struct waiting_samples *held,
                                               struct waiting_walk *walk, size_t *steps)
{
    walk->next = max_u64(walk->next, held->first_number);
    for (; walk->is_under_way && *steps > 0; (*steps)--) {
        if (walk->next == held->next_number) {
            *walk = (struct waiting_walk){0};
            return NULL;
        }
        uint64_t number = walk->next++;
        const struct note *note = note_of(held, number);
        bool has_come =
            note->waits_for_reading ? walk->has_readings : (note->files & walk->files) != 0;
        if (has_come && !note->is_released) {
            (*steps)--;
            return &entry_at(held, number)->sample;
        }
    }
    return NULL;
}

/* Drops the oldest entries, as far as they are released. */
static void advance_head(struct waiting_samples *held)
{
    while (held->first_number < held->next_number) {
        const struct note *note = note_of(held, held->first_number);
        size_t head = (size_t)note->at * sizeof(uint64_t);
        held->wrapped = held->wrapped && head >= held->head;
        held->head = head;
        if (!note->is_released) {
            return;
        }
        held->first_number++;
    }
    /* Nothing is left: the memory goes back, if it is more than what a few samples take. */
    uint64_t note_bytes = (held->next_number - held->note_base) * sizeof *held->notes;
    held->head = held->tail = 0;
    held->wrapped = false;
    held->note_base = held->next_number;
    if (max_u64(held->used_bytes, note_bytes) > KEPT_BYTES) {
        (void)madvise(held->memory, mapped_bytes(held), MADV_DONTNEED);
        held->used_bytes = 0;
    }
}

/* The entry of a sample, which the owner of the memory may change. */
static struct entry *entry_of(const struct waiting_samples *held, const struct held_sample *sample)
{
    size_t offset = (size_t)((const uint8_t *)sample - held->memory);
    return (void *)(held->memory + offset - offsetof(struct entry, sample));
}

void waiting_samples_mark(struct waiting_samples *held, const struct held_sample *sample,
                          const struct sample_wait *wait)
{
    struct entry *entry = entry_of(held, sample);
    entry->sample.wait = *wait;
    write_note(held, entry);
}

void waiting_samples_release(struct waiting_samples *held, const struct held_sample *sample)
{
    struct entry *entry = entry_of(held, sample);
    explicit_bzero(entry + 1, entry->bytes - sizeof *entry);
    note_of(held, entry->number)->is_released = true;
    quota_give(&held->bytes, (uint32_t)entry->sample.record.pid, entry->bytes);
    held->held_count--;
    advance_head(held);
}

size_t waiting_samples_count(const struct waiting_samples *held)
{
    return held->held_count;
}
