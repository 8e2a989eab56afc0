/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the worker is asked for a file that waits for it, and whether there may be more to be had of
 * it elsewhere.
 */

#include "module_queue.h"

#define MODULE_DEBUG_PATH_BYTES (64 + 2 * SYMBOL_BUILD_ID_BYTES_MAX)

/* Returns what elf_worker_send() does. */
int module_load_ask(const struct module_load *load, struct elf_worker *worker);

/* The path of the file that may have been split off the one whose symbols these are; false: this is
 * no such file, or has its own already. */
bool module_load_debug_path(const struct module_load *load, const struct elf_worker_table *table,
                            char ret[MODULE_DEBUG_PATH_BYTES]);
