/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From frames to mappings, and from these to files (trace_files.h) or to made code (trace_jit.h).
 *
 * Invariant: a mapping's module_id is not 0 and its module_log the present one exactly when its
 * definition is in the log. Memory is taken when a mapping is met for the first time, never for an
 * ordinary sample.
 */
#include "trace_modules.h"

#include "mapping_query.h"
#include "trace_definition.h"
#include "trace_files.h"
#include "trace_jit.h"
#include "trace_kernel.h"
#include "utf8.h"

#include "process_notes.h"
#include <stdlib.h>

#include <string.h>

#define LAST_MODULE_ID   UINT16_MAX
#define UNKNOWN_NAME     "[unknown]"
#define PAGE_BYTES       UINT64_C(4096)      /* nothing is mapped that is smaller */
#define USER_SPACE_BYTES (UINT64_C(1) << 56) /* x86-64 with five levels of pages */

/* What is written of a process. */
struct process_note {
    uint32_t log;            /* in this log, */
    uint16_t next_module_id; /* 0: nothing */
    uint64_t defined_ns;     /* it holds from then on */
};

struct trace_modules {
    struct definition_log *log;
    struct process_notes *notes; /* owned */
    struct trace_symbols *symbols;
    struct trace_files *files; /* owned, as the next */
    struct trace_jits *jits;
    struct trace_kernel *kernel;
    uint32_t log_number;
    uint64_t unread_count;
};

struct trace_modules *trace_modules_new(struct definition_log *log, struct module_cache *cache,
                                        struct trace_symbols *symbols, struct kernel_code *kernel)
{
    struct trace_modules *modules = calloc(1, sizeof *modules);
    if (modules == NULL) {
        return NULL;
    }
    modules->log = log;
    modules->symbols = symbols;
    modules->notes = process_notes_new(sizeof(struct process_note));
    modules->files = trace_files_new(log, cache, symbols);
    modules->jits = trace_jits_new(log, cache, symbols);
    modules->kernel = trace_kernel_new(log, symbols, modules->files, kernel);
    bool ok = modules->notes != NULL && modules->files != NULL && modules->jits != NULL &&
              modules->kernel != NULL;
    return ok ? modules : trace_modules_free(modules);
}

void trace_modules_begin(struct trace_modules *modules, uint32_t log_number)
{
    modules->log_number = log_number;
    trace_files_begin(modules->files, log_number);
    trace_jits_begin(modules->jits);
    trace_kernel_begin(modules->kernel, log_number);
}

struct trace_modules *trace_modules_free(struct trace_modules *modules)
{
    if (modules != NULL) {
        (void)trace_files_free(modules->files);
        (void)trace_jits_free(modules->jits);
        (void)trace_kernel_free(modules->kernel);
        (void)process_notes_free(modules->notes);
        free(modules);
    }
    return NULL;
}

/* The file of a mapping, met if need be; NULL where there is none, or no memory. "[vdso]" is one
 * path for mappings with a file and for others. */
static struct trace_file *file_of(struct trace_modules *modules, const struct process *process,
                                  const struct mapping *mapping)
{
    if (!mapping_has_module(mapping)) {
        return NULL;
    }
    if (mapping->file->trace_file == NULL) {
        const struct module_query query = mapping_query(process, mapping);
        mapping->file->trace_file =
            trace_files_meet(modules->files, process->owner, mapping->file, &query);
    }
    return mapping->file->trace_file;
}

/* Defines a mapping without a file: its name is the kernel's word for it. Nameless memory counts
 * from 0. False: refused. */
static bool define_without_file(struct trace_modules *modules, struct trace_jit *jit,
                                uint32_t owner, const struct shown_mapping *shown, const char *path)
{
    char name[MODULE_NAME_BYTES];
    trace_symbols_name_by_path(name, sizeof name, path);
    const struct definition definition = {
        .owner = owner,
        .kind = DEFINITION_MAPPING,
        .name = name,
        .vaddr = strcmp(path, "[anon]") == 0 ? shown->start : shown->file_offset,
    };
    return jit == NULL ? trace_definition_write(modules->log, shown, &definition)
                       : trace_jit_define(modules->jits, jit, shown, definition.vaddr, name);
}

/* Writes that it is unknown what is there. */
static bool write_unknown(struct trace_modules *modules, uint32_t owner,
                          enum definition_log_kind kind, const struct shown_mapping *shown)
{
    return trace_definition_write(modules->log, shown,
                                  &(struct definition){
                                      .owner = owner,
                                      .kind = kind,
                                      .vaddr = shown->start,
                                      .name = UNKNOWN_NAME,
                                  });
}

/*
 * All that a process can ever map, as [unknown], before anything else is said of it: whatever is
 * not defined after it is not some older process's or program's mapping that had this pid. False:
 * no room.
 */
bool trace_modules_process(struct trace_modules *modules, struct process *process)
{
    uint64_t image_ns = process->exec_ns > process->from_ns ? process->exec_ns : process->from_ns;
    struct process_note *note = process_notes_of(modules->notes, process);
    if (note->log != modules->log_number) {
        *note = (struct process_note){.log = modules->log_number};
    }
    if (note->next_module_id != 0 && note->defined_ns == image_ns) {
        return true;
    }
    bool full = note->next_module_id >= LAST_MODULE_ID - 1;
    struct shown_mapping shown = {
        .pid = process->pid,
        .module_id = full ? LAST_MODULE_ID : (uint16_t)(note->next_module_id + 1),
        .size_bytes = USER_SPACE_BYTES,
        .from_ns = image_ns,
    };
    if (!write_unknown(modules, process->owner, DEFINITION_TASK, &shown)) {
        return false;
    }
    note->next_module_id = full ? note->next_module_id : shown.module_id;
    note->defined_ns = image_ns;
    return true;
}

static void set_module(const struct trace_modules *modules, struct mapping *mapping, uint16_t id)
{
    mapping->module_id = id;
    mapping->module_log = modules->log_number;
}

static bool is_defined(const struct trace_modules *modules, const struct mapping *mapping)
{
    return mapping->module_id != 0 && mapping->module_log == modules->log_number;
}

/* The first sample in a mapping. False: refused. */
static bool define_mapping(struct trace_modules *modules, struct process *process,
                           struct mapping *mapping, struct trace_jit *jit)
{
    struct process_note *note = process_notes_of(modules->notes, process);
    struct trace_file *file = file_of(modules, process, mapping);
    struct shown_mapping shown = {
        .pid = process->pid,
        .module_id = (uint16_t)(note->next_module_id + 1),
        .start = mapping->start,
        .size_bytes = mapping->end - mapping->start,
        .from_ns = mapping->from_ns,
        .file_offset = mapping->file_offset,
    };
    if (note->next_module_id >= LAST_MODULE_ID - 1) {
        /* No id is left: the last one is for all that comes now. */
        shown.module_id = LAST_MODULE_ID;
        if (!write_unknown(modules, process->owner, DEFINITION_MAPPING, &shown)) {
            return false;
        }
        modules->unread_count++;
        set_module(modules, mapping, LAST_MODULE_ID);
        return true;
    }
    bool defined = file == NULL ? define_without_file(modules, jit, process->owner, &shown,
                                                      mapping->file->path)
                                : trace_file_define(modules->files, file, process->owner, &shown);
    if (defined) {
        note->next_module_id = shown.module_id;
        set_module(modules, mapping, shown.module_id);
    }
    return defined;
}

/*
 * Whether what is written of an address may be something else's that it does not show at a time: of
 * a program that the process has left or not come to yet, or that was there in a time of which the
 * process table has lost a part.
 */
static bool may_show_through(const struct process *process, uint64_t time_ns)
{
    return time_ns < process->exec_ns || process->has_gaps;
}

/* Writes that it is unknown what was mapped at an address at a time. False: refused. */
static bool define_unknown(struct trace_modules *modules, const struct process *process,
                           uint64_t address, uint64_t time_ns)
{
    const struct shown_mapping shown = {
        .pid = process->pid,
        .module_id = LAST_MODULE_ID,
        .start = address & ~(PAGE_BYTES - 1),
        .size_bytes = PAGE_BYTES,
        .from_ns = time_ns,
    };
    return write_unknown(modules, process->owner, DEFINITION_TASK, &shown);
}

/*
 * A mapping whose definition was refused is what the process is as a whole: unknown. Unless
 * something else that was there is written.
 */
static enum frame_outcome leave_undefined(struct trace_modules *modules,
                                          const struct process *process,
                                          const struct mapping *mapping, uint64_t address,
                                          uint64_t time_ns, uint64_t *ret_from_ns)
{
    bool hides = process->remapped || may_show_through(process, time_ns);
    if (hides && !define_unknown(modules, process, address, time_ns)) {
        return FRAME_RETRY;
    }
    *ret_from_ns = mapping->to_ns == TIME_OPEN_NS ? time_ns : TIME_OPEN_NS;
    return FRAME_DEFINED;
}

static enum frame_outcome find_unmapped(struct trace_modules *modules, struct process *process,
                                        uint64_t address, uint64_t time_ns, uint64_t *ret_from_ns)
{
    if (may_show_through(process, time_ns) && !define_unknown(modules, process, address, time_ns)) {
        return FRAME_RETRY;
    }
    bool mapped_since = process_find_mapping(process, address, TIME_OPEN_NS - 1) != NULL;
    bool lasting = !mapped_since && time_ns >= process->exec_ns;
    *ret_from_ns = lasting ? time_ns : TIME_OPEN_NS;
    return FRAME_UNKNOWN;
}

struct made_address {
    uint64_t address;
    uint64_t time_ns;
};

static enum frame_outcome name_made_code(struct trace_modules *modules, struct trace_jit *jit,
                                         const struct process *process,
                                         const struct mapping *mapping,
                                         const struct made_address *sampled, uint64_t *ret_from_ns)
{
    const struct shown_mapping shown = {
        .pid = process->pid,
        .module_id = mapping->module_id,
        .start = mapping->start,
        .size_bytes = mapping->end - mapping->start,
        .from_ns = mapping->from_ns,
    };
    uint64_t from_ns = 0;
    if (!trace_jit_name(modules->jits, jit, &shown, sampled->address, sampled->time_ns, &from_ns)) {
        return FRAME_RETRY;
    }
    *ret_from_ns = mapping->to_ns == TIME_OPEN_NS ? from_ns : TIME_OPEN_NS;
    return FRAME_MADE;
}

enum frame_outcome trace_modules_frame(struct trace_modules *modules, struct process *process,
                                       uint64_t address, uint64_t time_ns, uint64_t *ret_from_ns)
{
    if (!trace_modules_process(modules, process)) {
        return FRAME_RETRY;
    }
    struct mapping *mapping = process_find_mapping(process, address, time_ns);
    if (mapping == NULL) {
        return find_unmapped(modules, process, address, time_ns, ret_from_ns);
    }
    struct trace_jit *jit =
        mapping_is_made_code(mapping) ? trace_jits_find(modules->jits, process) : NULL;
    if (!is_defined(modules, mapping) && !define_mapping(modules, process, mapping, jit)) {
        return leave_undefined(modules, process, mapping, address, time_ns, ret_from_ns);
    }
    if (jit != NULL) {
        return name_made_code(modules, jit, process, mapping,
                              &(struct made_address){address, time_ns}, ret_from_ns);
    }
    struct trace_file *file = mapping->file->trace_file;
    uint64_t file_offset = address - mapping->start + mapping->file_offset;
    if (file != NULL && !trace_file_name(modules->files, file, process->owner, file_offset)) {
        return FRAME_RETRY;
    }
    *ret_from_ns = mapping->to_ns == TIME_OPEN_NS ? mapping->from_ns : TIME_OPEN_NS;
    return FRAME_DEFINED;
}

enum frame_outcome trace_modules_kernel_frame(struct trace_modules *modules, uint64_t address,
                                              uint64_t time_ns, uint64_t *ret_from_ns)
{
    return trace_kernel_frame(modules->kernel, address, time_ns, ret_from_ns);
}

uint32_t trace_modules_kernel_epoch(const struct trace_modules *modules)
{
    return trace_kernel_epoch(modules->kernel);
}

bool trace_modules_poll(struct trace_modules *modules)
{
    bool written = trace_files_poll(modules->files);
    bool named = trace_jits_poll(modules->jits);
    bool known = trace_kernel_poll(modules->kernel);
    return trace_symbols_flush(modules->symbols) && written && named && known;
}

bool trace_modules_pending(const struct trace_modules *modules)
{
    return trace_files_pending(modules->files) || trace_jits_pending(modules->jits);
}

uint32_t trace_modules_made_epoch(const struct trace_modules *modules)
{
    return trace_jits_epoch(modules->jits);
}

bool trace_modules_proved(const struct trace_modules *modules, uint64_t time_ns)
{
    return trace_jits_proved(modules->jits, time_ns);
}

void trace_modules_close(struct trace_modules *modules)
{
    trace_jits_close(modules->jits);
}

void trace_modules_ask_again(struct trace_modules *modules)
{
    trace_jits_ask_again(modules->jits);
}

uint64_t trace_modules_met_count(const struct trace_modules *modules)
{
    return trace_files_met_count(modules->files);
}

bool trace_modules_settled(const struct trace_modules *modules, uint64_t met_count)
{
    return trace_files_settled(modules->files, met_count);
}

uint64_t trace_modules_unread_count(const struct trace_modules *modules)
{
    return modules->unread_count + trace_files_unread_count(modules->files);
}

uint64_t trace_modules_refused_count(const struct trace_modules *modules)
{
    return trace_files_refused_count(modules->files);
}

void trace_modules_file_gone(struct trace_modules *modules, struct mapped_file *mapped)
{
    trace_files_gone(modules->files, mapped->trace_file);
    mapped->trace_file = NULL;
}
