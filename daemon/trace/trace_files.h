/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The files of mappings in which samples fell: each is asked of the module cache, what was sampled
 * in it is noted until the answer comes, and is then named, a bounded part of it in each poll. Of
 * trace_modules.c only; belongs to the collector thread.
 */

#include "definition_log.h"
#include "module_cache.h"
#include "trace_definition.h"
#include "trace_symbols.h"

struct trace_files;
struct trace_file;

/* Returned; NULL when there is no memory. All borrowed. */
struct trace_files *trace_files_new(struct definition_log *log, struct module_cache *cache,
                                    struct trace_symbols *symbols);
struct trace_files *trace_files_free(struct trace_files *files);

/* A log (numbered from 1) begins, in which no definition is written yet. */
void trace_files_begin(struct trace_files *files, uint32_t log_number);

/*
 * A file that is met for the first time, on whose account `owner` is. Of the query the path is
 * borrowed until trace_files_gone(). Owned by the files; NULL when there is no memory.
 */
struct trace_file *trace_files_meet(struct trace_files *files, uint32_t owner,
                                    const struct module_query *query);
/* The kernel's, called `name`; made with the first call. */
struct trace_file *trace_files_kernel(struct trace_files *files, const char *name);

/* Whether the kernel's symbols have been read: `*ret_pending` while they may be some time. */
bool trace_files_kernel_is_read(const struct trace_files *files, bool *ret_pending);

/* Defines a mapping of a file, and again when more is known of the file. False: refused. */
bool trace_file_define(struct trace_files *files, struct trace_file *file, uint32_t owner,
                       const struct shown_mapping *shown);
/* Names the function at a file offset (the kernel: an address), or notes that it wants a name.
 * False: no room. */
bool trace_file_name(struct trace_files *files, struct trace_file *file, uint32_t owner,
                     uint64_t address);

/* Takes up answers that have come, as far as one round may. False: there was no room for what they
 * say. */
bool trace_files_poll(struct trace_files *files);
/* Whether some file is being read, or named. */
bool trace_files_pending(const struct trace_files *files);

/* How many files have been met. */
uint64_t trace_files_met_count(const struct trace_files *files);
/* Whether none of the first `met_count` files was pending when all were looked at last. */
bool trace_files_settled(const struct trace_files *files, uint64_t met_count);
uint64_t trace_files_unread_count(const struct trace_files *files);
/* Addresses for which there was no room while their file was being read. */
uint64_t trace_files_refused_count(const struct trace_files *files);

/* A mapped_file lets go of its trace_file; what is pending for it stays. */
void trace_files_gone(struct trace_files *files, struct trace_file *file);
