/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One trace_file for each mapped_file in which a sample fell. Its life: pending (a ticket is out;
 * sampled addresses are noted, definitions that were written are remembered; once it has been read,
 * a scope names its functions, those that were noted a slice at a time) -> ready (no notes are
 * left) or failed (its frames stay module+0xHEX). A pending one outlives its
 * mapped_file, so that a process of a few milliseconds still gets its names. One that was refused,
 * since the cache or this round had too much to do, is pending but for the ticket, and asked for
 * later.
 *
 * Users decide how many files there are, and how many addresses of each were sampled. So a poll
 * takes a bounded number of steps; the next one goes on where it ended. A file's notes are worked
 * off in slices, so that one with many does not keep the others waiting. Requests are shared by
 * user (quota.h).
 *
 * Invariants: a file is in the list of pending ones exactly while it is pending or refused; files
 * leave that list in a poll only, so the place where a poll ended stays valid. A definition that
 * was written in this log while pending is in `shown`. Memory is taken when a file is met, never
 * for an ordinary sample.
 */
#include "trace_files.h"

#include "cleanup.h"
#include "limit_clock.h"
#include "mapping_query.h"
#include "quota.h"
#include "trace_wants.h"
#include "utf8.h"

#include <stdio.h>
#include <string.h>

#define SHOWN_MAX ((size_t)65536)
#define RETRY_NS  NS_PER_S

/* What one poll may do, some 4 ms of work: a file that is looked at is a step, a line that is
 * written WRITE_STEPS. */
#define POLL_STEPS_MAX ((size_t)16384)
#define WRITE_STEPS    8
#define SLICE_WRITES   256 /* of one file before it is the next one's turn */
#define ASKS_MAX       256 /* from one poll to the next; some 10 us each */
#define ASK_PARTS      2

enum trace_file_state {
    TRACE_FILE_PENDING,
    TRACE_FILE_REFUSED,
    TRACE_FILE_READY,
    TRACE_FILE_FAILED,
};

struct trace_file {
    struct trace_file *next; /* trace_files::pending */
    enum trace_file_state state;
    uint64_t number;            /* from 0, in the order of being met */
    bool orphan;                /* its mapped_file is gone */
    struct mapped_file *mapped; /* while it is there; NULL: the kernel */
    char name[MODULE_NAME_BYTES];
    struct module_query query;      /* its path is the mapped_file's; NULL: the kernel */
    uint64_t retry_ns;              /* refused, it is not asked for again before this */
    struct module_ticket *ticket;   /* owned while pending */
    struct symbol_scope *scope;     /* once it has been read; this is a user of it */
    struct wanted_addresses wanted; /* file offsets (the kernel: addresses); of whose process met it
                                     */
    struct shown_mapping *shown;
    uint32_t shown_log; /* in which they were written */
    size_t shown_count;
    size_t shown_capacity;
};

struct trace_files {
    struct definition_log *log;
    struct module_cache *cache;
    struct trace_symbols *symbols;
    struct trace_wants *wants; /* owned */
    struct trace_file *kernel; /* owned; NULL until a kernel frame is met */
    struct trace_file *pending;
    size_t pending_count;        /* of them, with those that are refused */
    struct trace_file **goes_on; /* where the next poll does; NULL: at the first */
    struct quota asks;           /* of a round */
    size_t steps_left;           /* of this poll */
    uint32_t log_number;
    uint64_t met_count;     /* of files */
    uint64_t pass_settled;  /* of the first files, as far as this pass has found none pending */
    uint64_t settled_count; /* the same, of the last whole pass */
    uint64_t unread_count;
    uint64_t refused_count; /* of files that are refused now */
};

struct trace_files *trace_files_new(struct definition_log *log, struct module_cache *cache,
                                    struct trace_symbols *symbols)
{
    struct trace_files *files = calloc(1, sizeof *files);
    if (files == NULL) {
        return NULL;
    }
    files->log = log;
    files->cache = cache;
    files->symbols = symbols;
    files->asks.max = ASKS_MAX;
    files->asks.parts = ASK_PARTS;
    files->wants = trace_wants_new();
    return files->wants == NULL ? trace_files_free(files) : files;
}

void trace_files_begin(struct trace_files *files, uint32_t log_number)
{
    files->log_number = log_number;
}

static void drop_notes(struct trace_files *files, struct trace_file *file)
{
    trace_wants_clear(files->wants, &file->wanted);
    free(take_ptr(file->shown));
    file->shown_count = file->shown_capacity = 0;
}

static struct trace_file *free_file(struct trace_files *files, struct trace_file *file)
{
    if (file != NULL) {
        if (file->scope != NULL) {
            trace_symbols_leave(file->scope);
        }
        module_ticket_release(file->ticket);
        drop_notes(files, file);
        free(file);
    }
    return NULL;
}

struct trace_files *trace_files_free(struct trace_files *files)
{
    if (files == NULL) {
        return NULL;
    }
    while (files->pending != NULL) {
        struct trace_file *file = files->pending;
        files->pending = file->next;
        if (file != files->kernel) {
            (void)free_file(files, file);
        }
    }
    (void)free_file(files, files->kernel);
    (void)trace_wants_free(files->wants);
    free(files);
    return NULL;
}

static void note_shown(struct trace_files *files, struct trace_file *file,
                       const struct shown_mapping *shown)
{
    if (file->shown_log != files->log_number) {
        file->shown_log = files->log_number;
        file->shown_count = 0;
    }
    if (trace_notes_grow((void **)&file->shown, &file->shown_capacity, file->shown_count, SHOWN_MAX,
                         sizeof file->shown[0])) {
        file->shown[file->shown_count++] = *shown;
    }
}

static void refuse(struct trace_files *files, struct trace_file *file, uint64_t retry_ns)
{
    files->refused_count += file->state != TRACE_FILE_REFUSED;
    file->state = TRACE_FILE_REFUSED;
    file->retry_ns = retry_ns;
}

/* Asks the cache, unless the user has had enough of this round: then one of the next polls asks. */
static void ask(struct trace_files *files, struct trace_file *file)
{
    if (!quota_take(&files->asks, file->wanted.owner, 1)) {
        refuse(files, file, 0);
        return;
    }
    file->ticket = file->query.path == NULL
                       ? module_cache_request_kernel(files->cache)
                       : mapping_request_names(files->cache, file->mapped, &file->query);
    if (file->ticket == NULL) {
        refuse(files, file, limit_clock_ns() + RETRY_NS);
        return;
    }
    files->refused_count -= file->state == TRACE_FILE_REFUSED;
    file->state = TRACE_FILE_PENDING;
}

static struct trace_file *new_file(struct trace_files *files, const char *name, uint32_t owner,
                                   struct mapped_file *mapped, const struct module_query *query)
{
    struct trace_file *file = calloc(1, sizeof *file);
    if (file == NULL) {
        return NULL;
    }
    /* Room is left for the number that a second file of this name gets. */
    trace_symbols_name_by_path(file->name, sizeof file->name - 8, name);
    file->number = files->met_count++;
    file->wanted.owner = owner;
    file->mapped = mapped;
    file->query = *query;
    ask(files, file);
    file->next = files->pending;
    files->pending = file;
    files->pending_count++;
    return file;
}

struct trace_file *trace_files_meet(struct trace_files *files, uint32_t owner,
                                    struct mapped_file *mapped, const struct module_query *query)
{
    return new_file(files, mapped->path, owner, mapped, query);
}

struct trace_file *trace_files_kernel(struct trace_files *files, const char *name)
{
    if (files->kernel == NULL) {
        files->kernel = new_file(files, name, TRACE_OWNER_KERNEL, NULL, &(struct module_query){0});
    }
    return files->kernel;
}

bool trace_files_kernel_is_read(const struct trace_files *files, bool *ret_pending)
{
    const struct trace_file *kernel = files->kernel;
    *ret_pending = kernel != NULL && kernel->state != TRACE_FILE_FAILED && kernel->scope == NULL;
    return kernel != NULL && kernel->scope != NULL;
}

bool trace_file_define(struct trace_files *files, struct trace_file *file, uint32_t owner,
                       const struct shown_mapping *shown)
{
    if (file->scope != NULL) {
        return trace_definition_write_scope(files->log, shown, owner, file->scope);
    }
    /* Until the file itself has been read, under no build-id: see trace_symbols_name_by_inode(). */
    const struct definition definition = {.owner = owner,
                                          .kind = DEFINITION_MAPPING,
                                          .vaddr = shown->file_offset,
                                          .name = file->name};
    if (!trace_definition_write(files->log, shown, &definition)) {
        return false;
    }
    if (file->state != TRACE_FILE_FAILED) {
        note_shown(files, file, shown);
    }
    return true;
}

bool trace_file_name(struct trace_files *files, struct trace_file *file, uint32_t owner,
                     uint64_t address)
{
    uint64_t vaddr = address;
    if (file->scope == NULL) {
        if (file->state != TRACE_FILE_FAILED) {
            trace_wants_note(files->wants, &file->wanted, address);
        }
        return true;
    }
    if (file != files->kernel &&
        !symbol_table_vaddr(&file->scope->module->symbols, address, &vaddr)) {
        return true;
    }
    return trace_symbols_write(files->symbols, file->scope, owner, vaddr);
}

/* The file has been read: the scope under which its functions stand. */
static void take_scope(struct trace_files *files, struct trace_file *file)
{
    const struct module *module = module_ticket_module(file->ticket);
    const struct symbol_table *table = &module->symbols;
    char name[MODULE_NAME_BYTES];
    (void)snprintf(name, sizeof name, "%s", file->name);
    if (table->build_id_bytes == 0 && file != files->kernel) {
        trace_symbols_name_by_inode(name, file->name, module);
    }
    file->scope = trace_symbols_scope(files->symbols, take_ptr(file->ticket), file->wanted.owner,
                                      name, table->build_id, table->build_id_bytes);
}

/* There is no table of it: for now, or for good. True: for good. */
static bool give_up(struct trace_files *files, struct trace_file *file, bool for_now)
{
    module_ticket_release(take_ptr(file->ticket));
    if (for_now && !file->orphan) {
        refuse(files, file, limit_clock_ns() + RETRY_NS);
        return false;
    }
    files->refused_count -= file->state == TRACE_FILE_REFUSED;
    file->state = TRACE_FILE_FAILED;
    files->unread_count++;
    return true;
}

static size_t notes_count(const struct trace_files *files, const struct trace_file *file)
{
    return file->wanted.count + (file->shown_log == files->log_number ? file->shown_count : 0);
}

/* Writes the last note with what is known now; a definition that is refused stays as it is. False:
 * there is no room in the log now. */
static bool write_note(struct trace_files *files, struct trace_file *file)
{
    if (file->wanted.count < notes_count(files, file)) {
        (void)trace_definition_write_scope(files->log, &file->shown[--file->shown_count],
                                           file->wanted.owner, file->scope);
        return true;
    }
    if (!trace_file_name(files, file, file->wanted.owner,
                         file->wanted.items[file->wanted.count - 1])) {
        return false;
    }
    trace_wants_pop(files->wants, &file->wanted);
    return true;
}

/* Writes a slice of a file's notes. True: all of them are written. */
static bool write_notes(struct trace_files *files, struct trace_file *file, bool *room)
{
    for (size_t i = 0; i < SLICE_WRITES && *room && notes_count(files, file) > 0 &&
                       files->steps_left >= WRITE_STEPS;
         i++) {
        files->steps_left -= WRITE_STEPS;
        *room = write_note(files, file);
    }
    if (notes_count(files, file) > 0) {
        return false;
    }
    file->state = TRACE_FILE_READY;
    return true;
}

/* Whether the table that was made is of the file as it was mapped, as far as records say by now. */
static enum mapping_fate table_fate(const struct trace_file *file)
{
    uint64_t shown_ns = module_ticket_shown_ns(file->ticket);
    if (shown_ns == 0) {
        return MAPPING_KEPT;
    }
    return file->orphan ? MAPPING_REPLACED : mapped_file_fate(file->mapped, shown_ns);
}

/* Takes a pending file as far as it goes. True: it is not pending any more. */
static bool settle(struct trace_files *files, struct trace_file *file, bool *room)
{
    if (file->state == TRACE_FILE_REFUSED) {
        return file->orphan && give_up(files, file, false);
    }
    if (file->scope == NULL) {
        enum module_state state = module_ticket_state(file->ticket);
        enum mapping_fate fate = state == MODULE_READY ? table_fate(file) : MAPPING_KEPT;
        if (state == MODULE_PENDING || fate == MAPPING_AWAITED) {
            return false;
        }
        if (fate == MAPPING_REPLACED) {
            return give_up(files, file, false);
        }
        bool limited =
            state == MODULE_READY || module_ticket_failure(file->ticket) == MODULE_FAILURE_LIMIT;
        if (state == MODULE_READY) {
            take_scope(files, file);
        }
        if (file->scope == NULL) {
            return give_up(files, file, limited);
        }
    }
    return write_notes(files, file, room);
}

/* A file that stays on the list. True: it has a part of its notes left that could be written. */
static bool leave(struct trace_files *files, struct trace_file *file, uint64_t now_ns)
{
    if (file->state == TRACE_FILE_REFUSED && file->retry_ns <= now_ns && !file->orphan) {
        ask(files, file);
    }
    if (file->state == TRACE_FILE_PENDING && file->number < files->pass_settled) {
        files->pass_settled = file->number;
    }
    return file->state == TRACE_FILE_PENDING && file->scope != NULL;
}

/* Goes on through the list, to its end or until the steps are used up. Returns whether it found
 * files of which a part is left. */
static bool go_through(struct trace_files *files, uint64_t now_ns, bool *room)
{
    bool left = false;
    if (files->goes_on == NULL) {
        files->goes_on = &files->pending;
        files->pass_settled = files->met_count;
    }
    struct trace_file **link = files->goes_on;
    for (; *link != NULL && files->steps_left > 0; files->steps_left--) {
        struct trace_file *file = *link;
        if (!settle(files, file, room)) {
            left = leave(files, file, now_ns) || left;
            link = &file->next;
        } else {
            *link = file->next;
            files->pending_count--;
            drop_notes(files, file);
            if (file->orphan) {
                (void)free_file(files, file);
            }
        }
        if (files->steps_left < WRITE_STEPS) {
            files->steps_left = 1;
        }
    }
    files->goes_on = link;
    if (*link == NULL) {
        files->goes_on = NULL;
        files->settled_count = files->pass_settled;
    }
    return left;
}

bool trace_files_poll(struct trace_files *files)
{
    const uint64_t now_ns = limit_clock_ns();
    bool room = true;
    bool left = true;
    quota_clear(&files->asks);
    files->steps_left = POLL_STEPS_MAX;
    while (left && room && files->steps_left > 0) {
        left = go_through(files, now_ns, &room);
    }
    return room;
}

bool trace_files_pending(const struct trace_files *files)
{
    return files->pending_count > files->refused_count;
}

uint64_t trace_files_met_count(const struct trace_files *files)
{
    return files->met_count;
}

bool trace_files_settled(const struct trace_files *files, uint64_t met_count)
{
    return files->settled_count >= met_count;
}

uint64_t trace_files_unread_count(const struct trace_files *files)
{
    return files->unread_count + files->refused_count;
}

uint64_t trace_files_refused_count(const struct trace_files *files)
{
    return trace_wants_refused_count(files->wants);
}

void trace_files_gone(struct trace_files *files, struct trace_file *file)
{
    if (file == NULL) {
        return;
    }
    if (file->state == TRACE_FILE_PENDING || file->state == TRACE_FILE_REFUSED) {
        file->orphan = true;
        return;
    }
    (void)free_file(files, file);
}
