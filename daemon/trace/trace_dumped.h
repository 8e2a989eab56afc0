/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The code that one process makes and tells of in a jitdump, on its way into the file. Of
 * trace_jit.c only; belongs to the collector thread.
 *
 * In the file it is a module of the process, in which each function has addresses of its own
 * (jitdump.h), and a mapping record for each time and place at which one was sampled.
 */

#include "trace_made.h"

#include "perf_map.h"

#define DUMPED_RECENT_NOTES 1024 /* a power of two */

struct dumped_note;
struct dumped_piece;

struct dumped_code {
    struct module_query query; /* of the mapping; its path is owned */
    uint32_t owner;
    char name[MODULE_NAME_BYTES];
    struct module_ticket *ready; /* owned: the reading that was taken last, or NULL */
    struct perf_map_state state; /* of it */
    uint64_t confirmed_ns;       /* when it began */
    bool is_over;                /* it is not what it was, or too much: it is read no more */
    struct made_lines lines;     /* what was written */
    struct dumped_note *notes;   /* owned: what was sampled that the next reading may tell of */
    size_t note_count;
    size_t note_capacity;
    size_t unsettled_count;               /* of them, the first: the reading was not asked yet */
    uint32_t recent[DUMPED_RECENT_NOTES]; /* numbers of notes, by hash */
    struct dumped_piece *pieces;          /* owned: what was shown that has no end yet */
    size_t piece_count;
    size_t piece_capacity;
    size_t doubt_count; /* of them, the first: not compared with the reading yet */
    size_t news_count;  /* that have come of it */
};

/* Returned; NULL when there is no memory. The query is copied. */
struct dumped_code *dumped_new(const struct module_query *query, uint32_t owner, const char *name);
struct dumped_code *dumped_free(struct made_shared *shared, struct dumped_code *code);

/*
 * A sample fell at `address` of a region of made code, at `time_ns`: shows the function that was
 * there, or notes that it wants one. It holds for this sample only. False: no room.
 */
bool dumped_name(struct made_shared *shared, struct dumped_code *code,
                 const struct shown_mapping *region, uint64_t address, uint64_t time_ns);

/* The dump, of which something was read, is read no more: what was sampled since has no name. */
void dumped_end(struct made_shared *shared, struct dumped_code *code);

/* The next six as those of trace_made.h. */
bool dumped_take(struct made_shared *shared, struct dumped_code *code, struct module_ticket *ticket,
                 uint64_t begin_ns);
bool dumped_settle(struct made_shared *shared, struct dumped_code *code);
bool dumped_is_settled(const struct dumped_code *code);
bool dumped_wants(const struct dumped_code *code);
bool dumped_is_proved(const struct dumped_code *code, uint64_t time_ns);
void dumped_close(struct made_shared *shared, struct dumped_code *code);
