/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Writes modules and mappings into the trace. The first sample in a mapping writes its Module and
 * Mmap records, as far as they are known, and requests the file from the module cache. When the
 * answer comes, corrected records are written (same process, range and time: the later record
 * wins), and the functions sampled meanwhile get their names. Belongs to the collector thread.
 */

#include "definition_log.h"
#include "kernel_code.h"
#include "module_cache.h"
#include "process_table.h"
#include "trace_symbols.h"

struct trace_modules;

/* Returned; NULL when there is no memory. All borrowed; `kernel` may be NULL. */
struct trace_modules *trace_modules_new(struct definition_log *log, struct module_cache *cache,
                                        struct trace_symbols *symbols, struct kernel_code *kernel);
struct trace_modules *trace_modules_free(struct trace_modules *modules);

/* Begins a log (numbered from 1), in which nothing is written yet. */
void trace_modules_begin(struct trace_modules *modules, uint32_t log_number);

/*
 * Says, once in a log for each program that a process executes, that what is not defined after it
 * is unknown. False when there is no room in the log: ask again with the next sample.
 */
bool trace_modules_process(struct trace_modules *modules, struct process *process);

enum frame_outcome {
    FRAME_DEFINED, /* or unknown, where what it needs was refused */
    FRAME_MADE,    /* defined, as long as trace_modules_made_epoch() stays */
    FRAME_UNKNOWN, /* in no mapping that is known */
    FRAME_RETRY,   /* no room in the log: ask again with the next sample */
};

/*
 * Defines `address` of the process at `time_ns`, and has it named. The outcome holds for all
 * samples from `*ret_from_ns` on while the process keeps its generation. TIME_OPEN_NS: do not cache
 * the outcome; the mapping has since been replaced.
 */
enum frame_outcome trace_modules_frame(struct trace_modules *modules, struct process *process,
                                       uint64_t address, uint64_t time_ns, uint64_t *ret_from_ns);
/* The same for an address of the kernel, while trace_modules_kernel_epoch() stays. */
enum frame_outcome trace_modules_kernel_frame(struct trace_modules *modules, uint64_t address,
                                              uint64_t time_ns, uint64_t *ret_from_ns);
uint32_t trace_modules_kernel_epoch(const struct trace_modules *modules);

/* Changes when more is known of code that was made at run time; never 0. */
uint32_t trace_modules_made_epoch(const struct trace_modules *modules);

/* Handles the answers that have come. False when the log has no room. */
bool trace_modules_poll(struct trace_modules *modules);
bool trace_modules_pending(const struct trace_modules *modules);
/* Requests the perf maps and jitdumps again, which may have grown. */
void trace_modules_ask_again(struct trace_modules *modules);

/* Whether what was sampled in made code until then (CLOCK_BOOTTIME) has the names it will have. */
bool trace_modules_proved(const struct trace_modules *modules, uint64_t time_ns);
/* Ends this log: a function that cannot be proved any more loses its name. */
void trace_modules_close(struct trace_modules *modules);

/* The number of files that were requested. */
uint64_t trace_modules_met_count(const struct trace_modules *modules);
/* True when the last poll found none of the first `met_count` pending. */
bool trace_modules_settled(const struct trace_modules *modules, uint64_t met_count);
uint64_t trace_modules_unread_count(const struct trace_modules *modules);
/* The number of addresses that had no room while their file was being read. */
uint64_t trace_modules_refused_count(const struct trace_modules *modules);

/* Releases a file of the process table; pending requests stay. */
void trace_modules_file_gone(struct trace_modules *modules, struct mapped_file *file);
