/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Frames of the kernel on their way into the file: its own symbols, and code that it was given
 * while it was watched, which has its name from when it came until it went. Belongs to the
 * collector thread; of trace_modules.c only.
 */

#include "kernel_code.h"
#include "trace_files.h"
#include "trace_modules.h"

struct trace_kernel;

/* Returned; NULL when there is no memory. All borrowed; `code` may be NULL. */
struct trace_kernel *trace_kernel_new(struct definition_log *log, struct trace_symbols *symbols,
                                      struct trace_files *files, struct kernel_code *code);
struct trace_kernel *trace_kernel_free(struct trace_kernel *kernel);

/* A log (numbered from 1) begins, in which nothing is written yet. */
void trace_kernel_begin(struct trace_kernel *kernel, uint32_t log_number);

/* As trace_modules_kernel_frame(). */
enum frame_outcome trace_kernel_frame(struct trace_kernel *kernel, uint64_t address,
                                      uint64_t time_ns, uint64_t *ret_from_ns);
uint32_t trace_kernel_epoch(const struct trace_kernel *kernel);

/* Names what waited for the kernel's symbols. False: no room in the log now. */
bool trace_kernel_poll(struct trace_kernel *kernel);
