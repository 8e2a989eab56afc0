/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Turns a load into the request that a worker gets, and finds the debug file that belongs to it.
 */

#include "clock.h"
#include "module_queue.h"

#define MODULE_LOAD_LIMIT_NS    (10 * NS_PER_S) /* a worker that takes longer is killed */
#define MODULE_DEBUG_PATH_BYTES (64 + 2 * SYMBOL_BUILD_ID_BYTES_MAX)

/* The time that reading this load is expected to take: `known_ns`, the time that it took before, or
 * an estimate by the size of its files where that is 0. */
uint64_t module_load_expected_ns(const struct module_load *load, uint64_t known_ns);

/* True when all requesters have released their tickets: the load need not be read. */
bool module_load_is_abandoned(const struct module_load *load);

/* Sends the request for `load` to `worker`; with `both`, for its call frames and then its symbols.
 * Returns as elf_worker_send(). */
int module_load_ask(const struct module_load *load, struct elf_worker *worker, bool both);

/* True when its call frames and its symbols may be read by one request: it is for both, and so
 * small that no other file waits long for the second. */
bool module_load_may_be_both(const struct module_load *load);

/* After its table was read, or could not be: true when there is another one to read. */
bool module_load_go_on(struct module_load *load);

/* Writes the path of the debug file that may have been split off this file, by its build-id. False:
 * the load is not for the symbols of a file, has its debug file already, or the build-id is missing
 * or shorter than 8 bytes. */
bool module_load_debug_path(const struct module_load *load, const struct elf_worker_table *table,
                            char ret[MODULE_DEBUG_PATH_BYTES]);
