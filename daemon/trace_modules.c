/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One trace_file for each mapped_file in which a sample fell. Its life: pending (a ticket is out;
 * sampled addresses are noted, definitions that were written are remembered) -> ready (a scope
 * names its functions) or failed (its frames stay module+0xHEX). A pending one outlives its
 * mapped_file, so that a process of a few milliseconds still gets its names. One that was refused,
 * since the cache had too much to do, is pending but for the ticket, and asked for once a second.
 *
 * Invariants: a file is in the list of pending ones exactly while it is pending or refused; a
 * mapping's module_id is not 0 and its module_log the present one exactly when its definition is in
 * the log; a definition that was written there while pending is in `shown`. Memory is taken when a
 * mapping is met for the first time, never for an ordinary sample.
 */
#include "trace_modules.h"

#include "cleanup.h"
#include "limit_clock.h"
#include "mapping_query.h"
#include "trace_definition.h"
#include "trace_jit.h"
#include "trace_wants.h"
#include "utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SHOWN_MAX        ((size_t)65536)
#define RETRY_NS         NS_PER_S
#define RETRY_MAX        64 /* in one poll */
#define KERNEL_START     UINT64_C(0xffff800000000000)
#define KERNEL_MODULE_ID 1
#define LAST_MODULE_ID   UINT16_MAX
#define KERNEL_NAME      "[kernel]"
#define UNKNOWN_NAME     "[unknown]"
#define PAGE_BYTES       UINT64_C(4096)      /* nothing is mapped that is smaller */
#define USER_SPACE_BYTES (UINT64_C(1) << 56) /* x86-64 with five levels of pages */

enum trace_file_state {
    TRACE_FILE_PENDING,
    TRACE_FILE_REFUSED,
    TRACE_FILE_READY,
    TRACE_FILE_FAILED,
};

struct trace_file {
    struct trace_file *next; /* trace_modules::pending */
    enum trace_file_state state;
    uint64_t number; /* from 0, in the order of being met */
    bool orphan;     /* its mapped_file is gone */
    char name[MODULE_NAME_BYTES];
    struct module_query query;      /* its path is the mapped_file's; NULL: the kernel */
    uint64_t retry_ns;              /* refused, it is not asked for again before this */
    struct module_ticket *ticket;   /* owned while pending */
    struct symbol_scope *scope;     /* once ready; this is a user of it */
    struct wanted_addresses wanted; /* file offsets (the kernel: addresses); of whose process met it
                                     */
    struct shown_mapping *shown;
    size_t shown_count;
    size_t shown_capacity;
};

struct trace_modules {
    struct trace_log *log;
    struct module_cache *cache;
    struct trace_symbols *symbols;
    struct trace_file *pending;
    struct trace_file *kernel; /* owned; NULL until a kernel frame is met */
    struct trace_jits *jits;   /* owned, as the next */
    struct trace_wants *wants;
    uint32_t log_number;
    uint32_t kernel_log;    /* the one in which the kernel is defined */
    uint64_t met_count;     /* of files */
    uint64_t settled_count; /* of the first files, as far as none is pending */
    uint64_t unread_count;
    uint64_t refused_count; /* of files that are refused now */
};

struct trace_modules *trace_modules_new(struct trace_log *log, struct module_cache *cache,
                                        struct trace_symbols *symbols)
{
    struct trace_modules *modules = calloc(1, sizeof *modules);
    if (modules == NULL) {
        return NULL;
    }
    modules->log = log;
    modules->cache = cache;
    modules->symbols = symbols;
    modules->jits = trace_jits_new(log, cache, symbols);
    modules->wants = trace_wants_new();
    return modules->jits == NULL || modules->wants == NULL ? trace_modules_free(modules) : modules;
}

void trace_modules_begin(struct trace_modules *modules, uint32_t log_number)
{
    modules->log_number = log_number;
    for (struct trace_file *file = modules->pending; file != NULL; file = file->next) {
        file->shown_count = 0;
    }
    trace_jits_begin(modules->jits);
}

static void drop_notes(struct trace_modules *modules, struct trace_file *file)
{
    trace_wants_clear(modules->wants, &file->wanted);
    free(take_ptr(file->shown));
    file->shown_count = file->shown_capacity = 0;
}

static struct trace_file *free_file(struct trace_modules *modules, struct trace_file *file)
{
    if (file != NULL) {
        if (file->scope != NULL) {
            trace_symbols_leave(file->scope);
        }
        module_ticket_release(file->ticket);
        drop_notes(modules, file);
        free(file);
    }
    return NULL;
}

struct trace_modules *trace_modules_free(struct trace_modules *modules)
{
    if (modules == NULL) {
        return NULL;
    }
    while (modules->pending != NULL) {
        struct trace_file *file = modules->pending;
        modules->pending = file->next;
        if (file != modules->kernel) {
            (void)free_file(modules, file);
        }
    }
    (void)free_file(modules, modules->kernel);
    (void)trace_wants_free(modules->wants);
    (void)trace_jits_free(modules->jits);
    free(modules);
    return NULL;
}

static void note_shown(struct trace_file *file, const struct shown_mapping *shown)
{
    if (trace_notes_grow((void **)&file->shown, &file->shown_capacity, file->shown_count, SHOWN_MAX,
                         sizeof file->shown[0])) {
        file->shown[file->shown_count++] = *shown;
    }
}

static void refuse(struct trace_modules *modules, struct trace_file *file)
{
    modules->refused_count += file->state != TRACE_FILE_REFUSED;
    file->state = TRACE_FILE_REFUSED;
    file->retry_ns = limit_clock_ns() + RETRY_NS;
}

static void ask(struct trace_modules *modules, struct trace_file *file)
{
    file->ticket = file->query.path == NULL
                       ? module_cache_request_kernel(modules->cache)
                       : mapping_ask(modules->cache, MODULE_SYMBOLS, MODULE_WANTED, &file->query);
    if (file->ticket == NULL) {
        refuse(modules, file);
        return;
    }
    modules->refused_count -= file->state == TRACE_FILE_REFUSED;
    file->state = TRACE_FILE_PENDING;
}

static struct trace_file *new_file(struct trace_modules *modules, const char *name, uint32_t owner,
                                   const struct module_query *query)
{
    struct trace_file *file = calloc(1, sizeof *file);
    if (file == NULL) {
        return NULL;
    }
    /* Room is left for the number that a second file of this name gets. */
    (void)utf8_clean(file->name, sizeof file->name - 8, name, strlen(name));
    file->number = modules->met_count++;
    file->wanted.owner = owner;
    file->query = *query;
    ask(modules, file);
    file->next = modules->pending;
    modules->pending = file;
    return file;
}

static struct trace_file *meet_file(struct trace_modules *modules, const struct process *process,
                                    const struct mapping *mapping)
{
    const struct module_query query = mapping_query(process, mapping);
    struct trace_file *file = new_file(modules, query.path, process->owner, &query);
    mapping->file->trace_file = file;
    return file;
}

static bool define_known(struct trace_modules *modules, const struct trace_file *file,
                         struct trace_jit *jit, uint32_t owner, const struct shown_mapping *shown,
                         const char *path)
{
    struct definition definition = {.owner = owner, .kind = TRACE_LOG_MAPPING};
    if (file != NULL && file->state == TRACE_FILE_READY) {
        return trace_definition_write_scope(modules->log, shown, owner, file->scope);
    }
    if (file != NULL) {
        /* Until the file itself has been read, under no build-id: see
         * trace_symbols_name_by_inode(). */
        definition.name = file->name;
        definition.vaddr = shown->file_offset;
        return trace_definition_write(modules->log, shown, &definition);
    }
    /* No file behind it: its name is the kernel's word for it. Nameless memory counts from 0. */
    char name[MODULE_NAME_BYTES];
    (void)utf8_clean(name, sizeof name, path, strlen(path));
    definition.name = name;
    definition.vaddr = strcmp(path, "[anon]") == 0 ? shown->start : shown->file_offset;
    return jit == NULL ? trace_definition_write(modules->log, shown, &definition)
                       : trace_jit_define(modules->jits, jit, shown, definition.vaddr, name);
}

/* That nobody knows what is there. */
static bool write_unknown(struct trace_modules *modules, uint32_t owner, enum trace_log_kind kind,
                          const struct shown_mapping *shown)
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
    if (process->written_log != modules->log_number) {
        process->written_log = modules->log_number;
        process->next_module_id = 0;
    }
    if (process->next_module_id != 0 && process->defined_ns == image_ns) {
        return true;
    }
    bool full = process->next_module_id >= LAST_MODULE_ID - 1;
    struct shown_mapping shown = {
        .pid = process->pid,
        .module_id = full ? LAST_MODULE_ID : (uint16_t)(process->next_module_id + 1),
        .size_bytes = USER_SPACE_BYTES,
        .from_ns = image_ns,
    };
    if (!write_unknown(modules, process->owner, TRACE_LOG_TASK, &shown)) {
        return false;
    }
    process->next_module_id = full ? process->next_module_id : shown.module_id;
    process->defined_ns = image_ns;
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
    struct trace_file *file = mapping->file->trace_file;
    if (file == NULL && mapping_has_module(mapping)) {
        file = meet_file(modules, process, mapping);
    }
    struct shown_mapping shown = {
        .pid = process->pid,
        .module_id = (uint16_t)(process->next_module_id + 1),
        .start = mapping->start,
        .size_bytes = mapping->end - mapping->start,
        .from_ns = mapping->from_ns,
        .file_offset = mapping->file_offset,
    };
    if (process->next_module_id >= LAST_MODULE_ID - 1) {
        /* No id is left: the last one is for all that comes now. */
        shown.module_id = LAST_MODULE_ID;
        if (!write_unknown(modules, process->owner, TRACE_LOG_MAPPING, &shown)) {
            return false;
        }
        modules->unread_count++;
        set_module(modules, mapping, LAST_MODULE_ID);
        return true;
    }
    if (!define_known(modules, file, jit, process->owner, &shown, mapping->file->path)) {
        return false;
    }
    process->next_module_id = shown.module_id;
    set_module(modules, mapping, shown.module_id);
    if (file != NULL && (file->state == TRACE_FILE_PENDING || file->state == TRACE_FILE_REFUSED)) {
        note_shown(file, &shown);
    }
    return true;
}

/* Names the function at an address, or notes that it wants a name. False: no room. */
static bool name_address(struct trace_modules *modules, struct trace_file *file, uint32_t owner,
                         uint64_t address)
{
    uint64_t vaddr = 0;
    switch (file->state) {
    case TRACE_FILE_PENDING:
    case TRACE_FILE_REFUSED:
        trace_wants_note(modules->wants, &file->wanted, address);
        return true;
    case TRACE_FILE_READY:
        if (file == modules->kernel) {
            return trace_symbols_write(modules->symbols, file->scope, owner, address);
        }
        return !symbol_table_vaddr(&file->scope->module->symbols, address, &vaddr) ||
               trace_symbols_write(modules->symbols, file->scope, owner, vaddr);
    case TRACE_FILE_FAILED:
        return true;
    }
    return true;
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

/* Nobody is to know what was mapped at an address at a time. False: refused. */
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
    return write_unknown(modules, process->owner, TRACE_LOG_TASK, &shown);
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
    if (jit != NULL && !trace_jit_name(modules->jits, jit, address)) {
        return FRAME_RETRY;
    }
    struct trace_file *file = mapping->file->trace_file;
    uint64_t file_offset = address - mapping->start + mapping->file_offset;
    if (file != NULL && !name_address(modules, file, process->owner, file_offset)) {
        return FRAME_RETRY;
    }
    *ret_from_ns = mapping->to_ns == TIME_OPEN_NS ? mapping->from_ns : TIME_OPEN_NS;
    return FRAME_DEFINED;
}

enum frame_outcome trace_modules_kernel_frame(struct trace_modules *modules, uint64_t address)
{
    if (modules->kernel_log != modules->log_number) {
        struct shown_mapping shown = {
            .pid = 0,
            .module_id = KERNEL_MODULE_ID,
            .start = KERNEL_START,
            .size_bytes = UINT64_MAX - KERNEL_START,
        };
        const struct definition definition = {.owner = TRACE_OWNER_KERNEL,
                                              .kind = TRACE_LOG_TASK,
                                              .vaddr = KERNEL_START,
                                              .name = KERNEL_NAME};
        if (!trace_definition_write(modules->log, &shown, &definition)) {
            return FRAME_RETRY;
        }
        modules->kernel_log = modules->log_number;
    }
    if (modules->kernel == NULL) {
        modules->kernel =
            new_file(modules, KERNEL_NAME, TRACE_OWNER_KERNEL, &(struct module_query){0});
    }
    if (modules->kernel == NULL) {
        return FRAME_RETRY;
    }
    return name_address(modules, modules->kernel, TRACE_OWNER_KERNEL, address) ? FRAME_DEFINED
                                                                               : FRAME_RETRY;
}

/* Writes again, with what is known now, what was written before; what is refused stays as it is. */
static void correct_definitions(struct trace_modules *modules, struct trace_file *file)
{
    for (; file->shown_count > 0; file->shown_count--) {
        (void)trace_definition_write_scope(modules->log, &file->shown[file->shown_count - 1],
                                           file->wanted.owner, file->scope);
    }
}

/* The file has been read: the scope under which its functions stand. */
static void take_scope(struct trace_modules *modules, struct trace_file *file)
{
    const struct module *module = module_ticket_module(file->ticket);
    const struct symbol_table *table = &module->symbols;
    char name[MODULE_NAME_BYTES];
    (void)snprintf(name, sizeof name, "%s", file->name);
    if (table->build_id_bytes == 0 && file != modules->kernel) {
        trace_symbols_name_by_inode(name, file->name, module);
    }
    file->scope = trace_symbols_scope(modules->symbols, take_ptr(file->ticket), name,
                                      table->build_id, table->build_id_bytes);
}

/* There is no table of it: for now, or for good. True: for good. */
static bool give_up(struct trace_modules *modules, struct trace_file *file, bool for_now)
{
    module_ticket_release(take_ptr(file->ticket));
    if (for_now && !file->orphan) {
        refuse(modules, file);
        return false;
    }
    modules->refused_count -= file->state == TRACE_FILE_REFUSED;
    file->state = TRACE_FILE_FAILED;
    modules->unread_count++;
    return true;
}

/* Takes a pending file as far as it goes. True: it is not pending any more. */
static bool settle(struct trace_modules *modules, struct trace_file *file)
{
    if (file->state == TRACE_FILE_REFUSED) {
        return file->orphan && give_up(modules, file, false);
    }
    if (file->scope == NULL) {
        enum module_state state = module_ticket_state(file->ticket);
        if (state == MODULE_PENDING) {
            return false;
        }
        bool limited =
            state == MODULE_FAILED && module_ticket_failure(file->ticket) == MODULE_FAILURE_LIMIT;
        if (state == MODULE_READY) {
            take_scope(modules, file);
        }
        if (file->scope == NULL) {
            return give_up(modules, file, limited);
        }
    }
    correct_definitions(modules, file);
    file->state = TRACE_FILE_READY;
    while (file->wanted.count > 0) {
        uint64_t address = file->wanted.items[file->wanted.count - 1];
        if (!name_address(modules, file, file->wanted.owner, address)) {
            file->state = TRACE_FILE_PENDING;
            return false;
        }
        trace_wants_pop(modules->wants, &file->wanted);
    }
    return true;
}

/* Asks again for some of what was refused. */
static void ask_refused(struct trace_modules *modules)
{
    uint64_t now_ns = limit_clock_ns();
    size_t asked_count = 0;
    for (struct trace_file *file = modules->pending; file != NULL && asked_count < RETRY_MAX;
         file = file->next) {
        if (file->state == TRACE_FILE_REFUSED && !file->orphan && file->retry_ns <= now_ns) {
            ask(modules, file);
            asked_count++;
        }
    }
}

bool trace_modules_poll(struct trace_modules *modules)
{
    modules->settled_count = modules->met_count;
    struct trace_file **link = &modules->pending;
    while (*link != NULL) {
        struct trace_file *file = *link;
        if (!settle(modules, file)) {
            if (file->state == TRACE_FILE_PENDING && file->number < modules->settled_count) {
                modules->settled_count = file->number;
            }
            link = &file->next;
            continue;
        }
        *link = file->next;
        drop_notes(modules, file);
        if (file->orphan) {
            (void)free_file(modules, file);
        }
    }
    if (modules->refused_count > 0) {
        ask_refused(modules);
    }
    bool named = trace_jits_poll(modules->jits);
    return trace_symbols_flush(modules->symbols) && named;
}

bool trace_modules_pending(const struct trace_modules *modules)
{
    const struct trace_file *file = modules->pending;
    while (file != NULL && file->state == TRACE_FILE_REFUSED) {
        file = file->next;
    }
    return file != NULL || trace_jits_pending(modules->jits);
}

void trace_modules_ask_again(struct trace_modules *modules)
{
    trace_jits_ask_again(modules->jits);
}

uint64_t trace_modules_met_count(const struct trace_modules *modules)
{
    return modules->met_count;
}

bool trace_modules_settled(const struct trace_modules *modules, uint64_t met_count)
{
    return modules->settled_count >= met_count;
}

uint64_t trace_modules_unread_count(const struct trace_modules *modules)
{
    return modules->unread_count + modules->refused_count;
}

uint64_t trace_modules_refused_count(const struct trace_modules *modules)
{
    return trace_wants_refused_count(modules->wants);
}

void trace_modules_file_gone(struct trace_modules *modules, struct mapped_file *mapped)
{
    struct trace_file *file = mapped->trace_file;
    mapped->trace_file = NULL;
    if (file == NULL) {
        return;
    }
    if (file->state == TRACE_FILE_PENDING || file->state == TRACE_FILE_REFUSED) {
        file->orphan = true;
        return;
    }
    (void)free_file(modules, file);
}
