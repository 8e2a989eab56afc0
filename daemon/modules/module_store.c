/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A hash table of entries by the identity of their file. Only an entry without users is removed,
 * and only the main thread adds users: an entry that the main thread sees without users cannot gain
 * one meanwhile. Failures are kept in a ring, which replaces the oldest.
 */
#include "module_store.h"

#include "quota.h"
#include "seeded_hash.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#define BUCKETS     4096
#define FAILURES    256
#define SHARE_PARTS 2

struct failure {
    struct file_identity identity;
    enum module_table table;
    enum module_failure failure; /* NONE: an empty place */
    uint64_t until_ns;
};

struct module_store {
    struct module_entry *buckets[BUCKETS];
    uint64_t bytes_max;
    uint64_t entry_count;
    uint64_t table_bytes;
    uint64_t entry_counts[MODULE_TABLES];
    uint64_t table_bytes_of[MODULE_TABLES];
    struct failure failures[FAILURES];
    size_t next_failure;
};

struct module_store *module_store_new(uint64_t bytes_max)
{
    struct module_store *store = calloc(1, sizeof *store);
    if (store != NULL) {
        store->bytes_max = bytes_max;
    }
    return store;
}

static struct module_entry **bucket_of(struct module_store *store,
                                       const struct file_identity *identity)
{
    const uint64_t words[] = {identity->device, identity->inode};
    return &store->buckets[seeded_hash(words, sizeof words) % BUCKETS];
}

static void count_entry(struct module_store *store, const struct module_entry *entry, int sign)
{
    uint64_t one = (uint64_t)sign;
    uint64_t bytes = one * entry->map_bytes; /* wraps around for -1, and back in the sum */
    store->entry_count += one;
    store->table_bytes += bytes;
    store->entry_counts[entry->module.table] += one;
    store->table_bytes_of[entry->module.table] += bytes;
}

/* Removes the entry to which `link` points. */
static void remove_entry(struct module_store *store, struct module_entry **link)
{
    struct module_entry *entry = *link;
    *link = entry->next;
    count_entry(store, entry, -1);
    (void)munmap(entry->map, entry->map_bytes);
    free(entry);
}

struct module_store *module_store_free(struct module_store *store)
{
    for (size_t i = 0; store != NULL && i < BUCKETS; i++) {
        while (store->buckets[i] != NULL) {
            remove_entry(store, &store->buckets[i]);
        }
    }
    free(store);
    return NULL;
}

void module_entry_use(struct module_entry *entry)
{
    atomic_fetch_add_explicit(&entry->user_count, 1, memory_order_relaxed);
    entry->idle_since_ns = 0;
}

void module_entry_release(struct module_entry *entry)
{
    /* What the user has read was read before the main thread sees the count and unmaps. */
    atomic_fetch_sub_explicit(&entry->user_count, 1, memory_order_release);
}

static bool is_used(struct module_entry *entry)
{
    return atomic_load_explicit(&entry->user_count, memory_order_acquire) != 0;
}

struct module_entry *module_store_find(struct module_store *store, enum module_table table,
                                       const struct file_identity *identity)
{
    for (struct module_entry *entry = *bucket_of(store, identity); entry != NULL;
         entry = entry->next) {
        if (!entry->kernel && entry->module.table == table &&
            file_identity_equal(&entry->module.identity, identity)) {
            module_entry_use(entry);
            return entry;
        }
    }
    return NULL;
}

/* True when `a` has been unused for longer. Both are unused. */
static bool is_older(const struct module_entry *a, const struct module_entry *b)
{
    /* One that was not looked at since it became unused did so last. */
    uint64_t a_ns = a->idle_since_ns == 0 ? UINT64_MAX : a->idle_since_ns;
    uint64_t b_ns = b->idle_since_ns == 0 ? UINT64_MAX : b->idle_since_ns;
    return a_ns < b_ns;
}

/* What a uid holds, and the link to the unused entry that was used longest ago, of it or of all. */
struct survey {
    uint64_t entry_count;
    uint64_t table_bytes;
    struct module_entry **oldest;
    struct module_entry **oldest_own;
};

static struct survey survey(struct module_store *store, uid_t uid)
{
    struct survey found = {0};
    for (size_t i = 0; i < BUCKETS; i++) {
        for (struct module_entry **link = &store->buckets[i]; *link != NULL;
             link = &(*link)->next) {
            struct module_entry *entry = *link;
            bool own = entry->uid == uid;
            found.entry_count += own;
            found.table_bytes += own ? entry->map_bytes : 0;
            if (is_used(entry)) {
                continue;
            }
            if (found.oldest == NULL || is_older(entry, *found.oldest)) {
                found.oldest = link;
            }
            if (own && (found.oldest_own == NULL || is_older(entry, *found.oldest_own))) {
                found.oldest_own = link;
            }
        }
    }
    return found;
}

/* Both limits leave room for a table of the uid; 0, or -ENOSPC. */
static int make_room(struct module_store *store, uid_t uid, size_t bytes)
{
    for (;;) {
        struct survey found = survey(store, uid);
        bool in_share = quota_rule_allows(MODULE_STORE_ENTRIES_MAX, SHARE_PARTS, store->entry_count,
                                          found.entry_count, 1) &&
                        quota_rule_allows(store->bytes_max, SHARE_PARTS, store->table_bytes,
                                          found.table_bytes, bytes);
        if (in_share) {
            return 0;
        }
        /* The uid's own go first: what others have left behind is no reason to be over a share. */
        struct module_entry **link = found.oldest_own != NULL ? found.oldest_own : found.oldest;
        if (link == NULL) {
            return -ENOSPC;
        }
        remove_entry(store, link);
    }
}

static enum module_table table_of(enum elf_worker_request request)
{
    switch (request) {
    case ELF_WORKER_CFI:
        return MODULE_CFI;
    case ELF_WORKER_CODE:
        return MODULE_CODE;
    case ELF_WORKER_SYMBOLS:
    case ELF_WORKER_KALLSYMS:
    case ELF_WORKER_PERF_MAP:
    case ELF_WORKER_JITDUMP:
        break;
    }
    return MODULE_SYMBOLS;
}

int module_store_add(struct module_store *store, const struct file_identity *identity, uid_t uid,
                     const struct elf_worker_table *table, struct module_entry **ret)
{
    static const struct file_identity kernel = {0};
    struct module_entry *entry = calloc(1, sizeof *entry);
    if (entry == NULL) {
        return -ENOMEM;
    }
    int r = make_room(store, uid, table->map_bytes);
    if (r < 0) {
        free(entry);
        return r;
    }

    entry->kernel = identity == NULL;
    entry->uid = uid;
    entry->module.identity = identity == NULL ? kernel : *identity;
    entry->module.table = table_of(table->request);
    entry->module.symbols = table->symbols;
    entry->module.cfi = table->cfi;
    entry->module.spans = table->spans;
    entry->map = table->map;
    entry->map_bytes = table->map_bytes;
    struct module_entry **bucket = bucket_of(store, &entry->module.identity);
    entry->next = *bucket;
    *bucket = entry;
    count_entry(store, entry, 1);
    *ret = entry;
    return 0;
}

void module_store_trim(struct module_store *store, uint64_t now_ns)
{
    for (size_t i = 0; i < BUCKETS; i++) {
        struct module_entry **link = &store->buckets[i];
        while (*link != NULL) {
            struct module_entry *entry = *link;
            if (is_used(entry)) {
                entry->idle_since_ns = 0;
            } else if (entry->idle_since_ns == 0) {
                entry->idle_since_ns = now_ns;
            } else if (now_ns - entry->idle_since_ns >= MODULE_IDLE_NS) {
                remove_entry(store, link);
                continue;
            }
            link = &entry->next;
        }
    }
}

void module_store_fail(struct module_store *store, enum module_table table,
                       const struct file_identity *identity, enum module_failure failure,
                       uint64_t now_ns)
{
    store->failures[store->next_failure++ % FAILURES] = (struct failure){
        .identity = *identity,
        .table = table,
        .failure = failure,
        .until_ns = now_ns + MODULE_FAILURE_NS,
    };
}

enum module_failure module_store_failure(const struct module_store *store, enum module_table table,
                                         const struct file_identity *identity, uint64_t now_ns)
{
    for (size_t i = 0; i < FAILURES; i++) {
        const struct failure *failure = &store->failures[i];
        if (failure->failure != MODULE_FAILURE_NONE && now_ns < failure->until_ns &&
            failure->table == table && file_identity_equal(&failure->identity, identity)) {
            return failure->failure;
        }
    }
    return MODULE_FAILURE_NONE;
}

uint64_t module_store_count(const struct module_store *store, enum module_table table)
{
    return store->entry_counts[table];
}

uint64_t module_store_bytes(const struct module_store *store, enum module_table table)
{
    return store->table_bytes_of[table];
}
