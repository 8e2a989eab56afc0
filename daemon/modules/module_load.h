/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the worker is asked for a file that waits for it, and whether there may be more to be had of
 * it elsewhere.
 */

#include "clock.h"
#include "module_queue.h"

#define MODULE_LOAD_LIMIT_NS    (10 * NS_PER_S) /* a worker that takes longer is killed */
#define MODULE_DEBUG_PATH_BYTES (64 + 2 * SYMBOL_BUILD_ID_BYTES_MAX)

/* What reading this load takes: what it took before (`known_ns`), 0: by the size of its files. */
uint64_t module_load_expected_ns(const struct module_load *load, uint64_t known_ns);

/* Whether all that wanted it have released their tickets. */
bool module_load_is_abandoned(const struct module_load *load);

/* Returns what elf_worker_send() does. */
int module_load_ask(const struct module_load *load, struct elf_worker *worker);

/* The path of the file that may have been split off the one whose symbols these are; false: this is
 * no such file, or has its own already. */
bool module_load_debug_path(const struct module_load *load, const struct elf_worker_table *table,
                            char ret[MODULE_DEBUG_PATH_BYTES]);
