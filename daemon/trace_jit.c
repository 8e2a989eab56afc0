/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One trace_jit for each program of a process that was sampled in made code, from the first such
 * sample until the log ends; a map is read again at its own pace, never more than once at a time.
 *
 * An address is looked for in the map as it was read last, and if it is not in it, noted, and
 * looked for in each later reading until it is found. It keeps the first name that it gets: when a
 * runtime has put another function there since, nobody can say which samples were whose. A function
 * is written once: `lines` holds what has been, as hashes of all that a line says. A process may
 * note many addresses and choose their names, so a map that has come is gone through in slices, a
 * bounded number of steps for each poll: the collector, which calls it, has rings to empty.
 *
 * Invariant: definitions in `shown` stand in the log under the kernel's name; it is empty once a
 * map has been read and they have been corrected.
 */
#include "trace_jit.h"

#include "cleanup.h"
#include "fair_share.h"
#include "limit_clock.h"
#include "seeded_hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define JITS_MAX        1024
#define ADDRESSES_MAX   ((size_t)524288) /* of all processes, and the lines as well */
#define ADDRESSES_PARTS 4                /* a process has this part of what others leave */
#define SHOWN_MAX       4096
#define BUCKETS         1024
#define NAME_HASH_BYTES 4096 /* as much of a name as is written */
/* What one call of trace_jits_poll() may do, whatever waits: a name takes some 2 us. */
#define SETTLE_STEPS_MAX 1024 /* addresses and mappings that are looked for in their maps */
#define SETTLE_SLICE     64   /* of these, of one process before it is the next one's turn */
#define ASKS_MAX         32 /* maps that are asked for; with those of the samples since the last */
#define INTERVAL_MIN_NS  (500 * NS_PER_MS)
#define INTERVAL_MAX_NS  (8 * NS_PER_S)

struct trace_jit {
    struct trace_jit *next;
    struct trace_jit *next_of_image; /* in its bucket, as the next */
    struct trace_jit *next_of_pid;
    int32_t pid;
    uint32_t owner;    /* the process's */
    uint64_t image_ns; /* when the process began, or began its program */
    uint64_t start_time_ns;
    size_t number; /* of the pid's in this log, from 1 */
    char name[MODULE_NAME_BYTES];
    struct module_ticket *pending; /* owned; a map that is being read */
    struct module_ticket *ready;   /* owned; the map that was read last, or NULL */
    uint64_t asked_ns;
    uint64_t interval_ns;
    bool is_unasked;     /* it has not been asked for yet: too much was at that time */
    bool is_asked_again; /* at the end, whatever the time */
    bool is_unsettled;   /* not all that was noted has been looked for in the map that is ready */
    size_t unsettled_count; /* then: of the addresses, the first ones */
    size_t named_count;     /* by the map that is ready */
    uint64_t *addresses;    /* owned: not named yet */
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
    struct trace_jit *turn;              /* the one that is settled first next time; NULL: first */
    struct trace_jit *ask_turn;          /* the one that was asked for last, or NULL */
    struct trace_jit *of_image[BUCKETS]; /* by pid and image_ns */
    struct trace_jit *of_pid[BUCKETS];   /* of one pid the newest comes first */
    size_t jit_count;
    size_t note_count; /* addresses and lines of all */
    size_t asks_left;  /* until the next poll */
    size_t steps_left; /* of this poll */
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
        jits->asks_left = ASKS_MAX;
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
    jits->turn = jits->ask_turn = NULL;
    memset(jits->of_image, 0, sizeof jits->of_image);
    memset(jits->of_pid, 0, sizeof jits->of_pid);
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

/* Has the map read, now or in one of the next polls. A request that is refused is as if there were
 * no map. */
static void ask(struct trace_jits *jits, struct trace_jit *jit)
{
    if (jits->asks_left == 0) {
        return;
    }
    jits->asks_left--;
    const struct module_query query = {
        .pid = jit->pid, .start_time_ns = jit->start_time_ns, .path = ""};
    jit->asked_ns = limit_clock_ns();
    jit->is_unasked = jit->is_asked_again = false;
    jit->pending = module_cache_request_perf_map(jits->cache, &query);
}

static struct trace_jit **find_image(struct trace_jits *jits, int32_t pid, uint64_t image_ns)
{
    const uint64_t words[] = {(uint32_t)pid, image_ns};
    struct trace_jit **link = &jits->of_image[seeded_hash(words, sizeof words) % BUCKETS];
    while (*link != NULL && ((*link)->pid != pid || (*link)->image_ns != image_ns)) {
        link = &(*link)->next_of_image;
    }
    return link;
}

static struct trace_jit **bucket_of_pid(struct trace_jits *jits, int32_t pid)
{
    return &jits->of_pid[seeded_hash(&pid, sizeof pid) % BUCKETS];
}

/* A process's own name: another that had the pid before it, in this log, has it without a number.
 */
static void choose_name(struct trace_jits *jits, struct trace_jit *jit)
{
    const struct trace_jit *newest = *bucket_of_pid(jits, jit->pid);
    while (newest != NULL && newest->pid != jit->pid) {
        newest = newest->next_of_pid;
    }
    jit->number = newest == NULL ? 1 : newest->number + 1;
    int bytes = snprintf(jit->name, sizeof jit->name, "[jit] (pid %" PRId32 ")", jit->pid);
    if (jit->number > 1) {
        (void)snprintf(jit->name + bytes, sizeof jit->name - (size_t)bytes, " (%zu)", jit->number);
    }
}

struct trace_jit *trace_jits_find(struct trace_jits *jits, const struct process *process)
{
    uint64_t image_ns = process->exec_ns > process->from_ns ? process->exec_ns : process->from_ns;
    struct trace_jit **place = find_image(jits, process->pid, image_ns);
    if (*place != NULL || jits->jit_count == JITS_MAX) {
        return *place;
    }
    struct trace_jit *jit = calloc(1, sizeof *jit);
    if (jit == NULL) {
        return NULL;
    }
    jit->pid = process->pid;
    jit->owner = process->owner;
    jit->image_ns = image_ns;
    jit->start_time_ns = process->start_time_ns;
    jit->interval_ns = INTERVAL_MIN_NS;
    jit->is_unasked = true;
    choose_name(jits, jit);
    ask(jits, jit);
    *place = jit;
    struct trace_jit **of_pid = bucket_of_pid(jits, jit->pid);
    jit->next_of_pid = *of_pid;
    *of_pid = jit;
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
    const uint64_t words[] = {symbol->start, symbol->size_bytes,
                              seeded_hash(name, strnlen(name, NAME_HASH_BYTES))};
    uint64_t hash = seeded_hash(words, sizeof words);
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

static void pace(struct trace_jit *jit)
{
    if (jit->named_count > 0) {
        jit->interval_ns = INTERVAL_MIN_NS;
    } else {
        jit->interval_ns =
            jit->interval_ns < INTERVAL_MAX_NS / 2 ? jit->interval_ns * 2 : INTERVAL_MAX_NS;
    }
    jit->named_count = 0;
}

/* Looks for the last of the addresses that the map was not searched for yet; one that gets its name
 * is noted no longer. False: there is no room in the log now. */
static bool settle_address(struct trace_jits *jits, struct trace_jit *jit)
{
    uint64_t *address = &jit->addresses[jit->unsettled_count - 1];
    enum naming naming = name_by_map(jits, jit, *address);
    if (naming == NAMING_NO_ROOM) {
        return false;
    }
    jit->unsettled_count--;
    if (naming == NAMING_DONE) {
        *address = jit->addresses[--jit->address_count];
        jits->note_count--;
        jit->named_count++;
    }
    return true;
}

/* Writes what the map says of mappings and addresses that were noted, a slice of them; a mapping
 * that is refused stays what the kernel calls it. False: there is no room in the log now. */
static bool settle_slice(struct trace_jits *jits, struct trace_jit *jit)
{
    bool room = true;
    size_t steps = jits->steps_left < SETTLE_SLICE ? jits->steps_left : SETTLE_SLICE;
    for (; steps > 0 && room && jit->shown_count + jit->unsettled_count > 0; steps--) {
        jits->steps_left--;
        if (jit->shown_count > 0) {
            (void)write_made(jits, jit, &jit->shown[--jit->shown_count]);
        } else {
            room = settle_address(jits, jit);
        }
    }
    if (jit->shown_count + jit->unsettled_count == 0) {
        jit->is_unsettled = false;
        pace(jit);
    }
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
        pace(jit);
        return;
    }
    /* What has not grown is the module that it was. */
    bool is_new =
        jit->ready == NULL || module_ticket_module(jit->ready) != module_ticket_module(answer);
    module_ticket_release(jit->ready);
    jit->ready = answer;
    if (is_new) {
        jit->is_unsettled = true;
        jit->unsettled_count = jit->address_count;
    } else {
        pace(jit);
    }
}

/* Whether something has been sampled that may be in the map by now, and it is time to look. */
static bool is_due(const struct trace_jit *jit, uint64_t now_ns)
{
    bool again = jit->address_count > 0 &&
                 (jit->is_asked_again || now_ns - jit->asked_ns >= jit->interval_ns);
    return jit->pending == NULL && !jit->is_unsettled && (jit->is_unasked || again);
}

/* Gives each process a slice, until all is settled, there is no room, or it is enough for now: the
 * next poll goes on with the process behind the last. */
static void settle(struct trace_jits *jits)
{
    bool room = true;
    bool any = true;
    jits->steps_left = SETTLE_STEPS_MAX;
    while (room && any && jits->steps_left > 0) {
        any = false;
        struct trace_jit *jit = jits->turn != NULL ? jits->turn : jits->first;
        for (size_t i = 0; i < jits->jit_count && jit != NULL && room && jits->steps_left > 0;
             i++) {
            if (jit->is_unsettled) {
                room = settle_slice(jits, jit);
                any = true;
            }
            jit = jit->next != NULL ? jit->next : jits->first;
        }
        jits->turn = jit;
    }
}

bool trace_jits_poll(struct trace_jits *jits)
{
    uint64_t now_ns = limit_clock_ns();
    bool settled = true;
    jits->asks_left = ASKS_MAX;
    for (struct trace_jit *jit = jits->first; jit != NULL; jit = jit->next) {
        if (jit->pending != NULL) {
            take_map(jit);
        }
    }
    settle(jits);
    struct trace_jit *jit = jits->ask_turn != NULL ? jits->ask_turn : jits->first;
    for (size_t i = 0; i < jits->jit_count && jit != NULL; i++) {
        if (is_due(jit, now_ns) && jits->asks_left > 0) {
            ask(jits, jit);
            jits->ask_turn = jit;
        }
        settled = settled && !jit->is_unsettled;
        jit = jit->next != NULL ? jit->next : jits->first;
    }
    return settled;
}

/* A reading that was under way may have named all that another one was to be asked for. */
static bool is_pending(const struct trace_jit *jit)
{
    return jit->pending != NULL || jit->is_unasked || jit->is_unsettled ||
           (jit->is_asked_again && jit->address_count > 0);
}

bool trace_jits_pending(const struct trace_jits *jits)
{
    const struct trace_jit *jit = jits->first;
    while (jit != NULL && !is_pending(jit)) {
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
