/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the perf map of one process has said, and since when. A map has no times of its own: what is
 * known of a line is between which two readings it came, and what the file's time of change says.
 *
 * A line has its addresses until a later line claims them. So while a map only grows, the text of
 * the last reading also tells which line had an address at an earlier reading. A map that does not
 * begin as it did has been written anew: what it said between the two readings is lost, and an
 * epoch begins. Pure, but for the two clocks of jit_clock_look().
 *
 * All times are nanoseconds of CLOCK_BOOTTIME.
 */

#include "module_cache.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JIT_READINGS_MAX 16

/* How files' times (CLOCK_REALTIME) become the samples'. */
struct jit_clock {
    int64_t offset_ns; /* real time less boot time, when it was looked at last */
    uint64_t set_ns;   /* when the real time was last found to have been set; 0: never */
    bool is_known;
};

/* Looks at the clocks; about once a second is enough. */
void jit_clock_look(struct jit_clock *clock);

struct jit_map {
    struct module_ticket *ready; /* owned; the reading that was taken last, or NULL */
    uint64_t confirmed_ns;       /* when it began: until then all was as it says */
    uint64_t lost_ns;            /* confirmed_ns as the last epoch had it */
    uint64_t epoch;              /* from 1; 0: it has not been read */
    uint64_t epoch_ns;           /* since when its lines are known */
    uint64_t epoch_bytes;        /* of the text, as it was read first in the epoch */
    uint64_t text_bytes;         /* of the last reading, as the next */
    uint64_t text_hash;
    int64_t changed_s; /* the file's time of change; 0: not known */
    int64_t changed_ns;
    bool was_absent; /* it was looked for before it was there */
    struct jit_reading {
        uint64_t text_bytes;
        uint64_t from_ns;         /* since when the text was as it was read */
    } readings[JIT_READINGS_MAX]; /* of this epoch, the newest ones; the text grows */
    size_t reading_count;
};

enum jit_map_news {
    JIT_MAP_SAME,
    JIT_MAP_GREW,
    JIT_MAP_ANEW, /* another epoch; what was said in the last one holds until lost_ns */
};

void jit_map_done(struct jit_map *map);

/* Takes a ready ticket of a reading that began and ended at these times. */
enum jit_map_news jit_map_take(struct jit_map *map, struct module_ticket *ticket, uint64_t begin_ns,
                               uint64_t end_ns, const struct jit_clock *clock);

/*
 * Since when a claim of the last reading is known to hold, in this epoch. A line that came later
 * has not had its addresses before: a program that writes its map anew may leave its beginning as
 * it was, and what it said in between is not known.
 */
uint64_t jit_map_since(const struct jit_map *map, uint32_t claim);

/* Whether a claim is of the epoch's first reading, and no other line has claimed its addresses. */
bool jit_map_is_first(const struct jit_map *map, uint32_t claim);

/* No claim holds since a later time than this. */
uint64_t jit_map_latest(const struct jit_map *map);

/* The table of the last reading; borrowed. */
const struct symbol_table *jit_map_table(const struct jit_map *map);
