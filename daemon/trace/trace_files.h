/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Names the functions of files in whose mappings samples fell. Each file is requested from the
 * module cache; sampled addresses are noted until the answer comes, and then named, a bounded
 * number in each poll. Only trace_modules.c uses it; belongs to the collector thread.
 */

#include "definition_log.h"
#include "module_cache.h"
#include "process_table.h"
#include "trace_definition.h"
#include "trace_symbols.h"

struct trace_files;
struct trace_file;

/* Returned; NULL when there is no memory. All borrowed. */
struct trace_files *trace_files_new(struct definition_log *log, struct module_cache *cache,
                                    struct trace_symbols *symbols);
struct trace_files *trace_files_free(struct trace_files *files);

/* Begins a log (numbered from 1), in which no definition is written yet. */
void trace_files_begin(struct trace_files *files, uint32_t log_number);

/*
 * Adds a file and requests its table, charged to `owner`. The mapped file and its path are borrowed
 * until trace_files_gone(). The result is owned by the files; NULL when there is no memory.
 */
struct trace_file *trace_files_meet(struct trace_files *files, uint32_t owner,
                                    struct mapped_file *mapped, const struct module_query *query);
/* The kernel's file, named `name`; the first call adds it. */
struct trace_file *trace_files_kernel(struct trace_files *files, const char *name);

/* True when the kernel's symbols are read; `*ret_pending`: they may still come. */
bool trace_files_kernel_is_read(const struct trace_files *files, bool *ret_pending);

/* Writes the definition of a mapping, and again when the file's table has come. False: refused. */
bool trace_file_define(struct trace_files *files, struct trace_file *file, uint32_t owner,
                       const struct shown_mapping *shown);
/* Names the function at a file offset (the kernel: an address), or notes that it wants a name.
 * False: no room. */
bool trace_file_name(struct trace_files *files, struct trace_file *file, uint32_t owner,
                     uint64_t address);

/* Handles the answers that have come, within the limit of a round. False: the log has no room. */
bool trace_files_poll(struct trace_files *files);
/* True while a file is being read or named. */
bool trace_files_pending(const struct trace_files *files);

/* The number of files that were added. */
uint64_t trace_files_met_count(const struct trace_files *files);
/* True when none of the first `met_count` files was pending at the last poll. */
bool trace_files_settled(const struct trace_files *files, uint64_t met_count);
uint64_t trace_files_unread_count(const struct trace_files *files);
/* The number of addresses that had no room while their file was being read. */
uint64_t trace_files_refused_count(const struct trace_files *files);

/* Releases the trace_file of a mapped_file; pending requests stay. */
void trace_files_gone(struct trace_files *files, struct trace_file *file);
