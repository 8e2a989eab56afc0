/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * From a mapping to the question for its file. Pure.
 */

#include "module_cache.h"
#include "process_table.h"

/* Whether a file is behind it: "[heap]", "//anon" and their like are names of the kernel's. */
bool mapping_is_file(const struct mapping *mapping);

/* The query for the file behind a mapping of `process`; what it points to is the mapping's. */
struct module_query mapping_query(const struct process *process, const struct mapping *mapping);
