/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Matches samples and the chains that arrive later, by two tables with the same key, (tid, cookie).
 * Chains are in an arena. At the end of a round those that stay move to its start, so only as much
 * memory is touched as two rounds need. Entries of a chain may be any words of a stack: the arena
 * is in no core dump, and dropped chains are wiped. Samples that wait are in a pool of slots, each
 * in its bucket's list and in its CPU's, which is in the order of age. Invariant: a CPU's list has
 * at most DEFERRED_MATCH_OPEN_MAX slots, and a slot is in exactly one bucket or free.
 *
 * The caller applies sideband up to a moment first, and then the samples up to that moment. So at
 * the end of a round a chain's samples have been seen, except those whose time is a little later
 * than the chain's. For these a chain stays another round.
 */
#include "deferred_match.h"

#include "cleanup.h"
#include "seeded_hash.h"

#include <assert.h>
#include <string.h>
#include <sys/mman.h>

#define ARENA_BYTES_PER_CPU ((size_t)4 << 20) /* address space; memory as it fills */
#define ARENA_BYTES_MAX     ((size_t)64 << 20)
#define BUCKET_COUNT        ((size_t)8192) /* a power of two */
#define NONE                UINT32_MAX

/* In the arena; its frames follow. */
struct entry {
    uint64_t cookie;
    uint64_t exec_ns;
    int32_t tid;
    uint32_t count;
    uint32_t next_in_bucket; /* offset in words */
    bool asked_for;          /* or no sample is expected to */
    bool seen;               /* by the end of a round */
};

struct slot {
    struct deferred_match_open open;
    uint32_t next_in_bucket; /* or in the list of free ones */
    uint32_t older;
    uint32_t newer;
};

struct cpu_list {
    uint32_t oldest;
    uint32_t newest;
    size_t count;
};

struct deferred_match {
    uint64_t *arena; /* mapped */
    size_t arena_words;
    size_t used_words;
    size_t done_words; /* entries before it were gone through in this round */
    uint32_t chain_buckets[BUCKET_COUNT];
    struct slot *slots;
    uint32_t free_slot;
    uint32_t open_buckets[BUCKET_COUNT];
    size_t open_count;
    struct cpu_list *lists;
    size_t cpu_count;
    uint64_t orphan_count;
};

_Static_assert(sizeof(struct entry) % sizeof(uint64_t) == 0, "frames are aligned behind it");

static size_t bucket_of(int32_t tid, uint64_t cookie)
{
    const uint64_t words[] = {cookie, (uint32_t)tid};
    return seeded_hash(words, sizeof words) % BUCKET_COUNT;
}

static void clear_buckets(uint32_t buckets[BUCKET_COUNT])
{
    for (size_t i = 0; i < BUCKET_COUNT; i++) {
        buckets[i] = NONE;
    }
}

struct deferred_match *deferred_match_new(size_t cpu_count)
{
    struct deferred_match *deferred = calloc(1, sizeof *deferred);
    if (deferred == NULL) {
        return NULL;
    }
    size_t bytes = cpu_count * ARENA_BYTES_PER_CPU;
    bytes = bytes < ARENA_BYTES_MAX ? bytes : ARENA_BYTES_MAX;
    void *arena = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    deferred->arena = arena == MAP_FAILED ? NULL : arena;
    deferred->arena_words = bytes / sizeof(uint64_t);
    deferred->cpu_count = cpu_count;
    deferred->slots = calloc(cpu_count, DEFERRED_MATCH_OPEN_MAX * sizeof *deferred->slots);
    deferred->lists = calloc(cpu_count, sizeof *deferred->lists);
    if (deferred->arena == NULL || madvise(arena, bytes, MADV_DONTDUMP) < 0 ||
        deferred->slots == NULL || deferred->lists == NULL) {
        return deferred_match_free(deferred);
    }
    clear_buckets(deferred->chain_buckets);
    clear_buckets(deferred->open_buckets);
    for (size_t i = 0; i < cpu_count; i++) {
        deferred->lists[i] = (struct cpu_list){NONE, NONE, 0};
    }
    deferred->free_slot = NONE;
    for (size_t i = cpu_count * DEFERRED_MATCH_OPEN_MAX; i-- > 0;) {
        deferred->slots[i].next_in_bucket = deferred->free_slot;
        deferred->free_slot = (uint32_t)i;
    }
    return deferred;
}

struct deferred_match *deferred_match_free(struct deferred_match *deferred)
{
    if (deferred != NULL) {
        if (deferred->arena != NULL) {
            (void)munmap(deferred->arena, deferred->arena_words * sizeof(uint64_t));
        }
        free(deferred->slots);
        free(deferred->lists);
        free(deferred);
    }
    return NULL;
}

static struct entry *entry_at(const struct deferred_match *deferred, size_t words)
{
    return (struct entry *)(void *)(deferred->arena + words);
}

static size_t entry_words(size_t frame_count)
{
    return sizeof(struct entry) / sizeof(uint64_t) + frame_count;
}

static struct entry *find_entry(const struct deferred_match *deferred, int32_t tid, uint64_t cookie)
{
    uint32_t at = deferred->chain_buckets[bucket_of(tid, cookie)];
    while (at != NONE) {
        struct entry *entry = entry_at(deferred, at);
        if (entry->cookie == cookie && entry->tid == tid) {
            return entry;
        }
        at = entry->next_in_bucket;
    }
    return NULL;
}

static void link_entry(struct deferred_match *deferred, size_t words)
{
    struct entry *entry = entry_at(deferred, words);
    uint32_t *bucket = &deferred->chain_buckets[bucket_of(entry->tid, entry->cookie)];
    entry->next_in_bucket = *bucket;
    *bucket = (uint32_t)words;
}

void deferred_match_add_chain(struct deferred_match *deferred,
                              const struct deferred_match_chain *chain)
{
    if (chain->count > deferred->arena_words ||
        entry_words(chain->count) > deferred->arena_words - deferred->used_words) {
        return;
    }
    if (find_entry(deferred, chain->tid, chain->cookie) != NULL) {
        deferred->orphan_count += chain->expected;
        return;
    }
    struct entry *entry = entry_at(deferred, deferred->used_words);
    *entry = (struct entry){
        .cookie = chain->cookie,
        .exec_ns = chain->exec_ns,
        .tid = chain->tid,
        .count = (uint32_t)chain->count,
        .asked_for = !chain->expected,
    };
    if (chain->count > 0) {
        memcpy(entry + 1, chain->frames, chain->count * sizeof(uint64_t));
    }
    link_entry(deferred, deferred->used_words);
    deferred->used_words += entry_words(chain->count);
}

/* As a sample at `time_ns` may have it. */
static struct deferred_match_chain show_entry(const struct entry *entry, uint64_t time_ns,
                                              bool *ret_exec)
{
    *ret_exec = time_ns < entry->exec_ns;
    return (struct deferred_match_chain){
        .tid = entry->tid,
        .cookie = entry->cookie,
        .exec_ns = entry->exec_ns,
        .frames = (const uint64_t *)(const void *)(entry + 1),
        .count = *ret_exec ? 0 : entry->count,
    };
}

bool deferred_match_find_chain(struct deferred_match *deferred, int32_t tid, uint64_t cookie,
                               uint64_t time_ns, struct deferred_match_chain *ret)
{
    struct entry *entry = find_entry(deferred, tid, cookie);
    bool exec = false;
    if (entry == NULL) {
        return false;
    }
    entry->asked_for = true;
    *ret = show_entry(entry, time_ns, &exec);
    return !exec;
}

static struct slot *find_slot(const struct deferred_match *deferred, int32_t tid, uint64_t cookie,
                              const size_t *cpu_index)
{
    uint32_t at = deferred->open_buckets[bucket_of(tid, cookie)];
    while (at != NONE) {
        struct slot *slot = &deferred->slots[at];
        if (slot->open.cookie == cookie && slot->open.tid == tid &&
            (cpu_index == NULL || slot->open.cpu_index == *cpu_index)) {
            return slot;
        }
        at = slot->next_in_bucket;
    }
    return NULL;
}

uint64_t deferred_match_open_id(const struct deferred_match *deferred, size_t cpu_index,
                                int32_t tid, uint64_t cookie)
{
    const struct slot *slot = find_slot(deferred, tid, cookie, &cpu_index);
    return slot == NULL ? 0 : slot->open.id;
}

static void add_slot(struct deferred_match *deferred, const struct deferred_match_open *open)
{
    struct cpu_list *list = &deferred->lists[open->cpu_index];
    uint32_t index = deferred->free_slot;
    assert(list->count < DEFERRED_MATCH_OPEN_MAX && index != NONE);
    struct slot *slot = &deferred->slots[index];
    uint32_t *bucket = &deferred->open_buckets[bucket_of(open->tid, open->cookie)];
    deferred->free_slot = slot->next_in_bucket;
    *slot = (struct slot){
        .open = *open,
        .next_in_bucket = *bucket,
        .older = list->newest,
        .newer = NONE,
    };
    slot->open.sample_count = 1;
    *bucket = index;
    if (list->newest == NONE) {
        list->oldest = index;
    } else {
        deferred->slots[list->newest].newer = index;
    }
    list->newest = index;
    list->count++;
    deferred->open_count++;
}

static void unlink_from_list(struct deferred_match *deferred, const struct slot *slot)
{
    struct cpu_list *list = &deferred->lists[slot->open.cpu_index];
    if (slot->older == NONE) {
        list->oldest = slot->newer;
    } else {
        deferred->slots[slot->older].newer = slot->newer;
    }
    if (slot->newer == NONE) {
        list->newest = slot->older;
    } else {
        deferred->slots[slot->newer].older = slot->older;
    }
    list->count--;
}

static void take_slot(struct deferred_match *deferred, struct slot *slot,
                      struct deferred_match_open *ret)
{
    uint32_t index = (uint32_t)(slot - deferred->slots);
    uint32_t *link = &deferred->open_buckets[bucket_of(slot->open.tid, slot->open.cookie)];
    while (*link != index) {
        link = &deferred->slots[*link].next_in_bucket;
    }
    *link = slot->next_in_bucket;
    unlink_from_list(deferred, slot);
    *ret = slot->open;
    slot->next_in_bucket = deferred->free_slot;
    deferred->free_slot = index;
    deferred->open_count--;
}

uint64_t deferred_match_wait(struct deferred_match *deferred,
                             const struct deferred_match_open *sample)
{
    struct slot *slot = find_slot(deferred, sample->tid, sample->cookie, &sample->cpu_index);
    struct deferred_match_open replaced = {0};
    if (slot != NULL && slot->open.id == sample->id) {
        slot->open.sample_count++;
        slot->open.first_ns =
            sample->first_ns < slot->open.first_ns ? sample->first_ns : slot->open.first_ns;
        return 0;
    }
    if (slot != NULL) {
        take_slot(deferred, slot, &replaced);
    }
    add_slot(deferred, sample);
    return replaced.sample_count;
}

size_t deferred_match_open_count(const struct deferred_match *deferred)
{
    return deferred->open_count;
}

bool deferred_match_take_excess(struct deferred_match *deferred, size_t cpu_index,
                                struct deferred_match_open *ret)
{
    const struct cpu_list *list = &deferred->lists[cpu_index];
    if (list->count < DEFERRED_MATCH_OPEN_MAX) {
        return false;
    }
    take_slot(deferred, &deferred->slots[list->oldest], ret);
    return true;
}

bool deferred_match_take_expired(struct deferred_match *deferred, uint64_t time_ns,
                                 struct deferred_match_open *ret)
{
    for (size_t i = 0; i < deferred->cpu_count && deferred->open_count > 0; i++) {
        uint32_t oldest = deferred->lists[i].oldest;
        if (oldest != NONE && deferred->slots[oldest].open.first_ns <= time_ns) {
            take_slot(deferred, &deferred->slots[oldest], ret);
            return true;
        }
    }
    return false;
}

bool deferred_match_take_done(struct deferred_match *deferred, struct deferred_match_open *ret,
                              struct deferred_match_chain *ret_chain, bool *ret_exec)
{
    while (deferred->open_count > 0 && deferred->done_words < deferred->used_words) {
        struct entry *entry = entry_at(deferred, deferred->done_words);
        struct slot *slot = find_slot(deferred, entry->tid, entry->cookie, NULL);
        if (slot != NULL) {
            entry->asked_for = true;
            take_slot(deferred, slot, ret);
            *ret_chain = show_entry(entry, ret->first_ns, ret_exec);
            return true;
        }
        deferred->done_words += entry_words(entry->count);
    }
    return false;
}

void deferred_match_end_round(struct deferred_match *deferred)
{
    size_t kept_words = 0;
    clear_buckets(deferred->chain_buckets);
    for (size_t at = 0; at < deferred->used_words;) {
        struct entry *entry = entry_at(deferred, at);
        size_t words = entry_words(entry->count);
        if (entry->seen) {
            deferred->orphan_count += !entry->asked_for;
        } else {
            entry->seen = true;
            memmove(deferred->arena + kept_words, entry, words * sizeof(uint64_t));
            link_entry(deferred, kept_words);
            kept_words += words;
        }
        at += words;
    }
    memset(deferred->arena + kept_words, 0, (deferred->used_words - kept_words) * sizeof(uint64_t));
    deferred->used_words = kept_words;
    deferred->done_words = 0;
}

uint64_t deferred_match_orphan_count(const struct deferred_match *deferred)
{
    return deferred->orphan_count;
}
