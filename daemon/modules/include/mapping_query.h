/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * From a mapping to the question for what it holds.
 */

#include "module_cache.h"
#include "process_table.h"

/* Whether a file is behind it, or the vdso: "[heap]", "//anon" and their like are nothing but names
 * of the kernel's. */
bool mapping_has_module(const struct mapping *mapping);
/* Whether it is the vdso of a 32-bit process. */
bool mapping_is_vdso_32bit(const struct mapping *mapping);
/* Whether code in it is what the process has put there itself. */
bool mapping_is_made_code(const struct mapping *mapping);

/* What the cache is to be asked about a mapping of `process`. The path is the mapping's. */
struct module_query mapping_query(const struct process *process, const struct mapping *mapping);
/* Asks for a table of a mapping of which mapping_has_module() is true: see module_cache_request().
 */
struct module_ticket *mapping_request(struct module_cache *cache, enum module_table table,
                                      enum module_urgency urgency, const struct process *process,
                                      const struct mapping *mapping);

/*
 * Asks for its call frames, which a stack waits for, and by the same opening for its symbols. The
 * ticket for these stays with the mapped_file until mapping_request_names() takes it or
 * mapping_file_gone() releases it.
 */
struct module_ticket *mapping_request_both(struct module_cache *cache,
                                           const struct process *process,
                                           const struct mapping *mapping);
/* Asks for the symbols of a mapped_file, unless they were asked for with its call frames: `query`
 * is of one of its mappings. */
struct module_ticket *mapping_request_names(struct module_cache *cache, struct mapped_file *file,
                                            const struct module_query *query);
/* To be called before a mapped_file goes. */
void mapping_file_gone(struct mapped_file *file);
