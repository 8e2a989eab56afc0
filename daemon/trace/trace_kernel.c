/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The kernel is one module, of which the list of symbols names what there was when it was read.
 * Code that came later has addresses of its own in the module, above all that is mapped, and a
 * mapping record says from when on it is what is to be seen; another one that it is gone, and
 * what is there is unknown. Code that was there before the session gets such records when it goes,
 * from the session's start on: the list may be read later, and name what is there then. A name is
 * given only where the kernel's own are: a user that may not see those learns nothing of what the
 * kernel runs.
 */
#include "trace_kernel.h"

#include "process_table.h"
#include "trace_definition.h"

#include <stdlib.h>

#define KERNEL_START     UINT64_C(0xffff800000000000)
#define KERNEL_NAME      "[kernel]"
#define UNKNOWN_NAME     "[unknown]"
#define KERNEL_MODULE_ID 1
#define LATER_MODULE_ID  2
#define LATER_VADDR      (UINT64_C(1) << 57) /* no address of the kernel, nor of a process */
#define CODE_ALIGN_BYTES ((uint64_t)16)

struct trace_kernel {
    struct definition_log *log;
    struct trace_symbols *symbols;
    struct trace_files *files;
    struct kernel_code *code;
    uint32_t log_number;
    uint32_t shown_log; /* the one in which the kernel is defined */
    uint64_t next_vaddr;
    bool has_wanted;     /* something waits for the kernel's symbols */
    uint32_t seen_epoch; /* of the code, when it was last gone through */
};

struct trace_kernel *trace_kernel_new(struct definition_log *log, struct trace_symbols *symbols,
                                      struct trace_files *files, struct kernel_code *code)
{
    struct trace_kernel *kernel = calloc(1, sizeof *kernel);
    if (kernel != NULL) {
        *kernel =
            (struct trace_kernel){.log = log, .symbols = symbols, .files = files, .code = code};
    }
    return kernel;
}

struct trace_kernel *trace_kernel_free(struct trace_kernel *kernel)
{
    free(kernel);
    return NULL;
}

void trace_kernel_begin(struct trace_kernel *kernel, uint32_t log_number)
{
    kernel->log_number = log_number;
    kernel->next_vaddr = LATER_VADDR;
}

uint32_t trace_kernel_epoch(const struct trace_kernel *kernel)
{
    return kernel->code == NULL ? 0 : kernel_code_epoch(kernel->code);
}

static bool define(const struct trace_kernel *kernel, const struct shown_mapping *shown,
                   uint64_t vaddr, const char *name)
{
    return trace_definition_write(
        kernel->log, shown,
        &(struct definition){
            .owner = TRACE_OWNER_KERNEL, .kind = DEFINITION_TASK, .vaddr = vaddr, .name = name});
}

static bool define_kernel(struct trace_kernel *kernel)
{
    const struct shown_mapping shown = {
        .module_id = KERNEL_MODULE_ID,
        .start = KERNEL_START,
        .size_bytes = UINT64_MAX - KERNEL_START,
    };
    if (kernel->shown_log == kernel->log_number) {
        return true;
    }
    if (!define(kernel, &shown, KERNEL_START, KERNEL_NAME)) {
        return false;
    }
    kernel->shown_log = kernel->log_number;
    return true;
}

/* Says from when on a function is there: what came before the session, from its start. */
static bool show_coming(struct trace_kernel *kernel, const struct kernel_function *function)
{
    const struct shown_mapping shown = {
        .module_id = LATER_MODULE_ID,
        .start = function->start,
        .size_bytes = function->size_bytes,
        .from_ns = function->from_ns,
    };
    const struct symbol symbol = {.start = kernel->next_vaddr, .size_bytes = function->size_bytes};
    if (!trace_symbols_write_made(kernel->symbols, KERNEL_NAME, TRACE_OWNER_KERNEL, &symbol,
                                  function->name) ||
        !define(kernel, &shown, symbol.start, KERNEL_NAME)) {
        return false;
    }
    kernel->next_vaddr +=
        (function->size_bytes + CODE_ALIGN_BYTES - 1) / CODE_ALIGN_BYTES * CODE_ALIGN_BYTES;
    return true;
}

static bool show_going(struct trace_kernel *kernel, const struct kernel_function *function)
{
    const struct shown_mapping shown = {
        .module_id = LATER_MODULE_ID,
        .start = function->start,
        .size_bytes = function->size_bytes,
        .from_ns = function->to_ns,
    };
    return define(kernel, &shown, function->start, UNKNOWN_NAME);
}

/* Says of a function when it is there, as far as the log does not. False: no room. */
static bool show(struct trace_kernel *kernel, struct kernel_function *function)
{
    if (function->shown_log != kernel->log_number) {
        if (!show_coming(kernel, function)) {
            return false;
        }
        function->shown_log = kernel->log_number;
    }
    if (function->to_ns != TIME_OPEN_NS && function->ended_log != kernel->log_number) {
        if (!show_going(kernel, function)) {
            return false;
        }
        function->ended_log = kernel->log_number;
    }
    return true;
}

/* A frame in code that came or went. */
static enum frame_outcome name_later(struct trace_kernel *kernel, struct kernel_function *function,
                                     uint64_t *ret_from_ns)
{
    bool is_pending = false;
    if (!trace_files_kernel_is_read(kernel->files, &is_pending)) {
        function->is_wanted = is_pending;
        kernel->has_wanted = kernel->has_wanted || is_pending;
        return FRAME_DEFINED;
    }
    if (!show(kernel, function)) {
        return FRAME_RETRY;
    }
    if (function->to_ns == TIME_OPEN_NS) {
        *ret_from_ns = function->from_ns;
    }
    return FRAME_DEFINED;
}

enum frame_outcome trace_kernel_frame(struct trace_kernel *kernel, uint64_t address,
                                      uint64_t time_ns, uint64_t *ret_from_ns)
{
    bool is_later = false;
    struct kernel_function *function =
        kernel->code == NULL ? NULL : kernel_code_find(kernel->code, address, time_ns, &is_later);
    struct trace_file *file = trace_files_kernel(kernel->files, KERNEL_NAME);
    *ret_from_ns = is_later ? TIME_OPEN_NS : 0;
    if (file == NULL || !define_kernel(kernel)) {
        return FRAME_RETRY;
    }
    if (function != NULL) {
        return name_later(kernel, function, ret_from_ns);
    }
    return trace_file_name(kernel->files, file, TRACE_OWNER_KERNEL, address) ? FRAME_DEFINED
                                                                             : FRAME_RETRY;
}

/* Whether the kernel's list may have another's name for a function that was sampled. */
static bool is_gone_from_list(const struct kernel_function *function)
{
    return function->from_ns == 0 && function->shown_log == 0;
}

bool trace_kernel_poll(struct trace_kernel *kernel)
{
    bool is_pending = false;
    bool is_read = trace_files_kernel_is_read(kernel->files, &is_pending);
    uint32_t epoch = trace_kernel_epoch(kernel);
    if (!is_read || (!kernel->has_wanted && kernel->seen_epoch == epoch)) {
        kernel->has_wanted = kernel->has_wanted && is_pending;
        return true;
    }
    struct kernel_function *function = NULL;
    for (size_t i = 0; (function = kernel_code_at(kernel->code, i)) != NULL; i++) {
        bool is_due = function->is_wanted || is_gone_from_list(function);
        if (is_due && !show(kernel, function)) {
            return false;
        }
        function->is_wanted = false;
    }
    kernel->has_wanted = false;
    kernel->seen_epoch = epoch;
    return true;
}
