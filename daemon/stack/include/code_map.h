/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What is known of the code at an address of a process at a time: the call-frame rule of its
 * module. Asks the module cache for a file's own table when the first frame falls in it, and for
 * the larger one when the first frame falls in code that the own one does not cover. Remembers each
 * address that was asked for. Belongs to the collector thread.
 */

#include "address_cache.h"
#include "counters.h"
#include "module_cache.h"
#include "process_table.h"
#include "unwind.h"

struct code_map;

/* When an address is asked for, and for what. */
struct code_moment {
    uint64_t time_ns;
    bool is_32bit; /* the task's word size: the rules of other code do not count */
    bool settle;   /* a table that is not there yet is UNWIND_CODE_LATE, and counted */
};

/* Returned; NULL when there is no memory. Both caches are borrowed. */
struct code_map *code_map_new(struct module_cache *cache, struct address_cache *addresses);
/* After the process table that its files hang on. */
struct code_map *code_map_free(struct code_map *map);

/*
 * The code at `pc`. `*ret` (borrowed until the next call) is set with UNWIND_CODE_RULE. To
 * `settle` there is never UNWIND_CODE_PENDING.
 */
enum unwind_code code_map_find(struct code_map *map, struct process *process, uint64_t pc,
                               const struct code_moment *moment, const struct cfi_rule **ret);

/* Asks for the tables of everything that is mapped now, what most processes share first. */
void code_map_prefetch(struct code_map *map, struct process_table *processes);

/* The bit that stands for the file for which the last UNWIND_CODE_PENDING waits. Other files may
 * have the same. */
uint64_t code_map_awaited(const struct code_map *map);

/* Takes up the answers that have come. Returns the bits of files that frames wait for. */
uint64_t code_map_poll(struct code_map *map);

/* The process table lets go of a file. */
void code_map_file_gone(struct mapped_file *file);

/* Borrowed. */
const struct counters *code_map_counters(const struct code_map *map);
/* Addresses that were settled before their table came, or could be asked for. */
uint64_t code_map_unready_count(const struct code_map *map);
