/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Reads the two rings of switches of one CPU, samples and records, in the order of time. Says where
 * records are missing: they were lost, or were switched off for a while. Pure; belongs to the
 * collector thread.
 *
 * Each switch_rings_look() is followed by switch_rings_next_ns(). Once what is next has been
 * handled, one of these follows: switch_rings_pass_mark(), switch_rings_drop_sample() or
 * switch_rings_drop_record().
 */

#include "perf_record.h"
#include "perf_ring.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Borrowed, for the life of the rings that are read. */
struct switch_rings_config {
    const struct perf_ring *records; /* read by a view, since it has another reader */
    struct perf_ring *samples;
    const struct perf_record_layout *record_layout;
    const struct perf_record_layout *sample_layout;
};

/* The members below are to be read, and written here alone. */
struct switch_rings {
    struct switch_rings_config config;
    struct perf_ring view; /* of the ring of records: its room is given back by switch_feed.c */
    bool has_record;
    bool is_lossy;             /* records are missing before the next */
    bool is_full;              /* they may be missing behind those that are there */
    struct perf_record record; /* the next */
    bool has_sample;
    struct perf_record sample; /* the next; its views are of the ring */
    size_t sample_bytes;
    size_t unpublished_bytes;
    uint64_t lost_samples;
    uint64_t bad_samples; /* that could not be parsed */
    /* Records were off lately, or are: between these times all of it is passed over. */
    uint64_t off_from_ns;
    uint64_t off_to_ns;
    uint64_t mark_ns; /* of the two the one that was not passed yet; UINT64_MAX: none */
    bool is_off;      /* the first was passed, and the second was not */
    uint64_t held_back_ns;
};

void switch_rings_init(struct switch_rings *rings, const struct switch_rings_config *config);
/* The rings are new ones, in the same places: records are missing before the first. */
void switch_rings_renew(struct switch_rings *rings);

/* A run begins, and ends at `time_ns`, when all has been taken. */
void switch_rings_start(struct switch_rings *rings);
void switch_rings_stop(struct switch_rings *rings, uint64_t time_ns);

/* A round begins: reads how far the kernel has written; that of records was read by now. */
void switch_rings_refresh(struct switch_rings *rings);
/* Gives the room of samples back. The next one is shown again by switch_rings_look(). */
void switch_rings_publish(struct switch_rings *rings);

/*
 * The records are off, for there were too many, from a time on that was not reached yet; up to one
 * that has come by now, or is UINT64_MAX. 0: they never were. Returns whether a new such time has
 * begun.
 */
bool switch_rings_hold(struct switch_rings *rings, uint64_t from_ns, uint64_t to_ns);
static inline bool switch_rings_are_held(const struct switch_rings *rings)
{
    return rings->off_to_ns == UINT64_MAX;
}

/* Makes the next sample and the next record known, where there are any. Returns whether records are
 * missing since the last one: switch_rings_are_blind(). */
bool switch_rings_read_ahead(struct switch_rings *rings);
static inline bool switch_rings_look(struct switch_rings *rings)
{
    return (!rings->has_record || !rings->has_sample) && switch_rings_read_ahead(rings);
}

/* No more are missing: the next is there. Returns whether some were. */
static inline bool switch_rings_find(struct switch_rings *rings)
{
    const bool was_lossy = rings->is_lossy;
    rings->is_lossy = false;
    return was_lossy;
}

/* Whether it is unknown what the CPU does. */
static inline bool switch_rings_are_blind(const struct switch_rings *rings)
{
    return rings->is_off || rings->is_lossy;
}

/* The time of what is next; UINT64_MAX: nothing is. Of one time a mark is before a sample, and that
 * before a record. */
static inline uint64_t switch_rings_next_ns(const struct switch_rings *rings)
{
    uint64_t time_ns = rings->mark_ns;
    if (rings->has_record && rings->record.time_ns < time_ns) {
        time_ns = rings->record.time_ns;
    }
    return rings->has_sample && rings->sample.time_ns < time_ns ? rings->sample.time_ns : time_ns;
}

/* From its mark on the records are off, or they are on again. */
void switch_rings_pass_mark(struct switch_rings *rings);
void switch_rings_drop_sample(struct switch_rings *rings);
/* Whether a sample that was just made known filled the ring so far that its reader was woken. */
bool switch_rings_sample_woke(const struct switch_rings *rings);
static inline void switch_rings_drop_record(struct switch_rings *rings)
{
    rings->has_record = false;
}
