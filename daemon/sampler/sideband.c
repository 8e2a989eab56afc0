/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Queues sideband records in the order of time: an arena of record bytes, and an array of entries
 * that point into it. Adding or sorting first drops the records that were taken and moves the
 * others to the arena's start, so the bounds are on waiting records, and only their memory is
 * touched. Records of deferred user chains have words of stacks: the arena is in no core dump, and
 * dropped records are wiped.
 */
#include "sideband.h"

#include "capacity.h"
#include "cleanup.h"
#include "grow.h"

#include <string.h>
#include <sys/mman.h>

#define ARENA_BYTES_MAX CAPACITY((size_t)64 << 20) /* address space; memory as it fills */
#define ENTRIES_MIN     ((size_t)1024)
#define ENTRIES_MAX     ((size_t)131072) /* that wait: what is sorted and applied in one round */

struct entry {
    uint64_t time_ns;
    size_t offset; /* into the arena; grows in the order of adding */
    size_t size_bytes;
};

struct sideband {
    uint8_t *arena; /* mapped */
    size_t arena_used;
    struct entry *entries;
    size_t entry_capacity;
    size_t entry_count;
    size_t next; /* entries before it have been handed out */
};

struct sideband *sideband_new(void)
{
    struct sideband *sideband = calloc(1, sizeof *sideband);
    if (sideband == NULL) {
        return NULL;
    }
    void *arena = mmap(NULL, ARENA_BYTES_MAX, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    sideband->arena = arena == MAP_FAILED ? NULL : arena;
    if (sideband->arena == NULL || madvise(arena, ARENA_BYTES_MAX, MADV_DONTDUMP) < 0) {
        return sideband_free(sideband);
    }
    return sideband;
}

struct sideband *sideband_free(struct sideband *sideband)
{
    if (sideband != NULL) {
        if (sideband->arena != NULL) {
            (void)munmap(sideband->arena, ARENA_BYTES_MAX);
        }
        free(sideband->entries);
        free(sideband);
    }
    return NULL;
}

static int compare_offsets(const void *a, const void *b)
{
    const struct entry *left = a;
    const struct entry *right = b;
    return (left->offset > right->offset) - (left->offset < right->offset);
}

/* Moves the waiting records to the arena's start, in the order of their offsets. */
static void compact(struct sideband *sideband)
{
    size_t count = sideband->entry_count - sideband->next;
    size_t used = 0;
    if (sideband->next == 0) {
        return;
    }
    memmove(sideband->entries, sideband->entries + sideband->next, count * sizeof(struct entry));
    qsort(sideband->entries, count, sizeof(struct entry), compare_offsets);
    for (size_t i = 0; i < count; i++) {
        struct entry *entry = &sideband->entries[i];
        memmove(sideband->arena + used, sideband->arena + entry->offset, entry->size_bytes);
        entry->offset = used;
        used += (entry->size_bytes + 7) / 8 * 8;
    }
    memset(sideband->arena + used, 0, sideband->arena_used - used);
    sideband->arena_used = used;
    sideband->entry_count = count;
    sideband->next = 0;
}

/* The first record of a round takes the places of those that the round before handed out. */
static bool reserve(struct sideband *sideband, size_t bytes)
{
    compact(sideband);
    return sideband->entry_count < ENTRIES_MAX && bytes <= ARENA_BYTES_MAX - sideband->arena_used &&
           grow_from(sideband->entries, sideband->entry_capacity, sideband->entry_count + 1,
                     ENTRIES_MIN) == 0;
}

bool sideband_add(struct sideband *sideband, uint64_t time_ns, const uint8_t *record,
                  size_t size_bytes)
{
    size_t padded = (size_bytes + 7) / 8 * 8;
    if (!reserve(sideband, padded)) {
        return false;
    }
    memcpy(sideband->arena + sideband->arena_used, record, size_bytes);
    sideband->entries[sideband->entry_count++] = (struct entry){
        .time_ns = time_ns,
        .offset = sideband->arena_used,
        .size_bytes = size_bytes,
    };
    sideband->arena_used += padded;
    return true;
}

static int compare_times(const void *a, const void *b)
{
    const struct entry *left = a;
    const struct entry *right = b;
    int by_time = (left->time_ns > right->time_ns) - (left->time_ns < right->time_ns);
    return by_time != 0 ? by_time : compare_offsets(a, b);
}

void sideband_sort(struct sideband *sideband)
{
    compact(sideband);
    if (sideband->entry_count > 1) {
        qsort(sideband->entries, sideband->entry_count, sizeof(struct entry), compare_times);
    }
}

uint64_t sideband_next_ns(const struct sideband *sideband)
{
    return sideband->next == sideband->entry_count ? UINT64_MAX
                                                   : sideband->entries[sideband->next].time_ns;
}

size_t sideband_count(const struct sideband *sideband)
{
    return sideband->entry_count - sideband->next;
}

const uint8_t *sideband_next(struct sideband *sideband, uint64_t horizon_ns, size_t *ret_size_bytes)
{
    if (sideband->next == sideband->entry_count ||
        sideband->entries[sideband->next].time_ns > horizon_ns) {
        return NULL;
    }
    const struct entry *entry = &sideband->entries[sideband->next++];
    *ret_size_bytes = entry->size_bytes;
    return sideband->arena + entry->offset;
}
