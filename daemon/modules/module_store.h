/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Keeps the tables of the cache by the identity of their file, within a bound, and removes unused
 * ones. Belongs to the main thread, except module_entry_release().
 */

#include "elf_worker.h"
#include "module_file.h"

#include <stdatomic.h>

#define MODULE_STORE_ENTRIES_MAX 4096
#define MODULE_IDLE_NS           UINT64_C(60000000000)
#define MODULE_FAILURE_NS        UINT64_C(10000000000)

struct module_entry {
    struct module module;
    bool kernel; /* never found again: what the kernel has loaded changes */
    uid_t uid;   /* for whose process it was made */
    void *map;   /* owned */
    size_t map_bytes;
    atomic_uint user_count; /* raised by the main thread only */
    uint64_t idle_since_ns; /* 0 while there are users, as far as has been looked */
    struct module_entry *next;
};

struct module_store;

/* A store of at most so many bytes of tables (module_store_free()), or NULL. */
struct module_store *module_store_new(uint64_t bytes_max);
struct module_store *module_store_free(struct module_store *store);

/* The entry of a file (returned: module_entry_release()), or NULL. */
struct module_entry *module_store_find(struct module_store *store, enum module_table table,
                                       const struct file_identity *identity);

/*
 * Adds a table (taken on success) of a file (NULL: the kernel) that a process of `uid` has mapped.
 * Evicts the tables that were unused for longest where room is needed. An account holds at most
 * half of the room that the others leave. `*ret` has no user yet. Returns 0, -ENOMEM, or -ENOSPC
 * when tables in use fill the store or the account's share.
 */
int module_store_add(struct module_store *store, const struct file_identity *identity, uid_t uid,
                     const struct elf_worker_table *table, struct module_entry **ret);
void module_entry_use(struct module_entry *entry);
/* Any thread may call it; the entry may be freed. */
void module_entry_release(struct module_entry *entry);

/* Removes tables that were unused for MODULE_IDLE_NS. */
void module_store_trim(struct module_store *store, uint64_t now_ns);

/* Remembers for MODULE_FAILURE_NS that this table of the file cannot be made. */
void module_store_fail(struct module_store *store, enum module_table table,
                       const struct file_identity *identity, enum module_failure failure,
                       uint64_t now_ns);
enum module_failure module_store_failure(const struct module_store *store, enum module_table table,
                                         const struct file_identity *identity, uint64_t now_ns);

uint64_t module_store_count(const struct module_store *store, enum module_table table);
uint64_t module_store_bytes(const struct module_store *store, enum module_table table);
