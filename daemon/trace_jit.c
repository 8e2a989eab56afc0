/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One trace_jit for each program of a process that was sampled in made code, from the first such
 * sample until the log ends; a map is read again at its own pace, never more than once at a time.
 *
 * An address is looked for in the map as it was read last, and if it is not in it, noted, and
 * looked for in each later reading until it is found. It keeps the first name that it gets: when a
 * runtime has put another function there since, nobody can say which samples were whose. A function
 * is written once: `lines` holds what has been, as hashes of all that a line says.
 *
 * Invariant: definitions in `shown` stand in the log under the kernel's name; it is empty once a
 * map has been read and they have been corrected.
 */
#include "trace_jit.h"

#include "cleanup.h"
#include "fair_share.h"
#include "limit_clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define JITS_MAX        1024
#define ADDRESSES_MAX   ((size_t)524288) /* of all processes, and the lines as well */
#define ADDRESSES_PARTS 4                /* a process has this part of what others leave */
#define SHOWN_MAX       4096
#define INTERVAL_MIN_NS (500 * NS_PER_MS)
#define INTERVAL_MAX_NS (8 * NS_PER_S)

struct trace_jit {
    struct trace_jit *next;
    int32_t pid;
    uint32_t owner;    /* the process's */
    uint64_t image_ns; /* when the process began, or began its program */
    uint64_t start_time_ns;
    char name[MODULE_NAME_BYTES];
    struct module_ticket *pending; /* owned; a map that is being read */
    struct module_ticket *ready;   /* owned; the map that was read last, or NULL */
    uint64_t asked_ns;
    uint64_t interval_ns;
    bool is_asked_again; /* at the end, whatever the time */
    bool is_unsettled;   /* there was no room for what the map says */
    uint64_t *addresses; /* owned: not named yet */
    size_t address_count;
    size_t address_capacity;
    uint64_t *lines; /* owned: a hash table of a power of two, 0: free */
    size_t line_count;
    size_t line_capacity;
    struct shown_mapping *shown; /* owned */
    size_t shown_count;
    size_t shown_capacity;
};

struct trace_jits {
    struct trace_log *log;
    struct module_cache *cache;
    struct trace_symbols *symbols;
    struct trace_jit *first;
    size_t jit_count;
    size_t note_count; /* addresses and lines of all */
};

static struct trace_jit *free_jit(struct trace_jit *jit)
{
    module_ticket_release(jit->pending);
    module_ticket_release(jit->ready);
    free(jit->addresses);
    free(jit->lines);
    free(jit->shown);
    free(jit);
    return NULL;
}

struct trace_jits *trace_jits_new(struct trace_log *log, struct module_cache *cache,
                                  struct trace_symbols *symbols)
{
    struct trace_jits *jits = calloc(1, sizeof *jits);
    if (jits != NULL) {
        jits->log = log;
        jits->cache = cache;
        jits->symbols = symbols;
    }
    return jits;
}

void trace_jits_begin(struct trace_jits *jits)
{
    while (jits->first != NULL) {
        struct trace_jit *jit = jits->first;
        jits->first = jit->next;
        (void)free_jit(jit);
    }
    jits->jit_count = jits->note_count = 0;
}

struct trace_jits *trace_jits_free(struct trace_jits *jits)
{
    if (jits != NULL) {
        trace_jits_begin(jits);
        free(jits);
    }
    return NULL;
}

/* Has the map read. Nobody to ask is as if there were none. */
static void ask(const struct trace_jits *jits, struct trace_jit *jit)
{
    const struct module_query query = {
        .pid = jit->pid, .start_time_ns = jit->start_time_ns, .path = ""};
    jit->asked_ns = limit_clock_ns();
    jit->is_asked_again = false;
    jit->pending = module_cache_request_perf_map(jits->cache, &query);
}

/* A process's own name: another that had the pid before it, in this log, has it without a number.
 */
static void choose_name(const struct trace_jits *jits, struct trace_jit *jit)
{
    size_t number = 1;
    for (const struct trace_jit *other = jits->first; other != NULL; other = other->next) {
        number += other->pid == jit->pid;
    }
    int bytes = snprintf(jit->name, sizeof jit->name, "[jit] (pid %" PRId32 ")", jit->pid);
    if (number > 1) {
        (void)snprintf(jit->name + bytes, sizeof jit->name - (size_t)bytes, " (%zu)", number);
    }
}

struct trace_jit *trace_jits_find(struct trace_jits *jits, const struct process *process)
{
    uint64_t image_ns = process->exec_ns > process->from_ns ? process->exec_ns : process->from_ns;
    struct trace_jit *jit = jits->first;
    while (jit != NULL && (jit->pid != process->pid || jit->image_ns != image_ns)) {
        jit = jit->next;
    }
    if (jit != NULL || jits->jit_count == JITS_MAX) {
        return jit;
    }
    jit = calloc(1, sizeof *jit);
    if (jit == NULL) {
        return NULL;
    }
    jit->pid = process->pid;
    jit->owner = process->owner;
    jit->image_ns = image_ns;
    jit->start_time_ns = process->start_time_ns;
    jit->interval_ns = INTERVAL_MIN_NS;
    choose_name(jits, jit);
    ask(jits, jit);
    jit->next = jits->first;
    jits->first = jit;
    jits->jit_count++;
    return jit;
}

static bool write_made(const struct trace_jits *jits, const struct trace_jit *jit,
                       const struct shown_mapping *shown)
{
    return trace_definition_write(jits->log, shown,
                                  &(struct definition){
                                      .owner = jit->owner,
                                      .kind = TRACE_LOG_MAPPING,
                                      .vaddr = shown->start,
                                      .name = jit->name,
                                  });
}

bool trace_jit_define(struct trace_jits *jits, struct trace_jit *jit,
                      const struct shown_mapping *shown, uint64_t vaddr, const char *name)
{
    if (jit->ready != NULL) {
        return write_made(jits, jit, shown);
    }
    const struct definition definition = {
        .owner = jit->owner, .kind = TRACE_LOG_MAPPING, .vaddr = vaddr, .name = name};
    if (!trace_definition_write(jits->log, shown, &definition)) {
        return false;
    }
    if (trace_notes_grow((void **)&jit->shown, &jit->shown_capacity, jit->shown_count, SHOWN_MAX,
                         sizeof *jit->shown)) {
        jit->shown[jit->shown_count++] = *shown;
    }
    return true;
}

static uint64_t hash_line(const struct symbol *symbol, const char *name)
{
    uint64_t hash = (symbol->start ^ (uint64_t)symbol->size_bytes << 40) + 1;
    for (const char *c = name; *c != '\0'; c++) {
        hash = (hash ^ (uint8_t)*c) * UINT64_C(1099511628211);
    }
    hash ^= hash >> 32;
    return hash == 0 ? 1 : hash;
}

/* The place of a line, or the free one where it belongs. */
static uint64_t *find_line(uint64_t *lines, size_t capacity, uint64_t hash)
{
    size_t at = hash & (capacity - 1);
    while (lines[at] != 0 && lines[at] != hash) {
        at = (at + 1) & (capacity - 1);
    }
    return &lines[at];
}

static bool may_note(const struct trace_jits *jits, const struct trace_jit *jit)
{
    return fair_share_allows(ADDRESSES_MAX, ADDRESSES_PARTS, jits->note_count,
                             jit->address_count + jit->line_count, 1);
}

/* Keeps the table of lines at most half full. False: there is no room for one more. */
static bool grow_lines(const struct trace_jits *jits, struct trace_jit *jit)
{
    if (jit->line_count * 2 < jit->line_capacity) {
        return may_note(jits, jit);
    }
    size_t capacity = jit->line_capacity == 0 ? 64 : jit->line_capacity * 2;
    uint64_t *lines = may_note(jits, jit) ? calloc(capacity, sizeof *lines) : NULL;
    if (lines == NULL) {
        return false;
    }
    for (size_t i = 0; i < jit->line_capacity; i++) {
        if (jit->lines[i] != 0) {
            *find_line(lines, capacity, jit->lines[i]) = jit->lines[i];
        }
    }
    free(jit->lines);
    jit->lines = lines;
    jit->line_capacity = capacity;
    return true;
}

enum naming {
    NAMING_DONE,
    NAMING_UNKNOWN, /* the map does not have it */
    NAMING_NO_ROOM, /* in the log */
};

/* Writes the function at an address, by the map that was read last. */
static enum naming name_by_map(struct trace_jits *jits, struct trace_jit *jit, uint64_t address)
{
    const struct symbol_table *table = &module_ticket_module(jit->ready)->symbols;
    ptrdiff_t found = symbol_table_find(table, address);
    if (found < 0) {
        return NAMING_UNKNOWN;
    }
    const struct symbol *symbol = &table->symbols[found];
    uint64_t hash = hash_line(symbol, symbol_table_name(table, (size_t)found));
    if (!grow_lines(jits, jit)) {
        return NAMING_DONE; /* without a name, for want of memory */
    }
    uint64_t *line = find_line(jit->lines, jit->line_capacity, hash);
    if (*line == hash) {
        return NAMING_DONE;
    }
    if (!trace_symbols_write_made(jits->symbols, jit->name, jit->owner, table, (size_t)found)) {
        return NAMING_NO_ROOM;
    }
    *line = hash;
    jit->line_count++;
    jits->note_count++;
    return NAMING_DONE;
}

static void note_address(struct trace_jits *jits, struct trace_jit *jit, uint64_t address)
{
    if (may_note(jits, jit) &&
        trace_notes_grow((void **)&jit->addresses, &jit->address_capacity, jit->address_count,
                         ADDRESSES_MAX, sizeof *jit->addresses)) {
        jit->addresses[jit->address_count++] = address;
        jits->note_count++;
    }
}

bool trace_jit_name(struct trace_jits *jits, struct trace_jit *jit, uint64_t address)
{
    enum naming naming = jit->ready == NULL ? NAMING_UNKNOWN : name_by_map(jits, jit, address);
    if (naming == NAMING_UNKNOWN) {
        note_address(jits, jit, address);
    }
    return naming != NAMING_NO_ROOM;
}

/* Writes what the map says of mappings and addresses that were noted; a mapping that is refused
 * stays what the kernel calls it. False: no room. */
static bool settle(struct trace_jits *jits, struct trace_jit *jit)
{
    for (; jit->shown_count > 0; jit->shown_count--) {
        (void)write_made(jits, jit, &jit->shown[jit->shown_count - 1]);
    }
    size_t kept = 0;
    bool room = true;
    for (size_t i = 0; i < jit->address_count; i++) {
        enum naming naming = room ? name_by_map(jits, jit, jit->addresses[i]) : NAMING_NO_ROOM;
        room = naming != NAMING_NO_ROOM;
        if (naming != NAMING_DONE) {
            jit->addresses[kept++] = jit->addresses[i];
        }
    }
    jits->note_count -= jit->address_count - kept;
    jit->address_count = kept;
    return room;
}

/* Takes up the answer, if it has come. */
static void take_map(struct trace_jit *jit)
{
    enum module_state state = module_ticket_state(jit->pending);
    if (state == MODULE_PENDING) {
        return;
    }
    struct module_ticket *answer = take_ptr(jit->pending);
    if (state == MODULE_FAILED) {
        module_ticket_release(answer);
        return;
    }
    /* What has not grown is the module that it was. */
    bool is_new =
        jit->ready == NULL || module_ticket_module(jit->ready) != module_ticket_module(answer);
    module_ticket_release(jit->ready);
    jit->ready = answer;
    jit->is_unsettled = is_new;
}

/* Whether something has been sampled that may be in the map by now, and it is time to look. */
static bool is_due(const struct trace_jit *jit, uint64_t now_ns)
{
    return jit->pending == NULL && jit->address_count > 0 &&
           (jit->is_asked_again || now_ns - jit->asked_ns >= jit->interval_ns);
}

static void pace(struct trace_jit *jit, size_t named_count)
{
    if (named_count > 0) {
        jit->interval_ns = INTERVAL_MIN_NS;
    } else {
        jit->interval_ns =
            jit->interval_ns < INTERVAL_MAX_NS / 2 ? jit->interval_ns * 2 : INTERVAL_MAX_NS;
    }
}

static bool poll_jit(struct trace_jits *jits, struct trace_jit *jit, uint64_t now_ns)
{
    bool waited = jit->pending != NULL;
    if (waited) {
        take_map(jit);
    }
    size_t before = jit->address_count;
    if (jit->is_unsettled) {
        jit->is_unsettled = !settle(jits, jit);
    }
    if (waited && jit->pending == NULL) {
        pace(jit, before - jit->address_count);
    }
    if (is_due(jit, now_ns)) {
        ask(jits, jit);
    }
    return !jit->is_unsettled;
}

bool trace_jits_poll(struct trace_jits *jits)
{
    uint64_t now_ns = limit_clock_ns();
    bool settled = true;
    for (struct trace_jit *jit = jits->first; jit != NULL; jit = jit->next) {
        settled = poll_jit(jits, jit, now_ns) && settled;
    }
    return settled;
}

bool trace_jits_pending(const struct trace_jits *jits)
{
    const struct trace_jit *jit = jits->first;
    while (jit != NULL && jit->pending == NULL && !jit->is_asked_again && !jit->is_unsettled) {
        jit = jit->next;
    }
    return jit != NULL;
}

void trace_jits_ask_again(struct trace_jits *jits)
{
    for (struct trace_jit *jit = jits->first; jit != NULL; jit = jit->next) {
        jit->is_asked_again = jit->address_count > 0;
    }
}
