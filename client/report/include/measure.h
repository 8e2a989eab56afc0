/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How what samples stand for is shown to a person: as a number of samples, of faults, or as a time.
 */

#include "profile.h"

#include <stddef.h>
#include <stdint.h>

/* A column of amounts of a profile. */
struct measure {
    uint64_t divisor; /* of nanoseconds, so that they are seconds or milliseconds; else 0 */
    const char *unit; /* for the column's title: " s", " ms", or "" */
    int width;        /* at least MEASURE_WIDTH_MIN */
};
#define MEASURE_WIDTH_MIN 8

struct measure measure_of(const struct profile *profile);

/* An amount as its column has it, without spaces before it. `into` has room for
 * MEASURE_CELL_BYTES; returns it. */
#define MEASURE_CELL_BYTES ((size_t)32)
const char *measure_cell(const struct measure *measure, uint64_t value, char *into);

/* An amount in words: "3 samples", "30,000 faults", "12.300 s". `into` has room for
 * MEASURE_WORDS_BYTES; returns it. */
#define MEASURE_WORDS_BYTES ((size_t)128)
const char *measure_words(const struct profile_event *event, uint64_t value, char *into);

/* What a part of all values is a part of: "samples", "faults", "blocked time"; and whether that is
 * one thing. */
const char *measure_whole(const struct profile_event *event);
bool measure_is_one(const struct profile_event *event);
