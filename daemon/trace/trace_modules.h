/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Modules and mappings on their way into the file. The first sample in a mapping writes its Module
 * and Mmap records, as far as they are known by then, and asks the module cache for the file; when
 * the answer comes, what it corrects is written again (same process, same range, same time: the
 * later record wins), and the functions that were sampled meanwhile get their names. Belongs to the
 * collector thread.
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

/* A log (numbered from 1) begins, in which nothing is written yet. */
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
 * Sees to it that `address` of the process, at `time_ns`, is defined and will be named. The outcome
 * holds for all samples from `*ret_from_ns` on, as long as the process keeps its generation;
 * TIME_OPEN_NS: for this moment only, since the address stands for something else by now.
 */
enum frame_outcome trace_modules_frame(struct trace_modules *modules, struct process *process,
                                       uint64_t address, uint64_t time_ns, uint64_t *ret_from_ns);
/* The same for an address of the kernel, as long as trace_modules_kernel_epoch() stays. */
enum frame_outcome trace_modules_kernel_frame(struct trace_modules *modules, uint64_t address,
                                              uint64_t time_ns, uint64_t *ret_from_ns);
uint32_t trace_modules_kernel_epoch(const struct trace_modules *modules);

/* Changes whenever more is known of code that was made while it ran; never 0. */
uint32_t trace_modules_made_epoch(const struct trace_modules *modules);

/* Takes up the answers that have come. False when there is no room for what they say. */
bool trace_modules_poll(struct trace_modules *modules);
bool trace_modules_pending(const struct trace_modules *modules);
/* Has what a process may have added to its list of functions read once more. */
void trace_modules_ask_again(struct trace_modules *modules);

/* Whether what was sampled in made code until then (CLOCK_BOOTTIME) has the names it will have. */
bool trace_modules_proved(const struct trace_modules *modules, uint64_t time_ns);
/* This log ends: what cannot be proved any more loses its name. */
void trace_modules_close(struct trace_modules *modules);

/* How many files have been met. */
uint64_t trace_modules_met_count(const struct trace_modules *modules);
/* Whether the last poll found none of the first `met_count` pending. */
bool trace_modules_settled(const struct trace_modules *modules, uint64_t met_count);
uint64_t trace_modules_unread_count(const struct trace_modules *modules);
/* Addresses for which there was no room while their file was being read. */
uint64_t trace_modules_refused_count(const struct trace_modules *modules);

/* The process table lets go of a file; what is pending for it stays here. */
void trace_modules_file_gone(struct trace_modules *modules, struct mapped_file *file);
