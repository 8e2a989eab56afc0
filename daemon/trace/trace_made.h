/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The code that one process makes, on its way into the file: which names its addresses have, since
 * when, and until when that is proved. Of trace_jit.c only; belongs to the collector thread.
 *
 * In the file a process's made code is one module. A function that is the only one that its
 * addresses were ever claimed by has them as they run. One that took over addresses of another gets
 * fresh addresses of the module, from MADE_VADDR on, and a mapping record that says since when it
 * is what is to be seen. Where the owner of an address is unknown, it is "[anon]".
 */

#include "dump_clock.h"
#include "jit_map.h"
#include "made_lines.h"
#include "trace_definition.h"

#define MADE_NOTES_MAX ((size_t)524288)    /* of all processes: addresses, lines and pieces */
#define MADE_LATE_MAX  ((size_t)262144)    /* the same: addresses that are still to be looked up */
#define MADE_VADDR     (UINT64_C(1) << 57) /* above what a process can map */

/* What all of them share. */
struct made_shared {
    struct definition_log *log;
    struct trace_symbols *symbols;
    struct jit_clock clock;
    struct dump_clock dump_clock;
    size_t note_count; /* of all, as bounded as each is */
    size_t late_count;
};

struct made_note;
struct made_piece;
struct made_late;

struct made_code {
    uint32_t owner;
    char name[MODULE_NAME_BYTES]; /* of the module */
    struct jit_map map;
    uint64_t next_vaddr;
    uint64_t window;         /* the number of the last reading that changed something */
    struct made_note *notes; /* owned: addresses that have no name */
    size_t note_count;
    size_t note_capacity;
    size_t unsettled_count; /* of them, the first ones: not looked for in the last reading yet */
    /* What has been written. `sampled` of a function: the window and region whose pieces have it;
     * of an address: the time of its last sample. */
    struct made_lines lines;
    struct made_piece *pieces; /* owned: functions that were sampled since the last reading */
    size_t piece_count;
    size_t piece_capacity;
    struct made_piece *doubts; /* owned: the same, of the one before, not compared with it yet */
    size_t doubt_count;
    size_t doubt_capacity;
    struct made_late *late; /* owned: sampled addresses that are still to be looked up */
    size_t late_count;
    size_t late_capacity;
    uint64_t doubt_ns;   /* until when these are proved */
    bool doubts_are_all; /* the last reading says nothing of what was before it */
    bool is_last;        /* nothing has been sampled since it began */
    size_t news_count;   /* that have come of the last reading */
};

/* Whether a process that has so many notes may have one more. */
bool made_may_note(const struct made_shared *shared, size_t own_count);
/* Whether one in which so many notes wait for a reading may have one more: half of its part, since
 * what the reading tells of them takes notes, too. */
bool made_may_wait(const struct made_shared *shared, size_t own_count);

/* Gives back what it holds. */
void made_done(struct made_shared *shared, struct made_code *code);

/* Defines a mapping of made code, which the kernel calls `name`. False: refused. */
bool made_define(struct made_shared *shared, struct made_code *code,
                 const struct shown_mapping *region, uint64_t vaddr, const char *name);

/*
 * A sample fell at `address` of the region, at `time_ns`: names the function, or notes that it
 * wants a name. This holds for all samples from `*ret_from_ns` on until another reading;
 * TIME_OPEN_NS: for this one only. False: no room.
 */
bool made_name(struct made_shared *shared, struct made_code *code,
               const struct shown_mapping *region, uint64_t address, uint64_t time_ns,
               uint64_t *ret_from_ns);

/*
 * The same, but the address is looked up in a later made_settle(). False: no room, and the file may
 * have another name there.
 */
bool made_postpone(struct made_shared *shared, struct made_code *code,
                   const struct shown_mapping *region, uint64_t address, uint64_t time_ns,
                   uint64_t *ret_from_ns);

/* Takes the ticket of a reading that began and ended at these times. `is_last`: nothing was sampled
 * after it began. No address may be late, unless this is the first: it is looked up in the reading
 * before this one. False: it brings nothing new. */
bool made_take(struct made_shared *shared, struct made_code *code, struct module_ticket *ticket,
               uint64_t begin_ns, uint64_t end_ns, bool is_last);

/* One step of what a reading brings, or of what is late. False: no room in the log now. */
bool made_settle(struct made_shared *shared, struct made_code *code);
bool made_is_settled(const struct made_code *code);

/* Whether something was sampled of which the next reading tells more. */
bool made_wants(const struct made_code *code);
/* Whether all that was sampled until then is as proved as it can be. */
bool made_is_proved(const struct made_code *code, uint64_t time_ns);

/* There will be no other reading for this log: what was sampled since the last one loses its name.
 */
void made_close(struct made_shared *shared, struct made_code *code);
